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


@check("reproducibility", "scores")
def repeat(subject: Subject) -> None:
    """Two fits with the same seed give the same scores, to the bit."""
    require_equal(subject.refit(), subject.refit(), "two fits with one seed give different scores")


@check("reproducibility", "fits")
def seed(subject: Subject) -> None:
    """Another seed changes the scores if stochastic is declared, and only then."""
    declared = subject.traits.stochastic
    if not subject.takes_seed:
        if declared:
            raise Failed("it declares stochastic, but has no parameter `seed`")
        raise Skipped("it has no parameter `seed` and is not declared stochastic")
    one, other = subject.refit(seed=1), subject.refit(seed=2)
    if not declared:
        require_equal(one, other, "another seed gives other scores, but stochastic is not declared", exact=False)
    elif difference(one, other)[0] is None:
        raise Failed("it declares stochastic, but another seed changes nothing")


@check("reproducibility", "fits")
def global_random(subject: Subject) -> None:
    """It neither uses nor changes the global random generators."""
    generators: dict[str, tuple[Callable[[int], object], Callable[[], object]]] = {
        "random": (random.seed, random.getstate),
        "numpy": (np.random.seed, lambda: str(np.random.get_state())),
    }
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        generators["torch"] = torch.manual_seed, lambda: torch.get_rng_state().numpy().tobytes()
    scores = []
    for start in (11, 12):
        for seed_it, _ in generators.values():
            seed_it(start)
        before = {name: state() for name, (_, state) in generators.items()}
        scores.append(subject.refit())
        if moved := [name for name, (_, state) in generators.items() if state() != before[name]]:
            raise Failed(f"it moves the global random generators of {moved}; use a generator of its own, seeded")
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
    twin = copy.deepcopy(detector)
    expected = detector.score(subject.test())
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
    others = {name: other for name, other in others.items() if other is not None}
    for name, other in others.items():
        changed = subject.fit().set_params(**{name: other})
        fresh = subject.fit(**{name: other})
        reason = f"{name}={other} set after the fit gives other scores than a fit with it"
        require_equal(changed.score(subject.test()), fresh.score(subject.test()), reason)
        of_training = changed.training_scores(subject.train()), fresh.training_scores(subject.train())
        require_equal(of_training[0][0], of_training[1][0], reason)
    if not others:
        raise Skipped(f"no other value of {list(declared)} is known")


def _another_value(parameter: Parameter, value: object) -> object:
    """Return another valid value of the parameter; None if only its author can know one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return 0.5 * value if value else 0.5
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
