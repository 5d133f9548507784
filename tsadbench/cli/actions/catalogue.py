"""What ``tsadbench list`` and ``tsadbench info`` tell of plugins that are loaded, those with detectors in boxes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from textwrap import indent

import typer

from tsadbench.base.detector_library import LibraryDetector
from tsadbench.base.kinds import KINDS, kind_place
from tsadbench.cli.actions.data import description
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.registry import Kind, entries, load_protocol, locate, locate_entry
from tsadbench.results.cost import Cost, shipped_cost
from tsadbench.sandbox import Construction, Interview
from tsadbench.sandbox.describing import configure, describe
from tsadbench.sandbox.description import library_members, library_text
from tsadbench.sandbox.questions import ask
from tsadbench.utils.docstrings import cited, method_notes, sections, year_of
from tsadbench.utils.parameters import Label, format_value, nearest, parameters_of
from tsadbench.utils.text import one_line

_BROKEN = "CANNOT BE LOADED"
# Leaderboards whose rows tell what a detector costs.
_MEASURED = (("skab", "strict"), ("tep", "strict"))


def load_all(plugins: Iterable[tuple[Kind, str]]) -> dict[tuple[Kind, str], str]:
    """Return for each plugin, by kind and name, that it loads, its family, or why it cannot be loaded, on one line."""
    with Interview() as interview:
        return {(kind, name): _loaded(kind, name, interview) for kind, name in plugins}


def list_family(family: str, origins: Sequence[tuple[str, str]]) -> None:
    """Print the detectors of a family; ``origins`` are the names of all detectors, with where each comes from."""
    loaded = load_all([("detectors", name) for name, _ in origins])
    detectors = [(name, origin, loaded["detectors", name]) for name, origin in origins]
    own = {text.partition(",")[0] for _, _, text in detectors if not text.startswith(_BROKEN)}
    families = tuple(own | {entry.name for entry in entries("families")})
    if family not in families:
        raise UsageError(f"there is no detector of the family {family!r}{nearest(family, families)}")
    of_family = [detector for detector in detectors if detector[2].partition(",")[0] == family]
    width = max(len(name) for name, _, _ in of_family)
    typer.echo("detectors:")
    for name, origin, text in of_family:
        typer.echo(f"  {name:<{width}} {text:<28} {origin}")


def list_by_kind(names: Sequence[str]) -> None:
    """Print all detectors by their kind of method, each with its publication, or else with what it does."""
    kinds: dict[str, list[tuple[str, str, str]]] = {}
    broken: list[tuple[str, str]] = []
    with Interview() as interview:
        for name in names:
            try:
                told = describe(name, interview)
            except TsadbenchError as error:
                broken.append((name, one_line(str(error))))
                continue
            paper = told.traits.paper
            about = cited(paper, told.doc) if paper else one_line(sections(told.doc)[""].partition("\n\n")[0])
            kinds.setdefault(told.traits.family, []).append((year_of(paper, told.doc), name, one_line(about)))
    width = max(map(len, names), default=0)
    for kind in sorted(kinds, key=kind_place):
        typer.echo(KINDS.get(kind, kind))
        for _, name, about in sorted(kinds[kind], key=lambda one: (one[0] or "9999", one[1])):
            typer.echo(f"  {name:<{width}} {about}".rstrip())
    if broken:
        typer.echo("Cannot be loaded")
        for name, reason in broken:
            typer.echo(f"  {name:<{width}} {reason}")


def list_members(family: str) -> None:
    """Print the detectors of a library."""
    with Interview() as interview:
        _print_members(family, interview)


def _print_members(family: str, interview: Interview) -> None:
    source = locate_entry("families", family)
    members = interview.ask(source, library_members, tuple[LibraryDetector, ...], source)
    width = max((len(f"{family}:{member.name}") for member in members), default=0)
    lines_by_kind: dict[str, list[str]] = {"detectors": [], "cannot be loaded": [], "cannot be run": []}
    for member in members:
        name = f"{family}:{member.name}"
        loaded = "" if member.refusal else _loaded("detectors", name, interview)
        kind = "cannot be run" if member.refusal else "cannot be loaded" if loaded.startswith(_BROKEN) else "detectors"
        text = member.refusal or (loaded if kind == "cannot be loaded" else member.note)
        lines_by_kind[kind].append(f"  {name:<{width}} {text}".rstrip())
    for kind, lines in lines_by_kind.items():
        if lines:
            typer.echo("\n".join([f"{kind} ({len(lines)}):", *lines]))


def _inform_of_data_set(name: str) -> None:
    loader = load_dataset(name)
    if name.endswith(CARD_ENDING):
        typer.echo("\n".join(["Contents", *(f"  {line}" for line in description(name, None))]))
        return
    if getattr(loader, "__name__", "") == "load":  # the only one of its module, whose text is about the data set too
        typer.echo(f"{inspect.getdoc(inspect.getmodule(loader)) or ''}\n")
    typer.echo(re.split(r"\n(?:Parameters|Raises)\n", inspect.getdoc(loader) or "")[0].strip())
    typer.echo("\nContents")
    for line in description(name, None):
        typer.echo(f"  {line}")


def _inform_of_protocol(name: str) -> None:
    protocol = load_protocol(name)
    parameters = [(one.name, format_value(one.default), one.meaning) for one in parameters_of(protocol)]
    _print_text(inspect.getdoc(protocol) or "", parameters)
    typer.echo(f"\nVersion of its rules\n  {protocol.version}")


def _inform_of_family(name: str) -> None:
    source = locate_entry("families", name)
    typer.echo(ask(source, library_text, str, source))
    typer.echo(f"\ntsadbench list --family {name}  shows its detectors")


def _inform_of_detector(name: str) -> None:
    source = locate(name)
    with Interview() as interview:
        detector = describe(source, interview)
        traits = configure(Construction(source), detector, interview=interview).traits
    _print_text(detector.doc, [(one.name, one.default_text, one.meaning) for one in detector.parameters])
    if detector.note:
        _print_section("Note", detector.note)
    if detector.floor_variants:
        _print_section(
            "Floors that runs add beside it",
            ", ".join(str(Label(name, variant)) for variant in detector.floor_variants),
        )
    for term, text in method_notes(detector.doc).items():
        _print_section(term, text)
    if traits.paper:
        _print_section("Paper", cited(traits.paper, detector.doc))
    if references := sections(detector.doc).get("References"):
        _print_section("References", references)
    costs = [shipped_cost(name, *table) for table in _MEASURED]
    if lines := [_cost_line(cost) for cost in costs if cost is not None]:
        _print_section("Cost, from the tables that ship (one thread, means over seeds)", "\n".join(lines))
    typer.echo("\nTraits")
    for field in fields(traits):
        typer.echo(f"  {field.name:<20} {format_value(getattr(traits, field.name))}")


def _cost_line(cost: Cost) -> str:
    def of(value: float | None, unit: str) -> str:
        return "not measured" if value is None else f"{value:,.{1 if value < 100 else 0}f} {unit}"

    return (
        f"{f'{cost.dataset} {cost.protocol}':<12} fit {of(cost.fit_cpu_seconds, 'CPU s')}, "
        f"score {of(cost.score_cpu_seconds, 'CPU s')}, peak memory {of(cost.peak_memory_mib, 'MiB')}"
    )


def _print_section(heading: str, text: str) -> None:
    typer.echo(f"\n{heading}\n{indent(text, '  ')}")


INFORM: Mapping[Kind, Callable[[str], None]] = {
    "detectors": _inform_of_detector,
    "families": _inform_of_family,
    "protocols": _inform_of_protocol,
    "datasets": _inform_of_data_set,
}


def _print_text(doc: str, parameters: Sequence[tuple[str, str, str]]) -> None:
    """Print a docstring up to its parameters, then each with its default and its meaning."""
    typer.echo(sections(doc)[""])
    typer.echo("\nParameters")
    for name, default, meaning in parameters:
        typer.echo(f"  {name}={default}")
        if meaning:
            typer.echo(f"      {meaning}")


def _loaded(kind: Kind, name: str, interview: Interview) -> str:
    """Return a detector's family and extra, or why the plugin cannot be loaded, on one line."""
    try:
        if kind == "detectors":
            traits = describe(name, interview).traits
            return one_line(f"{traits.family}, extra {traits.extra}" if traits.extra else traits.family)
        if kind == "families":
            source = locate_entry(kind, name)
            interview.ask(source, library_text, str, source)
        else:
            _ = load_protocol(name) if kind == "protocols" else load_dataset(name)
    except TsadbenchError as error:
        return f"{_BROKEN}: {one_line(str(error))}"
    return "loads"
