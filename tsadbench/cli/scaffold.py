"""``tsadbench new detector``: a package of your own, ready to install, check and run."""

from __future__ import annotations

import builtins
import importlib.util
import keyword
import re
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from string import Template

from tsadbench.errors import UsageError
from tsadbench.registry import Kind, entries

# The file that each template becomes; names may contain $module.
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "readme.txt": "README.md",
    "init.txt": "src/$module/__init__.py",
    "detector.txt": "src/$module/detector.py",
    "test.txt": "tests/test_$module.py",
    "ci.txt": ".github/workflows/ci.yml",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# With longer names, lines of the templates would exceed 120 columns.
_LONGEST_NAME = 30
# What the templates' modules import: a class of such a name would hide it.
_IMPORTED = frozenset({"Detector", "DetectorContract", "NDArray", "Recording", "Traits"})
_KINDS: tuple[Kind, ...] = ("detectors", "protocols", "datasets")


def new_detector(name: str, folder: Path) -> list[Path]:
    """Write a package with one detector, and return its files.

    Parameters
    ----------
    name
        The detector's name on the command line: small letters, digits and single hyphens.
    folder
        Folder in which the package's folder, named like the detector, is made.

    Raises
    ------
    UsageError
        If the name is malformed or taken, the folder exists, or nothing can be written there.
    """
    _check_name(name)
    target = folder / name
    if target.exists():
        raise UsageError(f"{target} exists already: choose another name or another --out")
    words = {"name": name, "module": name.replace("-", "_"), "cls": _class_name(name)}
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
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"a detector's name consists of small letters, digits and single hyphens, {_LONGEST_NAME} characters at "
            f"most, found {name!r}"
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or importlib.util.find_spec(module) is not None:
        raise UsageError(f"{name!r} cannot be a package: Python has a keyword or a package {module!r}; choose another")
    for kind in _KINDS:
        for entry in entries(kind):
            if entry.name == name:
                raise UsageError(
                    f"there is {name!r} among the {kind} already, from the package {entry.package}: choose another"
                )


def _class_name(name: str) -> str:
    camel_case = "".join(part.capitalize() for part in name.split("-"))
    hides = camel_case in _IMPORTED or hasattr(builtins, camel_case)  # True, False and None among them
    return f"{camel_case}Detector" if hides else camel_case


def _write(folder: Path, template: str, target: str, words: dict[str, str]) -> Path:
    file = Path(Template(target).substitute(words))
    text = resources.files("tsadbench.cli").joinpath("template", template).read_text(encoding="utf-8")
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(Template(text).substitute(words), encoding="utf-8")
    return file
