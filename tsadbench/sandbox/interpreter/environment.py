"""A detector's own interpreter as it is known outside: whether it is fit for a box, its libraries, how to start it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, ValidationError

from tsadbench.errors import UsageError
from tsadbench.utils.import_lookup import find_package
from tsadbench.utils.text import one_line, printable_values

_START = Path(__file__).with_name("start.py")
_OLDEST = (3, 10)
_SECONDS = 120.0
# The packages that tsadbench brings, and libraries of pure Python (of psutil: of Python's stable interface) that the
# inside of a box imports. All that the interpreter has itself is preferred, but for tsadbench.
_OURS = ("tsadbench_detectors", "tsadbench_protocols")
_LIBRARIES = ("threadpoolctl", "typing_extensions", "psutil", "cloudpickle")
# Names of folders that say nothing about an environment: the folder that holds it is asked then.
_NAMELESS = frozenset({"venv", ".venv", "env", ".env", "virtualenv"})
_SYSTEM = frozenset({"/usr", "/usr/local", "/"})


class _Told(BaseModel):
    """What the interpreter says of itself."""

    model_config = ConfigDict(extra="forbid")

    version: str
    implementation: str
    prefix: str
    search_path: tuple[str, ...]
    libraries: tuple[str, ...]
    distributions: dict[str, str]
    packages: dict[str, tuple[str, ...]]
    blas: tuple[str, ...]
    fault: str


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """Another Python and what is installed in it.

    Parameters
    ----------
    executable
        Its path, absolute; links are kept, since a virtual environment is known by its own.
    name
        What labels call it: the environment's folder, or the one around it if that says nothing (``.venv``);
        ``python3.12`` for a system's own.
    version
        Its version of Python.
    search_path
        Its import path.
    libraries
        Files and folders that hold it and its libraries.
    distributions
        Versions of what is installed, by name.
    packages
        The distributions that hold a top-level package, by its name.
    blas
        The linear algebra libraries of its numpy, with the kernels that they chose for this processor.
    """

    executable: str
    name: str
    version: str
    search_path: tuple[str, ...]
    libraries: tuple[str, ...]
    distributions: Mapping[str, str]
    packages: Mapping[str, tuple[str, ...]]
    blas: tuple[str, ...]

    def version_of(self, distribution: str) -> str | None:
        """Return the version of a distribution, whatever the spelling of its name; None if it is not installed."""
        wanted = _normalised(distribution)
        return next((version for name, version in self.distributions.items() if _normalised(name) == wanted), None)


@cache
def environment_of(executable: str) -> Environment:
    """Return what is installed beside an interpreter; it is started once to find out.

    Parameters
    ----------
    executable
        As `named.interpreter_path` returns it.

    Raises
    ------
    UsageError
        If it is no Python, too old, or has no numpy.
    """
    told = _asked(executable)
    if told.implementation != "CPython":
        raise UsageError(f"python={executable}: expected CPython, found {told.implementation}")
    if told.fault:
        missing = told.fault.startswith("ModuleNotFoundError")
        advice = f"it needs numpy, and nothing else: {executable} -m pip install numpy"
        found = "it is not installed" if missing else one_line(told.fault, 200)
        raise UsageError(f"python={executable}: numpy cannot be imported there ({found}); {advice}")
    return Environment(
        executable=executable,
        name=_name(Path(told.prefix), told.version),
        version=told.version,
        search_path=told.search_path,
        libraries=tuple(dict.fromkeys((*told.libraries, executable))),
        distributions=dict(sorted(told.distributions.items(), key=lambda item: item[0].lower())),
        packages=told.packages,
        blas=told.blas,
    )


def lent_places() -> dict[str, str]:
    """Return where the modules are that every other interpreter is lent, by name."""
    return places_of((*_OURS, *_LIBRARIES))


def places_of(names: Iterable[str]) -> dict[str, str]:
    """Return where this interpreter finds top-level packages (their folders) and modules (files), as far as it does."""
    found = {}
    for name in names:
        spec = find_package(name)
        if spec is not None and spec.submodule_search_locations and spec.origin:
            found[name] = os.path.abspath(next(iter(spec.submodule_search_locations)))
        elif spec is not None and spec.origin and spec.origin.endswith(".py"):
            found[name] = os.path.abspath(spec.origin)
    return found


def own_folder() -> str:
    """Return the folder of the package tsadbench."""
    return str(Path(__file__).absolute().parents[2])


def start_arguments(executable: str, *order: str) -> list[str]:
    """Return the command line that has an interpreter carry out an order of `inside.begin`."""
    return [executable, str(_START), json.dumps([own_folder(), lent_places()]), *order]


def _asked(executable: str) -> _Told:
    command = start_arguments(executable, "describe")
    passed_on = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LD_LIBRARY_PATH")}
    environment = {**passed_on, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_SECONDS, check=False
        )
    except OSError as error:
        raise UsageError(f"python={executable}: cannot be run ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"python={executable}: expected a Python interpreter; it gave no answer") from error
    try:
        content = cast("dict[str, str]", printable_values(json.loads(done.stdout)))
        version = tuple(map(int, content["version"].split(".")[:2]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        said = (done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise UsageError(
            f"python={executable}: expected a Python interpreter, found a program that does not answer like one "
            f"({one_line(said, 200)})"
        ) from error
    if version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise UsageError(f"python={executable}: expected Python {oldest} or newer, found {content['version']}")
    try:
        return _Told.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"python={executable}: its answer cannot be read ({one_line(str(error), 200)})") from error


def _name(prefix: Path, version: str) -> str:
    if str(prefix) in _SYSTEM:
        return f"python{version.rpartition('.')[0]}"
    return prefix.parent.name if prefix.name in _NAMELESS and prefix.parent.name else prefix.name


def _normalised(distribution: str) -> str:
    return distribution.lower().replace("_", "-").replace(".", "-")
