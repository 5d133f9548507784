"""What a class's code depends on beside its source: values that are bound to its names when it is looked at."""

from __future__ import annotations

import hashlib
import pickle
import types
from collections.abc import Iterator, Set
from typing import TypeGuard

import cloudpickle


def captured(cls: type) -> str:
    """Return what tells classes apart that one function made: their attributes, and what their methods captured."""
    if "<locals>" not in cls.__qualname__:
        return ""
    captured = []
    for name, item in vars(cls).items():
        parts = (item.fget, item.fset, item.fdel) if isinstance(item, property) else (getattr(item, "__func__", item),)
        for part in parts:
            if isinstance(part, types.FunctionType):
                free = zip(part.__code__.co_freevars, part.__closure__ or (), strict=True)
                captured += [f"{name}.{key}={_cell_value(cell)}" for key, cell in free if key != "__class__"]
            elif not name.startswith("__"):
                captured.append(f"{name}={_value(part)}")
    return "\n".join(sorted(captured))


def _cell_value(cell: types.CellType) -> str:
    try:
        return _value(cell.cell_contents)
    except ValueError:  # not bound yet
        return ""


def _value(value: object) -> str:
    try:
        return hashlib.sha256(pickle.dumps(value, protocol=4)).hexdigest()
    except Exception:  # a function or class of the enclosing function, for instance, whose code counts
        return ""


def variables(cls: type, module: types.ModuleType, names: Set[str]) -> str:
    """Return the present values of those of a module's variables that functions there, or the class's methods, use.

    Parameters
    ----------
    cls, module
        The class, and the module that it was defined in.
    names
        The variables that may count.
    """
    held = {name: vars(module)[name] for name in names & vars(module).keys()}
    items = [*vars(module).values(), *(item for base in cls.__mro__ for item in vars(base).values())]
    functions = [item for item in items if _is_function_of(item, module)]
    used = {name for function in functions for name in _names(function.__code__)}
    return "\n".join(f"{name}={_value(held[name])}" for name in sorted(held.keys() & used))


def as_sent(cls: type) -> bytes:
    """Return a class's code and the variables that it uses, as a box receives them; empty if they cannot be sent."""
    try:
        return bytes(cloudpickle.dumps(cls))
    except Exception:  # objects may raise anything here
        return b""


def _is_function_of(item: object, module: types.ModuleType) -> TypeGuard[types.FunctionType]:
    return isinstance(item, types.FunctionType) and item.__module__ == module.__name__


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function's code refers to, those of functions inside it too."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)
