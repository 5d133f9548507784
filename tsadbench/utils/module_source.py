"""Modules as the code fingerprint sees them: what their names are bound to, what they import, what else they do."""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import pickle
import sys
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeAlias

from tsadbench.utils.import_text import imported_texts

# A lone module in one of these folders has no neighbours of its own.
_LIBRARY_FOLDERS = frozenset({"site-packages", "dist-packages"})
_CODE_ENDINGS = frozenset({".py", ".pyc"})

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = Function | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an imported name comes from: a module, or a name in it."""

    module: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A notebook's variable, by a hash of its value, and the module of its class."""

    digest: str
    module: str


Binding: TypeAlias = Definition | Origin | Value


class UnknownSourceError(Exception):
    """The source of a class, or of something that it uses, is not available."""


class ModuleSource:
    """One module's source.

    Parameters
    ----------
    name
        The full name under which it was found; relative imports are resolved against it.
    file
        Its file; None for a namespace package.
    folders
        A package's folders; None for a module that is no package.
    """

    def __init__(self, name: str, file: Path | None, folders: Sequence[str] | None = None) -> None:
        self.name = name
        self.file = file
        self.folders = folders
        # Names that are bound conditionally, repeatedly or by something other than a plain statement.
        self.tangled: set[str] = set()
        # Statements that do more, or may do more, than bind a name.
        self.effects: list[ast.stmt] = []
        self._bindings: dict[str, Definition | Origin] = {}
        for statement in self.tree.body if self.tree else ():
            self._read(statement)
        for node in ast.walk(self.tree) if self.tree else ():
            if isinstance(node, ast.Global):
                self.tangled.update(node.names)

    @cached_property
    def content(self) -> bytes:
        """The file's bytes; empty for a namespace package."""
        if self.file is None:
            return b""
        text = imported_texts.get(str(self.file))
        return self.file.read_bytes() if text is None else text

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None for a module that is compiled or broken: it counts by its bytes."""
        return parsed(self.content)

    def binding(self, name: str) -> Binding | None:
        """Return what the module binds a name to by one plain statement; None if it does not."""
        return None if name in self.tangled else self._bindings.get(name)

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """All plain definitions by name."""
        return {
            name: bound
            for name, bound in self._bindings.items()
            if not isinstance(bound, Origin) and name not in self.tangled
        }

    def imports(self) -> frozenset[Origin]:
        """Return all that the file imports, anywhere in it, except for type checkers."""
        return frozenset(origin for _, origin in imported(self.tree, self)) if self.tree else frozenset()

    def absolute(self, module: str | None, level: int) -> str:
        """Return the full name of the module that ``from ..module import`` names."""
        if not level:
            return module or ""
        package = self.name.split(".") if self.folders is not None else self.name.split(".")[:-1]
        return ".".join([*package[: len(package) - level + 1], *([module] if module else [])])

    def _read(self, statement: ast.stmt) -> None:
        match statement:
            case ast.ImportFrom(module="__future__") | ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Import() | ast.ImportFrom():
                if any(alias.name == "*" for alias in statement.names):
                    self.effects.append(statement)
                for name, origin in imported(statement, self):
                    if name:
                        self._bind(name, origin)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._bind(statement.name, statement)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                self._bind(name, statement)
            case ast.AnnAssign(value=None):
                pass
            case ast.If() if _for_type_checkers(statement):
                for inner in statement.orelse:
                    self._read(inner)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                for target, value in zip(targets, values, strict=True):
                    self._read(ast.copy_location(ast.Assign([target], value), statement))
            case ast.With():
                # `with extra(...): import torch`: the context manager runs, the names are bound as without it.
                self.effects += [ast.copy_location(ast.Expr(item.context_expr), statement) for item in statement.items]
                self.tangled.update(*(bound_names(item) for item in statement.items))
                for inner in statement.body:
                    self._read(inner)
            case _:
                self.effects.append(statement)
                self.tangled |= bound_names(statement)
                self.tangled.update(name for name, _ in imported(statement, self) if name)

    def _bind(self, name: str, bound: Definition | Origin) -> None:
        if name in self._bindings and not (isinstance(bound, Origin) and self._bindings[name] == bound):
            self.tangled.add(name)
        self._bindings[name] = bound


class CellSource(ModuleSource):
    """A notebook's ``__main__``: its names are bound by what they hold now, whose source lies in several cells.

    Parameters
    ----------
    module
        The module.
    """

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__, None)
        self._namespace = vars(module)

    def imports(self) -> frozenset[Origin]:
        """Return the modules that its variables hold or come from."""
        modules = (
            value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            for value in self._namespace.values()
        )
        return frozenset(Origin(name) for name in modules if isinstance(name, str) and name != self.name)

    def binding(self, name: str) -> Binding | None:  # noqa: D102
        if name not in self._namespace:
            return None
        value = self._namespace[name]
        if isinstance(value, types.ModuleType):
            return Origin(value.__name__)
        if isinstance(value, type | types.FunctionType):
            if value.__module__ == self.name:
                return definition_in_cell(value)
            if "<" not in value.__qualname__:
                return Origin(value.__module__, value.__qualname__.partition(".")[0])
        try:
            pickled = pickle.dumps(value, protocol=4)
        except Exception as error:  # objects may raise anything here
            raise UnknownSourceError(f"{name} cannot be pickled") from error
        if self.name.encode() in pickled:  # its class is defined in a cell, which a pickle does not hold
            raise UnknownSourceError(f"{name} is of a class of this notebook")
        return Value(hashlib.sha256(pickled).hexdigest(), type(value).__module__)


class OwnModules:
    """Finds the modules that belong to a class: those of its package, or those in the folder of its file.

    Parameters
    ----------
    names
        Names of imported modules: that of the class and those of its bases.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._packages: dict[str, list[str]] = {}
        self._folders: list[str] = []
        self._by_file: dict[Path, ModuleSource] = {}
        self._by_name: dict[str, ModuleSource | None] = {}
        for name in names:
            top = name.partition(".")[0]
            folders = getattr(sys.modules.get(top), "__path__", None)
            file = getattr(sys.modules[name], "__file__", None)
            if folders is not None:
                self._packages[top] = list(folders)
            elif file is None:
                self._folders.append(os.getcwd())  # a notebook
            elif Path(file).parent.name not in _LIBRARY_FOLDERS:
                self._folders.append(str(Path(file).parent))

    def of(self, module: types.ModuleType) -> ModuleSource:
        """Return the source of an imported module that has a file."""
        return self._made(module.__name__, Path(str(module.__file__)), getattr(module, "__path__", None))

    def find(self, name: str) -> ModuleSource | None:
        """Return an own module by its full name, without importing it; None if it is somebody else's."""
        if name not in self._by_name:
            self._by_name[name] = self._found(name)
        return self._by_name[name]

    def inside(self, package: ModuleSource) -> Iterator[ModuleSource]:
        """Yield all modules below a package."""
        for folder in package.folders or ():
            for file in sorted(Path(folder).rglob("*.py")):
                parts = file.relative_to(folder).with_suffix("").parts
                name = ".".join([package.name, *(part for part in parts if part != "__init__")])
                if name != package.name and (module := self.find(name)):
                    yield module

    def data_files(self) -> Iterator[Path]:
        """Yield the files of the packages that are no Python source: data and compiled modules."""
        for folder in (folder for folders in self._packages.values() for folder in folders):
            for file in Path(folder).rglob("*"):
                hidden = file.suffix in _CODE_ENDINGS or file.name == "py.typed" or "__pycache__" in file.parts
                if not hidden and file.is_file():
                    yield file

    def _found(self, name: str) -> ModuleSource | None:
        above, _, _ = name.rpartition(".")
        if above:
            package = self.find(above)
            folders = package.folders if package else None
        else:
            folders = self._folders
            if name in self._packages:
                file = getattr(sys.modules[name], "__file__", None)
                return self._made(name, Path(file) if file else None, self._packages[name])
        spec = PathFinder.find_spec(name, list(folders)) if folders else None
        if spec is None:
            return None
        file = Path(spec.origin) if spec.has_location and spec.origin else None
        return self._made(name, file, spec.submodule_search_locations)

    def _made(self, name: str, file: Path | None, folders: Sequence[str] | None) -> ModuleSource:
        if file is None:
            return ModuleSource(name, None, folders)
        if file not in self._by_file:
            self._by_file[file] = ModuleSource(name, file, folders)
        return self._by_file[file]


