"""A disguised recording tells a detector nothing, and everything that comes back is translated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tsadbench import Detector, Prior, Recording, UsageError
from tsadbench.base.prior import Edge, Sensor
from tsadbench.sandbox import Box, BoxFailure, Construction, Crossing

SECRET = "0123456789abcdef" * 2
SENSORS = ("Pressure", "Volume Flow RateRMS", "sensor-1")
ROWS = Recording("valve1/3", np.arange(12.0).reshape(4, 3), SENSORS, time=np.array([1e9, 1e9 + 1, 1e9 + 2.5, 1e9 + 4]))
PRIOR = Prior(
    (Edge("Pressure", "Volume Flow RateRMS", "Pressure (bar)", "flow", "Pressure drives flow; Pressures do not", 0.5),),
    origin="prior/skab.json",
    provenance={"document": "SKAB"},
    sensors=(Sensor("Pressure", "Pressure", "pump of sensor-1"),),
)


def test_ids_and_clocks_say_nothing_and_differ_from_purpose_to_purpose_and_episode_to_episode():
    crossed = [
        Crossing(SENSORS, SECRET, episode).recording(ROWS, purpose)
        for episode in (0, 1)
        for purpose in ("fit", "score")
    ]
    assert len({one.id for one in crossed}) == len({one.time[0] for one in crossed}) == 4
    for one in crossed:
        assert "valve" not in one.id
        assert one.sensors == ("sensor-1", "sensor-2", "sensor-3")
        assert_array_equal(one.values, ROWS.values)
        assert one.time[0] == int(one.time[0]) != 1e9
        assert_array_equal(np.diff(one.time), [1.0, 1.5, 1.5])


def test_the_same_secret_gives_the_same_disguise_whatever_was_asked_before():
    first, second = (Crossing(SENSORS, SECRET, 3) for _ in range(2))
    first.recording(ROWS, "other")
    first.generator("replay").random()
    one, other = (crossing.recording(ROWS, "a") for crossing in (first, second))
    assert (one.id, list(one.time)) == (other.id, list(other.time))
    assert sorted(first.order(34)) == list(range(34)) != first.order(34) == second.order(34)
    assert Crossing(SENSORS).secret != Crossing(SENSORS).secret


@given(
    spacing=st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=50),
    start=st.floats(-1e10, 1e10),
    purposes=st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True),
    data=st.data(),
)
@settings(deadline=None, max_examples=50)
def test_every_shift_keeps_the_spacing_of_times_to_the_bit(spacing, start, purposes, data):
    time = start + np.cumsum([0.0, *spacing])
    original = Recording("r", np.zeros((len(time), 1)), ("a",), time)
    crossing = Crossing(("a",), SECRET)
    one, other = (crossing.recording(original, purpose).time for purpose in purposes)
    assert_array_equal(np.diff(one), np.diff(other))
    assert_array_equal(one - one[0], other - other[0])
    # Equal to the original's up to 15 nanoseconds or, over more than a year, one part in 2 ** 51.
    np.testing.assert_allclose(one - one[0], time - time[0], rtol=2.0**-51, atol=1.5e-8)
    first = data.draw(st.integers(0, len(time) - 1))
    last = data.draw(st.integers(first + 1, len(time)))
    part = crossing.recording(original, "part", first, last).time
    assert_array_equal(part - part[0], (one - one[0])[first:last] - (one - one[0])[first])


def test_sensors_are_renamed_in_priors_and_parameters():
    renamed = Crossing(SENSORS, SECRET).arguments(
        {
            "prior": PRIOR,
            "target_sensor": "Pressure",
            "sensors": ("sensor-1", "Volume Flow RateRMS"),
            "sensor_weights": {"Pressure": 2.0},
            "mode": "Pressure",
            "seed": 3,
        }
    )
    prior = renamed.pop("prior")
    assert "SKAB" not in repr(prior).upper()
    assert_array_equal(prior.votes(("sensor-1", "sensor-2", "sensor-3")), PRIOR.votes(SENSORS))
    (edge,) = prior.edges
    assert edge == Edge("sensor-1", "sensor-2", "sensor-1 (bar)", "flow", "sensor-1 drives flow; Pressures do not", 0.5)
    assert renamed == {
        "target_sensor": "sensor-1",
        "sensors": ("sensor-3", "sensor-2"),
        "sensor_weights": {"sensor-1": 2.0},
        "mode": "Pressure",  # its name does not say that it is for sensors
        "seed": 3,
    }


def test_texts_come_back_with_the_real_names_of_recordings_and_sensors():
    crossing = Crossing(SENSORS, SECRET)
    crossed = crossing.recording(ROWS, "score")
    text = f"recording {crossed.id!r}: sensor-1, sensor-12, sensor-3, my-sensor-1; recording-00000000"
    expected = "recording 'valve1/3': Pressure, sensor-12, sensor-1, my-sensor-1; recording-00000000"
    assert crossing.restored(text) == expected


@pytest.mark.parametrize("secret", ["", SECRET + "\n"])
def test_an_invalid_secret_is_refused(secret):
    with pytest.raises(UsageError, match="hexadecimal"):
        Crossing(SENSORS, secret)


class Complains(Detector):
    """Names what it saw in an error and in its output."""

    def __init__(self, *, prior: Prior | None = None) -> None:
        self.prior = prior

    def _check(self, sensors):
        self.prior.check(sensors)

    def _fit(self, recordings):
        print("edge", self.prior.edges[0].source, recordings[0].id[:9])

    def _score(self, recording):
        raise RuntimeError(f"{recording.id}: {recording.sensors[1]} is stuck")


def test_a_box_disguises_and_translates():
    construction = Construction.of(Complains, {"prior": PRIOR})
    with Box(construction, threads=1, crossing=Crossing(SENSORS)) as box:
        box.fit((ROWS,))
        with pytest.raises(BoxFailure) as caught:
            box.score(ROWS)
        assert box.log().strip() == "edge Pressure recording"
    assert "valve1/3: Volume Flow RateRMS is stuck" in caught.value.reason
    assert "valve1/3: Volume Flow RateRMS is stuck" in caught.value.traceback
