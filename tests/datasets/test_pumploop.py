"""The simulated pump loop: its physics against the equations, its labels against the twin run, its design."""

from __future__ import annotations

import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tsadbench.analysis.audit import audit
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets import pump_physics as loop
from tsadbench.datasets import pumploop
from tsadbench.datasets.loading import check_labels, load_dataset
from tsadbench.datasets.pump_physics import SENSORS, SOUND, Fault, Loop
from tsadbench.datasets.pumploop import FAULTS, NOISE, SIZES, Course
from tsadbench.errors import UsageError

OPENING, AIR = 0.8, 20.0


@pytest.fixture(scope="session")
def data() -> LabelledDataset:
    return pumploop.load(DataOptions())


@pytest.fixture(scope="session")
def courses() -> list[Course]:
    return pumploop.faulty_courses()


@pytest.fixture(scope="session")
def twins(courses) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Each recording's values without noise, with its fault and without it, from separate simulations."""
    faulty, sound = pumploop.simulate(courses), pumploop.simulate([course._replace(amount=SOUND) for course in courses])
    return {course.id: both for course, *both in zip(courses, faulty, sound, strict=True)}


def settled(voltage: float = 230.0, opening: float = OPENING, fault: Fault = SOUND) -> dict[str, float]:
    """Return what the sensors show once everything has settled: 6,000 s are 20 time constants of the water."""
    one = Loop(voltage, opening, AIR)
    for _ in range(6_000):
        values = one.step(voltage, opening, AIR, fault)
    return {sensor: float(value) for sensor, value in zip(SENSORS, values, strict=True)}


@pytest.fixture(scope="session")
def nominal() -> dict[str, float]:
    return settled()


