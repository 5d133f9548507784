"""What is known of a class of another library, beyond what its signature tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tsadbench.base import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One class, as it behaves under ``tsadbench check``. All defaults: it passes, and there is nothing to say.

    Parameters
    ----------
    refusal
        Why it cannot be run.
    fails
        Reasons, by the ids of the checks that it fails with its default parameters.
    note
        What else whoever reads its scores has to know.
    alone
        Where it measures the rows that it is handed against each other as well as against the training rows: what it
        gives each of many rows that is handed in alone, from the training rows and these.
    turned
        Whether its scores fall where rows are anomalous, and have to be turned.
    global_chance
        Whether it draws from the global random generators and has no parameter that seeds it.
    chance_with
        Parameters that bring chance in where they are not at their defaults; none given: there is chance wherever
        there is a seed.
    """

    refusal: str = ""
    fails: tuple[tuple[str, str], ...] = ()
    note: str = ""
    alone: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    turned: bool = False
    global_chance: bool = False
    chance_with: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What tables and lists say of it."""
        failures = [f"fails the check {check}: {reason}" for check, reason in self.fails]
        return "; ".join([self.note, *failures] if self.note else failures)


UNKNOWN = Known(note="has not been checked by us: run `tsadbench check` on it first")
