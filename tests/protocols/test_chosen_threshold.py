"""A detector that reports false training scores chooses its own threshold, unless rows are held out."""

from __future__ import annotations

from pathlib import Path

import pytest

import tsadbench

CHEAT = """
from tsadbench_detectors.t2 import T2

class Chooser(T2):
    def _training_scores(self, recordings):
        return [0.5 * self.score(one) for one in recordings]
"""


@pytest.mark.slow(5)
@pytest.mark.parametrize(("settings", "gains"), [((), True), ("strict.calibration=held-out", False)])
def test_what_a_detector_gains_by_its_own_training_scores(settings: str, gains: bool, tmp_path: Path) -> None:
    (tmp_path / "cheat.py").write_text(CHEAT)
    named = f"{tmp_path / 'cheat.py'}:Chooser"
    board = tsadbench.run(["t2", named], "pumploop", splits="overall", settings=settings, floors=False, seeds=1)
    rows = board.to_frame().set_index("detector")
    assert set(rows["status"]) == {"ok"}
    (cheats,) = rows.index.difference(["t2"])
    assert rows.loc[cheats, "auprc_mean"] == pytest.approx(rows.loc["t2", "auprc_mean"], rel=1e-9)
    assert (rows.loc[cheats, "mcc_mean"] - rows.loc["t2", "mcc_mean"] > 0.02) == gains
