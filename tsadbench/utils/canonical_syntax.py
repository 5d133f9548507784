"""The canonical form of a syntax tree: the same for code that does the same under other names, wherever it lies."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from tsadbench.utils.module_source import (
    Binding,
    Definition,
    ModuleSource,
    Origin,
    OwnModules,
    Value,
    bound_names,
    imported,
)

CORE = "tsadbench"
_CORE_FOLDER = Path(__file__).parents[1]
# Node fields that do not change what code does. ``type_params`` exists from Python 3.12 on.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "annotation", "returns", "type_comment", "type_params"})
# Names that reach a module's variables without naming them, and such that reach modules.
_REACHING_VARIABLES = frozenset({"globals", "eval", "exec", "__import__"})
_REACHING_MODULES = frozenset({"importlib", "pkgutil", "runpy"})
_OWN_NAME = frozenset({"__name__", "__package__", "__spec__"})


@dataclass(frozen=True, slots=True)
class Whole:
    """All statements of a module; of a package, those of all modules below it as well."""

    module: ModuleSource


@dataclass(frozen=True, slots=True)
class Effects:
    """The statements of a module that do more than bind a name."""

    module: ModuleSource


@dataclass(frozen=True, slots=True)
class Named:
    """One definition of a module."""

    module: ModuleSource
    name: str


Part: TypeAlias = Whole | Effects | Named
# A canonical form consists of texts and of the parts that it refers to.
Token: TypeAlias = str | Part


class Writer:
    """Writes one definition, or a module's statements, in canonical form.

    Parameters
    ----------
    module
        The module that holds it.
    own
        Finds the modules whose definitions are followed.
    node
        All that is written: what it binds and imports hides the module's names.
    whole
        Whether it is the whole module: its own names stand as they are.
    """

    def __init__(self, module: ModuleSource, own: OwnModules, node: ast.AST, *, whole: bool = False) -> None:
        self._module = module
        self._own = own
        self._whole = whole
        self._core = module.name.partition(".")[0] == CORE
        self._top = node
        self._bound = bound_names(node)
        self._imported: dict[str, set[Origin]] = {}
        for name, origin in imported(node, module) if not isinstance(node, ast.Module) or whole else ():
            self._imported.setdefault(name, set()).add(origin)
        self._in_raise = False
        self._enclosing: ast.AST | None = None

    @cached_property
    def _reaches_modules(self) -> bool:
        """Whether the module may import modules by computed names."""
        tops = {origin.module.partition(".")[0] for origin in self._module.imports()}
        return bool(tops & _REACHING_MODULES) or b"sys.modules" in self._module.content

    def definition(self, node: Definition) -> Iterator[Token]:
        """Yield a definition without its name."""
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield "="
            yield from self.node(node.value) if node.value else ()
        else:
            yield from self.node(node)

    def statements(self, nodes: Iterable[ast.stmt]) -> Iterator[Token]:
        """Yield statements, leaving out those that do nothing."""
        yield "["
        for node in nodes:
            match node:
                case ast.Pass() | ast.Expr(value=ast.Constant()):
                    pass
                case ast.ImportFrom(module="__future__"):
                    pass
                case ast.AnnAssign(value=None) if not isinstance(self._enclosing, ast.ClassDef):
                    pass
                case _:
                    yield from self.node(node)
        yield "]"

    def node(self, node: ast.AST) -> Iterator[Token]:
        """Yield a node: its type and the fields that are set, by name."""
        match node:
            case ast.Name() | ast.Attribute() if (chain := attribute_chain(node)) is not None:
                yield from self._reference(chain)
            case ast.Constant():
                yield from self._constant(node.value)
            case ast.JoinedStr():
                yield from self._formatted(node)
            case ast.Import() | ast.ImportFrom():
                star = isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
                for name, origin in imported(node, self._module):
                    yield f"import {name if name in self._bound or self._whole else ''}"
                    yield from self._resolved(origin, []) if star or origin.name else self._loaded(origin)
            case ast.AnnAssign() if not isinstance(self._enclosing, ast.ClassDef) and node.value:
                yield from self.node(ast.Assign(targets=[node.target], value=node.value))
            case ast.AnnAssign():
                yield f"field {_field_kind(node.annotation)}"
                yield from self._fields(node)
            case ast.Raise():
                before, self._in_raise = self._in_raise, True
                yield from self._fields(node)
                self._in_raise = before
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                before_raise, self._in_raise = self._in_raise, False
                with self._inside(node):
                    yield from self._fields(node)
                self._in_raise = before_raise
            case _:
                yield from self._fields(node)

    def _fields(self, node: ast.AST) -> Iterator[Token]:
        yield f"({type(node).__name__}"
        for field in node._fields:
            value = getattr(node, field, None)
            # Fields that later versions of Python add are empty in code that does not use them.
            if field in _IGNORED_FIELDS or value is None or value == [] or (field == "name" and node is self._top):
                continue
            yield f".{field}"
            if isinstance(value, ast.AST):
                yield from self.node(value)
            elif not isinstance(value, list):
                yield ascii(value)
            elif isinstance(value[0], ast.stmt):
                yield from self.statements(value)
            else:
                yield "["
                for item in value:
                    # A missing item: the key of ``{**mapping}``, the default of a keyword-only argument.
                    yield from self.node(item) if isinstance(item, ast.AST) else [ascii(item)]
                yield "]"
        yield ")"

    @contextmanager
    def _inside(self, node: ast.AST) -> Iterator[None]:
        before, self._enclosing = self._enclosing, node
        try:
            yield
        finally:
            self._enclosing = before

    def _constant(self, value: object) -> Iterator[Token]:
        if isinstance(value, str) and self._in_raise:
            yield "(message"
            yield ")"
            return
        yield f"{type(value).__name__} {value!a}"
        yield from self._module_named(value) if isinstance(value, str) else ()

    def _module_named(self, text: str) -> Iterator[Token]:
        """Yield the own module that a text names, or begins to name: it may be imported by that name."""
        parts = text.partition(":")[0].rstrip(".").split(".")
        if "." in text and not self._core and all(part.isidentifier() for part in parts):
            module = self._own.find(".".join(parts))
            if module is not None:
                yield Whole(module)

    def _formatted(self, node: ast.JoinedStr) -> Iterator[Token]:
        """Yield an f-string; how its texts are cut into pieces differs between versions of Python."""
        text = ""
        yield "(message" if self._in_raise else "(JoinedStr"
        for item in node.values:
            if isinstance(item, ast.Constant):
                text += str(item.value)
                continue
            yield from self._constant(text) if text and not self._in_raise else ()
            text = ""
            yield from self.node(item)
        yield from self._constant(text) if text and not self._in_raise else ()
        yield ")"

    def _reference(self, chain: list[str]) -> Iterator[Token]:
        """Yield what ``name.attribute.attribute`` stands for, and the name besides if it may be another one."""
        name, *attributes = chain
        targets: list[Binding | None] = sorted(self._imported.get(name, ()), key=str)
        # Also if a function of this definition imports the name: elsewhere in it, the name is the module's.
        if not self._whole and (bound := self._module.binding(name)) is not None and bound not in targets:
            targets.append(bound)
        tangled = not self._whole and name in self._module.tangled
        if tangled or len(targets) != 1 or name in self._bound:
            yield f"'{'.'.join(chain)}"
        if tangled and not self._core:
            yield Whole(self._module)
        for target in targets:
            if isinstance(target, Origin):
                yield from self._resolved(target, attributes)
            elif isinstance(target, Value):
                yield "".join([f"value {target.digest}", *(f".{each}" for each in attributes)])
                source = self._own.find(target.module)
                yield from () if source is None else (Whole(source),)
            elif self._core:  # not followed
                yield f"'{'.'.join(chain)}"
            else:
                yield Named(self._module, name)
                yield "".join(f".{each}" for each in attributes)
        if name in _REACHING_VARIABLES and not targets and not self._core:
            yield Whole(self._module)
        by_name = name in _OWN_NAME and self._reaches_modules
        if ("__subclasses__" in attributes or by_name) and not self._core:
            package = self._own.find(self._module.name.partition(".")[0])
            yield Whole(package or self._module)

    def _resolved(
        self, origin: Origin, attributes: Sequence[str], passed: frozenset[Origin] = frozenset()
    ) -> Iterator[Token]:
        """Yield what an imported name stands for, with the attributes that are taken of it."""
        names = [*([origin.name] if origin.name else []), *attributes]
        path = [*origin.module.split("."), *names]
        if path[0] == CORE:
            yield f"~{'.'.join(_without_core_modules(path))}"
            return
        module = self._own.find(origin.module)
        if module is None:
            yield f"@{'.'.join(path)}"
            if (path[0] in _REACHING_MODULES or path[:2] == ["sys", "modules"]) and not self._core:
                yield Whole(self._module)
            return
        if not names:
            yield Whole(module)
            return
        name, *rest = names
        bound = module.binding(name)
        below = self._own.find(f"{module.name}.{name}") if module.folders is not None else None
        is_module = below is not None and bound in (None, Origin(below.name), Origin(module.name, name))
        if below is not None and is_module and name not in module.tangled:
            yield from self._resolved(Origin(below.name), rest)
        elif isinstance(bound, Origin) and bound not in passed:
            yield from self._resolved(bound, rest, passed | {bound})
        elif isinstance(bound, ast.stmt):
            yield Named(module, name)
            yield "".join(f".{each}" for each in rest)
        else:  # tangled, or made by the module's ``__getattr__``
            yield f"'{'.'.join(names)}"
            yield Whole(module)
        if below is not None and not is_module:
            yield Whole(below)  # what the package's name stands for depends on what was imported before

    def _loaded(self, origin: Origin) -> Iterator[Token]:
        """Yield a module that an import loads; an own one counts by its effects and by what is used of it."""
        if self._own.find(origin.module) is None:
            yield f"@{origin.module}" if origin.module.partition(".")[0] != CORE else "~"


def attribute_chain(node: ast.AST) -> list[str] | None:
    """Return the names of ``name.attribute.attribute``; None for attributes of anything but a name."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    return [node.id, *attributes] if isinstance(node, ast.Name) else None


def _without_core_modules(path: Sequence[str]) -> Sequence[str]:
    """Return what is left of a name of the core once the modules that lead to it are taken away."""
    folder = _CORE_FOLDER
    for depth, name in enumerate(path[1:], start=1):
        folder /= name
        if not folder.is_dir() and not folder.with_suffix(".py").is_file():
            return path[depth:]
    return path[-1:]


def _field_kind(annotation: ast.expr) -> str:
    """Return the part of a class attribute's annotation that matters at run time: dataclasses look for it."""
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(annotation)}
    return next((kind for kind in ("ClassVar", "InitVar", "KW_ONLY") if kind in names), "")
