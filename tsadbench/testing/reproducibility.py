"""Checks that equal inputs give equal scores."""

from __future__ import annotations

import copy
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

from tsadbench.base.scores import difference
from tsadbench.testing.check import Failed, Skipped, check, require_equal
from tsadbench.testing.subject import Subject
from tsadbench.utils.parameters import Parameter, parameters_of


def _watched(work: Callable[[], Any]) -> tuple[Any, str]:
    """Return a function's result, and a message if the function uses the global random generators, else ``""``."""
    torch: Any = sys.modules.get("torch")
    states: dict[str, Callable[[], object]] = {"random": random.getstate}
    states["numpy.random"] = lambda: str(np.random.get_state())
    if torch is not None:
        states["torch"] = lambda: torch.get_rng_state().numpy().tobytes()
    before, result = {name: state() for name, state in states.items()}, work()
    moved = [name for name, state in states.items() if state() != before[name]]
    advice = "use your own generator, or `with seeded(self.seed):` (tsadbench.base)"
    return result, f"it draws from the global generator of {' and '.join(moved)}: {advice}" if moved else ""


@check("reproducibility", "scores")
def repeat(subject: Subject) -> None:
    """Two fits with the same seed give the same scores, to the bit."""
    (one, other), moved = _watched(lambda: (subject.refit(), subject.refit()))
    require_equal(one, other, "; ".join(filter(None, ["two fits with one seed give different scores", moved])))


@check("reproducibility", "fits")
def seed(subject: Subject) -> None:
    """Another seed changes the scores if stochastic is declared, and only then."""
    declared = subject.traits.stochastic
    if not subject.takes_seed:
        unseeded = Failed("it declares stochastic, but has no parameter `seed`")
        raise unseeded if declared else Skipped("it has no parameter `seed` and declares nothing stochastic")
    one, other = subject.refit(seed=1), subject.refit(seed=2)
    if not declared:
        require_equal(one, other, "another seed gives other scores, but stochastic is not declared", exact=False)
    elif difference(one, other)[0] is None:
        raise Failed("it declares stochastic, but another seed changes nothing")


@check("reproducibility")
def global_random(subject: Subject) -> None:
    """It neither uses nor changes the global random generators."""
    scores = []
    for start in (11, 12):
        for generator in (random.seed, np.random.seed, getattr(sys.modules.get("torch"), "manual_seed", int)):
            generator(start)
        found, moved = _watched(subject.refit)
        if moved:
            raise Failed(moved)
        scores.append(found)
    if subject.repeats == "fits":
        require_equal(scores[0], scores[1], "its scores depend on the global random generators")


@check("reproducibility", "fits")
def refit(subject: Subject) -> None:
    """A second fit forgets the first."""
    again = subject.make().fit(subject.train(seed=31)).fit(subject.train()).score(subject.test())
    require_equal(again, subject.refit(), "an earlier fit leaves a trace in the scores")


@check("reproducibility", "fits")
def instances(subject: Subject) -> None:
    """Fitting another detector of its class on other data changes nothing."""
    detector = subject.fit()
    twin, expected = copy.deepcopy(detector), detector.score(subject.test())
    subject.make().fit(subject.train(lambda values: 2.0 * values, seed=51))
    require_equal(twin.score(subject.test()), expected, "another detector's fit changes its scores")


@check("reproducibility", "fits")
def scoring_parameters(subject: Subject) -> None:
    """Declared scoring parameters do not affect the fit."""
    declared = subject.traits.scoring_parameters
    if not declared:
        raise Skipped("it declares no scoring parameter")
    parameters = {parameter.name: parameter for parameter in parameters_of(subject.cls)}
    if unknown := [name for name in declared if name not in parameters]:
        raise Failed(f"it declares the scoring parameter {unknown[0]!r}, which its constructor does not take")
    others = {name: _another_value(parameters[name], getattr(subject.make(), name)) for name in declared}
    if not any(other is not None for other in others.values()):
        raise Skipped(f"no other value of {list(declared)} is known")
    for name, other in [pair for pair in others.items() if pair[1] is not None]:
        changed, fresh = subject.fit().set_params(**{name: other}), subject.fit(**{name: other})
        reason = f"{name}={other} set after the fit gives other scores than a fit with it"
        require_equal(changed.score(subject.test()), fresh.score(subject.test()), reason)
        of_training = changed.training_scores(subject.train()), fresh.training_scores(subject.train())
        require_equal(of_training[0][0], of_training[1][0], reason)


def _another_value(parameter: Parameter, value: object) -> object:
    """Return another valid value of the parameter; None if only its author can know one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.5 * value or 0.5
    choices = [choice for choice in get_args(parameter.annotation) if isinstance(choice, str) and choice != value]
    return choices[0] if isinstance(value, str) and choices else None


@check("reproducibility")
def inputs(subject: Subject) -> None:
    """It does not change the recordings that it receives."""
    train, test = subject.train(), subject.test()
    before = pickle.dumps((train, test))
    subject.make().fit(train).score(test)
    if pickle.dumps((train, test)) != before:
        raise Failed("it writes into a recording that it was given")
