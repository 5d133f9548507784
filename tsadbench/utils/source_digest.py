"""Digests of the source code behind a class, one per module, for the identity of trials.

They cover the class's own module and the modules that it imports, at any depth, from its package (for a single file:
from its folder) and from `tsadbench.base`. A digest covers a module's name and its syntax without comments, formatting
and docstrings. A class in a notebook or a script's ``__main__`` is covered by its definition. If the definition uses
other names of the session, the source counts as unknown, because they can change independently.
"""

from __future__ import annotations

import ast
import hashlib
import json
import linecache
import os
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from tsadbench.utils.import_text import FILE_PREFIX, imported_texts

# Modules next to a single file in one of these folders do not belong to it.
LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages"})
_CORE = "tsadbench"
_BASE = "tsadbench.base"
_BASE_FILE = Path(__file__).parents[1] / "base" / "__init__.py"
# `type_params` is new in Python 3.12; `kind` is the u of u"text".
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_params"})


@dataclass(frozen=True, slots=True)
class Sources:
    """The source code behind a class. If it is unknown, its digest differs each time."""

    modules: dict[str, str]  # name -> digest; a module given by its path has the file's name
    imports: tuple[str, ...]  # from other packages, but not by `tsadbench.base` or of the standard library
    files: tuple[str, ...]  # of all these modules, and of the class's bases
    known: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 of all modules."""
        return digest_of(self.modules)

    @property
    def packages(self) -> frozenset[str]:
        """Top-level packages that the modules import."""
        return frozenset(name.partition(".")[0] for name in self.imports)


def source_of(cls: type) -> Sources:
    """Return the source code behind a class; it is unknown if Python does not keep it (``python -``, ``exec``).

    For a class created by a function, the attribute ``content``, a hash of what it captures, is covered too; without
    it, the source is unknown.
    """
    unknown = Sources({cls.__qualname__: uuid4().hex}, (), (), known=False)
    digests: dict[str, str] = {}
    imports: dict[str, set[str]] = {}
    waiting = {base.__module__ for base in cls.__mro__}
    bases = {name: Path(file) for name in waiting if (file := getattr(sys.modules.get(name), "__file__", None))}
    own_file = bases.get(cls.__module__)
    if "<locals>" in cls.__qualname__:
        if not isinstance(content := vars(cls).get("content"), str):
            return unknown
        digests[cls.__qualname__] = content
    elif own_file is None or cls.__module__ == "__main__" or _text(own_file) is None:
        if (definition := _definition(cls)) is None:
            return unknown
        digests[cls.__name__], imports[cls.__module__] = definition
        waiting |= imports[cls.__module__]
    own = _own_package(cls.__module__, own_file)
    files, seen = {*bases.values()}, {*imports}
    while new := waiting - seen:
        name = new.pop()
        seen.add(name)
        file = own_file if name == cls.__module__ else _own_file(name, *own)
        if file is None or (text := _text(file)) is None:
            continue
        files.add(file)
        digests[file.name if name.startswith(FILE_PREFIX) else name], statements = _read(text)
        above = name.rpartition(".")[0]
        package = name if file.name == "__init__.py" else above
        imports[name] = {one for statement in statements for one in _imported(*statement, package, own)}
        waiting |= imports[name] | ({above} - {_BASE})
    # tsadbench.base only computes with numpy; its other libraries do input and output.
    others = {one for name, names in imports.items() if not _is_in(name, _BASE) for one in names}
    known = imports.keys() | sys.stdlib_module_names | {own[0], _CORE, "__main__", ""}
    foreign = {"numpy", *(one for one in others - imports.keys() if one.partition(".")[0] not in known)}
    return Sources(digests, tuple(sorted(foreign)), tuple(sorted(map(str, files))))


def digest_of(modules: Mapping[str, str]) -> str:
    """Return the hash of modules and their digests, 64 hex digits."""
    return _hash(json.dumps(dict(modules), sort_keys=True))


def _own_package(module: str, file: Path | None) -> tuple[str, list[Path]]:
    """Return a module's package and its folders; for a single file or a notebook, "" and the folder around it."""
    top = module.partition(".")[0]
    if (places := getattr(sys.modules.get(top), "__path__", None)) is not None:
        return top, [] if top == _CORE else [Path(place) for place in places]
    folder = Path.cwd() if file is None else file.parent
    return "", [] if folder.name in LIBRARY_FOLDERS else [folder]


