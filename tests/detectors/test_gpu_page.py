"""The table that compares a GPU with the processor, from records made by hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.helpers.records import record
from tests.helpers.scripts import load_script
from tsadbench.leaderboard.ranking import Row, ranked_rows


@pytest.fixture
def page() -> ModuleType:
    return load_script(Path(__file__).parents[2] / "docs/performance/gpu.py")


def row(label: str, aurocs: tuple[float, ...], status: str = "ok") -> Row:
    (made,) = ranked_rows([record(label, i, status=status, auroc=value) for i, value in enumerate(aurocs)], "overall")
    return made


def test_without_a_gpu_nothing_is_measured(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    page.main(["--out", str(tmp_path / "runs")])
    assert capsys.readouterr().out.startswith("no GPU that torch can use: nothing is measured")
    assert not (tmp_path / "runs").exists()


def test_all_networks_take_part(page: ModuleType) -> None:
    assert {"dprgm", "mscred", "vanilla-ae"} <= set(page.networks())
    assert "t2" not in page.networks()


@pytest.mark.parametrize(("shift", "apart"), [(0.0, "none"), (0.19, "none"), (0.21, "auroc")])
def test_metrics_stand_beside_the_spread_of_the_seeds(page: ModuleType, shift: float, apart: str) -> None:
    cpu, cuda = row("x", (0.4, 0.5, 0.6)), row("x[device=cuda]", (0.4 + shift, 0.5 + shift, 0.6 + shift))
    line = page.measured(cpu, cuda)  # a standard deviation of .1 on either side
    assert len(line) == len(page.HEADER)
    assert line[:4] == ["x", "3.0", "3.0", "1.0"]
    assert line[4].startswith(".5000(.1000) / .")
    assert line[-1] == apart


def test_a_failure_is_told(page: ModuleType) -> None:
    line = page.measured(row("x", (0.5, 0.6)), row("x[device=cuda]", (0.5, 0.6), status="memory"))
    assert (len(line), line[0], line[-1]) == (len(page.HEADER), "x", "memory")
