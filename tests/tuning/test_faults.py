"""Each kind of fault has the documented effect on one sensor, in the reported rows and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsadbench import DataError, Recording
from tsadbench.base import mask_runs
from tsadbench.tuning.faults import KINDS, SLOT, Kind, Plant, with_faults

SENSORS = ("walk", "partner", "noise", "constant")
KIND = {kind.name: kind for kind in KINDS}


def rows(n_rows: int = 500, seed: int = 0) -> Recording:
    rng = np.random.default_rng(seed)
    walk = rng.normal(size=n_rows).cumsum()
    partner = 2.0 * walk + rng.normal(scale=0.1, size=n_rows)
    return Recording("rows", np.stack([walk, partner, rng.normal(size=n_rows), np.full(n_rows, 7.0)], axis=1), SENSORS)


def planted(kind: Kind, recording: Recording, first: int = 30, seed: int = 0):
    return with_faults(recording, first, kind, Plant.of([recording]), np.random.default_rng(seed))


def faulty_sensor(recording: Recording, found: Recording, start: int, stop: int) -> int | None:
    changed = np.flatnonzero((found.values[start:stop] != recording.values[start:stop]).any(axis=0))
    assert len(changed) <= 1
    return int(changed[0]) if len(changed) else None


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(KINDS), st.integers(120, 900), st.integers(1, 60), st.integers(0, 10**6))
def test_only_one_varying_sensor_changes_and_only_in_the_reported_rows(kind, n_rows, first, seed):
    recording = rows(n_rows, seed % 7)
    found, faulty = planted(kind, recording, first, seed)
    assert not faulty[:first].any()
    np.testing.assert_array_equal(found.values[~faulty], recording.values[~faulty])
    assert len(mask_runs(faulty)) <= max(1, (n_rows - first) // SLOT)  # two that touch look like one
    assert 1 <= faulty.sum() <= max(1, (n_rows - first) // 5)
    for start, stop in mask_runs(faulty):
        if stop - start <= kind.rows[1]:
            assert faulty_sensor(recording, found, start, stop) in (None, 0, 1, 2)
    assert found.sensors == recording.sensors


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_equal_seeds_plant_equal_faults_and_other_seeds_plant_others(kind):
    recording = rows()
    first, again, other = (planted(kind, recording, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first[0].values, again[0].values)
    assert (first[1] != other[1]).any()


def each(name: str):
    """Return a sensor's values before and after, its scale and index, and the segment, for several seeds."""
    recording, effects = rows(), []
    plant = Plant.of([recording])
    for seed in range(25):
        found, faulty = planted(KIND[name], recording, seed=seed)
        for start, stop in mask_runs(faulty):
            sensor = faulty_sensor(recording, found, start, stop)
            if sensor is not None and stop - start <= KIND[name].rows[1]:
                before, after = recording.values[:, sensor], found.values[:, sensor]
                effects.append((before, after, float(plant.scale[sensor]), sensor, start, stop))
    assert len(effects) > 20
    return effects


@pytest.mark.parametrize("name", ["spike", "level-shift"])
def test_a_spike_and_a_level_shift_add_one_number_of_the_documented_size(name):
    signs = set()
    for before, after, scale, _, start, stop in each(name):
        added = (after - before)[start:stop]
        np.testing.assert_allclose(added, added[0], rtol=1e-6, atol=1e-9)
        assert KIND[name].size[0] - 1e-9 <= abs(added[0]) / scale <= KIND[name].size[1] + 1e-9
        assert KIND[name].rows[0] <= stop - start <= KIND[name].rows[1]
        signs.add(np.sign(added[0]))
    assert signs == {-1.0, 1.0}


def test_a_drift_grows_evenly_from_nothing_to_its_size():
    for before, after, scale, _, start, stop in each("drift"):
        added = (after - before)[start:stop]
        np.testing.assert_allclose(
            added, added[-1] * np.arange(1, stop - start + 1) / (stop - start), rtol=1e-6, atol=1e-9
        )
        assert 1.0 - 1e-9 <= abs(added[-1]) / scale <= 4.0 + 1e-9


def test_a_stuck_sensor_repeats_the_value_of_the_row_before():
    for before, after, _, _, start, stop in each("stuck"):
        np.testing.assert_array_equal(after[start:stop], np.full(stop - start, before[start - 1]))


def test_a_noise_burst_adds_noise_without_a_level_of_the_documented_size():
    sizes, means = [], []
    for before, after, scale, _, start, stop in each("noise-burst"):
        added = (after - before)[start:stop] / scale
        sizes.append(added.std())
        means.append(added.mean())
    assert 1.0 < np.mean(sizes) < 3.0
    assert abs(np.mean(means)) < 0.3
    assert np.std(sizes) > 0.2


def test_a_broken_coupling_shows_another_time_of_a_sensor_that_has_a_partner():
    for before, after, _, sensor, start, stop in each("broken-coupling"):
        assert sensor in (0, 1)
        windows = np.lib.stride_tricks.sliding_window_view(before, stop - start)
        places = np.flatnonzero((windows == after[start:stop]).all(axis=1))
        assert len(places)
        assert (places + (stop - start) <= start).any() or (places >= stop).any()


def test_without_a_sensor_that_varies_nothing_can_be_faulty():
    with pytest.raises(DataError, match="constant"):
        Plant.of([Recording("still", np.full((50, 2), 0.1), ("a", "b"))])
