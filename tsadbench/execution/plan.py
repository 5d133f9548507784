"""From a request to plans: lists of trials. Every wrong name, parameter or prior is reported here, before a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import cast

from pydantic_core import to_jsonable_python

from tsadbench.base.dataset import DataOptions, Dataset, LabelledDataset, check_labels, hashed_parts
from tsadbench.base.detector import Detector, Traits
from tsadbench.base.prior import Prior
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.base.recording import Recording
from tsadbench.datasets.loading import CARD_ENDING, load_dataset, require_distinct_names
from tsadbench.datasets.suites import suite_named
from tsadbench.errors import DataError, DataNotFoundError, PluginError, UsageError, about_setting
from tsadbench.execution.estimators import Estimator, construction_of
from tsadbench.execution.judging import score_shapes
from tsadbench.execution.record import Record
from tsadbench.execution.request import DetectorSpec, RunRequest
from tsadbench.execution.unjudged import fitting_episodes, require_judgeable
from tsadbench.registry import floors, is_registered, load_protocol, locate
from tsadbench.sandbox import Construction, Description, asking, describe, seal_status
from tsadbench.sandbox.description import with_files_read
from tsadbench.utils.grouping import grouped
from tsadbench.utils.names import without_folders
from tsadbench.utils.parameters import JsonValue, Label, format_label, nearest, parse_arguments, parse_label

# Values [rows x sensors] of contributions that a trial may keep.
MAX_CONTRIBUTIONS = 10**7


@dataclass(frozen=True, slots=True)
class Contender:
    """A detector with its parameters, checked against the data's sensors.

    Parameters
    ----------
    name, label
        As registered; with the parameters that differ from their defaults.
    construction
        How to construct it, without a seed.
    description
        What a box told about its class.
    parameters
        All its parameters but the seed, as JSON knows them.
    traits
        What it promises with these parameters.
    fit_label
        The label without the parameters that training does not depend on (`Traits.scoring_parameters`): contenders of
        one such label, class and prior are the same until they score.
    imported
        Whether the process that plans runs code of its owner (`Source.runs_here`): no box can seal it then.
    """

    name: str
    label: str
    construction: Construction
    description: Description
    parameters: Mapping[str, JsonValue]
    traits: Traits
    fit_label: str
    imported: bool = False

    @property
    def floor(self) -> bool:
        """Whether it is one of the floors that every table shows."""
        return self.traits.floor

    @property
    def device(self) -> str:
        """The device that it asks for."""
        return str(self.construction.given.get("device", "cpu"))

    def seeded(self, seed: int) -> Construction:
        """Return its construction with this seed, if it takes one."""
        if "seed" not in self.description.defaults:
            return self.construction
        return replace(self.construction, arguments={**self.construction.arguments, "seed": seed})


@dataclass(frozen=True, slots=True)
class Trial:
    """One contender with one seed and a number of threads."""

    contender: Contender
    seed: int
    threads: int

    @property
    def fit_key(self) -> tuple[object, ...]:
        """Equal for trials that one fit serves: they differ in parameters that training does not depend on."""
        fitted = self.contender.construction
        priors = tuple(value.content_hash for value in fitted.arguments.values() if isinstance(value, Prior))
        return fitted.source, self.contender.fit_label, priors, self.seed, self.threads


@dataclass(frozen=True)
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
        In the order in which they start.
    splits
        The splits that tables show, in order.
    named
        Labels of the detectors that were asked for; the others are floors that every run adds.
    timeout, memory_mib
        What one trial may use: wall-clock seconds, resident MiB; None: no limit.
    contributions
        Whether to ask detectors that offer them for each sensor's contribution.
    require_seal
        Whether a trial whose box the kernel does not seal fails.
    source
        The name of the data set, or its card, and where to look for its files; None for data given in Python.
    store
        Where results are kept, if anywhere: a detector must not see earlier ones.
    config_hash, tuning
        SHA-256 of the configuration file, if any, and how ``tsadbench tune`` came to its settings; records keep both.
    suite
        Name and version of the suite that the data set is run as a part of, if any; records keep it.
    """

    data: LabelledDataset
    protocol: Protocol
    protocol_label: str
    episodes: tuple[Episode, ...]
    trials: tuple[Trial, ...]
    splits: tuple[str, ...]
    named: frozenset[str] = frozenset()
    timeout: float | None = None
    memory_mib: float | None = None
    contributions: bool = True
    require_seal: bool = False
    source: tuple[str, DataOptions] | None = None
    store: Path | None = None
    config_hash: str | None = None
    tuning: Mapping[str, JsonValue] = field(default_factory=dict)
    suite: str = ""

    @cached_property
    def episodes_hash(self) -> str:
        """Hash of who is trained on what and what is scored: ids and contents of the recordings of each episode."""
        return episodes_hash(self.episodes)

    def one_episode(self, entity: str | None = None) -> Episode:
        """Return the only episode, or that of an entity.

        Raises
        ------
        UsageError
            If there are several and no entity is named, or there is no such entity.
        """
        data, episodes = self.data.dataset, {episode.id: episode for episode in self.episodes}
        models = tuple(episodes) if len(data.by_entity) > 1 and episodes.keys() <= data.by_entity.keys() else ()
        if entity is not None and entity not in models:
            raise UsageError(
                f"--entity: protocol {self.protocol_label} fits no model for {entity!r} of {data.name} alone"
                f"{nearest(entity, models)}"
            )
        if entity is None and len(episodes) > 1:
            advice = f"choose an entity by --entity: {', '.join(models)}" if models else "choose strict or published"
            times = f"protocol {self.protocol_label} fits a detector {len(episodes)} times"
            raise UsageError(f"{times}, but a model is one fit: {advice}")
        return self.episodes[0] if entity is None else episodes[entity]

    def accepts(self, record: Record) -> bool:
        """Whether a kept record's seal suffices."""
        return not self.require_seal or record.seal == "sealed"


