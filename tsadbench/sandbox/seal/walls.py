"""What a box may access: determined by the harness and sent to the server with the request for a box."""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from glob import glob
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distributions
from pathlib import Path

from tsadbench.utils.distributions import find_package
from tsadbench.utils.source_digest import LIBRARY_FOLDERS

_PREFIXES = tuple({sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix})
_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64", "/nix/store")
GPU_DEVICES = ("/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/dri/renderD*", "/dev/kfd")
_GPU_LIBRARIES = ("/usr/local/cuda*", "/opt/cuda*", "/opt/rocm*")
# What CUDA and ROCm read about devices, links included, and about memory.
_GPU_FACTS = ("/sys/devices", "/sys/module/nvidia*", "/sys/class/kfd", "/sys/class/drm", "/sys/bus/pci", "/proc/driver",
              "/proc/meminfo", "/proc/stat")  # fmt: skip
# Limit on written files: the kernel limits each, `Watch` their sum.
LARGEST_FILE = 512 * 2**20


@dataclass(frozen=True, slots=True)
class Walls:
    """What a box may access, besides what every box may. Paths are absolute; ``readable`` and ``hidden`` have no links.

    It may read ``readable`` files and folders and start programs below them. Of ``importable`` folders of the import
    path it may only read modules and packages, by name. ``devices`` are GPUs, ``hidden`` the data and the store.
    """

    readable: tuple[str, ...] = ()
    importable: dict[str, dict[str, str]] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def exposed(self) -> str | None:
        """Return a hidden folder that is, or is inside, a readable folder; else None."""
        return next((folder for folder in self.hidden if any(is_below(folder, path) for path in self.readable)), None)


def plan_walls(
    path: Sequence[str], *, forbidden: Sequence[Path] = (), modules: Sequence[str] = (), gpu: bool = False
) -> Walls:
    """Return the walls of a box with this import path, which may not read the ``forbidden`` folders.

    ``modules`` are the names of modules with the detector's code: their whole packages may be read, even without
    ``__init__.py``. ``gpu`` allows GPUs.
    """
    tops = sorted({name.partition(".")[0] for name in modules})
    own = {top: place for top in tops if (place := _package_folder(top)) is not None}
    folders = (entry for entry in path if os.path.isdir(entry))
    own_folders = [entry for entry in folders if not _is_of_libraries(entry)]
    importable = {entry: dict(_importables(entry, os.stat(entry).st_mtime_ns)) for entry in own_folders}
    for entry, found in importable.items():
        found |= {name: folder for name, folder in own.items() if is_below(folder, entry)}
    readable = [
        *_libraries_of(tuple(path)),
        *own.values(),
        *(folder for found in importable.values() for folder in found.values()),
    ]
    devices = _existing(GPU_DEVICES) if gpu else []
    readable += _existing(_GPU_LIBRARIES + _GPU_FACTS) if gpu else []
    return Walls(
        readable=tuple(dict.fromkeys(map(os.path.realpath, readable))),
        importable=importable,
        devices=tuple(devices),
        hidden=tuple(str(folder.resolve()) for folder in forbidden),
    )


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or inside it; both absolute."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


@lru_cache(maxsize=4)
def _libraries_of(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return this interpreter, its libraries, the system's libraries, and editable installs."""
    of_python = [os.path.join(prefix, name) for prefix in sorted(_PREFIXES) for name in ("lib", "lib64", "pyvenv.cfg")]
    site = [entry for entry in path if os.path.isfile(entry) or _is_of_libraries(entry)]
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    editable = [folder for entry in site for folder in _editable_packages(entry)]
    found = [os.path.realpath(sys.executable), *of_python, *site, *_LIBRARIES, *searched, *editable]
    return tuple(dict.fromkeys(place for place in found if os.path.isabs(place) and os.path.exists(place)))


def _is_of_libraries(entry: str) -> bool:
    """Whether a folder of the import path holds libraries."""
    if os.path.basename(entry) in LIBRARY_FOLDERS:
        return True
    return any(is_below(entry, os.path.join(prefix, "lib")) for prefix in _PREFIXES)


@lru_cache(maxsize=64)
def _importables(entry: str, changed: int) -> dict[str, str]:  # noqa: ARG001 - part of the cache key
    """Return the modules of a folder, and the packages that have ``__init__.py``, by name."""
    names = (module.name for module in pkgutil.iter_modules([entry]) if module.name.isidentifier())
    found = {name: _place(PathFinder.find_spec(name, [entry])) for name in names}
    return {name: place for name, place in found.items() if place is not None}


def _editable_packages(site: str) -> Iterator[str]:
    """Yield the folders of packages that were installed with ``pip install -e`` without a path in ``sys.path``."""
    for installed in distributions(path=[site]):
        with contextlib.suppress(ValueError, AttributeError):
            origin = json.loads(installed.read_text("direct_url.json") or "{}")
            if origin.get("dir_info", {}).get("editable"):
                yield from filter(None, map(_package_folder, (installed.read_text("top_level.txt") or "").split()))


def _package_folder(name: str) -> str | None:
    """Return the folder or file of a top-level package or module; None if it cannot be found."""
    return _place(find_package(name))


def _place(spec: ModuleSpec | None) -> str | None:
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ())
    place = places[0] if places else spec.origin if spec.has_location else None
    return None if place is None else os.path.abspath(place)


def _existing(patterns: Sequence[str]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob(pattern))]
