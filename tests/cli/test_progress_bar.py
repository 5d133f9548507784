from __future__ import annotations

from types import SimpleNamespace

from tsadbench.cli import live
from tsadbench.utils.progress import progress


def test_a_log_gets_a_line_about_long_work_every_half_a_minute(monkeypatch, capsys):
    clock = iter(range(0, 10_000, 8))
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with live.progress_bar("Verifying", time_left=True):
        for done in range(12):
            progress(done, 4000)
    assert capsys.readouterr().err.splitlines() == [
        "Verifying: 3 of 4,000; about 533 min left",
        "Verifying: 7 of 4,000; about 532 min left",
        "Verifying: 11 of 4,000; about 532 min left",
    ]


def test_short_work_says_nothing(capsys):
    with live.progress_bar("Verifying"):
        for done in range(100):
            progress(done, 100)
    assert capsys.readouterr().err == ""
