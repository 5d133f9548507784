"""Checks of the detector's contract."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from tsadbench.base.detector import Detector
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped, Warned, require_equal
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import parameters_of

group = Group("contract")

# SKAB's.
_PUBLISHED = ("Accelerometer1RMS", "Accelerometer2RMS", "Current", "Pressure")
_SEALED = (
    "fit",
    "score",
    "training_scores",
    "contributions",
    "held_out_loss",
    "training_facts",
    "check",
    "_ready",
    "_forget",
    "_require",
)


@group.check("sealed", "The methods that check and sequence the calls are the base class's own.")
def sealed(subject: DetectorUnderTest) -> None:
    """Compare the class's methods with the base's."""
    overridden = [name for name in _SEALED if getattr(subject.cls, name) is not getattr(Detector, name)]
    if overridden:
        raise Failed(f"overrides {overridden}; write _fit, _score, _training_scores, _contributions, _check instead")


@group.check("constructor", "The constructor only stores its arguments, and neither fit nor score changes them.")
def constructor(subject: DetectorUnderTest) -> None:
    """Compare the attributes before and after a fit."""
    detector = subject.make()
    arguments = {parameter.name: parameter.default for parameter in parameters_of(subject.cls)} | subject.parameters
    extra = sorted(set(vars(detector)) - set(arguments))
    if extra:
        raise Failed(f"the constructor sets more than its arguments: {extra}; set them in _fit")
    detector.fit(subject.train()).score(subject.test())
    changed = [name for name, value in arguments.items() if getattr(detector, name) is not value]
    if changed:
        raise Failed(f"parameters are not what was given: {changed}; what is learned belongs in names that end in _")


@group.check("learned-names", "What it learns lies in attributes whose names end in an underscore.")
def learned_names(subject: DetectorUnderTest) -> None:
    """Inspect the attributes that a fit adds."""
    detector = subject.fitted
    odd = sorted(name for name in vars(detector) if name not in detector.get_params() and not name.endswith("_"))
    if odd:
        raise Failed(f"learned attributes must end in _, these do not: {odd}")


@group.check("scores", "Every recording gets one finite score a row, NaN only as one leading and one trailing run.")
def scores(subject: DetectorUnderTest) -> None:
    """Let the base class check the scores of recordings of several lengths, and of the training recordings."""
    detector = subject.fitted
    for n_rows in (240, 101, subject.reach + 1):
        detector.score(subject.test(n_rows=n_rows))
    detector.training_scores(subject.train())
    if np.isnan(detector.score(subject.test())).all():
        raise Failed("no row of a recording of 240 rows has a score")


@group.check("every-row", "Every row has a score: one without counts as the worst.")
def every_row(subject: DetectorUnderTest) -> None:
    """Count the rows without a score at a recording's beginning and end."""
    missing = np.isnan(subject.score(subject.test()))
    first, last = subject.warm_up, int(missing[::-1].cumprod().sum())
    if 0 < first < len(missing) or last:
        raise Warned(
            f"a recording's first {first} and last {last} rows have no score, and each counts as the worst: as a false "
            f"alarm if it is normal, as a miss if not; tsadbench.base.trailing_windows(rows, length) returns a window "
            f"for every row, and what exists of a look-ahead will do for the last rows",
            first_rows=first,
            last_rows=last,
        )


@group.check(
    "contributions",
    "Contributions, if offered, mostly blame the sensor that moved, in the rows that have a score.",
)
def contributions(subject: DetectorUnderTest) -> None:
    """Compare their NaN with the scores'; move one sensor at a time."""
    if not subject.cls.offers_contributions():
        raise Skipped("it does not offer contributions")
    detector = subject.fitted
    missing = np.isnan(detector.contributions(subject.test())).any(axis=1)
    rows = np.flatnonzero(missing != np.isnan(detector.score(subject.test())))
    if len(rows):
        raise Failed("contributions and score are not missing in the same rows", first_row=int(rows[0]))
    blamed = [_blamed(subject, moved) for moved in range(len(synthetic.SENSORS))]
    n_right = sum(sensor == moved for moved, sensor in enumerate(blamed))
    # Half of them suffice: contributions of correlated sensors smear, above all in principal components.
    if n_right < len(synthetic.SENSORS) / 2:
        names = [synthetic.SENSORS[sensor] for sensor in blamed]
        raise Failed(f"of {list(synthetic.SENSORS)}, each moved by a hundred standard deviations, it blames {names}")


def _blamed(subject: DetectorUnderTest, sensor: int) -> int:
    def move(values: FloatArray) -> None:
        values[140:150, sensor] += 100.0 * synthetic.SCALE[sensor]

    moved = subject.fitted.contributions(synthetic.changed(subject.test(), move))[140:150]
    return int(np.nanargmax(np.nansum(np.abs(moved), axis=0)))


@group.check("copies", "A copied or pickled detector gives the same scores, to the bit.", "scores")
def copies(subject: DetectorUnderTest) -> None:
    """Copy, pickle and score."""
    detector = subject.make().fit(subject.train())
    copies = (("copied", copy.deepcopy(detector)), ("pickled", pickle.loads(pickle.dumps(detector))))
    expected = detector.score(subject.test())
    for way, copied in copies:
        require_equal(copied.score(subject.test()), expected, f"the {way} detector gives other scores")


@group.check("sensor-names", "Scores do not depend on what the sensors are called.", "fits")
def sensor_names(subject: DetectorUnderTest) -> None:
    """Fit and score with the sensors' names of a published data set; the box hides them, too."""
    if any(isinstance(value, Prior) or "sensor" in name for name, value in subject.parameters.items()):
        raise Skipped("its parameters name sensors")
    train, test = ([_renamed(one) for one in part] for part in (subject.train(), [subject.test()]))
    found = subject.make().fit(train).score(test[0])
    require_equal(found, subject.score(subject.test()), "the same rows of sensors with other names get other scores")


def _renamed(recording: Recording) -> Recording:
    return Recording(recording.id, recording.values.copy(), _PUBLISHED[: recording.n_sensors], recording.time)


@group.check("anonymous", "Scores do not depend on a recording's name nor on when it began.", "scores")
def anonymous(subject: DetectorUnderTest) -> None:
    """Score the same rows under another name, some days and hours later."""
    original = subject.test()
    time = None if original.time is None else original.time + 1_000_003.0
    renamed = Recording("another name", original.values.copy(), original.sensors, time)
    reason = "the same rows under another name get other scores"
    require_equal(subject.fitted.score(renamed), subject.score(original), reason)
