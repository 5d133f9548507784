"""Figures and resamples over several entities: no number mixes the scores of two models."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from sklearn.metrics import roc_auc_score

from tests.helpers.machines import DISTANCE, MACHINES, Made, made_machines
from tsadbench.analysis.curves import curve_of, fits_of, mean_curve
from tsadbench.analysis.significance.resampling import draw, resampled
from tsadbench.results.trial_result import TrialResult

WITH_EVENTS = ("alpha", "beta")  # gamma has none


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return made_machines(tmp_path_factory.mktemp("made"), DISTANCE)


@pytest.fixture(scope="module")
def result(made) -> TrialResult:
    return made.results()[0]


def rows_of(result: TrialResult, machine: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores and labels of the evaluated rows of one machine."""
    shown = [one for name, one in result.recordings.items() if name.startswith(machine)]
    return tuple(np.concatenate([getattr(one, what)[30:] for one in shown]) for what in ("scores", "anomalous"))


def test_the_rows_of_each_fit_are_kept_apart(result):
    fits = fits_of(result, "overall")
    assert [fit.episode for fit in fits] == list(MACHINES)
    for fit in fits:
        scores, anomalous = rows_of(result, fit.episode)
        assert_allclose(fit.scores, scores)
        assert (fit.anomalous == anomalous).all()


def test_a_curve_is_the_mean_of_the_entities_curves_and_its_area_the_mean_in_the_table(result):
    fits = [fit for fit in fits_of(result, "overall") if fit.both_classes]
    curve = mean_curve([curve_of(fit, "roc") for fit in fits])
    table = result.record.splits["overall"].metrics["auroc"]
    assert trapezoid(curve.y, curve.x) == pytest.approx(table, abs=2e-3)
    assert table == pytest.approx(
        statistics.mean(roc_auc_score(*reversed(rows_of(result, one))) for one in WITH_EVENTS)
    )
    everything = [rows_of(result, one) for one in MACHINES]
    pooled = roc_auc_score(*reversed([np.concatenate(part) for part in zip(*everything, strict=True)]))
    assert abs(pooled - table) > 1e-3


class TestSignificance:
    @pytest.mark.parametrize("metric", ["auprc", "auroc", "bf_f1", "mcc", "recall", "events_at_1", "auprc_mean10"])
    def test_resamples_are_computed_for_each_entity_and_averaged(self, result, metric):
        names = list(result.recordings)
        drawn = draw([[i] for i in range(len(names))], 40, seed=1)
        found = resampled(result, metric, names, drawn)
        assert found[0] == pytest.approx(result.record.splits["overall"].metrics[metric])
        for column, value in zip(drawn.T.astype(int), found[1:], strict=True):
            values, times = [], []
            for machine in MACHINES:
                own = [
                    name for name, n in zip(names, column, strict=True) for _ in range(n) if name.startswith(machine)
                ]
                judged = result.judge({"": own})[""].metrics[metric] if own else None
                if judged is not None:
                    values.append(judged)
                    times.append(len(own) / 2)
            if values:
                assert value == pytest.approx(np.average(values, weights=times), abs=1e-6)
            else:
                assert np.isnan(value)
