"""What the page holds, against scikit-learn, against the judge and against the stored scores."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import genpareto
from sklearn.metrics import auc, average_precision_score, roc_auc_score

from tests.helpers.plans import make_plan
from tests.helpers.reported import held_content
from tests.helpers.trials import DISTANCE, LARGEST_Z
from tsadbench.analysis.curves import tail_of
from tsadbench.errors import DataError
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.reporting.html.build import report_content, write_report
from tsadbench.reporting.html.curves import densities, ranking_curves, tail
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

    def test_without_the_data_the_tables_remain(self, stores):
        def gone(name: str):
            raise DataError(f"{name} is not here")

        (board,) = report_content(stores[1]["strict"], gone)["boards"]
        assert board["missing"] == "small is not here"
        assert "recordings" not in board
        assert "labels" not in board
        assert len(board["tables"][0]["rows"]) == 2

    def test_no_text_of_the_content_ends_the_script(self, hostile_store, hostile, tmp_path):
        content = held_content(write_report(hostile_store, lambda name: hostile, tmp_path))
        assert content["boards"][0]["recordings"][0]["id"] == "<script>alert(1)</script>"
