"""Planning: traits, parameters and names that are objects with a will of their own."""

from __future__ import annotations

import os

from tests.hostile.preamble import WHERE, Hostile, Traits


def _act(*_given):
    """Leave a mark outside, which fails in a sealed box: a mark shows that this ran in the harness."""
    with open(f"{WHERE['outside'][0]}/{WHERE['tag']}-executed", "w") as file:
        file.write(str(os.getpid()))
    return "family"


class _Text(str):
    """Text that acts when it is pickled, copied or compared in a harness."""

    def __reduce__(self):
        return _act, ("pickled",)

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class HasTraitsThatAct(Hostile):
    """has a family, a default and a paper that run code wherever they are unpickled"""

    traits = Traits(family=_Text("planning"), memory=0, paper=_Text("none"))
    ends = ("ok", "error", "invalid")

    def __init__(self, *, level: str = _Text("high")) -> None:
        self.level = level


class _Reducing:
    def __reduce__(self):
        return _act, ("pickled",)


class LearnsObjectsThatAct(Hostile):
    """learns objects that run code wherever they are unpickled"""

    ends = ("ok", "error", "invalid")

    def steal(self):
        self.object_ = _Reducing()
        return ()


class _Meta(type(Hostile)):
    """A class that is never the same twice."""

    asked = 0

    @property
    def traits(cls):
        _Meta.asked += 1
        return Traits(memory=0, floor=_Meta.asked % 2 == 0, look_ahead=_Meta.asked)

    def __subclasscheck__(cls, other):
        return True


class HasTraitsThatChange(Hostile, metaclass=_Meta):
    """has traits that differ whenever somebody asks"""

    ends = ("ok", "invalid", "error")

    def declared_traits(self):
        return type(type(self)).traits.fget(type(self))


class HasMarkupInItsTraits(Hostile):
    """has a family and a paper of markup, formulas and escape codes"""

    traits = Traits(
        family='<img src=x onerror="alert(1)">\x1b[2J=1+1', memory=0, paper="[x](javascript:alert(1))\n\n# x"
    )
    ends = ("ok", "invalid", "error")


class ClaimsToBeAFloor(Hostile):
    """claims to be a floor with a threshold of its own"""

    traits = Traits(family="floor", memory=0, floor=True, fixed_threshold=0.0)
    ends = ("refused",)
