"""What is tuned, on which rows and how: all that a search knows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from tsadbench._version import __version__
from tsadbench.base.dataset import hashed_parts
from tsadbench.base.recording import Recording
from tsadbench.base.search_space import Choice, Space
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Contender, Plan
from tsadbench.sandbox import Construction, asking, describe
from tsadbench.tuning.folds import GAP_WITHOUT_END, Fold, Reach, make_folds
from tsadbench.tuning.objective import ObjectiveName
from tsadbench.tuning.ranges import FORMS, NEVER_SEARCHED, read_ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a search is done."""

    objective: ObjectiveName = "injection"
    trials: int = 30  # points of the finished study, earlier runs' included
    folds: int = 3  # blocks of each training recording
    seed: int = 0
    jobs: int = 1
    threads: int = 1
    timeout: float | None = None  # seconds for one point
    ranges: tuple[str, ...] = ()  # NAME.parameter=LOW:HIGH (`read_ranges`): add to what the detector declares, and win


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A detector, what to search of it, and normal recordings. It holds no test recording and no label."""

    contender: Contender
    space: Mapping[str, Space]
    reach: Reach  # how far scores see, over all points
    dataset: str
    source: str  # the name or card by which the user gave the data set
    data_hash: str
    parts: tuple[tuple[Recording, ...], ...]  # what the protocol `strict` trains on, for each fit
    forbidden: tuple[Path, ...]
    settings: Settings

    @property
    def study(self) -> str:
        """The study's name."""
        text = f"{self.contender.label}-{self.dataset}-{self.settings.objective}"
        return re.sub(r"[^\w.=-]+", "-", text).strip("-.")

    @property
    def defaults(self) -> dict[str, object]:
        """Default values of what is searched."""
        return {name: self.contender.description.defaults[name] for name in self.space}

    def at(self, point: Mapping[str, object]) -> Construction:
        """Return how to construct the detector at a point, with the search's seed if it takes one."""
        seeded = self.contender.seeded(self.settings.seed)
        return replace(seeded, arguments={**seeded.arguments, **point})

    def folds(self) -> tuple[Fold, ...]:
        """Return the divisions of the training recordings, those of each entity by themselves."""
        return tuple(fold for part in self.parts for fold in make_folds(part, self.settings.folds, self.reach))

    def training_hash(self) -> str:
        """Return the SHA-256 over the training recordings' ids, sensors, times and values, in order."""
        digest = hashlib.sha256()
        for part in self.parts:
            digest.update(f"{len(part)}".encode())
            for recording in part:
                for piece in hashed_parts(recording):
                    digest.update(piece)
        return digest.hexdigest()

    def determinants(self) -> dict[str, str]:
        """Return everything but the study's name that decides a point's value."""
        settings = self.settings
        return {
            "prior": str(self.contender.prior_hashes),
            "code of the detector": self.contender.description.sources.digest,
            "version of tsadbench": __version__,
            "range": str(dict(self.space)),
            "training data": self.training_hash(),
            "number of folds": str(settings.folds),
            "seed": str(settings.seed),
            "number of threads": str(settings.threads),
        }


def make_task(plan: Plan, settings: Settings) -> Task:
    """Return what is to be tuned.

    The task refers to nothing else of the plan: once the caller drops the plan, test recordings and labels are gone. A
    UsageError if there is nothing to search, or the detector does not offer the objective. A DataError if the training
    recordings are too short.
    """
    contender, dataset = plan.trials[0].contender, plan.data.dataset
    space = searched(contender, settings.objective, read_ranges(settings.ranges, contender, dataset.sensors))
    task = Task(
        contender=contender,
        space=space,
        reach=reach_of(contender, space, dataset.sensors),
        dataset=dataset.name,
        source=plan.source[0] if plan.source else dataset.name,
        data_hash=dataset.content_hash,
        parts=tuple(episode.train for episode in plan.episodes),
        forbidden=() if dataset.folder is None else (dataset.folder.resolve(),),
        settings=settings,
    )
    task.folds()  # reports recordings that are too short before anything starts
    return task


def searched(
    contender: Contender, objective: ObjectiveName, ranges: Mapping[str, Space] = MappingProxyType({})
) -> dict[str, Space]:
    """Return what an objective searches of a detector: not what the user has set, nor what a loss cannot compare.

    A UsageError if that is nothing, or the class declares a parameter that its constructor does not take. If losses of
    values in a range cannot be compared, though the objective does.
    """
    name, about = contender.name, contender.description
    accepted = about.defaults.keys() - NEVER_SEARCHED
    if unknown := about.search_space.keys() - accepted:
        raise UsageError(f"{name}: search_space names {sorted(unknown)}; its parameters: {sorted(accepted)}")
    declared = {**about.search_space, **ranges}
    if not declared:
        raise UsageError(
            f"{name} declares no search space: say what to search, --range {name}.PARAMETER={FORMS}; its parameters: "
            f"{', '.join(sorted(accepted)) or 'none'}"
        )
    if objective == "heldout" and not about.offers_held_out_loss:
        raise UsageError(
            f"{name} has no held-out loss: it forecasts or reconstructs no rows; use --objective injection"
        )
    space = {key: values for key, values in declared.items() if key not in contender.construction.given}
    if objective == "heldout":
        scoring = contender.traits.scoring_parameters
        space = {key: values for key, values in space.items() if not values.alters_loss and key not in scoring}
        if wrong := ranges.keys() - space.keys():
            raise UsageError(
                f"--range {name}.{min(wrong)}: {name} does not declare that held-out losses of its values can be "
                "compared; use --objective injection"
            )
    if not space:
        raise UsageError(
            f"{contender.label}: nothing is left to search with --objective {objective} among {sorted(declared)}; set "
            "fewer parameters, or take another objective"
        )
    return space


def reach_of(contender: Contender, space: Mapping[str, Space], sensors: tuple[str, ...]) -> Reach:
    """Return how far scores see at most, from the traits at the space's extremes.

    A UsageError if the detector rejects one of these points.
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
