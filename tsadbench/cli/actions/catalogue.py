"""What ``tsadbench list`` and ``tsadbench info`` tell of plugins that are loaded, those with detectors in boxes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields

import typer

from tsadbench.base.detector_library import LibraryDetector
from tsadbench.cli.actions.data import description
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.registry import Kind, entries, load_protocol, locate, locate_entry
from tsadbench.sandbox import Construction, Interview
from tsadbench.sandbox.describing import configure, describe
from tsadbench.sandbox.description import library_members, library_text
from tsadbench.sandbox.questions import ask
from tsadbench.utils.parameters import Label, format_value, nearest, parameters_of
from tsadbench.utils.text import one_line

_BROKEN = "CANNOT BE LOADED"


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
        typer.echo(f"\nNote\n  {detector.note}")
    if detector.floor_variants:
        labels = ", ".join(str(Label(name, variant)) for variant in detector.floor_variants)
        typer.echo(f"\nFloors that runs add beside it\n  {labels}")
    typer.echo("\nTraits")
    for field in fields(traits):
        typer.echo(f"  {field.name:<20} {format_value(getattr(traits, field.name))}")


INFORM: Mapping[Kind, Callable[[str], None]] = {
    "detectors": _inform_of_detector,
    "families": _inform_of_family,
    "protocols": _inform_of_protocol,
    "datasets": _inform_of_data_set,
}


def _print_text(doc: str, parameters: Sequence[tuple[str, str, str]]) -> None:
    """Print a docstring up to its parameters, then each with its default and its meaning."""
    typer.echo(doc.partition("\nParameters\n")[0].strip())
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
