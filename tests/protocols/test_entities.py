"""Several entities under `strict`: a model and metrics for each, and the means of the metrics."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.machines import MACHINES, SENSORS, make_machines
from tests.helpers.protocol_plant import plant, pressure, recording, scores_of, trial
from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.base.recording import Recording
from tsadbench.errors import ContractError, DataError, UsageError
from tsadbench.utils.arrays import BoolArray, FloatArray
from tsadbench_protocols import pot
from tsadbench_protocols.metrics import evaluate
from tsadbench_protocols.published import Published
from tsadbench_protocols.skab import Skab
from tsadbench_protocols.strict import Strict

WARM_UP = 30
# Without event metrics, which need the borders of recordings.
RANKS_AND_RATES = ("precision", "recall", "prac_f1", "mcc", "auroc", "auprc", "bf_f1", "flagged")
FIRST = {"overall": ("1", "2"), "first": ("1",)}


def rows_of(data: LabelledDataset, machine: str, parts: Sequence[str]) -> tuple[FloatArray, BoolArray, float]:
    """Return the evaluated scores and labels of a machine's test recordings, and its threshold, by hand."""
    by_id = {one.id: one.values[WARM_UP:, 0] for one in (*data.dataset.train, *data.dataset.test)}
    scores = np.concatenate([by_id[f"{machine}/{part}"] for part in parts])
    anomalous = np.concatenate([data.labels.rows[f"{machine}/{part}"][WARM_UP:] for part in parts])
    training = np.concatenate([by_id[f"{machine}/{part}"] for part in ("a", "b")])
    return scores, anomalous, pot.fit(training, level=0.98, q=1e-3).value


def test_metrics_are_means_over_entities() -> None:
    data = make_machines()
    found = trial(Strict(), data, pressure)
    for split, parts in FIRST.items():
        judged = found.splits[split]
        rows = {machine: rows_of(data, machine, parts) for machine in MACHINES}
        expected = {machine: evaluate(*three) for machine, three in rows.items()}
        assert list(judged.entities) == list(MACHINES)
        for machine in MACHINES:
            found_of = {name: judged.entities[machine][name] for name in RANKS_AND_RATES}
            assert found_of == pytest.approx({name: expected[machine][name] for name in RANKS_AND_RATES})
        for metric, mean in judged.metrics.items():
            defined = [one for machine in MACHINES if (one := judged.entities[machine][metric]) is not None]
            assert mean == pytest.approx(statistics.mean(defined)), metric
        assert judged.n_rows == sum(len(scores) for scores, _, _ in rows.values()) == 3 * 210 * len(parts)
        assert judged.n_anomalous == sum(int(anomalous.sum()) for _, anomalous, _ in rows.values())
    thresholds = {entry.episode: entry.threshold.value for entry in found.thresholds}
    assert thresholds == {machine: rows_of(data, machine, ("1",))[2] for machine in MACHINES}


@given(st.integers(0, 2**32 - 1), st.integers(40, 120), st.booleans())
def test_one_entity_gives_the_same_result_as_none(seed: int, n_rows: int, with_nan: bool) -> None:
    train, test = recording("free", 300, seed=seed), recording("a", n_rows, seed=seed + 1)
    data = plant((train,), (test, recording("b", 50, seed=seed + 2)), {"a": slice(35, 38)})
    named = replace(data.dataset, entities={"free": "m", "a": "m", "b": "m"})

    def rule(one: Recording) -> FloatArray:
        scores = pressure(one)
        if with_nan and one.id == "a":
            scores[:33] = np.nan
        return scores

    assert tuple(Strict().episodes(named)) == tuple(Strict().episodes(data.dataset))
    assert trial(Strict(), LabelledDataset(named, data.labels), rule) == trial(Strict(), data, rule)


def test_a_shared_row_counts_only_within_its_entity() -> None:
    data = make_machines(("alpha", "beta"))
    own = data.dataset.train[0]
    (theirs,) = (one for one in data.dataset.test if one.id == "beta/1")
    values = theirs.values.copy()
    values[50:60] = own.values[50:60]  # at the same times, in the test of the other machine
    test = tuple(Recording(one.id, values, SENSORS, one.time) if one is theirs else one for one in data.dataset.test)
    alpha, _ = Strict().episodes(replace(data.dataset, test=test))
    assert alpha.train == data.dataset.train[:2]
    mixed = {**data.dataset.entities, "beta/1": "alpha"}
    alpha, _ = Strict().episodes(replace(data.dataset, test=test, entities=mixed))
    assert [one.id for one in alpha.train] == ["alpha/a[0:50]", "alpha/a[60:240]", "alpha/b"]


