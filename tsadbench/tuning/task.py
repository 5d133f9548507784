"""The task of a search: the detector, its search space, the training recordings and the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from tsadbench._version import __version__
from tsadbench.base.protocol import Episode
from tsadbench.base.recording import Recording
from tsadbench.base.search_space import Choice, Space, Tune, Value
from tsadbench.errors import UsageError
from tsadbench.execution.identity import library_versions
from tsadbench.execution.plan import Contender, Plan, episodes_hash
from tsadbench.sandbox import Construction, asking, describe
from tsadbench.tuning.objective import GAP_WITHOUT_END, Fold, ObjectiveName, Reach, make_folds
from tsadbench.utils.parameters import JsonValue, nearest

# Not searched: the user sets these for a run.
NEVER_SEARCHED = frozenset({"seed", "device", "prior"})
FORMS = "LOW:HIGH, LOW:HIGH:log or A|B|..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of a search."""

    objective: ObjectiveName = "injection"
    trials: int = 30  # points of the finished study, including earlier runs
    folds: int = 3  # blocks of each training recording
    seed: int = 0
    jobs: int = 1
    timeout: float | None = None  # seconds for one point
    ranges: tuple[str, ...] = ()  # NAME.parameter=LOW:HIGH (`read_ranges`): override the detector's own


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A detector, its search space, and normal recordings. It holds no test recordings and no labels."""

    contender: Contender
    space: Mapping[str, Space]
    reach: Reach  # reach of the scores over all points
    dataset: str
    source: str  # the data set's name or card as given by the user
    parts: tuple[tuple[Recording, ...], ...]  # the training recordings of `strict`, per fit
    forbidden: tuple[Path, ...]
    settings: Settings

    @property
    def study(self) -> str:
        """The study's name."""
        text = f"{self.contender.label}-{self.dataset}-{self.settings.objective}"
        return re.sub(r"[^\w.=-]+", "-", text).strip("-.")

    @property
    def defaults(self) -> dict[str, object]:
        """Default values of the searched parameters."""
        return {name: self.contender.description.defaults[name] for name in self.space}

    def at(self, point: Mapping[str, object]) -> Construction:
        """Return the detector's construction at a point, with the search's seed if it has that parameter."""
        seeded = self.contender.seeded(self.settings.seed)
        return replace(seeded, arguments={**seeded.arguments, **point})

    def folds(self) -> tuple[Fold, ...]:
        """Return the divisions of the training recordings, entity by entity."""
        return tuple(fold for part in self.parts for fold in make_folds(part, self.settings.folds, self.reach))

    def training_hash(self) -> str:
        """Return the hash of the training recordings, part by part."""
        return episodes_hash(Episode(str(number), part, ()) for number, part in enumerate(self.parts))

    def determinants(self) -> dict[str, str]:
        """Return everything that decides a point's value, except the study's name."""
        of = self.contender.description
        return {
            "prior": str(self.contender.prior_hashes),
            "code of the detector": of.sources.digest,
            "version of tsadbench": __version__,
            "versions of libraries": str(library_versions(of.sources.packages, of.libraries)),
            "range": str(dict(self.space)),
            "training data": self.training_hash(),
            "number of folds": str(self.settings.folds),
            "seed": str(self.settings.seed),
            "timeout": str(self.settings.timeout),
        }


def make_task(plan: Plan, settings: Settings) -> Task:
    """Return the task of a search. It keeps no reference to the plan's test recordings and labels.

    Raises a UsageError if there is nothing to search; a DataError if the training recordings are too short.
    """
    contender, dataset = plan.trials[0].contender, plan.data.dataset
    space = searched(contender, settings.objective, read_ranges(settings.ranges, contender, dataset.sensors))
    task = Task(
        contender=contender,
        space=space,
        reach=reach_of(contender, space, dataset.sensors),
        dataset=dataset.name,
        source=plan.source[0] if plan.source else dataset.name,
        parts=tuple(episode.train for episode in plan.episodes),
        forbidden=() if dataset.folder is None else (dataset.folder.resolve(),),
        settings=settings,
    )
    task.folds()  # reports too short recordings before the search starts
    return task


