"""From a request to plans: lists of trials. Every wrong name, parameter or prior is reported here, before a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, cast

from pydantic_core import to_jsonable_python

from tsadbench.base.dataset import DataOptions, Dataset, LabelledDataset, hashed_parts
from tsadbench.base.detector import Detector, Traits
from tsadbench.base.prior import Prior
from tsadbench.base.protocol import Episode, Protocol
from tsadbench.base.recording import Recording
from tsadbench.datasets.loading import check_labels, load_dataset, suite_named
from tsadbench.errors import DataError, DataNotFoundError, PluginError, UsageError, about
from tsadbench.execution.estimators import Estimator, construction_of
from tsadbench.execution.judging import score_shapes
from tsadbench.execution.record import Record
from tsadbench.execution.request import DEFAULT_PROTOCOL, DatasetSpec, DetectorSpec, RunRequest
from tsadbench.registry import floors, is_registered, load_protocol, locate
from tsadbench.sandbox import Construction, Description, asking, describe, seal_status
from tsadbench.sandbox.description import with_files_read
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import JsonValue, Label, changed_texts, parse_arguments, parse_label, require_known
from tsadbench.utils.text import label_fault, name_fault, without_folders

# Manifest entries about the request; no identity covers them.
ASKED_BY = ("config_hash", "tuning", "suite")
# The largest number of contributions [rows x sensors] that a trial keeps.
_MAX_CONTRIBUTIONS = 10**7


@dataclass(frozen=True)
class Contender:
    """A detector with its parameters, checked against the data's sensors."""

    name: str  # as in records: for a file, without its folder
    construction: Construction  # without a seed
    description: Description  # of the class, and of the detector with these parameters

    @cached_property
    def label(self) -> str:
        """The name with the parameters that differ from their defaults."""
        return str(Label(self.name, self.description.changed))

    @property
    def traits(self) -> Traits:
        """Its traits with these parameters."""
        return self.description.declared

    @property
    def prior_hashes(self) -> dict[str, str]:
        """Content hashes of its priors, by parameter."""
        arguments = self.construction.arguments.items()
        return {name: value.content_hash for name, value in arguments if isinstance(value, Prior)}

    def seeded(self, seed: int) -> Construction:
        """Return its construction, with this seed if it has that parameter."""
        if "seed" not in self.description.defaults:
            return self.construction
        return replace(self.construction, arguments={**self.construction.arguments, "seed": seed})


@dataclass(frozen=True, slots=True)
class Trial:
    """One contender with one seed and a number of threads."""

    contender: Contender
    seed: int
    threads: int


def shared_fits(trials: Iterable[Trial]) -> list[tuple[Trial, ...]]:
    """Group the trials that share a fit; groups are in the order of their first trials."""

    def fit(one: Trial) -> tuple[object, ...]:
        of = one.contender
        ignored = () if of.traits.adaptive else of.traits.scoring_parameters  # what adapts is scored once
        kept = {key: text for key, text in of.description.changed.items() if key not in ignored}
        return of.construction.source, of.name, str(kept), str(of.prior_hashes), one.seed, one.threads

    return list(grouped(trials, fit).values())


@dataclass(frozen=True)
class Plan:
    """What a run does on one data set under one protocol."""

    data: LabelledDataset  # the labels are for the judge
    protocol: Protocol
    protocol_label: str  # the protocol's name with its non-default parameters
    episodes: tuple[Episode, ...]  # each trial fits once per episode
    trials: tuple[Trial, ...]  # in the order in which they start
    named: frozenset[str] = frozenset()  # labels that the user requested; all others are floors
    timeout: float | None = None  # wall-clock seconds per trial
    memory_mib: float | None = None  # resident size per trial
    contributions: bool = True  # ask detectors that offer them for each sensor's contribution
    require_seal: bool = False  # fail trials whose box is not sealed by the kernel
    source: tuple[str, DataOptions] | None = None  # name or card, and where its files are; None for data from Python
    store: Path | None = None  # a detector must not see earlier results
    asked_by: Mapping[str, JsonValue] = field(default_factory=dict)  # kept in records: `ASKED_BY`

    @cached_property
    def episodes_hash(self) -> str:
        """The hash of the episodes (`episodes_hash`)."""
        return episodes_hash(self.episodes)

    def accepts(self, record: Record) -> bool:
        """Whether a stored record's seal suffices."""
        return not self.require_seal or record.seal == "sealed"


