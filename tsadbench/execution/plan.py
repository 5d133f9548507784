"""From what the user asked for to a list of trials; every wrong name, parameter or prior ends here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from tsadbench.base.dataset import DataOptions, Dataset, LabelledDataset, check_labels
from tsadbench.base.detector import Detector, Traits
from tsadbench.base.prior import Prior
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import PluginError, UsageError
from tsadbench.registry import floors as registered_floors
from tsadbench.registry import load_detector, load_protocol, registered_name
from tsadbench.sandbox import Construction
from tsadbench.utils.parameters import JsonValue, format_label, nearest, parameters_of, parse_arguments, parse_label

# Values [rows x sensors] of contributions that a trial may keep.
MAX_CONTRIBUTIONS = 10**7

Wanted: TypeAlias = str | type[Detector] | Detector


@dataclass(frozen=True, slots=True)
class Contender:
    """A detector with its parameters, checked against the data's sensors.

    Parameters
    ----------
    name, label
        As registered; with the parameters that differ from their defaults.
    construction
        How to construct it, seed left out.
    traits
        What it promises with these parameters.
    scoring
        Its class, with those of its parameters that training does not depend on.
    fit_label
        The label without these: contenders of one such label, class and prior are the same until they score.
    """

    name: str
    label: str
    construction: Construction
    traits: Traits
    scoring: Construction
    fit_label: str

    @property
    def floor(self) -> bool:
        """Whether it is one of the floors that every table shows."""
        return self.traits.floor

    def seeded(self, seed: int) -> Construction:
        """Return its construction with this seed, where it takes one."""
        if not any(parameter.name == "seed" for parameter in parameters_of(self.construction.cls)):
            return self.construction
        return replace(self.construction, arguments={**self.construction.arguments, "seed": seed})


@dataclass(frozen=True, slots=True)
class Trial:
    """One contender with one seed and a number of threads."""

    contender: Contender
    seed: int
    threads: int

    @property
    def fit_key(self) -> object:
        """Equal for trials that one fit serves: they differ in parameters that training does not depend on."""
        fitted = self.contender.construction
        priors = tuple(value.content_hash for value in fitted.arguments.values() if isinstance(value, Prior))
        return fitted.cls, self.contender.fit_label, priors, self.seed, self.threads


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does.

    Parameters
    ----------
    data
        The data set and, for the judge, its labels.
    protocol, protocol_label
        The protocol; its name with the parameters that differ from their defaults.
    episodes
        The protocol's, for this data set: each trial fits once for each of them.
    trials
        In the order in which they are done.
    splits
        The splits that tables show, in order.
    timeout, memory_mib
        What one trial may use: wall-clock seconds, resident MiB; None does not limit it.
    contributions
        Whether to ask detectors that offer them for each sensor's contribution.
    source
        The name of the data set, or its card, and where it was looked for; None where the data were given in Python.
    config_hash, tuning
        SHA-256 of the configuration file that asked for it, and how ``tsadbench tune`` came to its settings, where
        there are such; records keep both.
    """

    data: LabelledDataset
    protocol: Protocol
    protocol_label: str
    episodes: tuple[Episode, ...]
    trials: tuple[Trial, ...]
    splits: tuple[str, ...]
    timeout: float | None = None
    memory_mib: float | None = None
    contributions: bool = True
    source: tuple[str, DataOptions] | None = None
    config_hash: str | None = None
    tuning: Mapping[str, JsonValue] = field(default_factory=dict)

    @staticmethod
    def shared_fits(trials: Iterable[Trial]) -> list[tuple[Trial, ...]]:
        """Return the trials in groups that one fit serves, in the order of each group's first."""
        groups: dict[object, list[Trial]] = {}
        for trial in trials:
            groups.setdefault(trial.fit_key, []).append(trial)
        return [tuple(group) for group in groups.values()]


def make_plan(
    detectors: Sequence[Wanted],
    *,
    dataset: str | LabelledDataset = "skab",
    protocol: str = "strict",
    splits: Sequence[str] = (),
    seeds: int = 5,
    threads: int = 1,
    settings: Sequence[str] = (),
    floors: bool = True,
    data: DataOptions | None = None,
    timeout: float | None = None,
    memory_mib: float | None = None,
    contributions: bool = True,
) -> Plan:
    """Return the trials that answer a request.

    Parameters
    ----------
    detectors
        Names (``NAME``, ``NAME[key=value,...]``, ``package.module:Class``, ``path/file.py:Class``), detector classes
        or detectors.
    dataset
        Name, or the data themselves.
    protocol
        Name.
    splits
        Splits that tables show; none given: all.
    seeds
        Seeds 0 to ``seeds - 1``; a detector that is not stochastic runs once.
    threads
        How many threads a detector's libraries may use.
    settings
        ``NAME.key=value`` for a detector's or the protocol's parameter.
    floors
        Whether the floors take part.
    data
        Where to look for the data set's files.
    timeout, memory_mib
        What one trial may use: wall-clock seconds, resident MiB.
    contributions
        Whether to ask detectors that offer them for each sensor's contribution, up to 10^7 values a trial.

    Raises
    ------
    UsageError
        If a name, a parameter or a split does not exist, or a value is out of range.
    DataError
        If the data set cannot be found or read.
    """
    _require_at_least_one(seeds=seeds, threads=threads)
    _require_positive(timeout=timeout, memory=memory_mib)
    given = _parse_settings(settings)
    wanted = _wanted([*detectors, *(registered_floors() if floors else ())], given)
    chosen, protocol_label = make_protocol(protocol, given.pop(protocol, {}))
    if given:
        names = tuple({protocol, *(name for name, *_ in wanted)})
        unknown = next(iter(given))
        raise UsageError(f"--set {unknown}...: this run has no {unknown!r}{nearest(unknown, names)}")
    loaded = load_dataset(dataset)(data or DataOptions()) if isinstance(dataset, str) else dataset
    check_labels(loaded)
    episodes = tuple(chosen.episodes(loaded.dataset))
    contenders = {one.label: one for one in (_contender(*want, loaded.dataset) for want in wanted)}
    return Plan(
        data=loaded,
        protocol=chosen,
        protocol_label=protocol_label,
        episodes=episodes,
        trials=tuple(
            Trial(contender, seed, threads)
            for contender in contenders.values()
            for seed in range(seeds if contender.traits.stochastic else 1)
        ),
        splits=_splits(splits, loaded.dataset),
        timeout=timeout,
        memory_mib=memory_mib,
        contributions=contributions and _n_values(episodes) <= MAX_CONTRIBUTIONS,
        source=(dataset, data or DataOptions()) if isinstance(dataset, str) else None,
    )


