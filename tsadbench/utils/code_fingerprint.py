"""What a class's code does, as a hash: the same wherever the code lies and however it is worded.

The fingerprint covers the definition of the class and, transitively, every definition of its own package that it
refers to: bases, decorators, defaults, helpers, constants. Of these it takes the syntax tree without positions,
comments, docstrings, annotations, and without the texts in ``raise`` statements: re-wording a message is no change of
behaviour. Own definitions are numbered in the order in which they are reached, so that their names, and the names and
paths of the modules that hold them, do not count. A name from another distribution counts by its full origin
(``numpy.mean``, whatever it is called here), a name from the core of tsadbench by its last part. Core classes that the
class derives from count by their definition.

Where the syntax tree does not tell what a name stands for, more counts instead of less: the whole module, or the whole
package. Statements of the modules concerned that do more than bind a name, and the data and compiled files of the
package, count as well.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import types
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from uuid import uuid4

from tsadbench._version import __version__
from tsadbench.utils.bound_values import as_sent, captured, variables
from tsadbench.utils.canonical_syntax import CORE, Effects, Named, Part, Token, Whole, Writer, attribute_chain
from tsadbench.utils.import_lookup import imported_by_call, package_of
from tsadbench.utils.module_source import (
    CellSource,
    Definition,
    Function,
    ModuleSource,
    Origin,
    OwnModules,
    UnknownSourceError,
    has_source,
)

# Bases in these count by their version, which records keep.
_VERSIONED = frozenset({"numpy", "pandas", "scipy", "sklearn", "torch", "torch_geometric"})


def code_fingerprint(cls: type) -> str:
    """Return the fingerprint of what a class's code does, 64 hex digits.

    A class from a notebook counts by the source of its cell, and what it uses of other cells by its present source or
    value. If any of these sources is not available (``python -``, ``exec``), the fingerprint is a random one, kept
    while the class and the variables that it uses stay as they are: nothing that was made with the class is ever taken
    for what another process would make.
    """
    try:
        return _parts(cls).digest
    except UnknownSourceError:
        return hashlib.sha256(_random(cls).encode() + as_sent(cls)).hexdigest()


def source_is_known(cls: type) -> bool:
    """Whether a class's fingerprint is that of its code; a random one stands for no other run's class."""
    try:
        return bool(_parts(cls).digest)
    except UnknownSourceError:
        return False


def module_fingerprint(module: types.ModuleType) -> str:
    """Return the fingerprint of what a module's own code does, 64 hex digits; what it imports counts by its name."""
    own = OwnModules([])
    source = own.of(module)
    if source.tree is None:
        return hashlib.sha256(source.content).hexdigest()
    tokens = Writer(source, own, source.tree, whole=True).statements(source.tree.body)
    return hashlib.sha256("\n".join(map(str, tokens)).encode()).hexdigest()


def fingerprinted_files(cls: type) -> frozenset[Path]:
    """Return the files and folders on which the fingerprint of a class depends; empty if its source is not known."""
    try:
        return _parts(cls).files()
    except UnknownSourceError:
        return frozenset()


def imported_packages(cls: type) -> frozenset[str]:
    """Return the packages that a class's own files import: no own ones, core or standard library.

    They are top-level packages, but those below a namespace package, which several distributions may share.
    """
    found = {package_of(f"{one.module}.{one.name}" if one.name else one.module) for one in _foreign(cls)}
    # `import google.cloud` binds the namespace too.
    return frozenset(name for name in found if not any(other.startswith(f"{name}.") for other in found))


def imported_modules(cls: type) -> frozenset[str]:
    """Return the modules of these packages that a class's own files name when they import."""
    return frozenset(origin.module for origin in _foreign(cls))


def _foreign(cls: type) -> frozenset[Origin]:
    try:
        modules = _parts(cls).closure
    except UnknownSourceError:
        return frozenset()
    others = {module.name.partition(".")[0] for module in modules} | {CORE, ""} | sys.stdlib_module_names
    origins = {origin for module in modules for origin in module.imports()}
    origins |= {Origin(name) for module in modules if module.tree for name in imported_by_call(module.tree)}
    return frozenset(origin for origin in origins if origin.module.partition(".")[0] not in others)