def episodes_hash(episodes: Iterable[Episode]) -> str:
    """Return the hash of the episodes: their ids, and the ids and contents of their recordings."""

    @cache  # episodes share recordings
    def content_hash(recording: Recording) -> str:
        return hashlib.sha256(b"".join(hashed_parts(recording))).hexdigest()

    def parts(episode: Episode) -> Iterator[list[str]]:
        for recordings in (episode.train, episode.test, *([episode.calibration] if episode.calibration else ())):
            yield [content_hash(recording) for recording in recordings]

    return hashlib.sha256(repr([(episode.id, *parts(episode)) for episode in episodes]).encode()).hexdigest()


def make_plan(request: RunRequest, *, judged: bool = True) -> Plan:
    """Return the plan of a request for one data set and one protocol; errors as for `make_plans`."""
    plans = make_plans(request, judged=judged)
    if len(plans) != 1:
        raise UsageError(f"expected one data set and one protocol, found {len(plans)} combinations")
    return plans[0]


def plan_of(detectors: Sequence[str], dataset: DatasetSpec, protocol: str, **asked: Any) -> Plan:
    """Return the plan of detectors, without floors, on a data set under the protocol of a label."""
    label = parse_label(protocol)
    settings = {f"{label.target}.{key}": value for key, value in label.arguments.items()}
    asked |= {"detectors": [*detectors], "datasets": [dataset], "protocols": [label.target], "settings": settings}
    return make_plan(RunRequest(**asked, floors=False))


def make_plans(request: RunRequest, *, judged: bool = True) -> tuple[Plan, ...]:
    """Return a plan for each data set and protocol; every data set is read once.

    Any error of the request, its data sets or its plugins is raised here. ``judged=False`` plans fits only, which need
    neither test recordings nor labels.
    """
    if request.require_seal:
        refuse_unsealed(elsewhere=request.elsewhere)
    with asking():
        # With --against, the floors are among the stored rows.
        added = floor_labels() if request.floors and request.against is None else ()
        with about("detectors"):
            detectors = [_resolved(detector, request.settings) for detector in (*request.detectors, *added)]
        protocols = _protocols(request)
        known = tuple(dict.fromkeys([*(one.source.target for one in detectors), *protocols]))
        require_known((path.rpartition(".")[0] for path in request.settings), known, "this run has no", "settings")
        datasets = _loaded(request, judged=judged)
        plans = []
        for dataset, data in datasets:
            for name, protocol in protocols.items():
                try:
                    plans.append(_plan(request, dataset, data, *protocol, detectors, judged=judged))
                except UsageError as error:
                    if len(datasets) > 1 or len(protocols) > 1:
                        error.args = (f"data set {dataset}, protocol {name}: {error.args[0]}",)
                    raise
    return tuple(plans)


def _plan(
    request: RunRequest,
    called: str,
    data: LabelledDataset,
    protocol: Protocol,
    protocol_label: str,
    detectors: Sequence[Construction],
    *,
    judged: bool,
) -> Plan:
    episodes = tuple(protocol.episodes(data.dataset) if judged else _fitting_episodes(protocol, data.dataset))
    score_shapes(episodes)  # raise an error if they cannot be stored
    with about("detectors"):
        contenders = [_contender(one, data.dataset, elsewhere=request.elsewhere) for one in detectors]
        _refuse_one_label_for_two(contenders)
    for source in (one.construction.source for one in contenders if request.require_seal):
        if source.runs_here:
            raise UsageError(
                f"the calling program has imported the code of {source.class_name}, which could "
                "access labels; pass its name instead (package.module:Class or path/file.py:Class), and do not import "
                "its package",
                field="require_seal",
            )
    if request.splits and data.dataset.splits.keys().isdisjoint(request.splits):
        raise UsageError(
            f"data set {called} has none of the splits {', '.join(request.splits)}; it has: "
            f"{', '.join(data.dataset.splits)}",
            field="splits",
        )
    n_values = sum(recording.values.size for episode in episodes for recording in episode.test)
    suite = None if request.suite is None else str(suite_named(request.suite))
    asked_by = dict(zip(ASKED_BY, (request.config_hash, to_jsonable_python(request.tuned), suite), strict=True))
    return Plan(
        data=data,
        protocol=protocol,
        protocol_label=protocol_label,
        episodes=episodes,
        trials=_trials(contenders, request),
        named=frozenset(contender.label for contender in contenders[: len(request.detectors)]),
        timeout=request.timeout,
        memory_mib=request.memory,
        contributions=request.contributions and n_values <= _MAX_CONTRIBUTIONS,
        require_seal=request.require_seal,
        source=(called, request.data_options) if called in request.datasets else None,
        asked_by={key: value for key, value in asked_by.items() if value},
    )