def test_an_entity_without_training_recordings_is_an_error() -> None:
    dataset = make_machines().dataset
    entities = {**dataset.entities, "gamma/2": "delta"}
    with pytest.raises(DataError, match="'delta'.*gamma/2"):
        list(Strict().episodes(replace(dataset, entities=entities)))


def test_an_entity_without_test_recordings_is_not_fitted() -> None:
    data = make_machines(("alpha", "beta"))
    splits = {"overall": ("alpha/1", "alpha/2")}
    kept = tuple(one for one in data.dataset.test if one.id in splits["overall"])
    entities = {name: entity for name, entity in data.dataset.entities.items() if name not in ("beta/1", "beta/2")}
    dataset = replace(data.dataset, test=kept, splits=splits, entities=entities, sessions={})
    found = trial(
        Strict(),
        LabelledDataset(dataset, Labels({one.id: data.labels.rows[one.id] for one in kept}, splits)),
        pressure,
    )
    assert [entry.episode for entry in found.thresholds] == ["alpha"]
    assert found.splits["overall"].entities == {"alpha": found.splits["overall"].metrics}


def test_an_entity_with_no_training_row_left_is_named() -> None:
    data = make_machines(("alpha", "beta"))
    first, second, *others = data.dataset.test
    twins = zip((first, second), data.dataset.train, strict=False)
    copied = (*(Recording(one.id, twin.values, SENSORS, twin.time) for one, twin in twins), *others)
    with pytest.raises(DataError, match="'alpha'"):
        list(Strict().episodes(replace(data.dataset, test=copied)))


def test_held_out_rows_are_those_of_each_entity() -> None:
    dataset = make_machines(n_rows=4000).dataset
    for episode in Strict(calibration="held-out").episodes(dataset):
        assert [one.id for one in episode.calibration] == [f"{episode.id}/b[2400:4000]"]
        assert [one.id for one in episode.train] == [f"{episode.id}/a", f"{episode.id}/b[0:2300]"]


def test_coverage_is_over_all_rows_and_a_missing_score_costs_its_entity() -> None:
    data = make_machines(("alpha", "beta"))

    def rule(one: Recording) -> FloatArray:
        scores = pressure(one)
        if one.id == "alpha/1":
            scores[:135] = np.nan
        return scores

    found, whole = (trial(Strict(), data, one).splits["overall"] for one in (rule, pressure))
    assert found.coverage == (4 * 210 - 105) / (4 * 210)
    assert found.entities["beta"] == whole.entities["beta"]
    assert found.entities["alpha"]["auroc"] < whole.entities["alpha"]["auroc"]  # type: ignore[operator]


def test_an_entity_without_any_score_is_an_error_that_names_it() -> None:
    def rule(one: Recording) -> FloatArray:
        return np.full(one.n_rows, np.nan) if one.id.startswith("beta/") and one.id[-1] in "12" else pressure(one)

    with pytest.raises(ContractError, match="420 .*'beta'"):
        trial(Strict(), make_machines(), rule)


def test_labels_must_be_those_of_all_episodes() -> None:
    data = make_machines()
    scored = [scores_of(episode, pressure) for episode in Strict().episodes(data.dataset)]
    with pytest.raises(DataError, match="gamma/1"):
        Strict().judge(scored[:2], data.labels)


def test_published_refuses_several_entities_and_names_strict() -> None:
    with pytest.raises(UsageError, match="published.* 3 entities"):
        list(Published().episodes(make_machines().dataset))


def test_skab_fits_by_recording_whatever_the_entities() -> None:
    data = make_machines()
    here, there = (
        trial(Skab(train_rows=100), LabelledDataset(replace(data.dataset, entities=entities), data.labels), pressure)
        for entities in (data.dataset.entities, {})
    )
    assert here == there
