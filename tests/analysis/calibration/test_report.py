"""The calibration report of stored trials, as `tsadbench leaderboard --calibration` prints it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.cards import CARD, frame
from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import record
from tsadbench import Detector, Traits
from tsadbench.analysis.calibration import calibration_report
from tsadbench.analysis.calibration.clusters import FlaggedNormal
from tsadbench.analysis.calibration.report import CalibrationRow, TrialCalibration
from tsadbench.base.dataset import LabelledDataset
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench_protocols import pot
from tsadbench_protocols.skab import Skab

pytestmark = pytest.mark.usefixtures("tiny_plugin")


class Remembers(Detector):
    """Scores a row by its first sensor, and rows that it was trained on far lower."""

    traits = Traits(memory=0)

    def _fit(self, recordings):
        self.seen_ = np.concatenate([one.values[:, 0] for one in recordings])

    def _score(self, recording):
        first = recording.values[:, 0]
        return np.where(np.isin(first, self.seen_), first / 10, first)


def report_on(data, tmp_path, *detectors, **settings):
    store = Store.create(tmp_path / "runs")
    run_plan(make_plan(detectors, dataset=data, floors=False, **settings), store)
    return calibration_report(Leaderboard.from_records(store.records()), store, lambda _: data)


def test_it_says_how_many_held_out_rows_exceed_the_threshold_of_the_others(tmp_path):
    data = make_data(n_rows=3000)
    settings = ["strict.calibration=held-out", "strict.q=0.015"]
    (row,) = report_on(data, tmp_path, Remembers(), settings=settings).rows
    (trial,) = row.trials
    scores = data.dataset.train[1].values[1800 + 30 :, 0]  # the last fifth of 6,000 rows, after the warm-up
    flagged = 0
    for block in np.array_split(np.arange(len(scores)), 10):
        flagged += int((scores[block] > pot.fit(np.delete(scores, block), q=0.015).value).sum())
    assert trial.calibration == "held-out"
    assert (trial.q, trial.flagged.n_rows, trial.flagged.n_flagged) == (0.015, 1170, flagged)
    assert row.share == flagged / 1170
    low, high = row.interval
    assert low < 0.015 < high
    assert (row.verdict, row.excesses) == ("as set", trial.excesses)


def test_a_burst_in_one_tenth_is_seen_but_is_one_cluster(tmp_path):
    """Every fifth row of the last tenth of the held-out rows is large: the other tenths know nothing of it."""
    data = make_data(n_rows=3000)
    values = data.dataset.train[1].values.copy()
    values[2885::5, 0] += 10.0
    train = (data.dataset.train[0], replace(data.dataset.train[1], values=values))
    drifting = LabelledDataset(replace(data.dataset, train=train), data.labels)
    (row,) = report_on(drifting, tmp_path, Remembers(), settings=["strict.calibration=held-out"]).rows
    assert (row.share, row.clusters, row.verdict) == (23 / 1170, 1, "too few")


@pytest.mark.parametrize(
    ("n_rows", "n_clusters", "verdict"),
    [(1000, 9, "too few"), (1000, 10, "above q"), (10_000, 10, "as set"), (100_000, 10, "below q")],
)
def test_the_verdict_compares_q_with_the_interval(n_rows, n_clusters, verdict):
    flagged = FlaggedNormal(n_rows, (1,) * n_clusters)
    trial = TrialCalibration(seed=0, calibration="held-out", q=1e-3, flagged=flagged, n_fits=1, excesses=40, n_few=0)
    assert CalibrationRow(record("t2"), (trial, trial)).verdict == verdict


def test_training_rows_are_called_so_and_few_excesses_are_marked(tmp_path, small_data):
    report = report_on(small_data, tmp_path, "distance", "everything")
    (row,) = report.rows
    assert row.trials[0].calibration == "training"
    assert (row.verdict, row.interval) == ("too few", None)
    assert row.excesses >= 30
    (line,) = report.left_out
    assert line.startswith("small, strict 2, everything: its threshold is fixed")


def test_seeds_of_a_row_share_their_rows(tmp_path):
    data = make_data(n_rows=3000)
    (row,) = report_on(data, tmp_path, "noisy", settings=["strict.q=0.015"], seeds=3).rows
    assert [one.seed for one in row.trials] == [0, 1, 2]
    assert row.share == pytest.approx(np.mean([one.flagged.share for one in row.trials]))
    lows, highs = zip(*(one.flagged.interval for one in row.trials), strict=True)
    assert min(lows) < row.interval[0] < max(lows)
    assert min(highs) < row.interval[1] < max(highs)


def test_every_fit_of_a_protocol_counts(tmp_path):
    """Under skab each of the three recordings is a fit of its own; the first 140 rows set its threshold."""
    settings = ["skab.train_rows=140"]
    (row,) = report_on(make_data(), tmp_path, "distance", protocol="skab", settings=settings).rows
    (trial,) = row.trials
    assert (trial.n_fits, trial.n_few) == (3, 3)
    assert trial.flagged.n_rows == 3 * len(range(140)[Skab(train_rows=140).calibration_rows(140)])
    assert row.to_json()["fits_with_few_excesses"] == 3


class TestCommand:
    @pytest.fixture
    def run(self, tmp_path, tsadbench):
        """Returns a command on a store of two trials of 6,000 normal rows, with the data set's card."""
        (tmp_path / "card.toml").write_text(CARD)
        for name, n_rows, faults in (("train/a", 6000, None), ("test/b", 100, (50, 60))):
            file = tmp_path / f"{name}.csv"
            file.parent.mkdir()
            frame(n_rows, faults=faults).to_csv(file, index=False)
        card, runs = str(tmp_path / "card.toml"), tmp_path / "runs"
        made = tsadbench(
            "run", "-d", "distance", "-d", "distance[power=3.0]", "--no-floors", "--dataset", card, "--out", runs,
            "--set", "strict.calibration=held-out", "--set", "strict.q=0.015",
        )  # fmt: skip
        assert made.code == 0
        return lambda *options: tsadbench("leaderboard", runs, "--dataset", card, "--calibration", *options)

    def test_the_table_and_its_formats_agree(self, run):
        table = run()
        assert table.code == 0
        for text in ("distance[power=3.0]", "held-out", "as set", "observed: the share"):
            assert text in table.out
        content = json.loads(run("--format", "json").out)
        assert content["schema"] == 1
        first = content["rows"][0]
        assert (first["calibration"], first["rows"], first["q"], first["seeds"]) == ("held-out", 1170, 0.015, [0])
        assert first["low"] < first["observed"] < first["high"]
        assert first["observed"] == first["trials"][0]["flagged"] / 1170
        lines = list(csv.DictReader(io.StringIO(run("--format", "csv").out)))
        assert [float(line["observed"]) for line in lines] == [row["observed"] for row in content["rows"]]
        assert f"| {first['detector']} |" in run("--format", "markdown").out

    @pytest.mark.parametrize(
        ("options", "fault"),
        [
            (("--split", "overall"), "--split"),
            (("--write", "tables"), "--write"),
            (("--smoothing", "5"), "--smoothing"),
            (("--diagnostics", "all"), "--diagnostics"),
            (("--format", "latex"), "expected --format table, json, csv or markdown, found latex"),
        ],
    )
    def test_options_that_do_not_concern_it_are_refused(self, run, options, fault):
        done = run(*options)
        assert done.code == 2
        assert fault in done.err
        assert "Traceback" not in done.err
