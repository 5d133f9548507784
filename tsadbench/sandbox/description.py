"""What a box tells about a detector: facts about its class, and about a detector with certain parameters.

`described` and `configured` run beside the detector's code. The harness asks them by `describe` and `configure`
(`tsadbench.sandbox.describing`), and knows nothing of a detector but their answers.
"""

from __future__ import annotations

import inspect
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

from tsadbench.base.detector import Detector, Traits
from tsadbench.base.detector_library import AdaptedDetector, DetectorLibrary, LibraryDetector
from tsadbench.base.prior import Prior
from tsadbench.base.recording import Recording
from tsadbench.base.search_space import Choice, IntegerRange, RealRange, Space
from tsadbench.datasets.loading import checked_loader
from tsadbench.errors import PluginError, UsageError
from tsadbench.registry import Kind, Source, import_plugin
from tsadbench.sandbox.construction import Construction
from tsadbench.utils.code_fingerprint import (
    code_fingerprint,
    fingerprinted_files,
    imported_modules,
    imported_packages,
    source_is_known,
)
from tsadbench.utils.names import corpora_fault
from tsadbench.utils.parameters import (
    JsonValue,
    as_json,
    changed_texts,
    format_value,
    parameters_of,
)

# What a parameter's text names: nothing but its value, a file that holds a prior, or a path.
Names: TypeAlias = Literal["value", "prior", "path"]


# A class of a script from standard input, for instance. Its record keeps this note.
UNKNOWN_SOURCE = (
    "the source of its class is not available (python -, exec), so no later run takes its trials for done: each runs "
    "them again; put the class into a file"
)
# Records and tables show them.
_LONGEST_TRAIT = 300


