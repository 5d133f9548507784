"""What is tuned, on which rows and how: all that a search knows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from tsadbench.base.dataset import hashed_parts
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.base.search_space import Choice, Space
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Contender, Plan
from tsadbench.sandbox import Construction, Description, asking, describe
from tsadbench.tuning import faults, folds, objective
from tsadbench.tuning.folds import GAP_WITHOUT_END, Fold, Reach, make_folds
from tsadbench.tuning.objective import Objective
from tsadbench.tuning.ranges import FORMS, NEVER_SEARCHED, read_ranges
from tsadbench.utils.parameters import parse_label

# A point's value depends on what these do.
_CODE = (faults, folds, objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a search is done.

    ``objective`` is "injection" or "heldout". ``trials`` counts the points of the finished study, earlier runs'
    included. Each training recording is cut into ``folds`` blocks, at least 2. ``timeout`` (seconds) and ``memory_mib``
    limit one point. ``ranges``, ``NAME.parameter=LOW:HIGH`` (`read_ranges`), add to what the detector declares, and
    win. A UsageError if a value is out of range.
    """

    objective: Objective = "injection"
    trials: int = 30
    folds: int = 3
    seed: int = 0
    jobs: int = 1
    threads: int = 1
    timeout: float | None = None
    memory_mib: float | None = None
    require_seal: bool = False
    prune: bool = True
    ranges: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("folds", 2), ("seed", 0), ("jobs", 1), ("threads", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"--{name} must be at least {least}, found {getattr(self, name)}")
        for name, number in (("timeout", self.timeout), ("memory", self.memory_mib)):
            if number is not None and not number > 0:
                raise UsageError(f"--{name} must be positive, found {number}")


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A detector, what to search of it, and normal recordings. It holds no test recording and no label.

    ``given`` are the arguments that the user set and that are not searched, as one writes them; ``reach`` says how far
    scores see, over all points. ``source`` is the name or card by which the user gave the data set. ``parts`` are the
    recordings that the protocol ``strict`` trains on, those of each fit. The name of the ``study`` depends on
    everything that decides a point's value.
    """

    name: str
    description: Description
    construction: Construction
    given: Mapping[str, str]
    space: Mapping[str, Space]
    defaults: Mapping[str, object]
    reach: Reach
    dataset: str
    source: str
    data_hash: str
    parts: tuple[tuple[Recording, ...], ...]
    forbidden: tuple[Path, ...]
    settings: Settings
    study: str

    def at(self, point: Mapping[str, object]) -> Construction:
        """Return how to construct the detector at a point, with the search's seed if it takes one."""
        arguments = {**self.construction.arguments, **point}
        if "seed" in self.description.defaults:
            arguments["seed"] = self.settings.seed
        return replace(self.construction, arguments=arguments)

    def folds(self) -> tuple[Fold, ...]:
        """Return the divisions of the training recordings, those of each entity by themselves."""
        return tuple(fold for part in self.parts for fold in make_folds(part, self.settings.folds, self.reach))

    @property
    def train(self) -> tuple[Recording, ...]:
        """All training recordings."""
        return tuple(recording for part in self.parts for recording in part)


def make_task(plan: Plan, settings: Settings) -> Task:
    """Return what is to be tuned.

    The task refers to nothing else of the plan: once the caller drops the plan, test recordings and labels are gone. An
    UsageError if there is nothing to search, or the detector does not offer the objective. A DataError if the training
    recordings are too short.
    """
    contender, dataset = plan.trials[0].contender, plan.data.dataset
    parts = tuple(episode.train for episode in plan.episodes)
    space = searched(contender, settings.objective, read_ranges(settings.ranges, contender, dataset.sensors))
    reach = reach_of(contender, space, dataset.sensors)
    task = Task(
        name=contender.name,
        description=contender.description,
        construction=contender.construction,
        given=_given(contender),
        space=space,
        defaults={name: value for name, value in contender.description.defaults.items() if name in space},
        reach=reach,
        dataset=dataset.name,
        source=plan.source[0] if plan.source else dataset.name,
        data_hash=dataset.content_hash,
        parts=parts,
        forbidden=() if dataset.folder is None else (dataset.folder.resolve(),),
        settings=settings,
        study=_study_name(contender, dataset.name, space, reach, parts, settings),
    )
    task.folds()  # reports recordings that are too short before anything starts
    return task


def _given(contender: Contender) -> dict[str, str]:
    """Return what the user has set, as one writes it."""
    return dict(parse_label(contender.label).arguments)


