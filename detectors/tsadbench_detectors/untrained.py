"""Floor: DPR-GM as it is initialised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from tsadbench.base import Space, Traits, extra
from tsadbench_detectors.dprgm import DPRGM

with extra("untrained", "deep"):
    from tsadbench_detectors.deep.windows import Windows


class Untrained(DPRGM):
    """DPR-GM with the initial weights of its network: what its score is worth without learning.

    Scaler, graph, node weights and the quantiles of the errors come from the training rows as for `DPRGM`, and so do
    the initial weights from the seed; no training step is taken. A trained network that does not beat this floor owes
    its result to the formula of its score. Runs do not include it unless it is named (it needs the extra "deep").

    Parameters: as for `DPRGM`; those of training, such as ``epochs``, have no effect.

    Notes
    -----
    Equations
        Those of `DPRGM`, with ``theta = theta_0``: the weights are the initial ones.
    Differences
        `DPRGM` without training.
    Defaults
        Those of `DPRGM`.
    """

    traits: ClassVar[Traits] = replace(DPRGM.traits, family="floor", floor=True, paper="")

    @classmethod
    def search_space(cls) -> Mapping[str, Space]:  # noqa: D102
        return {}

    def _train(self, windows: Windows) -> None:
        pass
