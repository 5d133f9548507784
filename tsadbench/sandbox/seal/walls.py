"""What a box may reach: the parent works it out, and it crosses to the server with the request for a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tsadbench.base.status import Seal


@dataclass(frozen=True, slots=True)
class Walls:
    """What a box may reach beyond what every box may.

    Parameters
    ----------
    hidden
        Folders of which it sees nothing, not even names: the data's, the run store's. Absolute, without links.
    """

    hidden: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Sequence[str]]) -> Walls:
        """Read what `to_json` wrote."""
        return cls(**{name: tuple(value) for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class SealStatus:
    """How well boxes are closed here.

    Parameters
    ----------
    seal
        "sealed" or "guarded".
    reason
        Why boxes are guarded only, or how they are sealed without namespaces; empty otherwise.
    details
        What the kernel offers, one line each.
    """

    seal: Seal
    reason: str
    details: tuple[str, ...]


def plan_walls(*, forbidden: Sequence[Path] = ()) -> Walls:
    """Return the walls of one box."""
    return Walls(hidden=tuple(str(folder.resolve()) for folder in forbidden))