def shared_fits(trials: Iterable[Trial]) -> list[tuple[Trial, ...]]:
    """Return the trials in groups that one fit serves, in the order of each group's first."""
    return list(grouped(trials, lambda trial: trial.fit_key).values())


def episodes_hash(episodes: Iterable[Episode]) -> str:
    """Return the hash of episodes, as `Plan.episodes_hash` does."""
    contents = cache(_content_hash)  # episodes share recordings
    hashed = [(episode.id, *([*map(contents, part)] for part in _hashed(episode))) for episode in episodes]
    return hashlib.sha256(repr(hashed).encode()).hexdigest()


def _hashed(episode: Episode) -> Iterator[tuple[Recording, ...]]:
    yield episode.train
    yield episode.test
    if episode.calibration:
        yield episode.calibration


def _content_hash(recording: Recording) -> str:
    digest = hashlib.sha256()
    for part in hashed_parts(recording):
        digest.update(part)
    return digest.hexdigest()


def make_plan(request: RunRequest, *, judged: bool = True) -> Plan:
    """Return the plan of a request for one data set and one protocol; errors as for `make_plans`."""
    plans = make_plans(request, judged=judged)
    if len(plans) != 1:
        raise UsageError(f"expected one data set and one protocol, found {len(plans)} combinations of them")
    return plans[0]


def make_plans(request: RunRequest, *, judged: bool = True) -> tuple[Plan, ...]:
    """Return a plan for each data set and protocol; every data set is read once.

    Parameters
    ----------
    request
        What to run.
    judged
        Whether scores are to be judged, which needs test recordings and labels. Fits alone need neither.

    Raises
    ------
    UsageError
        If a name, a parameter or a split does not exist, a value is out of range, two data sets have one name, or one
        has nothing to judge.
    DataError
        If data sets cannot be found, all of which are named, or one cannot be read.
    PluginError, MissingExtraError
        If a detector, a protocol or a loader cannot be imported.
    """
    if request.require_seal:
        with about_setting("require_seal"):
            refuse_unsealed(request.detectors, elsewhere=request.elsewhere)
    settings = _parse_settings(request.settings)
    # With --against, the floors are among the stored rows.
    with_floors = request.floors and request.against is None
    with asking():
        names = [*request.detectors, *(floor_labels() if with_floors else ())]
        with about_setting("detectors"):
            detectors = [_resolved(detector, settings) for detector in names]
        with about_setting("protocols" if request.against is None else "against"):
            protocols = [_protocol(name, settings.get(name, {})) for name in _protocol_names(request)]
        known = tuple(dict.fromkeys(name for name, *_ in (*detectors, *protocols)))
        for name in settings:
            if name not in known:
                raise UsageError(f"--set {name}...: this run has no {name!r}{nearest(name, known)}", setting="settings")
        return _plans(request, detectors, protocols, judged=judged)


