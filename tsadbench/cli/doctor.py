"""``tsadbench doctor``: what is available, what is missing and how to get it, what is broken."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, get_args

import typer

from tsadbench.cli.options import DataOption, format_option

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from tsadbench.registry import Kind, Source

# missing: something optional, or something that can be obtained; broken: something fails that a command relies on.
State: TypeAlias = Literal["ok", "missing", "broken"]

_COLOURS = {"ok": "green", "missing": "yellow", "broken": "red"}
_UNREPORTED_EXTRAS = {"all", "dev", "docs"}
_SECONDS = 180.0  # for a plugin, or torch, to be imported
# A broken torch may crash the process that imports it.
_TORCH = """
import torch
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
print(torch.__version__, *names or ["no GPU"], *["Apple's GPU"] * torch.backends.mps.is_available(), sep=", ")
"""


class Finding(NamedTuple):
    """One thing that was examined: what it is, its state, what was found, and what to do about it."""

    section: str
    name: str
    state: State
    text: str
    advice: str = ""


def doctor(data: DataOption = None, form: Annotated[Literal["table", "json"], format_option] = "table") -> None:
    """Report what is available (versions, extras, plugins, devices, data), what is missing and what is broken.

    Every fault comes with what to do about it. Exit code 1 if anything is broken; what is only missing does not count.
    """
    found: list[Finding] = []
    for examine in (packages, extras, plugins, machine, lambda: data_sets(data)):
        for finding in examine():
            if form == "table":
                advice = f"; {finding.advice}" if finding.advice else ""
                state = typer.style(f"{finding.state:<8}", fg=_COLOURS[finding.state])
                if not found or found[-1].section != finding.section:
                    typer.echo(f"{finding.section}:")
                typer.echo(f"  {state}{finding.name:<28} {finding.text}{advice}")
            found.append(finding)
    n_broken = sum(finding.state == "broken" for finding in found)
    if form == "json":
        findings = [finding._asdict() for finding in found]
        typer.echo(json.dumps({"schema": 1, "ok": not n_broken, "findings": findings}, indent=1))
    else:
        typer.echo(f"{n_broken} broken" if n_broken else "nothing is broken")
    if n_broken:
        raise typer.Exit(1)


def packages() -> Iterator[Finding]:
    """Yield Python, tsadbench and each package that it requires."""
    yield Finding("packages", "python", "ok", f"{platform.python_version()} ({sys.executable})")
    try:
        yield Finding("packages", "tsadbench", "ok", version("tsadbench"))
    except PackageNotFoundError:
        text = "not installed, so no plugin is registered"
        yield Finding("packages", "tsadbench", "broken", text, "pip install -e . in its folder")
        return
    for requirement in _requirements():
        name, fault = requirement.name, _fault_of(requirement)
        advice = f"pip install '{name}{requirement.specifier}'" if fault else ""
        yield Finding("packages", name, "broken" if fault else "ok", fault or version(name), advice)


def extras() -> Iterator[Finding]:
    """Yield each extra: whether all of its packages are installed."""
    core = {requirement.name for requirement in _requirements()}
    for extra in sorted(set(metadata("tsadbench").get_all("Provides-Extra") or []) - _UNREPORTED_EXTRAS):
        own = [requirement for requirement in _requirements(extra) if requirement.name not in core]
        faults = [f"{requirement.name} {fault}" for requirement in own if (fault := _fault_of(requirement)) is not None]
        if faults:
            yield Finding("extras", extra, "missing", ", ".join(faults), f"pip install 'tsadbench[{extra}]'")
        else:
            yield Finding("extras", extra, "ok", ", ".join(f"{one.name} {version(one.name)}" for one in own))


def _requirements(extra: str = "") -> list[Requirement]:
    """Return the packages that tsadbench requires, alone or with an extra."""
    from packaging.requirements import Requirement

    parsed = map(Requirement, requires("tsadbench") or [])
    return [one for one in parsed if not one.marker or one.marker.evaluate({"extra": extra})]


def _fault_of(requirement: Requirement) -> str | None:
    """Return why an installed package does not meet a requirement; None if it does."""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return "is not installed"
    if requirement.specifier.contains(installed, prereleases=True):
        return None
    return f"is {installed}, expected {requirement.specifier}"


def plugins() -> Iterator[Finding]:
    """Load every plugin in a box; one that crashes or hangs its box is reported, and another box does the rest."""
    from tsadbench.errors import MissingExtraError, TsadbenchError
    from tsadbench.registry import Kind, entries, locate_entry, singular
    from tsadbench.sandbox import ask, asking
    from tsadbench.utils.text import one_line

    names = [(kind, name) for kind in get_args(Kind) for name in dict.fromkeys(one.name for one in entries(kind))]
    with asking():
        for kind, name in names:
            title = f"{singular(kind)} {name}"
            try:
                source = locate_entry(kind, name)
                text = ask(source, plugin_text, str, kind, source, seconds=_SECONDS)
            except MissingExtraError as error:
                yield Finding("plugins", title, "missing", str(error))
            except TsadbenchError as error:
                advice = "repair or uninstall its package (tsadbench list names it)"
                yield Finding("plugins", title, "broken", one_line(str(error)), advice)
            else:
                yield Finding("plugins", title, "ok", one_line(text))


def plugin_text(kind: Kind, source: Source) -> str:
    """Return the text on a plugin of any kind, from beside its code in a box."""
    from tsadbench.datasets.loading import checked_loader

    loaded: Any = source.load(kind)
    if kind == "datasets":
        checked_loader(source.target, loaded)
    return str(loaded.traits.family) if kind == "detectors" else "loads"


def machine() -> Iterator[Finding]:
    """Yield the system, its cores and memory, whether the kernel seals boxes, and what torch can compute on."""
    import psutil
    from packaging.requirements import Requirement

    from tsadbench.sandbox import seal_status

    yield Finding("machine", "system", "ok", f"{platform.platform()}, {platform.machine()}")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("machine", "cores", "ok", f"{usable} of {os.cpu_count()} may be used")
    memory = psutil.virtual_memory()
    text = f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB of it free"
    yield Finding("machine", "memory", "ok", text)
    status = seal_status()
    text = f"{status.seal}{f': {status.reason}' if status.reason else ''}"
    if status.seal == "sealed":
        yield Finding("machine", "seal", "ok", text)
    else:
        advice = "detectors run, but an audit hook stops mistakes alone, and --require-seal refuses"
        yield Finding("machine", "seal", "missing", text, advice)
    if _fault_of(Requirement("torch")) is not None:
        yield Finding("machine", "torch", "missing", "is not installed", "pip install 'tsadbench[deep]'")
        return
    try:
        command = [sys.executable, "-c", _TORCH]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        told = error.stderr.strip().splitlines() if isinstance(error.stderr, str) else []
        reason = f"cannot be imported: {(told or ['it took too long or crashed'])[-1]:.300}"
        yield Finding("machine", "torch", "broken", reason, "reinstall it")
    else:
        yield Finding("machine", "torch", "ok", done.stdout.strip())


def data_sets(directory: Path | None) -> Iterator[Finding]:
    """Yield every registered data set and the location of its files; nothing is downloaded or read."""
    from tsadbench.cli.data import listed
    from tsadbench.datasets.shipped import VARIABLE

    folder = os.environ.get(VARIABLE) if directory is None else None
    if folder and not Path(folder).expanduser().is_dir():
        text = f"names {folder}, which is not a folder"
        yield Finding("data sets", VARIABLE, "broken", text, f"correct or unset {VARIABLE}")
    for one in listed(directory):
        yield Finding("data sets", one["name"], "ok" if one["here"] else "missing", one["where"])
