"""What the page holds, against scikit-learn, against the judge and against the stored scores."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import genpareto
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from tests.helpers.large_store import N_DETECTORS, N_RECORDINGS, large_store
from tests.helpers.plans import make_plan
from tests.helpers.reported import held_content
from tests.helpers.trials import DISTANCE, LARGEST_Z
from tsadbench import UsageError
from tsadbench.analysis.calibration import calibration_report
from tsadbench.analysis.curves import tail_of
from tsadbench.errors import DataError
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting.html import tables
from tsadbench.reporting.html.build import report_content, write_report
from tsadbench.reporting.html.curves import densities, ranking_curves, tail
from tsadbench.reporting.html.extent import Extent
from tsadbench.results.trial_result import TrialResult

PROTOCOLS = ("strict", "published", "skab[train_rows=60]")


def numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(float)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    from tests.helpers.data import make_data

    data = make_data()
    found = {}
    for protocol in PROTOCOLS:
        store = Store.create(tmp_path_factory.mktemp("stores") / "runs")
        name, _, rest = protocol.partition("[")
        settings = [f"{name}.{rest[:-1]}"] if rest else []
        plan = make_plan(
            [DISTANCE, LARGEST_Z], dataset=data, protocol=name, settings=settings, floors=False, contributions=True
        )
        run_plan(plan, store)
        found[protocol] = store
    return data, found


@pytest.fixture(params=PROTOCOLS)
def result(request, stores) -> TrialResult:
    data, found = stores
    store = found[request.param]
    return TrialResult(next(record for record in store.records() if record.label == DISTANCE), store, data)


class TestResult:
    def test_flags_evaluated_rows_and_truth_give_the_recorded_metrics(self, result):
        rows = list(result.recordings.values())
        flagged = np.concatenate([one.flagged[one.evaluated] for one in rows])
        truth = np.concatenate([one.anomalous[one.evaluated] for one in rows])
        recorded = result.record.splits["overall"]
        assert len(flagged) == recorded.n_rows
        assert truth.sum() == recorded.n_anomalous
        assert flagged.mean() == pytest.approx(recorded.metrics["flagged"])
        assert flagged[truth].mean() == pytest.approx(recorded.metrics["recall"])

    def test_each_recording_is_judged_by_itself(self, result):
        for name, one in result.recordings.items():
            judged = result.judged[name]
            assert judged.n_rows == one.evaluated.sum()
            expected = roc_auc_score(one.anomalous[one.evaluated], one.scores[one.evaluated])
            assert judged.metrics["auroc"] == pytest.approx(expected)

    def test_calibration_scores_give_the_initial_threshold(self, result):
        for one in result.record.thresholds:
            scores = result.calibration_scores(one.episode)
            assert len(scores) == one.threshold.n
            assert np.quantile(scores, one.threshold.level) == pytest.approx(one.threshold.t)

    def test_contributions_lie_with_their_rows(self, result):
        for one in result.recordings.values():
            assert one.contributions.shape == one.recording.values.shape

    def test_other_data_are_refused(self, result, stores):
        from tests.helpers.data import make_data

        store = next(store for store in stores[1].values() if store.find(result.record.trial))
        with pytest.raises(DataError, match="not those it was made with"):
            TrialResult(result.record, store, make_data(seed=1))


class TestCurves:
    def test_the_areas_are_scikit_learns(self, result):
        if len(result.record.thresholds) > 1:
            pytest.skip("a fit a recording: the curves are means")
        curves = ranking_curves(result, "overall")
        rows = list(result.recordings.values())
        scores = np.concatenate([one.scores[one.evaluated] for one in rows])
        truth = np.concatenate([one.anomalous[one.evaluated] for one in rows])
        x, y = map(numbers, curves["roc"])
        assert auc(x, y) == pytest.approx(roc_auc_score(truth, scores), abs=0.01)
        recall, precision = map(numbers, curves["precision_recall"])
        assert (recall[0], recall[-1]) == (0.0, 1.0)
        area = np.sum(np.diff(recall) * precision[1:])
        assert area == pytest.approx(average_precision_score(truth, scores), abs=0.02)
        point, recorded = curves["point"], result.record.splits["overall"].metrics
        assert point["recall"] == pytest.approx(recorded["recall"])
        assert point["precision"] == pytest.approx(recorded["precision"])

    def test_several_fits_are_averaged(self, stores):
        data, found = stores
        store = found[PROTOCOLS[2]]
        result = TrialResult(store.records()[0], store, data)
        curves = ranking_curves(result, "overall")
        x, y = map(numbers, curves["roc"])
        areas = [result.judged[name].metrics["auroc"] for name in result.recordings]
        assert curves["averaged"]
        assert auc(x, y) == pytest.approx(np.mean(areas), abs=0.02)
        recall, precision = map(numbers, curves["precision_recall"])
        areas = [result.judged[name].metrics["auprc"] for name in result.recordings]
        assert np.sum(np.diff(recall) * precision[1:]) == pytest.approx(np.mean(areas), abs=0.02)

    def test_one_class_has_no_curve(self, hostile_store, hostile):
        record = next(one for one in hostile_store.records() if one.status == "ok")
        result = TrialResult(record, hostile_store, hostile)
        assert ranking_curves(result, "one class") is None
        assert ranking_curves(result, "no rows") is None


class TestDensities:
    def test_shares_are_of_all_scores_and_stand_in_their_bins(self, result):
        found = densities(result, "overall")
        edges = numbers(found["edges"])
        for shares in found["shares"].values():
            assert numbers(shares).sum() == pytest.approx(1.0)
        n_rows = result.record.splits["overall"].n_rows
        assert found["n"]["normal"] + found["n"]["anomalous"] == n_rows
        above = edges[:-1] > np.arcsinh(found["threshold"] / found["scale"])
        flagged = np.concatenate([one.flagged[one.evaluated & one.anomalous] for one in result.recordings.values()])
        assert numbers(found["shares"]["anomalous"])[above].sum() <= flagged.mean() + 1e-6

    def test_a_split_without_a_row_still_shows_the_training_scores(self, hostile_store, hostile):
        record = next(one for one in hostile_store.records() if one.status == "ok")
        found = densities(TrialResult(record, hostile_store, hostile), "no rows")
        assert found["n"] == {"training": found["n"]["training"], "normal": 0, "anomalous": 0}


def test_the_tail_is_the_fitted_one(result):
    one = result.record.thresholds[0]
    found = tail(tail_of(result, one.episode))
    if one.threshold.gamma is None:
        assert found is None
        return
    x, y = map(numbers, found["fitted"])
    share = one.threshold.excesses / one.threshold.n
    assert y[0] == pytest.approx(share)
    expected = share * genpareto.sf(x - x[0], one.threshold.gamma, scale=one.threshold.sigma)
    assert_allclose(y, expected, rtol=1e-3, atol=1e-9)
    at_threshold = share * genpareto.sf(
        one.threshold.value - one.threshold.t, one.threshold.gamma, scale=one.threshold.sigma
    )
    assert at_threshold == pytest.approx(one.threshold.q)
    scores, shares = map(numbers, found["measured"])
    assert scores.min() > one.threshold.t
    assert np.all(np.diff(shares) < 0)


class TestContent:
    def test_the_calibration_is_the_leaderboards(self, stores):
        data, found = stores
        (board,) = report_content(found["strict"], lambda name: data)["boards"]
        report = calibration_report(
            Leaderboard.from_records(found["strict"].records()), found["strict"], lambda _: data
        )
        ((_, header, rows),) = report.tables()
        assert board["calibration"] == {"header": header, "rows": rows, "legend": report.legend}
        assert len(rows) == 2
        assert "training" in rows[0][1]

    def test_series_are_the_stored_ones(self, stores):
        data, found = stores
        content = report_content(found["strict"], lambda name: data)
        (board,) = content["boards"]
        for held, recording in zip(board["recordings"], data.dataset.test, strict=True):
            assert held["id"] == recording.id
            for packed, values in zip(held["sensors"], recording.values.T, strict=True):
                assert_array_equal(numbers(packed), values.astype(np.float32))
            assert held["anomalous"] == [[100.0, 140.0]]
            assert held["evaluated"] == [[30.0, 200.0]]
            assert set(held["maps"]) == {DISTANCE, LARGEST_Z}
        rows = board["tables"][0]["rows"]
        assert [row["label"] for row in rows] == [DISTANCE, LARGEST_Z]

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_other_labels_are_judged_beside_the_given_ones(self, stores, protocol):
        data, found = stores
        (board,) = report_content(found[protocol], lambda name: data)["boards"]
        given, *others = board["labels"]["moved"]
        rows = {row["label"]: row["metrics"]["auprc"]["mean"] for row in board["tables"][0]["rows"]}
        assert given["auprc"] == pytest.approx(rows)
        (one, other), (first, second) = rows, rows.values()
        assert given["rank"] == {one: 1 + (second > first), other: 1 + (first > second)}
        assert [one["change"] for one in others][:2] == ["10 rows earlier", "5 rows earlier"]
        assert all(set(one["auprc"]) == set(rows) for one in others)
        assert json.dumps(board["labels"], allow_nan=False)

    def test_without_the_data_the_tables_remain(self, stores):
        def gone(name: str):
            raise DataError(f"{name} is not here")

        (board,) = report_content(stores[1]["strict"], gone)["boards"]
        assert board["missing"] == "small is not here"
        assert "recordings" not in board
        assert "labels" not in board
        assert len(board["tables"][0]["rows"]) == 2

    def test_only_the_detectors_asked_for_have_series(self, stores):
        data, found = stores
        (board,) = report_content(found["strict"], lambda name: data, [LARGEST_Z])["boards"]
        assert [one["label"] for one in board["detectors"]] == [LARGEST_Z]
        assert len(board["tables"][0]["rows"]) == 2
        with pytest.raises(UsageError, match=r"no detector 'tests.helpers.trials:LargestY'.*LargestZ"):
            report_content(found["strict"], lambda name: data, ["tests.helpers.trials:LargestY"])

    def test_no_text_of_the_content_ends_the_script(self, hostile_store, hostile, tmp_path):
        content = held_content(write_report(hostile_store, lambda name: hostile, tmp_path))
        assert content["boards"][0]["recordings"][0]["id"] == "<script>alert(1)</script>"


def test_the_page_has_each_rows_throughput(stores):
    data, found = stores
    store = found["strict"]
    content = report_content(store, lambda name: data)
    records = {record.label: record for record in store.records()}
    for row in content["boards"][0]["tables"][0]["rows"]:
        record = records[row["label"]]
        assert row["cost"]["rows_per_second"] == record.rows_scored / record.score_seconds
        assert (row["cost"]["threads"], row["cost"]["fit_seconds"]) == ([1], record.fit_seconds)


def test_fronts_are_of_each_metric_and_speed(stores):
    _, found = stores
    slow, quick = sorted({record.label: record for record in found["strict"].records()}.values(), key=lambda r: r.label)
    slow = replace(slow, fit_seconds=9.0, rows_scored=100, score_seconds=1.0)
    quick = replace(quick, fit_seconds=1.0, rows_scored=900, score_seconds=1.0)
    board = Leaderboard.from_records([slow, quick], ["overall"])
    (table, *_) = tables.tables(board, Extent.of(board, (), best=0))
    split = {one.label: one.splits["overall"].metrics for one in (slow, quick)}
    for metric, better in (("auroc", "higher"), ("flagged", None)):
        wins = split[slow.label][metric] > split[quick.label][metric]
        expected = [] if better is None else [quick.label, *([slow.label] if wins else [])]
        assert table["fronts"][metric] == {"fit_seconds": expected, "rows_per_second": expected}


class TestCommand:
    def test_a_store_becomes_a_page(self, stores, tsadbench, tmp_path):
        store = Store.create(tmp_path / "runs")
        run_plan(make_plan([DISTANCE], dataset="pumploop", floors=False, contributions=False), store)
        options = ["--alias", f"{DISTANCE}=Distance", "--columns", "auprc,look-ahead", "--order", "label"]
        done = tsadbench("report", store.path, "--out", tmp_path / "page", *options)
        assert (done.code, done.out.strip()) == (0, str(tmp_path / "page" / "index.html"))
        assert "MB; open it in a browser" in done.err
        content = held_content(tmp_path / "page" / "index.html")
        assert content["aliases"] == {DISTANCE: "Distance"}
        assert (content["columns"], content["order"]) == (["auprc", "look_ahead"], "label")
        (board,) = content["boards"]
        assert f"pumploop, protocol strict: Names: Distance is {DISTANCE}." in board["notes"]
        assert board["calibration"]["rows"][0][0] == "Distance"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nowhere"], "is not a run store"),
            (["{empty}"], "holds no trials yet"),
        ],
    )
    def test_wrong_input(self, tsadbench, tmp_path, arguments, message):
        Store.create(tmp_path / "empty")
        done = tsadbench(
            "report", *(one.format(empty=tmp_path / "empty") for one in arguments), "--out", tmp_path / "x"
        )
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.err

    def test_a_folder_that_cannot_be_written(self, hostile_store, hostile, tmp_path):
        (tmp_path / "file").write_text("here")
        with pytest.raises(UsageError, match="cannot be written"):
            write_report(hostile_store, lambda name: hostile, tmp_path / "file")


def test_fourteen_detectors_by_thirty_four_recordings_fit_into_fifteen_megabytes(tmp_path):
    store, data = large_store(tmp_path)
    file = write_report(store, lambda name: data, tmp_path)
    (board,) = report_content(store, lambda name: data)["boards"]
    assert len(board["recordings"]) == N_RECORDINGS
    assert all(len(one["detectors"]) == len(one["maps"]) == N_DETECTORS for one in board["recordings"])
    assert file.stat().st_size <= 15e6