def _parts(cls: type) -> _Fingerprint:
    if cls.__module__ == "__main__" or _lives_in_cells(cls):
        return _Fingerprint(cls)  # not cached: a helper's cell may run again, a variable may change
    return _cached(cls)


@cache
def _cached(cls: type) -> _Fingerprint:
    return _Fingerprint(cls)


@cache
def _random(cls: type) -> str:  # noqa: ARG001 - one for each class
    return f"{uuid4().hex}{uuid4().hex}"


def _lives_in_cells(cls: type) -> bool:
    """Whether a class was defined in a notebook or at a prompt, instead of in the file that its module names."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None or not has_source(file):  # "<stdin>", for instance
        return True
    functions = [item for item in vars(cls).values() if isinstance(item, types.FunctionType)]
    files = {function.__code__.co_filename for function in functions if function.__module__ == cls.__module__}
    return cls.__module__ == "__main__" and bool(files) and file not in files


class _Fingerprint:
    """The parts of source that a class's behaviour depends on.

    Parameters
    ----------
    cls
        The class.

    Raises
    ------
    UnknownSourceError
        If the source of the class, or of what it uses in a notebook, is not available.
    """

    def __init__(self, cls: type) -> None:
        bases = [
            base
            for base in cls.__mro__
            if base.__module__.partition(".")[0] not in _VERSIONED | sys.stdlib_module_names
        ]
        if not all(base.__module__ in sys.modules for base in bases):
            raise UnknownSourceError(f"the module of {cls.__qualname__} or of one of its bases is gone")
        self._own = OwnModules([base.__module__ for base in bases if base.__module__.partition(".")[0] != CORE])
        self._tokens: dict[Part, tuple[Token, ...]] = {}
        self._cells: dict[str, CellSource] = {}
        self._captured = "\n".join(filter(None, (captured(cls), self._variables(cls))))
        self._roots = [self._root(base) for base in bases]
        self._hooked = False
        self.closure = self._closure()
        self._hooked = any(map(_hooks_subclasses, self.closure))
        self._tokens = {part: tokens for part, tokens in self._tokens.items() if not isinstance(part, Effects)}

    @cached_property
    def digest(self) -> str:
        """The fingerprint."""
        acting = (Effects(module) for module in self.closure if self._canonical(Effects(module)) != ("[", "]"))
        effects = sorted(self._digest([effect]) for effect in acting)
        # With their names, by which code tells them apart, but without their folders: a package may move.
        data = sorted(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in self._own.data_files())
        parts = [__version__, self._digest(self._roots), self._captured, *effects, *data]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def files(self) -> frozenset[Path]:
        """Return the files that count, and the folders of packages, in which another one would count."""
        parts = self._reach([*self._roots, *map(Effects, self.closure)])
        modules = {part.module for part in parts} | set(self.closure)
        sources = {module.file for module in modules if module.file is not None}
        data = set(self._own.data_files())
        return frozenset(sources | data | {Path(folder) for module in modules for folder in module.folders or ()})

    def _variables(self, cls: type) -> str:
        """Return the present values of a script's variables that it binds more than once, in a loop for instance."""
        module = sys.modules[cls.__module__]
        of_script = cls.__module__ == "__main__" and not _lives_in_cells(cls)
        return variables(cls, module, self._own.of(module).tangled) if of_script else ""

    def _root(self, base: type) -> Part:
        name, _, _ = base.__qualname__.partition(".")
        if _lives_in_cells(base):
            module = sys.modules[base.__module__]
            if "<locals>" in base.__qualname__ or vars(module).get(name) is not base:
                raise UnknownSourceError(f"{base.__qualname__} is no longer the class of that name")
            return Named(self._cells.setdefault(base.__module__, CellSource(module)), name)
        source = self._own.of(sys.modules[base.__module__])
        if isinstance(source.binding(name), ast.stmt):
            return Named(source, name)
        files = (item.__code__.co_filename for item in vars(base).values() if isinstance(item, types.FunctionType))
        if not all(map(has_source, files)):
            raise UnknownSourceError(f"{base.__qualname__} is not in {source.file}")
        return Whole(source)  # made by a function, for instance: all that may have made it counts

    def _closure(self) -> tuple[ModuleSource, ...]:
        """Return the own modules that are imported when the class is, or when what it refers to runs."""
        modules: dict[ModuleSource, None] = {}
        waiting = [part.module for part in self._reach(self._roots)]
        while waiting:
            module = waiting.pop()
            if module in modules or module.name.partition(".")[0] == CORE:
                continue
            modules[module] = None
            waiting += [part.module for part in self._reach([Effects(module)])]
            names = {name for origin in module.imports() for name in (origin.module, f"{origin.module}.{origin.name}")}
            for name in {module.name, *names}:
                parts = name.split(".")
                prefixes = (".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
                waiting += [found for prefix in prefixes if (found := self._own.find(prefix)) is not None]
        return tuple(modules)

    def _reach(self, roots: Sequence[Part]) -> list[Part]:
        """Return all parts that some refer to, directly or not, in the order in which they are reached."""
        order = list(dict.fromkeys(roots))
        seen = set(order)
        for part in order:  # grows
            for token in self._canonical(part):
                if not isinstance(token, str) and token not in seen:
                    seen.add(token)
                    order.append(token)
        return order

    def _digest(self, roots: Sequence[Part]) -> str:
        parts = self._reach(roots)
        number = {part: index for index, part in enumerate(parts)}
        sha = hashlib.sha256()
        for part in parts:
            for token in self._canonical(part):
                sha.update(f"{token if isinstance(token, str) else f'#{number[token]}'}\n".encode())
            sha.update(b"\n")
        return sha.hexdigest()

    def _canonical(self, part: Part) -> tuple[Token, ...]:
        if part not in self._tokens:
            self._tokens[part] = tuple(self._written(part))
        return self._tokens[part]

    def _written(self, part: Part) -> Iterator[Token]:
        module = part.module
        if isinstance(part, Named):
            bound = module.binding(part.name)
            if not isinstance(bound, ast.stmt):
                raise UnknownSourceError(f"{module.name} has no definition of {part.name}")
            yield from Writer(module, self._own, bound).definition(bound)
        elif isinstance(part, Effects):
            node = ast.Module(body=module.effects, type_ignores=[])
            yield from Writer(module, self._own, node).statements(module.effects)
            yield from (Named(module, name) for name, item in module.definitions.items() if self._acts(item, module))
        elif module.tree is None:
            yield hashlib.sha256(module.content).hexdigest()
        else:
            yield from Writer(module, self._own, module.tree, whole=True).statements(module.tree.body)
            yield from map(Whole, self._own.inside(module))

    def _acts(self, definition: Definition, module: ModuleSource) -> bool:
        """Whether a definition runs own code when its module is imported, which may register something."""

        def is_own(node: ast.AST) -> bool:
            bound = module.binding(chain[0]) if (chain := attribute_chain(node)) else None
            return isinstance(bound, ast.stmt) or (
                isinstance(bound, Origin) and self._own.find(bound.module) is not None
            )

        if isinstance(definition, ast.Assign | ast.AnnAssign):
            return any(is_own(node.func) for node in ast.walk(definition) if isinstance(node, ast.Call))
        run: list[ast.AST] = [getattr(node, "func", node) for node in definition.decorator_list]
        if isinstance(definition, ast.ClassDef):
            outside = [item for item in definition.body if not isinstance(item, Function)]
            run += [node.func for item in outside for node in ast.walk(item) if isinstance(node, ast.Call)]
            run += [keyword.value for keyword in definition.keywords]
            run += definition.bases if self._hooked else ()
        return any(map(is_own, run))


def _hooks_subclasses(module: ModuleSource) -> bool:
    """Whether a class of the module may run code whenever a class is derived from it."""
    return any(
        (isinstance(node, ast.FunctionDef) and node.name == "__init_subclass__")
        or (isinstance(node, ast.ClassDef) and any(keyword.arg == "metaclass" for keyword in node.keywords))
        for node in (ast.walk(module.tree) if module.tree else ())
    )