def _require_short(traits: Traits) -> None:
    """Raise a ValueError if a text of traits is longer than anybody reads."""
    for name in ("family", "paper", "leaky", "extra"):
        if len(getattr(traits, name) or "") > _LONGEST_TRAIT:
            raise ValueError(f"traits.{name} is longer than {_LONGEST_TRAIT} characters")
    if fault := corpora_fault(traits.pretrained_on):
        raise ValueError(f"traits.pretrained_on: {fault}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedParameter:
    """One constructor parameter.

    Parameters
    ----------
    name, meaning
        Its name; what the class's docstring says about it.
    default, default_text
        Its default as JSON knows it, and as one writes it.
    names
        What its text names.
    """

    name: str
    meaning: str
    default: JsonValue
    default_text: str
    names: Names


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSpace:
    """The search space of one parameter; one of its kinds is given."""

    name: str
    choice: Choice | None = None
    integers: IntegerRange | None = None
    reals: RealRange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A detector's class.

    Parameters
    ----------
    class_name, doc
        Its name, and its docstring.
    parameters
        Its constructor's.
    traits
        The class's own; parameters may change them (`Configured`).
    offers_contributions, offers_held_out_loss, offers_sensor_graph
        What it offers.
    scores_training_itself
        Whether it overrides how training rows are scored.
    code_hash
        Fingerprint of what its code does.
    imported
        Top-level packages that its own files import.
    libraries
        Distributions that it names in a class attribute ``libraries``, because its own files do not import them.
    note
        That of an `AdaptedDetector`, and whether the source of the class is missing.
    floor_variants
        Texts of parameters by name, for each variant that runs add.
    spaces
        What ``tsadbench tune`` may try.
    files
        On which all this depends, besides the versions of libraries.
    modules
        Modules of other packages that it imports, or that its bases are in.
    """

    class_name: str
    doc: str
    parameters: tuple[DescribedParameter, ...]
    traits: Traits
    offers_contributions: bool
    offers_held_out_loss: bool
    offers_sensor_graph: bool
    scores_training_itself: bool
    code_hash: str
    imported: tuple[str, ...]
    libraries: tuple[str, ...]
    note: str
    floor_variants: tuple[dict[str, str], ...]
    spaces: tuple[DescribedSpace, ...]
    files: tuple[str, ...]
    modules: tuple[str, ...]

    def __post_init__(self) -> None:
        _require_short(self.traits)

    @property
    def defaults(self) -> dict[str, JsonValue]:
        """The defaults of the parameters, by name."""
        return {parameter.name: parameter.default for parameter in self.parameters}

    @property
    def search_space(self) -> dict[str, Space]:
        """What ``tsadbench tune`` may try, by parameter."""
        spaces = {one.name: one.choice or one.integers or one.reals for one in self.spaces}
        return {name: space for name, space in spaces.items() if space is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """A detector with certain parameters.

    Parameters
    ----------
    changed
        Those of its arguments that differ from their defaults, as one writes them; no seed.
    parameters
        The values of all of its parameters but the seed.
    traits
        What it promises with these.
    """

    changed: dict[str, str]
    parameters: dict[str, JsonValue]
    traits: Traits

    def __post_init__(self) -> None:
        _require_short(self.traits)


@dataclass(frozen=True, slots=True)
class DerivedGraph:
    """A graph over n sensors: entry [i][j] for the edge from sensor i to sensor j, and a weight for each sensor."""

    adjacency: list[list[float]]
    node_weights: list[float]

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, [*itertools.chain(*self.adjacency), *self.node_weights])):
            raise ValueError("expected finite numbers")


def described(source: Source) -> Description:
    """Return the facts about a detector's class; errors as for `load_detector`."""
    cls = source.load()
    if not isinstance(cls.traits, Traits):
        found = type(cls.traits).__name__
        raise PluginError(f"detector {source.target!r}: its traits are no tsadbench.Traits, found {found}")
    return Description(
        class_name=cls.__qualname__,
        doc=inspect.getdoc(cls) or "",
        parameters=tuple(
            DescribedParameter(
                name=parameter.name,
                meaning=parameter.meaning,
                default=as_json(parameter.default),
                default_text=format_value(parameter.default),
                names=_named(parameter.annotation),
            )
            for parameter in parameters_of(cls)
        ),
        traits=cls.traits,
        offers_contributions=cls.offers_contributions(),
        offers_held_out_loss=cls.offers_held_out_loss(),
        offers_sensor_graph=callable(getattr(cls, "sensor_graph", None)),
        scores_training_itself=cls._training_scores is not Detector._training_scores,
        code_hash=code_fingerprint(cls),
        imported=tuple(sorted(imported_packages(cls))),
        libraries=_libraries(source.target, cls),
        note=" ".join(_notes(cls)),
        floor_variants=tuple(_variant(source.target, cls, variant) for variant in cls.floor_variants()),
        spaces=tuple(
            DescribedSpace(
                name=name,
                choice=space if isinstance(space, Choice) else None,
                integers=space if isinstance(space, IntegerRange) else None,
                reals=space if isinstance(space, RealRange) else None,
            )
            for name, space in cls.search_space().items()
        ),
        files=_files(cls),
        modules=tuple(sorted(imported_modules(cls) | {base.__module__ for base in cls.__mro__})),
    )


def configured(
    construction: Construction, prior: Prior | None, sensors: tuple[str, ...] | None, elsewhere: bool
) -> Configured:
    """Construct a detector and check it; return what it is.

    Parameters
    ----------
    construction
        How to construct it.
    prior
        To be filled in if it needs one and was given none.
    sensors
        Of the data; None: they are not known, and nothing is checked.
    elsewhere
        As for `Detector.check`.

    Raises
    ------
    UsageError
        If a parameter is wrong, or does not fit the sensors or this machine.
    """
    cls = construction.source.load()
    values = construction.values(cls)
    changed = changed_texts(cls, {name: value for name, value in values.items() if name != "seed"})
    if prior is not None and values.get("prior") is None:
        values = {**values, "prior": prior}
    detector = cls(**values)
    if sensors is not None:
        detector.check(sensors, elsewhere=elsewhere)
    parameters = {one.name: as_json(values.get(one.name, one.default)) for one in parameters_of(cls)}
    parameters.pop("seed", None)
    return Configured(changed=changed, parameters=parameters, traits=detector.declared_traits())


def parsed(construction: Construction) -> dict[str, JsonValue]:
    """Return a detector's arguments, as far as JSON knows them; errors as for `parse_arguments`."""
    values = construction.values(construction.source.load())
    return {name: as_json(value) for name, value in values.items()}


def plugin_text(kind: Kind, source: Source) -> str:
    """Return what a plugin of any kind says of itself; errors as for `load_entry`."""
    if kind == "detectors":
        return source.load().traits.family
    if kind == "families":
        members = library_members(source)
        return f"{sum(not member.refusal for member in members)} of its {len(members)} classes can be run"
    loaded = import_plugin(kind, source.target, source.reference)
    if kind == "datasets":
        checked_loader(source.target, loaded)
    return "loads"


def library_text(source: Source) -> str:
    """Return the description of a detector library; errors as for `load_library`."""
    return _library(source).description


def library_members(source: Source) -> tuple[LibraryDetector, ...]:
    """Return the detectors of a library; errors as for `load_library`."""
    return _library(source).members()


def _library(source: Source) -> DetectorLibrary:
    return cast("DetectorLibrary", import_plugin("families", source.target, source.reference))


def derived_graph(construction: Construction, training: Sequence[Recording]) -> DerivedGraph:
    """Return the graph that a detector derives from its training recordings before it learns.

    Raises
    ------
    UsageError
        If it offers none, or the detector cannot be constructed.
    """
    detector = construction.construct()
    if not hasattr(detector, "sensor_graph"):
        raise UsageError(f"{construction.source.target} derives no graph")
    adjacency, node_weights = detector.sensor_graph(training)
    return DerivedGraph(adjacency.tolist(), node_weights.tolist())


def _named(annotation: object) -> Names:
    types = {annotation, *get_args(annotation)}
    return "prior" if Prior in types else "path" if Path in types else "value"


def _variant(name: str, cls: type[Detector], variant: Mapping[str, object]) -> dict[str, str]:
    if unknown := sorted(variant.keys() - {parameter.name for parameter in parameters_of(cls)}):
        raise PluginError(f"{name}: floor_variants names {unknown[0]!r}, which its constructor does not take")
    return changed_texts(cls, variant)


def _libraries(name: str, cls: type[Detector]) -> tuple[str, ...]:
    libraries: object = getattr(cls, "libraries", ())
    if isinstance(libraries, list | tuple) and all(isinstance(library, str) and library for library in libraries):
        return tuple(libraries)
    raise PluginError(
        f'detector {name!r}: libraries: expected names of distributions, such as ("aeon",), found {libraries!r:.80}'
    )


def _notes(cls: type[Detector]) -> Iterator[str]:
    if issubclass(cls, AdaptedDetector) and cls.note:
        yield cls.note
    if not source_is_known(cls):
        yield UNKNOWN_SOURCE


def _files(cls: type[Detector]) -> tuple[str, ...]:
    """Return the files that decide what a class is; empty if its source is not known."""
    files = {str(file) for file in fingerprinted_files(cls)}
    modules = (sys.modules.get(base.__module__) for base in cls.__mro__) if files else ()
    bases = {str(file) for module in modules if (file := getattr(module, "__file__", None)) is not None}
    return tuple(sorted(files | bases))