def _own_file(name: str, package: str, folders: list[Path]) -> Path | None:
    """Return a module's file if it belongs to `tsadbench.base` or to the class's own package."""
    if _is_in(name, _BASE):
        package, folders = _BASE, [_BASE_FILE.parent]
    elif not _is_in(name, package) or _is_in(name, _CORE):
        return None
    path = name[len(package) :].strip(".").replace(".", "/")
    found = (file for folder in folders for file in (folder / f"{path}.py", folder / path / "__init__.py"))
    return next((file for file in found if os.path.isfile(file)), None)


def _is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}." if package else "")


def _imported(level: int, origin: str, attribute: str, package: str, own: tuple[str, list[Path]]) -> set[str]:
    """Return the modules that ``from ..origin import attribute`` in a package imports."""
    if level:
        parts = package.split(".")
        origin = ".".join([*parts[: len(parts) - level + 1], *([origin] if origin else [])])
    if origin == _BASE and attribute:  # count only the modules that define the imported names
        return {{name: module for _, module, name in _read(_BASE_FILE.read_bytes())[1]}.get(attribute, _BASE)}
    below = f"{origin}.{attribute}"
    return {origin, below} if attribute and _own_file(below, *own) else {origin}


def _definition(cls: type) -> tuple[str, set[str]] | None:
    """Return the digest of a notebook's class and the modules it uses; None if it uses anything else of the session."""
    node, module = _class_node(cls), sys.modules.get(cls.__module__)
    if node is None or module is None:
        return None
    session = vars(module)
    modules = {origin for _, origin, _ in _imports(node)}
    for name in {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & session.keys():
        value = session[name]
        origin = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", ""))
        if value is cls:
            continue
        if origin is None or origin.__name__ == cls.__module__:
            return None
        if value is not origin and value is not vars(origin).get(getattr(value, "__name__", "")):
            return None
        modules.add(origin.__name__)
    return _hash(_syntax(node)), modules


def _class_node(cls: type) -> ast.ClassDef | None:
    """Return the definition of a class from the cell that ran; None if Python does not keep it."""
    for function in vars(cls).values():
        if (code := getattr(getattr(function, "__func__", function), "__code__", None)) is not None:
            for node in ast.walk(ast.parse("".join(linecache.getlines(code.co_filename)))):
                if not isinstance(node, ast.ClassDef) or node.name != cls.__name__:
                    continue
                if node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):
                    return node
    return None


@lru_cache(maxsize=500)
def _read(text: bytes) -> tuple[str, tuple[tuple[int, str, str], ...]]:
    """Return the digest of a module's syntax and its imports. If it is not valid Python, hash its bytes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about invalid escapes
            tree = ast.parse(text)
        return _hash(_syntax(tree)), tuple(_imports(tree))
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(text).hexdigest(), ()


def _imports(node: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield (level, module, name) for each run-time import; the name of `import module` is ""."""
    if isinstance(node, ast.Import):
        yield from ((0, alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((node.level, node.module or "", alias.name) for alias in node.names)
    else:
        checked = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in ast.iter_child_nodes(node):
            if not (checked and child in node.body):  # type: ignore[attr-defined]
                yield from _imports(child)


def _syntax(node: object) -> str:
    """Return syntax as text, equal in all versions of Python: without positions, docstrings and empty fields."""
    if isinstance(node, list):
        return f"[{','.join(_syntax(item) for item in node if not _does_nothing(item))}]"
    if not isinstance(node, ast.AST):
        return ascii(node)
    fields = {name: getattr(node, name, None) for name in node._fields if name not in _IGNORED_FIELDS}
    if isinstance(node, ast.JoinedStr):
        fields["values"] = _joined(node.values)
    texts = {name: _syntax(value) for name, value in fields.items() if value is not None}
    return f"{type(node).__name__}({','.join(f'{name}={text}' for name, text in texts.items() if text != '[]')})"


def _does_nothing(node: object) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _joined(parts: list[Any]) -> list[object]:
    """Return the parts of an f-string with adjacent texts joined: Python versions split them differently."""
    joined: list[Any] = []
    for part in parts:
        one = part.value if isinstance(part, ast.Constant) else part
        if isinstance(one, str) and joined and isinstance(joined[-1], str):
            one = joined.pop() + one
        joined.append(one)
    return [one for one in joined if one != ""]


def _text(file: Path) -> bytes | None:
    """Return a file's contents, or the contents passed to this box; None if there is no such file."""
    try:
        return imported_texts.get(str(file)) or file.read_bytes()
    except OSError:
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
