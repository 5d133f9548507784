"""Import a module from the text of its file, which this process may not be able to read."""

from __future__ import annotations

import hashlib
import linecache
import sys
from importlib.abc import SourceLoader
from importlib.util import decode_source, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

# By the file's absolute path: whoever wants to read the source of a module asks here first.
imported_texts: dict[str, bytes] = {}
# Begins the names of these modules.
FILE_PREFIX = "_tsadbench_file_"


class _TextLoader(SourceLoader):
    """Holds the source of one module; it writes no compiled copy beside the file."""

    def __init__(self, path: str, text: bytes) -> None:
        self._path, self._text = path, text

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002 - the interface of loaders
        return self._path

    def get_data(self, path: bytes | str) -> bytes:
        if path != self._path:
            raise OSError(f"expected {self._path}, found {path!r}")
        return self._text


def import_text(path: str, text: bytes) -> ModuleType:
    """Return the module that the text of a file defines, without reading the file; the same text gives the same module.

    Tracebacks show the path, which is absolute.
    """
    name = f"{FILE_PREFIX}{Path(path).stem}_{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    if name in sys.modules and imported_texts[path] == text:
        return sys.modules[name]
    loader = _TextLoader(path, text)
    spec = spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name], imported_texts[path] = module, text
    try:
        # Without a time of change: nobody looks then whether the file still is what it was.
        lines = decode_source(text).splitlines(keepends=True)
        linecache.cache[path] = (len(text), None, lines, path)
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
