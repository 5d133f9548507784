"""The simulated pump loop: its physics against the equations, its plausibility, and what an audit finds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tsadbench.analysis.audit import audit
from tsadbench.base.dataset import DataOptions, LabelledDataset, check_labels
from tsadbench.datasets import pumploop
from tsadbench.datasets.cards.schema import read_card
from tsadbench.datasets.pumploop import OTHER_FAULTS, SENSORS, SOUND, Fault, Loop

OPENING, AIR = 0.8, 20.0


@pytest.fixture(scope="session")
def data() -> LabelledDataset:
    return pumploop.load(DataOptions())


def settled(voltage: float = 230.0, opening: float = OPENING, fault: Fault = SOUND, seconds: int = 20_000) -> dict:
    """Return what the sensors show once everything has settled."""
    loop = Loop(voltage, opening, AIR)
    for _ in range(seconds):
        values = loop.step(voltage, opening, AIR, fault)
    return dict(zip(SENSORS, values, strict=True))


def test_its_recordings_are_as_skabs(data):
    check_labels(data)
    assert sum(one.n_rows for one in data.dataset.train) == 9000
    assert len(data.dataset.test) == 34
    splits = data.dataset.splits
    assert [len(splits[name]) for name in ("overall", "valve1", "valve2", "other")] == [34, 16, 4, 14]
    card, _ = read_card(Path(pumploop.__file__).with_name("skab.toml"))
    assert card is not None
    assert list(data.dataset.sensors) == card.columns.sensors


def test_it_is_the_same_every_time(data):
    again = pumploop.load(DataOptions())
    assert again.dataset.content_hash == data.dataset.content_hash
    assert again.labels.content_hash == data.labels.content_hash


def test_its_values_are_plausible(data):
    rows = np.concatenate([one.values for one in (*data.dataset.train, *data.dataset.test)])
    plausible = {
        "Accelerometer1RMS": (0.0, 1.0), "Accelerometer2RMS": (0.0, 1.0), "Current": (0.1, 3.0), "Pressure": (1.0, 3.0),
        "Temperature": (20.0, 90.0), "Thermocouple": (15.0, 60.0), "Voltage": (120.0, 245.0),
        "Volume Flow RateRMS": (5.0, 80.0),
    }  # fmt: skip
    for column, sensor in zip(rows.T, SENSORS, strict=True):
        low, high = plausible[sensor]
        assert low < column.min()
        assert column.max() < high


def test_a_faster_pump_gives_more_by_the_affinity_laws():
    fast, slow = settled(230.0), settled(161.0)
    flows = fast["Volume Flow RateRMS"] / slow["Volume Flow RateRMS"]
    assert flows == pytest.approx(230 / 161, rel=0.05)  # but for the slip, which the load decides
    lift = [(one["Pressure"] - 1.05) for one in (fast, slow)]
    assert lift[0] / lift[1] == pytest.approx(flows**2, rel=1e-6)  # head goes with the square of the flow
    vibration = fast["Accelerometer1RMS"] / slow["Accelerometer1RMS"]
    assert vibration == pytest.approx(flows**2, rel=0.02)


def test_the_pumps_head_is_what_the_loop_uses_up():
    flow = settled()["Volume Flow RateRMS"] / 60_000
    losses = pumploop._PIPE + (pumploop._VALVE_IN + pumploop._VALVE_OUT) / OPENING**2
    # Outlet pressure: the tank's, and what valve and pipe behind the outlet still have to use up.
    behind = (losses - pumploop._VALVE_IN / OPENING**2) * flow**2
    assert settled()["Pressure"] == pytest.approx((1.05e5 + 998.0 * 9.81 * behind) / 1e5, rel=1e-6)


def test_electrical_power_is_shaft_power_and_copper_loss():
    one = settled()
    flow = one["Volume Flow RateRMS"] / 60_000
    speed = math.sqrt(one["Accelerometer1RMS"] / 0.12)
    hydraulic = 998.0 * 9.81 * (12.0 * speed**2 - 8e6 * flow**2) * flow
    shaft = hydraulic / 0.55 + 25.0 * speed**2
    copper = 4.0 * (1 + 0.0039 * (one["Temperature"] - 20.0)) * one["Current"] ** 2
    assert one["Voltage"] * one["Current"] * 0.8 == pytest.approx(shaft + copper, rel=1e-6)
    assert speed == pytest.approx(one["Voltage"] / 230 - 0.03 * shaft / 140, rel=1e-6)


def test_heat_in_is_heat_out_once_it_has_settled():
    one = settled(seconds=100_000)
    flow = one["Volume Flow RateRMS"] / 60_000
    speed = math.sqrt(one["Accelerometer1RMS"] / 0.12)
    hydraulic = 998.0 * 9.81 * (12.0 * speed**2 - 8e6 * flow**2) * flow
    shaft = hydraulic / 0.55 + 25.0 * speed**2
    copper = 4.0 * (1 + 0.0039 * (one["Temperature"] - 20.0)) * one["Current"] ** 2
    brought = copper + 0.45 * shaft + hydraulic
    taken = 1.5 * (one["Temperature"] - AIR) + 7.0 * (one["Thermocouple"] - AIR)
    assert taken == pytest.approx(brought, rel=1e-4)


def test_an_air_current_of_heat_cannot_cool_below_the_air():
    cold = settled(120.0)
    assert cold["Temperature"] > cold["Thermocouple"] > AIR


@pytest.mark.parametrize(
    ("fault", "sensor", "direction"),
    [
        (Fault(valve_out=0.6), "Volume Flow RateRMS", -1),
        (Fault(valve_out=0.6), "Pressure", +1),
        (Fault(valve_in=0.45), "Volume Flow RateRMS", -1),
        (Fault(valve_in=0.45), "Pressure", -1),
        (OTHER_FAULTS["unbalance"], "Accelerometer1RMS", +1),
        (OTHER_FAULTS["air"], "Accelerometer2RMS", +1),
        (OTHER_FAULTS["leak"], "Volume Flow RateRMS", -1),
        (OTHER_FAULTS["friction"], "Current", +1),
        (OTHER_FAULTS["winding"], "Temperature", +1),
        (OTHER_FAULTS["fouling"], "Temperature", +1),
        (OTHER_FAULTS["fouling"], "Thermocouple", +1),
        (OTHER_FAULTS["wear"], "Pressure", -1),
    ],
)
def test_each_fault_moves_what_it_must(fault, sensor, direction):
    assert direction * (settled(fault=fault)[sensor] - settled()[sensor]) > 0


def test_no_fault_moves_nothing_before_it_begins(data):
    from itertools import pairwise

    labels = data.labels.rows["valve1/0"]
    assert labels.any()
    assert not labels.all()
    assert sum(a != b for a, b in pairwise(labels)) <= 2  # one stretch


def test_the_prior_is_the_graph_of_the_equations(data):
    """Move one quantity a little; what its equation holds must answer, along the prior's edges."""
    prior = data.dataset.prior
    assert prior is not None
    prior.check(SENSORS)
    couplings = {(edge.source, edge.target) for edge in prior.edges}

    def after(seconds: int = 1, voltage: float = 200.0, **changed: float) -> dict[str, float]:
        loop = Loop(200.0, OPENING, AIR)
        for name, value in changed.items():
            setattr(loop, name, getattr(loop, name) + value)
        for _ in range(seconds):
            values = loop.step(voltage, OPENING, AIR, SOUND)
        return dict(zip(SENSORS, values, strict=True))

    def answers(found: dict[str, float], expected: dict[str, float]) -> set[str]:
        return {sensor for sensor in SENSORS if found[sensor] != expected[sensor]}

    driven_by = {source: {target for one, target in couplings if one == source} for source, _ in couplings}
    assert answers(after(motor=5.0), after()) - {"Temperature"} == driven_by["Temperature"]
    assert answers(after(water=5.0), after()) - {"Thermocouple"} == driven_by["Thermocouple"]
    # A changed voltage needs a second to become speed; then all that it drives has moved.
    assert answers(after(2, voltage=230.0), after(2)) >= driven_by["Voltage"]
    assert answers(after(flow=1e-4), after()) >= driven_by["Volume Flow RateRMS"] - {"Accelerometer1RMS"}


def test_an_audit_finds_nothing_that_gives_the_labels_away(data):
    found = audit(data)
    assert {finding.grade for finding in found.findings} == {"good"}, found.findings
    auroc = {one.name: one.auroc for one in found.predictors}
    assert 0.45 <= auroc.pop("position") <= 0.55
    assert 0.45 <= auroc.pop("time") <= 0.55
    assert all(value < 0.75 for value in auroc.values())
    share = np.mean(np.concatenate(list(data.labels.rows.values())))
    assert 0.2 <= share <= 0.4


def test_operating_points_vary_in_training_and_test_alike(data):
    flow = SENSORS.index("Volume Flow RateRMS")
    train = np.concatenate([one.values[:, flow] for one in data.dataset.train])
    normal = np.concatenate([one.values[~data.labels.rows[one.id], flow] for one in data.dataset.test])
    np.testing.assert_allclose(np.quantile(normal, [0.1, 0.5, 0.9]), np.quantile(train, [0.1, 0.5, 0.9]), rtol=0.1)
    assert train.std() > 3.0