def _require_judgeable(data: LabelledDataset, called: str) -> None:
    """Raise a UsageError unless a data set has test recordings with labels."""
    if data.missing:
        add = "labels" if data.missing == "labels" else "a [test] part with labels"
        raise UsageError(
            f"{called!r} has no {data.missing}, so there is nothing to judge: add {add} (docs/adding-a-data-set.md), "
            "or fit a detector and score files with it (docs/using-a-model.md)"
        )


def require_evaluated(data: LabelledDataset) -> None:
    """Raise a DataError that names the test recordings in which the default protocol evaluates no row."""
    protocol, _ = make_protocol(DEFAULT_PROTOCOL, {})
    n_rows = {recording.id: recording.n_rows for recording in data.dataset.test}
    places = (place for episode in protocol.episodes(data.dataset) for place in protocol.places(episode, n_rows))
    unused = [place.recording for place in places if len(range(n_rows[place.recording])[place.evaluated]) == 0]
    if unused:
        found = f"the protocol {DEFAULT_PROTOCOL!r} evaluates no row of recording {', '.join(map(repr, unused))}"
        raise DataError(f"data set {data.dataset.name!r}: {found}; leave it out, or join it to its neighbour")


def _fitting_episodes(protocol: Protocol, dataset: Dataset) -> Iterator[Episode]:
    """Yield a protocol's episodes, then one fit for each entity without test recordings."""
    yield from protocol.episodes(dataset)
    for entity, (train, test) in dataset.by_entity.items():
        if dataset.test and train and not test:
            alone = replace(dataset, train=train, test=(), splits={}, sessions={}, entities={})
            yield from (replace(episode, id=entity) for episode in protocol.episodes(alone))


def refuse_unsealed(*, elsewhere: bool = False) -> None:
    """Raise a UsageError if this machine's kernel cannot seal boxes; other machines check their own."""
    status = seal_status()
    if status.seal != "sealed" and not elsewhere:
        raise UsageError(
            f"boxes of this machine are {status.seal}: {status.reason}; run it on another machine, or "
            "do not require a seal (`tsadbench doctor` says what is missing)",
            field="require_seal",
        )


def floor_labels() -> tuple[str, ...]:
    """Return the labels of the floors that every run adds: the registered floors with their declared variants."""
    return tuple(str(Label(name, variant)) for name in floors() for variant in ({}, *describe(name).floor_variants))


def make_protocol(name: str, texts: Mapping[str, str]) -> tuple[Protocol, str]:
    """Return a checked protocol and its label; a UsageError if a name or a value is wrong."""
    cls = load_protocol(name)
    arguments = parse_arguments(cls, texts, name)
    protocol = cls(**arguments)
    protocol.check()
    return protocol, str(Label(name, changed_texts(cls, arguments)))


def _resolved(detector: DetectorSpec, settings: Mapping[str, str]) -> Construction:
    """Return a detector's construction; its own arguments take precedence over settings for its name."""
    if isinstance(detector, str):
        label = parse_label(detector)
        construction = Construction(locate(label.target), label.arguments)
    elif isinstance(detector, type):
        construction = Construction.of(detector)
    elif isinstance(detector, Detector):
        construction = Construction.of(type(detector), dict(detector.get_params(deep=False)))
    else:
        construction = construction_of(cast("Estimator", detector))
    texts = {**_settings_of(construction.source.target, settings), **construction.texts}
    field = "settings" if texts and not construction.texts else "detectors"
    describe(construction.source)  # a failed import is not the settings' fault
    with about(field):
        construction = with_files_read(replace(construction, texts=texts))
        describe(construction)  # report errors that hold for any data set before reading one
    return construction