def has_source(file: str | Path) -> bool:
    """Whether the source of a module's file is at hand."""
    return str(file) in imported_texts or Path(file).exists()


def parsed(source: str | bytes) -> ast.Module | None:
    """Return the syntax tree of a source; None if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes, which matter to who wrote them
            return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def imported(node: ast.AST, module: ModuleSource) -> Iterator[tuple[str, Origin]]:
    """Yield what a node imports, anywhere in it: the name that is bound (empty if none is) and its origin."""
    if isinstance(node, ast.If) and _for_type_checkers(node):
        for inner in node.orelse:
            yield from imported(inner, module)
        return
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (
                alias.asname or alias.name.partition(".")[0],
                Origin(alias.name if alias.asname else alias.name.partition(".")[0]),
            )
            yield "", Origin(alias.name)
    elif isinstance(node, ast.ImportFrom):
        base = module.absolute(node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                yield "", Origin(base)
            else:
                yield alias.asname or alias.name, Origin(base, alias.name)
    else:
        for child in ast.iter_child_nodes(node):
            yield from imported(child, module)


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that a node binds anywhere in it, except by importing; its own name left out."""
    names: set[str | None] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(inner.id)
            case ast.arg():
                names.add(inner.arg)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if inner is not node:
                names.add(inner.name)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                names.add(inner.name)
            case ast.MatchMapping():
                names.add(inner.rest)
            case ast.Global() | ast.Nonlocal():
                names.update(inner.names)
    return {name for name in names if name is not None}


def definition_in_cell(item: type | types.FunctionType) -> Definition:
    """Return the definition of a notebook's class or function from the source of the cell that ran it.

    Raises
    ------
    UnknownSourceError
        If the cell's source is not kept: `python -`, ``exec``, or a class without methods.
    """
    functions = [item] if isinstance(item, types.FunctionType) else vars(item).values()
    for function in functions:
        function = getattr(function, "__func__", function)  # of class methods and static methods
        if not isinstance(function, types.FunctionType) or function.__module__ != item.__module__:
            continue
        code = function.__code__
        tree = parsed("".join(linecache.getlines(code.co_filename)))
        for node in ast.walk(tree) if tree else ():
            if (
                isinstance(node, Function | ast.ClassDef)
                and node.name == item.__name__
                and min([node.lineno, *(each.lineno for each in node.decorator_list)]) <= code.co_firstlineno
                and code.co_firstlineno <= (node.end_lineno or 0)
            ):
                return node
    raise UnknownSourceError(f"the source of {item.__qualname__} is not available")


def _for_type_checkers(node: ast.If) -> bool:
    test = node.test
    return getattr(test, "id", None) == "TYPE_CHECKING" or getattr(test, "attr", None) == "TYPE_CHECKING"