def _plans(
    request: RunRequest,
    detectors: Sequence[tuple[str, Construction, Description]],
    protocols: Sequence[tuple[str, Protocol, str]],
    *,
    judged: bool,
) -> tuple[Plan, ...]:
    datasets = _loaded(request)
    for dataset, data in datasets if judged else ():
        with about_setting("datasets"):
            require_judgeable(data, dataset)
    plans = []
    for dataset, data in datasets:
        splits = _own_splits(request, dataset, data.dataset)
        for protocol_name, protocol, protocol_label in protocols:
            try:
                rules = protocol.episodes(data.dataset) if judged else fitting_episodes(protocol, data.dataset)
                episodes = tuple(rules)
                score_shapes(episodes)  # raises an error unless they can be stored
                with about_setting("detectors"):
                    contenders = [_contender(*one, data.dataset, elsewhere=request.elsewhere) for one in detectors]
                    _refuse_false_floors(contenders)
                    _refuse_one_label_for_two(contenders)
                if request.require_seal:
                    with about_setting("require_seal"):
                        _refuse_imported([contender.name for contender in contenders if contender.imported])
            except UsageError as error:
                if len(datasets) > 1 or len(protocols) > 1:
                    error.args = (f"data set {dataset}, protocol {protocol_name}: {error}",)
                raise
            n_values = sum(recording.values.size for episode in episodes for recording in episode.test)
            plans.append(
                Plan(
                    data=data,
                    protocol=protocol,
                    protocol_label=protocol_label,
                    episodes=episodes,
                    trials=_trials(contenders, request),
                    splits=splits,
                    named=frozenset(contender.label for contender in contenders[: len(request.detectors)]),
                    timeout=request.timeout,
                    memory_mib=request.memory,
                    contributions=request.contributions and n_values <= MAX_CONTRIBUTIONS,
                    require_seal=request.require_seal,
                    source=(dataset, request.data_options) if dataset in request.datasets else None,
                    config_hash=request.config_hash,
                    tuning=to_jsonable_python(request.tuned),
                    suite="" if request.suite is None else str(suite_named(request.suite)),
                )
            )
    return tuple(plans)


def refuse_unsealed(detectors: Iterable[DetectorSpec] = (), *, elsewhere: bool = False) -> None:
    """Refuse what ``--require-seal`` cannot have.

    Parameters
    ----------
    detectors
        What is to run.
    elsewhere
        Whether other machines run it: each of them answers for its own boxes.

    Raises
    ------
    UsageError
        If the kernel of this machine seals no box, or the calling program has imported a detector's code.
    """
    objects = [detector for detector in detectors if not isinstance(detector, str | Construction)]
    _refuse_imported([(one if isinstance(one, type) else type(one)).__name__ for one in objects])
    status = seal_status()
    if status.seal != "sealed" and not elsewhere:
        raise UsageError(
            f"--require-seal: boxes of this machine are {status.seal}: {status.reason}; run it on another one, or "
            "without --require-seal (`tsadbench doctor` says what is missing)"
        )


def _refuse_imported(names: Sequence[str]) -> None:
    if names:
        raise UsageError(
            f"--require-seal: the calling program has imported the code of {names[0]}, so that it could reach labels; "
            "name it instead, package.module:Class or path/file.py:Class, and import nothing of its package"
        )


def floor_labels() -> tuple[str, ...]:
    """Return the floors that every run adds, by label: what is registered, and the variants that it declares.

    Raises
    ------
    PluginError, MissingExtraError
        If a floor cannot be imported, or a variant has a parameter that it does not take.
    """
    labels = []
    for name in floors():
        labels += [str(Label(name, variant)) for variant in ({}, *describe(name).floor_variants)]
    return tuple(labels)


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