def _settings_of(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {path.rpartition(".")[2]: text for path, text in settings.items() if path.rpartition(".")[0] == name}


def _protocols(request: RunRequest) -> dict[str, tuple[Protocol, str]]:
    """Return a request's protocols with their labels, by name."""
    names = request.protocols if request.against is None else [request.against]
    if "protocols" in request.model_fields_set and {*names} != {*request.protocols}:
        raise UsageError(
            f"rows of {request.against} cannot be compared with rows of {' and '.join(request.protocols)}: leave the "
            "protocol out",
            field="against",
        )
    with about("protocol" if request.against is None else "against"):
        for name in names:
            load_protocol(name)
    with about("settings"):
        return {name: make_protocol(name, _settings_of(name, request.settings)) for name in names}


def _loaded(request: RunRequest, *, judged: bool) -> list[tuple[str, LabelledDataset]]:
    """Return every data set with its name in the request, a card's path, or the name of data from Python."""
    named = dict.fromkeys(dataset for dataset in request.datasets if isinstance(dataset, str))
    loaded, missing = [], []
    with about("dataset"):
        for name, load in [(name, load_dataset(name)) for name in named]:  # a wrong name ends before any file is read
            try:
                loaded.append((name, load(request.data_options)))
            except DataNotFoundError as error:
                missing.append(error)
    if missing:
        raise DataNotFoundError("\n  ".join(map(str, missing)))
    loaded += [(data.dataset.name, data) for data in request.datasets if isinstance(data, LabelledDataset)]
    for _, data in loaded:
        check_labels(data)
        for name, fault_of in ((data.dataset.name, name_fault), *((one, label_fault) for one in data.dataset.splits)):
            if fault := fault_of(name):
                raise DataError(f"{name!r} cannot be the name of a data set or split: {fault}")
    with about("dataset"):
        for name, alike in grouped(loaded, lambda one: one[1].dataset.name).items():
            if alike[1:]:
                both = f"{alike[0][0]} and {alike[1][0]}"
                raise UsageError(f"data sets {both} have the same name, {name!r}; change a card")
        for called, data in loaded if judged else ():
            _require_judgeable(data, called)
    splits = tuple(dict.fromkeys(split for _, data in loaded for split in data.dataset.splits))
    require_known(request.splits, splits, "there is no split", "splits")
    return loaded


def _trials(contenders: Sequence[Contender], request: RunRequest) -> tuple[Trial, ...]:
    """Return one trial per contender and seed; a detector that is named twice, for instance as a floor, runs once."""
    seeds = range(request.seeds) if isinstance(request.seeds, int) else request.seeds
    return tuple(
        Trial(contender, seed, request.threads)
        for contender in {contender.label: contender for contender in contenders}.values()
        # An adaptive detector's state depends on the order of recordings, which is random in each trial.
        for seed in (seeds if contender.traits.stochastic or contender.traits.adaptive else [0])
    )


def _contender(construction: Construction, dataset: Dataset, *, elsewhere: bool) -> Contender:
    name = without_folders(construction.source.target)  # records hold no absolute path
    prior = dataset.prior if describe(construction.source).traits.needs_prior else None
    description = describe(construction, prior=prior, sensors=dataset.sensors, elsewhere=elsewhere)
    if prior is not None and construction.arguments.get("prior") is None:
        construction = replace(construction, arguments={**construction.arguments, "prior": prior})
    contender = Contender(name, construction, description)
    if name in floors() and not contender.traits.floor:  # a fault of the package, not of the user
        raise PluginError(f"{name}: an entry point of tsadbench.floors must declare Traits(floor=True)")
    _require_honest_traits(contender)
    return contender


def _require_honest_traits(contender: Contender) -> None:
    """Raise a UsageError if a detector declares traits that it may not have."""
    name, traits, source = contender.name, contender.traits, contender.construction.source
    is_floor = traits.floor and (is_registered(source.target) or source.runs_here)
    if (traits.floor or traits.fixed_threshold is not None) and not is_floor:
        raise UsageError(
            f"{name}: only a floor that an installed package registers may declare traits.floor and "
            "traits.fixed_threshold; leave them out, or register it (entry points tsadbench.floors)"
        )
    scoring, of_class = traits.scoring_parameters, contender.description.traits.scoring_parameters
    # The box that checks parameters knows the sensors' names, so it must not influence what the fit's box receives.
    if scoring != of_class:
        found = f"declared_traits() changes scoring_parameters, {list(of_class)}, to {list(scoring)}"
        raise UsageError(f"{name}: {found}; they must not depend on parameters")
    if missing := [parameter for parameter in scoring if parameter not in contender.description.defaults]:
        raise UsageError(f"{name}: traits.scoring_parameters names {missing}, which its constructor does not take")


def _refuse_one_label_for_two(contenders: Iterable[Contender]) -> None:
    """Refuse detectors or priors with the same label: labels contain file names without folders."""
    found: dict[str, object] = {}
    for contender in contenders:
        what = contender.construction.source.reference, contender.prior_hashes
        if found.setdefault(contender.label, what) != what:
            raise UsageError(f"two detectors or priors would both be called {contender.label}: rename a file")


def contender_from_label(label: str, dataset: Dataset) -> Contender:
    """Return the contender that a label names, checked against a data set.

    Nothing runs, so its device may be missing on this machine. The data set's prior is the default.
    """
    return _contender(_resolved(label, {}), dataset, elsewhere=True)