class TestRecordings:
    def test_rows_sessions_and_sensors(self, data):
        check_labels(data)
        dataset = data.dataset
        assert sum(one.n_rows for one in dataset.train) == 9000
        assert sum(one.n_rows for one in dataset.test) <= 60_000
        assert {dataset.sessions[one.id] for one in dataset.train}.isdisjoint(
            dataset.sessions[one.id] for one in dataset.test
        )
        by_session = Counter(dataset.sessions[one.id] for one in dataset.test)
        assert len(by_session) >= 8
        assert set(by_session.values()) == {len(FAULTS)}
        card = tomllib.loads((Path(loop.__file__).parent / "cards/skab.toml").read_text(encoding="utf-8"))
        assert list(dataset.sensors) == card["columns"]["sensors"]

    def test_each_session_has_every_fault_and_each_fault_every_size_equally_often(self, data):
        splits = data.dataset.splits
        assert list(splits) == ["overall", *FAULTS, *SIZES]
        of_fault = {id_: fault for fault in FAULTS for id_ in splits[fault]}
        of_size = {id_: size for size in SIZES for id_ in splits[size]}
        assert set(of_fault) == set(of_size) == set(splits["overall"])
        sessions = {data.dataset.sessions[id_] for id_ in of_fault}
        pairs = Counter((of_fault[id_], data.dataset.sessions[id_]) for id_ in of_fault)
        assert set(pairs) == {(fault, session) for fault in FAULTS for session in sessions}
        assert set(Counter((of_fault[id_], of_size[id_]) for id_ in of_fault).values()) == {len(sessions) // 3}

    def test_recordings_of_a_session_do_not_overlap_and_share_the_air(self, data, courses):
        for session in {course.session for course in courses}:
            mine = [course for course in courses if course.session == session]
            for before, after in pairwise(mine):
                assert after.start - (before.start + before.n_rows) > 3600
            air = [course.air[0] for course in mine]
            assert np.ptp(air) <= 4.0  # within two degrees of the session's air temperature
        assert np.ptp([course.air[0] for course in courses]) > 4.0


class TestPhysics:
    def test_a_faster_pump_gives_more_by_the_affinity_laws(self, nominal):
        slow = settled(161.0)
        flows = nominal["Volume Flow RateRMS"] / slow["Volume Flow RateRMS"]
        assert flows == pytest.approx(230 / 161, rel=0.05)  # except for the slip, which depends on the load
        lift = [(one["Pressure"] - 1.05) for one in (nominal, slow)]
        assert lift[0] / lift[1] == pytest.approx(flows**2, rel=1e-6)  # head goes with the square of the flow
        vibration = nominal["Accelerometer1RMS"] / slow["Accelerometer1RMS"]
        assert vibration == pytest.approx(flows**2, rel=0.02)

    @pytest.mark.parametrize(
        ("fault", "sensor", "direction"),
        [
            ("valve1", "Volume Flow RateRMS", -1), ("valve1", "Pressure", +1), ("valve2", "Volume Flow RateRMS", -1),
            ("valve2", "Pressure", -1), ("unbalance", "Accelerometer1RMS", +1), ("air", "Accelerometer2RMS", +1),
            ("leak", "Volume Flow RateRMS", -1), ("friction", "Current", +1), ("winding", "Temperature", +1),
            ("fouling", "Temperature", +1), ("fouling", "Thermocouple", +1), ("wear", "Pressure", -1),
        ],
    )  # fmt: skip
    def test_each_fault_moves_what_it_must_and_more_if_it_is_larger(self, nominal, fault, sensor, direction):
        found = [settled(fault=Fault(**{fault: amount}))[sensor] for amount in FAULTS[fault][0]]
        assert (direction * np.diff([nominal[sensor], *found]) > 0).all()

    def test_the_prior_is_the_graph_of_the_equations(self, data):
        """Change one quantity a little: the sensors that it drives by the prior must respond."""
        prior = data.dataset.prior
        assert prior is not None
        prior.check(SENSORS)
        couplings = {(edge.source, edge.target) for edge in prior.edges}

        def after(seconds: int = 1, voltage: float = 200.0, **changed: float) -> dict[str, float]:
            one = Loop(200.0, OPENING, AIR)
            for name, value in changed.items():
                setattr(one, name, getattr(one, name) + value)
            for _ in range(seconds):
                values = one.step(voltage, OPENING, AIR, SOUND)
            return dict(zip(SENSORS, values, strict=True))

        def answers(found: dict[str, float], expected: dict[str, float]) -> set[str]:
            return {sensor for sensor in SENSORS if found[sensor] != expected[sensor]}

        driven_by = {source: {target for one, target in couplings if one == source} for source, _ in couplings}
        assert answers(after(motor=5.0), after()) - {"Temperature"} == driven_by["Temperature"]
        assert answers(after(water=5.0), after()) - {"Thermocouple"} == driven_by["Thermocouple"]
        # A changed voltage needs a second to change the speed; then all that it drives has changed.
        assert answers(after(2, voltage=230.0), after(2)) >= driven_by["Voltage"]
        assert answers(after(flow=1e-4), after()) >= driven_by["Volume Flow RateRMS"] - {"Accelerometer1RMS"}


class TestLabels:
    def test_before_the_fault_a_recording_equals_its_twin_exactly(self, courses, twins):
        begun = [course for course in courses if course.first > 0]
        assert len(begun) > 20
        for course in begun:
            faulty, sound = twins[course.id]
            np.testing.assert_array_equal(faulty[: course.first], sound[: course.first])
            assert (faulty[course.first :] != sound[course.first :]).any()

    def test_normal_rows_are_within_the_noise_of_the_twin_and_the_faults_own_rows_are_anomalous(
        self, data, courses, twins
    ):
        for course in courses:
            labels, row = data.labels.rows[course.id], np.arange(course.n_rows)
            assert labels[(course.first <= row) & (row < course.last)].all()
            assert sum(a != b for a, b in pairwise(labels)) <= 2  # one stretch
            apart = np.abs(twins[course.id][0] - twins[course.id][1])
            assert (apart[~labels] <= 3 * NOISE).all()
            # The margin is no longer than it has to be: its last row is still away from the twin.
            margin = np.flatnonzero(labels & (row >= course.last))
            if len(margin):
                assert (apart[margin[-1]] > 3 * NOISE).any()

    def test_heat_outlasts_fouling_and_an_unbalance_is_gone_at_once(self, data, courses):
        def rows_after(fault: str) -> list[int]:
            mine = [c for c in courses if (c.fault, c.size) == (fault, "large") and c.last < c.n_rows - 200]
            assert mine
            return [int(data.labels.rows[course.id][course.last :].sum()) for course in mine]

        assert min(rows_after("fouling")) >= 200
        assert max(rows_after("unbalance")) == 0

    def test_a_recording_minus_its_simulation_is_the_noise(self, data, courses, twins):
        left = np.concatenate([one.values - twins[one.id][0] for one in data.dataset.test])
        np.testing.assert_allclose(left.std(axis=0), NOISE, rtol=0.02)
        np.testing.assert_allclose(left.mean(axis=0), 0.0, atol=5e-3)


class TestCauses:
    def test_each_event_has_the_sensors_of_its_fault(self, data, courses):
        assert list(data.labels.causes) == [course.id for course in courses]
        for course in courses:
            (cause,) = data.labels.causes[course.id]
            rows = np.flatnonzero(data.labels.rows[course.id])
            assert (cause.start, cause.stop) == (rows[0], rows[-1] + 1)
            assert cause.sensors == FAULTS[course.fault][1]

    @pytest.mark.parametrize("fault", FAULTS)
    def test_they_respond_in_the_second_in_which_the_fault_begins(self, fault):
        sound, faulty = Loop(200.0, OPENING, AIR), Loop(200.0, OPENING, AIR)
        for _ in range(2_000):
            sound.step(200.0, OPENING, AIR, SOUND)
            faulty.step(200.0, OPENING, AIR, SOUND)
        amount = Fault(**{fault: FAULTS[fault][0][-1]})
        before, after = sound.step(200.0, OPENING, AIR, SOUND), faulty.step(200.0, OPENING, AIR, amount)
        moved = {sensor: abs(after[i] - before[i]) / NOISE[i] for i, sensor in enumerate(SENSORS)}
        first = FAULTS[fault][1]
        assert all(moved[sensor] > 0.02 for sensor in first)
        assert max(moved, key=moved.__getitem__) in first
        if fault in ("unbalance", "leak", "winding", "fouling"):  # others affect more sensors at once, by flow or slip
            assert {sensor for sensor, distance in moved.items() if distance} == set(first)


@pytest.mark.long  # the audit takes 5 s
def test_an_audit_finds_nothing_that_gives_the_labels_away(data):
    found = audit(data)
    assert {finding.grade for finding in found.findings} == {"good"}, found.findings
    auroc = found["position"].tables[0].frame.set_index("predictor")["AUROC"].to_dict()
    assert 0.45 <= auroc.pop("position") <= 0.55
    assert 0.45 <= auroc.pop("time") <= 0.55
    assert all(value < 0.75 for value in auroc.values())
    share = np.mean(np.concatenate(list(data.labels.rows.values())))
    assert 0.2 <= share <= 0.4


class TestSeed:
    def test_another_seed_is_another_plant_with_its_own_name_and_hash(self, data):
        plants = [load_dataset(f"pumploop[seed={seed}]")(DataOptions()) for seed in (0, 1, 0)]
        check_labels(plants[0])
        assert [one.dataset.name for one in plants[:2]] == ["pumploop[seed=0]", "pumploop[seed=1]"]
        hashes = [one.dataset.content_hash for one in (data, *plants)]
        assert len(set(hashes)) == 3
        assert hashes[1] == hashes[3]
        # No session shares its draws with one of the shipped plant.
        noise = {course.noise.tobytes() for course in (*pumploop.sound_courses(), *pumploop.faulty_courses())}
        for key in ((0, 1, 1), (1, 1, 1)):
            assert not noise & {
                course.noise.tobytes() for course in (*pumploop.sound_courses(key), *pumploop.faulty_courses(key))
            }

    def test_a_run_on_it_is_verified_from_the_command_line(self, tsadbench, tmp_path):
        ran = tsadbench(
            "run", "-d", "max-z", "--dataset", f"pumploop[seed={2**64 - 1}]", "--no-floors", "--out", tmp_path
        )
        assert ran.code == 0, ran.err
        assert tsadbench("verify", tmp_path, "--redo", "all").code == 0

    def test_a_parameter_that_is_wrong_is_named(self):
        for wrong, named in (("pumploop[sede=1]", "sede"), ("pumploop[seed=-1]", "seed"), ("skab[seed=1]", "seed")):
            with pytest.raises(UsageError, match=f"parameter '{named}'"):
                load_dataset(wrong)