def searched(contender: Contender, objective: ObjectiveName, ranges: Mapping[str, Space]) -> dict[str, Space]:
    """Return the search space of an objective, without parameters that the user set or that a loss cannot compare.

    Raises a UsageError if it is empty, or lacks a parameter of ``ranges``.
    """
    name, about, heldout = contender.name, contender.description, objective == "heldout"
    declared, accepted = {**about.search_space, **ranges}, about.defaults.keys() - NEVER_SEARCHED
    if unknown := declared.keys() - accepted:
        raise UsageError(f"{name}: unknown parameters in search_space: {sorted(unknown)}; known: {sorted(accepted)}")
    if heldout and not about.offers_held_out_loss:
        raise UsageError(f"{name} neither forecasts nor reconstructs rows; use injection", field="objective")
    fixed = {*contender.construction.given, *(contender.traits.scoring_parameters if heldout else ())}
    space = {key: one for key, one in declared.items() if key not in fixed and not (heldout and one.alters_loss)}
    if wrong := ranges.keys() - space.keys():
        raise UsageError(f"{name}.{min(wrong)}: held-out losses of its values cannot be compared", field="ranges")
    if not space:
        known = f"its parameters: {', '.join(sorted(accepted)) or 'none'}"
        problem = f"{contender.label} has nothing to search by {objective}; give a range, {name}.PARAMETER={FORMS}"
        raise UsageError(f"{problem}; {known}", field="ranges")
    return space


def reach_of(contender: Contender, space: Mapping[str, Space], sensors: tuple[str, ...]) -> Reach:
    """Return the largest reach of the scores, from the traits at the space's extreme points, which are also checked."""
    extremes = {name: one.values if isinstance(one, Choice) else (one.low, one.high) for name, one in space.items()}
    points: list[dict[str, object]] = [{name: one} for name, values in extremes.items() for one in values]
    points += [{name: values[end] for name, values in extremes.items()} for end in (0, -1)]
    before, after, construction = 1, 0, contender.construction
    with asking():
        for point in ({}, *points):
            at = replace(construction, arguments={**construction.arguments, **point})
            traits = describe(at, sensors=sensors).declared
            before = max(before, GAP_WITHOUT_END if traits.memory is None else traits.memory)
            after = max(after, traits.look_ahead)
    return Reach(before, after)


def read_ranges(ranges: Sequence[str], contender: Contender, sensors: tuple[str, ...]) -> dict[str, Space]:
    """Return the search space of each parameter that a range names.

    Bounds and choices are parsed like ``NAME[key=value]``, and the detector must accept each of them. A range holds
    integers if both bounds are integers. Errors begin with the range.
    """
    space: dict[str, Space] = {}
    with asking():
        for text in ranges:
            path, _, values = text.partition("=")
            name, _, parameter = path.strip().rpartition(".")
            known = contender.description.defaults.keys() - {*NEVER_SEARCHED, *contender.construction.given, *space}
            try:
                if name != contender.name or not values.strip():
                    raise UsageError(f"expected {contender.name}.parameter={FORMS}")
                if parameter not in known:
                    raise UsageError(f"{parameter!r} is unknown, fixed or set elsewhere{nearest(parameter, known)}")
                space[parameter] = _space(parameter, values.strip(), contender, sensors)
            except UsageError as error:
                raise UsageError(f"{text}: {error}", field="ranges") from error
    return space


def _space(parameter: str, values: str, contender: Contender, sensors: tuple[str, ...]) -> Space:
    alters_loss = getattr(contender.description.search_space.get(parameter), "alters_loss", True)

    def read(text: str) -> JsonValue:
        at = replace(contender.construction, texts={**contender.construction.texts, parameter: text.strip()})
        return describe(at, sensors=sensors).values[parameter]

    if "|" in values:
        return Choice(tuple(cast("Value", read(text)) for text in values.split("|")), alters_loss)
    low, _, rest = values.partition(":")
    high, _, scale = rest.partition(":")
    if not high.strip() or scale.strip() not in ("", "log"):
        raise UsageError(f"expected {FORMS}, found {values!r}")
    bounds = [read(low), read(high)]
    if not all(isinstance(bound, int | float) and not isinstance(bound, bool) for bound in bounds):
        raise UsageError(f"expected numbers as bounds, found {low!r} and {high!r}; choices are written A|B|...")
    first, last = cast("list[float]", bounds)
    return Tune(first, last, scale.strip() == "log", alters_loss)
