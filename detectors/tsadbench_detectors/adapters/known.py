"""What is known of another library's class, beyond its signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tsadbench.base import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """How one class behaves under ``tsadbench check``. With all defaults, it passes and needs no remark.

    Parameters
    ----------
    refusal
        Why it cannot be run.
    fails
        Reasons, by the ids of the checks that it fails with its default parameters.
    note
        What else readers of its scores need to know.
    alone
        If it compares scored rows with each other as well as with the training rows: a function that returns, from the
        training rows and the scored ones, the score that each row would get alone.
    turned
        Whether its scores fall in anomalous rows, so that their sign must be turned.
    global_chance
        Whether it draws from the global random generators and has no parameter that seeds it.
    chance_with
        Parameters whose values other than the default make it stochastic; empty: it is stochastic if it has a seed.
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
        """The remark of tables and lists."""
        failures = [f"fails the check {check}: {reason}" for check, reason in self.fails]
        return "; ".join([self.note, *failures] if self.note else failures)


UNKNOWN = Known(note="has not been checked by us: run `tsadbench check` on it first")
