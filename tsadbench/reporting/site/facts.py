"""What pages say of detectors, data sets and protocols, beside their rows: from plugins and files that ship."""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from tsadbench import datasets as shipped
from tsadbench.analysis.audit.findings import Finding, shipped_findings
from tsadbench.base.dataset import DataOptions
from tsadbench.base.detector import Traits
from tsadbench.datasets.fetch import Source
from tsadbench.datasets.loading import load_dataset
from tsadbench.datasets.suites import SIMULATED, SUITES
from tsadbench.errors import PluginError, TsadbenchError, UsageError
from tsadbench.registry import is_registered, load_protocol
from tsadbench.sandbox import asking, describe
from tsadbench.utils.docstrings import method_notes, sections
from tsadbench.utils.parameters import format_value, parameters_of
from tsadbench.utils.progress import progress
from tsadbench.utils.text import one_line

_SHIPPED = Path(shipped.__file__).parent


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a detector or a protocol: its name, its default as one writes it, its meaning."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class DetectorFacts:
    """What a detector's page says beside its rows; empty texts if it is not installed here, with the reason.

    Parameters
    ----------
    name
        The detector.
    text
        What its docstring says before the first section.
    notes
        Equations, differences from the paper, how defaults were chosen, by term.
    paper, references
        The publication: in short, in full.
    parameters, traits
        Of its constructor; what it declares, by name.
    missing
        Why nothing is known.
    """

    name: str
    text: str = ""
    notes: Mapping[str, str] | None = None
    paper: str = ""
    references: str = ""
    parameters: tuple[Parameter, ...] = ()
    traits: Mapping[str, str] | None = None
    missing: str = ""


def detector_facts(names: Sequence[str]) -> Iterator[DetectorFacts]:
    """Yield what is known of detectors; their code runs in boxes, and that of unregistered ones not at all."""
    with asking():
        for done, name in enumerate(names):
            progress(done, len(names), f"detector {name}")
            yield _detector(name)


def _detector(name: str) -> DetectorFacts:
    if not is_registered(name):
        return DetectorFacts(name, missing="This detector is no plugin that is installed where the pages were made.")
    try:
        told = describe(name)
    except TsadbenchError as error:
        return DetectorFacts(name, missing=f"Not installed where the pages were made: {one_line(str(error))}")
    parts = sections(told.doc)
    return DetectorFacts(
        name=name,
        text=parts[""],
        notes=method_notes(told.doc),
        paper=told.traits.paper,
        references=parts.get("References", ""),
        parameters=tuple(Parameter(one.name, format_value(one.default), one.meaning) for one in told.parameters),
        traits=_traits(told.traits),
    )


def _traits(traits: Traits) -> dict[str, str]:
    return {field.name: format_value(getattr(traits, field.name)) for field in fields(traits) if field.name != "paper"}


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What a data set's page says beside its rows.

    Parameters
    ----------
    name
        The data set.
    description
        Markdown: the system behind it.
    licence, citation
        Of its files; empty if none is known.
    suites
        Those that hold it.
    simulated
        Whether no real plant stands behind it, or behind what part of it; None if one does.
    findings
        Of its audit.
    """

    name: str
    description: str
    licence: str
    citation: str
    suites: tuple[str, ...]
    simulated: str | None
    findings: tuple[Finding, ...]


def dataset_facts(name: str) -> DatasetFacts:
    """Return what is known of a data set without its files."""
    card = _card(name)
    return DatasetFacts(
        name=name,
        description=_description(name, card),
        licence=str(card.get("licence", "")) or _licence(name),
        citation=_citation(name, card),
        suites=tuple(suite.name for suite in SUITES.values() if name in suite.datasets),
        simulated=SIMULATED.get(name),
        findings=shipped_findings(name),
    )


def _files(name: str) -> tuple[Path, ...]:
    return _SHIPPED, _SHIPPED / "cards", _SHIPPED / name


def _card(name: str) -> Mapping[str, object]:
    for folder in _files(name):
        if (file := folder / f"{name}.toml").is_file():
            return tomllib.loads(file.read_text(encoding="utf-8"))
    return {}


def _description(name: str, card: Mapping[str, object]) -> str:
    named = str(card.get("description", f"{name}.description.md"))
    if not named.endswith(".md"):
        return named
    for folder in _files(name):
        if (file := folder / Path(named).name).is_file():
            return file.read_text(encoding="utf-8")
    return ""


def _citation(name: str, card: Mapping[str, object]) -> str:
    """Return a data set's citation: of its card, else of its module, else of its files; empty if none is known."""
    if citation := card.get("citation"):
        return str(citation)
    try:
        loader = load_dataset(name)
        module = sys.modules.get(getattr(loader, "__module__", ""))
        return str(getattr(module, "CITATION", "")) or loader(DataOptions()).dataset.citation
    except TsadbenchError:
        return ""


def _licence(name: str) -> str:
    """Return the licence of a data set without a card: that of its published files, or what its loader says."""
    try:
        return Source.load(name).licence
    except TsadbenchError:
        pass
    try:
        return load_dataset(name)(DataOptions()).dataset.licence
    except TsadbenchError:
        return ""


@dataclass(frozen=True, slots=True)
class ProtocolFacts:
    """What a protocol's page says: its text, its parameters, the version of its rules; the reason if it is unknown."""

    name: str
    summary: str = ""
    text: str = ""
    parameters: tuple[Parameter, ...] = ()
    version: int | None = None
    missing: str = ""


def protocol_facts(name: str) -> ProtocolFacts:
    """Return what is known of a protocol."""
    try:
        protocol = load_protocol(name)
    except (PluginError, UsageError) as error:
        return ProtocolFacts(name, missing=f"Not installed where the pages were made: {one_line(str(error))}")
    return ProtocolFacts(
        name=name,
        summary=protocol.summary,
        text=sections(inspect.getdoc(protocol) or "")[""],
        parameters=tuple(
            Parameter(one.name, format_value(one.default), one.meaning) for one in parameters_of(protocol)
        ),
        version=protocol.version,
    )
