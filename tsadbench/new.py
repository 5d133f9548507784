"""``tsadbench new detector``: a package of one's own, ready to be installed, checked and run."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from string import Template

from tsadbench.errors import UsageError
from tsadbench.registry import entries

# Where each template goes; names may hold $module.
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "readme.txt": "README.md",
    "init.txt": "src/$module/__init__.py",
    "detector.txt": "src/$module/detector.py",
    "test.txt": "tests/test_$module.py",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new_detector(name: str, folder: Path) -> list[Path]:
    """Write a package that brings one detector; return its files.

    Parameters
    ----------
    name
        The detector's name on the command line: small letters, digits and single hyphens.
    folder
        Where the package's own folder, named like the detector, is made.

    Raises
    ------
    UsageError
        Where the name is malformed or taken, the folder exists, or nothing can be written there.
    """
    _check_name(name)
    target = folder / name
    if target.exists():
        raise UsageError(f"{target} exists already: choose another name or another --out")
    module = name.replace("-", "_")
    words = {"name": name, "module": module, "cls": "".join(part.capitalize() for part in name.split("-"))}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".tsadbench-new-", dir=folder))
        try:
            written = [_write(unfinished, *pair, words) for pair in _FILES.items()]
            unfinished.chmod(0o755)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"{target}: cannot be written ({error.strerror}); choose another --out") from error
    return [target / file for file in written]


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"a detector's name is made of small letters, digits and single hyphens, found {name!r}")
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or importlib.util.find_spec(module) is not None:
        raise UsageError(f"{name!r} cannot be a package: Python has a keyword or a package {module!r}; choose another")
    for entry in entries("detectors"):
        if entry.name == name:
            raise UsageError(f"there is a detector {name!r} already, from the package {entry.package}: choose another")


def _write(folder: Path, template: str, place: str, words: dict[str, str]) -> Path:
    file = Path(Template(place).substitute(words))
    text = resources.files("tsadbench").joinpath("template", template).read_text(encoding="utf-8")
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(Template(text).substitute(words), encoding="utf-8")
    return file
