"""Checks that equal inputs give equal scores."""

from __future__ import annotations

import copy
import random
import sys
from typing import Any, get_args

import numpy as np

from tsadbench.base.agreement import difference
from tsadbench.base.recording import Recording
from tsadbench.testing import synthetic
from tsadbench.testing.check import Failed, Group, Skipped, require_equal
from tsadbench.testing.detector_under_test import DetectorUnderTest
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.parameters import Parameter, parameters_of

group = Group("reproducibility")


@group.check("repeat", "Two fits with the same seed give the same scores, to the bit.", "scores")
def repeat(subject: DetectorUnderTest) -> None:
    """Fit twice."""
    require_equal(_scores(subject), _scores(subject), "two fits with one seed give different scores")


@group.check("seed", "Another seed gives other scores if stochastic is declared, and only then.", "fits")
def seed(subject: DetectorUnderTest) -> None:
    """Fit with two seeds."""
    declared = subject.traits.stochastic
    if not subject.takes_seed:
        if declared:
            raise Failed("it declares stochastic, but has no parameter `seed`")
        raise Skipped("it has no parameter `seed` and declares nothing stochastic")
    row, largest = difference(_scores(subject, seed=1), _scores(subject, seed=2))
    if declared and row is None:
        raise Failed("it declares stochastic, but another seed changes nothing")
    if not declared and row is not None:
        raise Failed(
            "another seed gives other scores, but stochastic is not declared", first_row=row, largest_difference=largest
        )


@group.check("global-random", "It neither uses nor moves the global random generators.", "fits")
def global_random(subject: DetectorUnderTest) -> None:
    """Fit and score under two states of the generators; compare the states before and after."""
    scores = []
    for start in (11, 12):
        _scramble(start)
        before = _random_states()
        scores.append(_scores(subject))
        moved = [name for name, state in _random_states().items() if before.get(name, state) != state]
        if moved:
            raise Failed(f"it moves the global random generators of {moved}; use a generator of its own, seeded")
    require_equal(scores[0], scores[1], "its scores depend on the global random generators")


@group.check("refit", "A second fit forgets the first.", "fits")
def refit(subject: DetectorUnderTest) -> None:
    """Fit on A then on B; compare with a new detector fitted on B."""
    again = subject.make().fit(subject.train(seed=31)).fit(subject.train()).score(subject.test())
    require_equal(again, _scores(subject), "an earlier fit leaves a trace in the scores")


@group.check("instances", "Another detector of its class, fitted on other data, changes nothing.", "fits")
def instances(subject: DetectorUnderTest) -> None:
    """Fit a second detector between two scorings of copies of the first."""
    detector = subject.make().fit(subject.train())
    twin = copy.deepcopy(detector)
    expected = detector.score(subject.test())
    subject.make().fit([synthetic.changed(rows, lambda values: 2.0 * values) for rows in subject.train(seed=51)])
    row, largest = difference(twin.score(subject.test()), expected, exact=True)
    if row is not None:
        raise Failed("another detector's fit changes its scores", first_row=row, largest_difference=largest)


@group.check("scoring-parameters", "A parameter declared to matter in scoring only does not matter in fit.", "fits")
def scoring_parameters(subject: DetectorUnderTest) -> None:
    """Change each one after a fit; compare with a detector constructed with the new value."""
    declared = subject.traits.scoring_parameters
    if not declared:
        raise Skipped("it declares no scoring parameter")
    parameters = {parameter.name: parameter for parameter in parameters_of(subject.cls)}
    tried = []
    for name in declared:
        if name not in parameters:
            raise Failed(f"it declares the scoring parameter {name!r}, which its constructor does not take")
        other = _another_value(parameters[name], getattr(subject.make(), name))
        if other is None:
            continue
        tried.append(name)
        changed = subject.make().fit(subject.train()).set_params(**{name: other})
        fresh = subject.make(**{name: other}).fit(subject.train())
        for found, expected in (
            (changed.score(subject.test()), fresh.score(subject.test())),
            (changed.training_scores(subject.train())[0], fresh.training_scores(subject.train())[0]),
        ):
            row, largest = difference(found, expected, exact=True)
            if row is not None:
                raise Failed(
                    f"{name}={other} set after the fit gives other scores than a fit with it",
                    first_row=row,
                    largest_difference=largest,
                )
    if not tried:
        raise Skipped(f"no other value of {list(declared)} is known")


def _another_value(parameter: Parameter, value: object) -> object:
    """Return another valid value of the parameter; None if only its author would know one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.5 * value if value else 0.5
    choices = [choice for choice in get_args(parameter.annotation) if isinstance(choice, str) and choice != value]
    return choices[0] if isinstance(value, str) and choices else None


@group.check("inputs", "It leaves the recordings that it is given as they are.")
def inputs(subject: DetectorUnderTest) -> None:
    """Compare values and times before and after."""
    train, test = subject.train(), subject.test()
    before = [_bytes(recording) for recording in (*train, test)]
    subject.make().fit(train).score(test)
    for recording, original in zip((*train, test), before, strict=True):
        if _bytes(recording) != original:
            raise Failed("it writes into a recording that it was given")


def _scores(subject: DetectorUnderTest, **changes: object) -> FloatArray:
    return subject.make(**changes).fit(subject.train()).score(subject.test())


def _bytes(recording: Recording) -> tuple[bytes, bytes]:
    return recording.values.tobytes(), b"" if recording.time is None else recording.time.tobytes()


def _scramble(start: int) -> None:
    random.seed(start)
    np.random.seed(start)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(start)


def _random_states() -> dict[str, object]:
    states: dict[str, object] = {
        "random": random.getstate(),
        "numpy": str(np.random.get_state()),
    }
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states