def require_evaluated(data: LabelledDataset, protocol: str) -> None:
    """Raise a DataError that names the test recordings of which a protocol evaluates no row.

    Such a recording is no error when a plan is made: it counts nowhere, and tables say so. The author of a data set
    wants to know.
    """
    rules, _ = make_protocol(protocol, {})
    n_rows = {recording.id: recording.n_rows for recording in data.dataset.test}
    places = (place for episode in rules.episodes(data.dataset) for place in rules.places(episode, n_rows))
    unused = [place.recording for place in places if len(range(n_rows[place.recording])[place.evaluated]) == 0]
    if unused:
        recordings = ", ".join(f"{name!r} ({n_rows[name]} rows)" for name in unused)
        raise DataError(
            f"data set {data.dataset.name!r}: the protocol {protocol!r} evaluates no row of recording {recordings}; "
            f"leave it out, or join it to its neighbour"
        )


def _parse_settings(settings: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return ``NAME.key=value`` texts as values by key by name; a name may hold dots."""
    parsed: dict[str, dict[str, str]] = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        name, dot, key = path.rpartition(".")
        if not (equals and dot and name and key):
            raise UsageError(f"--set expects NAME.key=value, found {setting!r}", setting="settings")
        parsed.setdefault(name.strip(), {})[key.strip()] = value.strip()
    return parsed


def _resolved(
    detector: DetectorSpec,
    settings: Mapping[str, Mapping[str, str]],
) -> tuple[str, Construction, Description]:
    """Return a detector's name, construction and description; its own arguments win over the settings of its name."""
    if isinstance(detector, str):
        label = parse_label(detector)
        construction = Construction(locate(label.target), label.arguments)
    elif isinstance(detector, Construction):
        construction = detector
    elif isinstance(detector, type):
        construction = Construction.of(detector)
    elif isinstance(detector, Detector):
        construction = Construction.of(type(detector), detector.get_params(deep=False))
    else:
        construction = construction_of(cast("Estimator", detector))
    name = construction.source.target
    texts = {**settings.get(name, {}), **construction.texts}
    about = "settings" if texts and not construction.texts else "detectors"
    construction = replace(construction, texts=texts)
    description = describe(construction.source)
    with about_setting(about):
        construction = with_files_read(construction)
        describe(construction)  # report what is wrong for any data set before reading one
    return name, construction, description


def _protocol(name: str, texts: Mapping[str, str]) -> tuple[str, Protocol, str]:
    """Return a protocol's name, the protocol and its label."""
    with about_setting("settings") if texts and is_registered(name, "protocols") else nullcontext():
        return name, *make_protocol(name, texts)


def _protocol_names(request: RunRequest) -> tuple[str, ...]:
    protocols = tuple(dict.fromkeys(request.protocols))
    if request.against is None:
        return protocols
    if "protocols" in request.model_fields_set and protocols != (request.against,):
        raise UsageError(
            f"--against {request.against} shows rows made under the protocol {request.against!r}, found --protocol "
            f"{' and '.join(protocols)}; rows of two protocols cannot be compared: leave --protocol out",
            setting="against",
        )
    return (request.against,)


def _loaded(request: RunRequest) -> list[tuple[str, LabelledDataset]]:
    """Return every data set by what the request calls it: a name, a card's path, or the name of data from Python."""
    named = dict.fromkeys(dataset for dataset in request.datasets if isinstance(dataset, str))
    loaded, missing = [], []
    with about_setting("datasets"):
        loaders = [(name, load_dataset(name)) for name in named]
    for name, load in loaders:
        try:
            with about_setting("data" if name.endswith(CARD_ENDING) and request.data else "datasets"):
                loaded.append((name, load(request.data_options)))
        except DataNotFoundError as error:
            missing.append(error)
    if len(missing) == 1:
        raise missing[0]
    if missing:
        lines = (f"\n  {error}" for error in missing)
        raise DataNotFoundError(f"the files of {len(missing)} data sets are missing:{''.join(lines)}")
    loaded += [(data.dataset.name, data) for data in request.datasets if isinstance(data, LabelledDataset)]
    for _, data in loaded:
        check_labels(data)
    with about_setting("datasets"):
        require_distinct_names(loaded)
    splits = tuple(dict.fromkeys(split for _, data in loaded for split in data.dataset.splits))
    for split in request.splits:
        if split not in splits:
            raise UsageError(f"there is no split {split!r}{nearest(split, splits)}", setting="splits")
    return loaded


def _own_splits(request: RunRequest, name: str, dataset: Dataset) -> tuple[str, ...]:
    """Return those of the request's splits that a data set has; all of its splits if none is requested."""
    own = tuple(dict.fromkeys(split for split in request.splits if split in dataset.splits))
    if request.splits and not own:
        raise UsageError(
            f"data set {name} has none of the splits {', '.join(request.splits)}; it has: {', '.join(dataset.splits)}",
            setting="splits",
        )
    return own or tuple(dataset.splits)


def _trials(contenders: Sequence[Contender], request: RunRequest) -> tuple[Trial, ...]:
    """Return one trial per seed of each contender; a detector that is named twice, say as a floor too, runs once."""
    return tuple(
        Trial(contender, seed, request.threads)
        for contender in {contender.label: contender for contender in contenders}.values()
        # What an adaptive detector has learned depends on the order of the recordings, which each trial draws anew.
        for seed in (request.seed_numbers if contender.traits.stochastic or contender.traits.adaptive else (0,))
    )


def _contender(
    name: str,
    construction: Construction,
    description: Description,
    dataset: Dataset,
    *,
    elsewhere: bool,
) -> Contender:
    name = without_folders(name)  # a detector's file: records hold its name, not where it lies
    prior = dataset.prior if description.traits.needs_prior else None
    configured = describe(construction, prior=prior, sensors=dataset.sensors, elsewhere=elsewhere)
    if prior is not None and construction.arguments.get("prior") is None:
        construction = replace(construction, arguments={**construction.arguments, "prior": prior})
    traits = configured.declared
    if unknown := configured.changed.keys() - description.defaults.keys():
        raise PluginError(f"{name} cannot be used: it names parameters that it does not have, {sorted(unknown)[0]!r}")
    if name in floors() and not traits.floor:
        raise PluginError(f"{name}: an entry point of tsadbench.floors must declare it, traits = Traits(floor=True)")
    if traits.fixed_threshold is not None and not traits.floor:
        raise UsageError(
            f"{name}: only floors may bring a threshold of their own (traits.fixed_threshold); leave it out"
        )
    # The box that checks parameters is told the sensors' names: it must not choose what the box that fits is told.
    if traits.scoring_parameters != description.traits.scoring_parameters:
        raise UsageError(
            f"{name}: declared_traits() changes scoring_parameters, {list(description.traits.scoring_parameters)}, to "
            f"{list(traits.scoring_parameters)}; they must be the same whatever the parameters"
        )
    for parameter in traits.scoring_parameters:
        if parameter not in description.defaults:
            raise UsageError(
                f"{name}: traits.scoring_parameters names {parameter!r}, which its constructor does not take"
            )
    changed = dict(configured.changed)
    fitted = {key: text for key, text in changed.items() if key not in traits.scoring_parameters}
    return Contender(
        name,
        str(Label(name, changed)),
        construction,
        description,
        configured.values,
        traits,
        fit_label=str(Label(name, fitted)),
        imported=construction.source.runs_here,
    )


def _refuse_false_floors(contenders: Iterable[Contender]) -> None:
    """Refuse what calls itself a floor and is not registered: it would be compared with no floor, nor be marked."""
    for contender in contenders:
        if contender.floor and not (is_registered(contender.construction.source.target) or contender.imported):
            raise UsageError(
                f"{contender.name}: only a detector that an installed package registers may be a floor; leave "
                "traits.floor and traits.fixed_threshold out, or register it (entry points tsadbench.floors)"
            )


def _refuse_one_label_for_two(contenders: Iterable[Contender]) -> None:
    """Refuse two detectors or priors that would have one label: a label names a file without its folder."""
    found: dict[str, object] = {}
    for contender in contenders:
        arguments = contender.construction.arguments.values()
        priors = [value.content_hash for value in arguments if isinstance(value, Prior)]
        what = contender.construction.source.reference, priors
        if found.setdefault(contender.label, what) != what:
            raise UsageError(f"two detectors or priors would both be called {contender.label}: rename a file")


def contender_from_label(label: str, dataset: Dataset) -> Contender:
    """Return the contender that a label names, checked against a data set; no protocol takes part.

    Parameters
    ----------
    label
        As records and tables hold it. Nothing runs: it may name a device that this machine lacks.
    dataset
        Its sensors are checked, its prior is the default.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        If the detector cannot be loaded, or a prior that the label names cannot be read.
    """
    return _contender(*_resolved(label, {}), dataset, elsewhere=True)
