"""Import a module from the text of its file, which this process may not be able to read."""

from __future__ import annotations

import hashlib
import linecache
import sys
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType

# Absolute path -> content: code that reads a module's source looks here first.
imported_texts: dict[str, bytes] = {}
# Prefix of the names of these modules.
FILE_PREFIX = "_tsadbench_file_"


def import_text(path: str, text: bytes) -> ModuleType:
    """Return the module that the text of a file defines, without reading the file.

    The same path and text give the same module. Tracebacks show the path, which is absolute.
    """
    name = f"{FILE_PREFIX}{Path(path).stem}_{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    if name in sys.modules and imported_texts[path] == text:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name], imported_texts[path] = module, text
    try:
        # No mtime, so linecache never checks the file again.
        linecache.cache[path] = (len(text), None, decode_source(text).splitlines(keepends=True), path)
        exec(compile(text, path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module
