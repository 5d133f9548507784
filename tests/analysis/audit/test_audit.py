"""The audit on small data sets worked by hand, and on SKAB, whose flaws are known."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.helpers.protocol_plant import SENSORS, plant, recording
from tsadbench import Recording
from tsadbench.analysis.audit import audit
from tsadbench.analysis.audit.labels import position_scores
from tsadbench.analysis.audit.overlap import recordings_sharing_rows


def grades(found) -> dict[str, str]:
    return {finding.about: finding.grade for finding in found.findings}


def auroc(found) -> dict[str, float]:
    return found["position"].tables[0].frame.set_index("predictor")["AUROC"].to_dict()


def test_the_position_score_is_the_share_of_other_sessions_recordings_that_are_anomalous_there():
    truth = {"a": np.array([0, 1, 1, 0], bool), "b": np.array([0, 1, 0], bool), "c": np.array([1, 1], bool)}
    a, b, c = position_scores(truth, {name: name for name in truth})
    np.testing.assert_allclose(a, [1 / 2, 2 / 2, 0.0, 0.0])
    np.testing.assert_allclose(b, [1 / 2, 2 / 2, 1.0])
    np.testing.assert_allclose(c, [0.0, 2 / 2])
    a, b, c = position_scores(truth, {"a": "one day", "b": "one day", "c": "another"})
    np.testing.assert_allclose(a, [1.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(b, [1.0, 1.0, 0.0])
    np.testing.assert_allclose(c, [0.0, 2 / 2])


def test_shared_rows_are_counted_by_pair_and_contradicting_labels_among_them():
    train = recording("free", 50, start=0.0)
    a = train.rows(40, 50, id="a")
    b = Recording("b", np.vstack([a.values[:4], recording("x", 6).values]), SENSORS, a.time)
    labels = {"a": np.array([0, 1] + [0] * 8, bool), "b": np.zeros(10, bool)}
    found = recordings_sharing_rows([train], [a, b], labels)
    assert found.fillna(-1).to_numpy().tolist() == [
        ["free", "a", "train and test", 10, -1],
        ["free", "b", "train and test", 4, -1],
        ["a", "b", "test and test", 4, 1],
    ]
    later = Recording("b", b.values, SENSORS, b.time + 1.0 if b.time is not None else None)
    assert "b" not in set(recordings_sharing_rows([train], [a, later], labels)["second"])


def test_gaps_repeated_rows_and_sensors_that_never_move():
    time = np.arange(20.0)
    time[12:] += 30.0
    values = np.random.default_rng(0).normal(size=(20, 2))
    values[:, 1] = 4.0
    values[7] = values[6]
    data = plant(
        (recording("free", 50, start=0.0),), (Recording("odd", values, SENSORS, time + 1e6),), {"odd": slice(3, 8)}
    )
    found = audit(data)
    odd = found["duplicates"].tables[0].frame.iloc[1]
    assert tuple(odd[["step, s", "repeated rows", "never move"]]) == (1.0, 1, "flow")
    assert tuple(odd[["anomalous", "from row"]]) == (5, 3)
    assert found["gaps"].tables[0].frame.to_numpy().tolist() == [["odd", 12, 31.0]]
    assert re.search(r"\b31 s\b.*\b12\b.*\bodd\b", found["gaps"].sentence)
    assert re.search("flow.* odd", found["constant"].sentence)


def test_a_shift_between_training_and_normal_test_rows():
    moved = Recording("a", recording("a", 100, seed=1).values + 30.0, SENSORS)
    found = audit(plant((recording("free", 200),), (moved,), {"a": slice(0, 20)}, {"overall": ("a",), "valve": ("a",)}))
    assert grades(found)["shift"] == "fault"
    shift = found["shift"].tables[0].frame.set_index(["where", "sensor"]).loc[("valve", "flow")]
    assert shift["z"] == pytest.approx(30.0, rel=0.1)
    assert shift["outside the training range"] == 1.0


@pytest.mark.long  # the audit takes 8 s
@pytest.mark.skab
def test_what_is_known_of_skab(skab):
    found = audit(skab)
    # Learned from the other three sessions. Learned from the other 33 files, most from the same session, it is .937.
    assert auroc(found)["position"] == pytest.approx(0.926, abs=0.001)
    assert auroc(found)["max-z"] == pytest.approx(0.756, abs=0.005)
    medians = found["shift"].tables[0].frame.set_index(["where", "sensor"]).loc[("valve1", "Volume Flow RateRMS")]
    assert medians[["training median", "test median"]].tolist() == pytest.approx([125, 32], abs=1)
    shared = found["shared-train-test"].tables[0].frame[["first", "second", "rows", "with two labels"]]
    assert [tuple(row) for row in shared.fillna(-1).to_numpy()] == [
        ("anomaly-free", "other/5", 572, -1),
        ("other/12", "other/13", 349, 178),
        ("other/3", "other/4", 228, 57),
        ("other/2", "other/3", 120, 0),
        ("other/10", "other/11", 21, 0),
    ]