def searched(
    contender: Contender, objective: Objective, ranges: Mapping[str, Space] = MappingProxyType({})
) -> dict[str, Space]:
    """Return what an objective searches of a detector: not what the user has set, nor what a loss cannot compare.

    A UsageError if that is nothing, or the class declares a parameter that its constructor does not take. If losses of
    values in a range cannot be compared, though the objective does.
    """
    name, declared = contender.name, {**contender.description.search_space, **ranges}
    _check_declared(contender)
    if not declared:
        parameters = [key for key in contender.description.defaults if key not in NEVER_SEARCHED]
        raise UsageError(
            f"{name} declares no search space: say what to search, --range {name}.PARAMETER={FORMS}; its parameters: "
            f"{', '.join(parameters) or 'none'}"
        )
    if objective == "heldout" and not contender.description.offers_held_out_loss:
        raise UsageError(
            f"{name} has no held-out loss: it neither forecasts nor reconstructs rows; tune it with --objective "
            f"injection"
        )
    space = {key: values for key, values in declared.items() if key not in contender.construction.given}
    if objective == "heldout":
        scoring = contender.traits.scoring_parameters
        space = {key: values for key, values in space.items() if not values.alters_loss and key not in scoring}
        for key in ranges:
            if key not in space:
                raise UsageError(
                    f"--range {name}.{key}: {name} does not declare that held-out losses of its values can be "
                    f"compared; take --objective injection"
                )
    if not space:
        raise UsageError(
            f"{contender.label}: nothing is left to search with --objective {objective} among {sorted(declared)}; set "
            f"fewer parameters, or take another objective"
        )
    return space


def reach_of(contender: Contender, space: Mapping[str, Space], sensors: tuple[str, ...]) -> Reach:
    """Return how far scores see at most, from the traits at the space's extremes; each of these points is checked.

    A UsageError if the detector rejects one of them.
    """
    before, after = 1, 0
    construction = contender.construction
    with asking():
        for point in _extremes(space):
            at = replace(construction, arguments={**construction.arguments, **point})
            traits = describe(at, sensors=sensors).declared
            before = max(before, GAP_WITHOUT_END if traits.memory is None else traits.memory)
            after = max(after, traits.look_ahead)
    return Reach(before, after)


def _extremes(space: Mapping[str, Space]) -> Iterator[dict[str, object]]:
    """Yield the defaults, each parameter alone at each of its extremes, and all at their first and last ones."""
    extremes = {name: one.values if isinstance(one, Choice) else (one.low, one.high) for name, one in space.items()}
    yield {}
    for name, values in extremes.items():
        for value in values:
            yield {name: value}
    for end in (0, -1):
        yield {name: values[end] for name, values in extremes.items()}


def _check_declared(contender: Contender) -> None:
    accepted = contender.description.defaults.keys() - NEVER_SEARCHED
    for key in contender.description.search_space:
        if key not in accepted:
            raise UsageError(
                f"{contender.name}: search_space names {key!r}; expected parameters of its constructor other than "
                f"{sorted(NEVER_SEARCHED)}"
            )


def training_hash(train: Sequence[Recording]) -> str:
    """Return the SHA-256 over the training recordings' ids, sensors, times and values, in order."""
    digest = hashlib.sha256()
    for recording in train:
        for part in hashed_parts(recording):
            digest.update(part)
    return digest.hexdigest()


def _study_name(
    contender: Contender,
    dataset: str,
    space: Mapping[str, Space],
    reach: Reach,
    parts: Sequence[Sequence[Recording]],
    settings: Settings,
) -> str:
    """Return the detector, data set and objective, with a hash of everything that a point's value depends on."""
    construction = contender.construction
    determinants = {
        "label": contender.label,
        "priors": {k: v.content_hash for k, v in construction.arguments.items() if isinstance(v, Prior)},
        "code": [contender.description.sources.digest, *(Path(str(one.__file__)).read_text() for one in _CODE)],
        "space": {name: repr(values) for name, values in space.items()},
        "reach": [reach.before, reach.after],
        "train": training_hash([recording for part in parts for recording in part]),
        **({"parts": [len(part) for part in parts]} if len(parts) > 1 else {}),
        "settings": [settings.objective, settings.folds, settings.seed, settings.threads],
    }
    digest = hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:12]
    readable = re.sub(r"[^\w.-]+", "-", f"{contender.name}-{dataset}-{settings.objective}").strip("-.")
    return f"{readable}-{digest}"