def _require_at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise UsageError(f"--{name} must be at least 1, found {number}")


def _require_positive(**numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and not number > 0:
            raise UsageError(f"--{name} must be positive, found {number}")


def _parse_settings(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return ``NAME.key=value`` texts as values by key by name; a name may hold dots."""
    given: dict[str, dict[str, str]] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        name, dot, key = path.rpartition(".")
        if not (equals and dot and name and key):
            raise UsageError(f"--set expects NAME.key=value, found {setting!r}")
        given.setdefault(name.strip(), {})[key.strip()] = value.strip()
    return given


def _wanted(
    detectors: Sequence[Wanted], given: dict[str, dict[str, str]]
) -> list[tuple[str, type[Detector], dict[str, object]]]:
    """Return name, class and arguments of each detector; settings that were used are taken out of ``given``."""
    wanted = []
    for detector in detectors:
        name, cls, arguments = _named(detector)
        wanted.append((name, cls, {**parse_arguments(cls, given.get(name, {}), name), **arguments}))
    for name, *_ in wanted:
        given.pop(name, None)
    return wanted


def _named(detector: Wanted) -> tuple[str, type[Detector], dict[str, object]]:
    if isinstance(detector, str):
        request = parse_label(detector)
        cls = load_detector(request.target)
        return request.target, cls, parse_arguments(cls, request.arguments, request.target)
    if isinstance(detector, type):
        return registered_name(detector), detector, {}
    given = cast("Detector", detector)  # mypy loses it: Detector's base has no types
    return registered_name(type(given)), type(given), dict(given.get_params(deep=False))


def make_protocol(name: str, texts: Mapping[str, str]) -> tuple[Protocol, str]:
    """Return a checked protocol and its label.

    Parameters
    ----------
    name
        As registered.
    texts
        Its parameters as a user writes them.

    Raises
    ------
    UsageError
        If there is no such protocol or parameter, or a value is out of range.
    """
    cls = load_protocol(name)
    arguments = parse_arguments(cls, texts, name)
    protocol = cls(**arguments)
    protocol.check()
    return protocol, format_label(name, cls, arguments)


def _contender(name: str, cls: type[Detector], arguments: dict[str, object], dataset: Dataset) -> Contender:
    label = format_label(name, cls, {key: value for key, value in arguments.items() if key != "seed"})
    if cls.traits.needs_prior and arguments.get("prior") is None:
        arguments = {**arguments, "prior": dataset.prior}
    detector = cls(**arguments)
    detector.check(dataset.sensors)
    traits = detector.declared_traits()
    if name in registered_floors() and not traits.floor:
        raise PluginError(f"{name}: an entry point of tsadbench.floors must declare it, traits = Traits(floor=True)")
    if traits.fixed_threshold is not None and not traits.floor:
        raise UsageError(
            f"{name}: only floors may bring a threshold of their own (traits.fixed_threshold); leave it out"
        )
    known = {parameter.name: parameter.default for parameter in parameters_of(cls)}
    for parameter in traits.scoring_parameters:
        if parameter not in known:
            raise UsageError(
                f"{name}: traits.scoring_parameters names {parameter!r}, which its constructor does not take"
            )
    scoring = {parameter: arguments.get(parameter, known[parameter]) for parameter in traits.scoring_parameters}
    fitted = {key: value for key, value in arguments.items() if key != "seed" and key not in scoring}
    return Contender(
        name,
        label,
        Construction(cls, arguments),
        traits,
        scoring=Construction(cls, scoring),
        fit_label=format_label(name, cls, fitted),
    )


def contender_from_label(label: str, dataset: Dataset) -> Contender:
    """Return the contender that a label names, checked against a data set; no protocol takes part.

    Parameters
    ----------
    label
        As records and tables hold it.
    dataset
        Its sensors are checked, its prior is the default.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        If the detector cannot be loaded, or a prior that the label names cannot be read.
    """
    return _contender(*_named(label), dataset)


def _n_values(episodes: Sequence[Episode]) -> int:
    return sum(recording.values.size for episode in episodes for recording in episode.test)


def _splits(wanted: Sequence[str], dataset: Dataset) -> tuple[str, ...]:
    for split in wanted:
        if split not in dataset.splits:
            raise UsageError(f"data set {dataset.name!r} has no split {split!r}{nearest(split, dataset.splits)}")
    return tuple(dict.fromkeys(wanted)) or tuple(dataset.splits)
