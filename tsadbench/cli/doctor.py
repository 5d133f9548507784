"""``tsadbench doctor``: reports what is available, missing (and how to get it) or broken."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import typer

from tsadbench import api
from tsadbench.cli import options, output
from tsadbench.errors import MissingExtraError, TsadbenchError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

# missing: optional or obtainable; broken: something that commands rely on fails.
State: TypeAlias = Literal["ok", "missing", "broken"]

_UNREPORTED_EXTRAS = {"all", "dev", "docs"}
_KINDS: tuple[api.Kind, ...] = ("detectors", "families", "protocols", "datasets", "commands")
_SECONDS = 180.0  # seconds to import a plugin


class Finding(NamedTuple):
    """One examined item: its name, its state, what was found, and what to do about it."""

    section: str
    name: str
    state: State
    text: str
    advice: str = ""


def doctor(data: options.Data = None, form: options.TableForm = "table") -> None:
    """Report what is available (versions, extras, plugins, data), what is missing and what is broken.

    Every problem comes with its solution. Exit code 1 if anything is broken; missing items do not count.
    """
    parts = (packages(), plugins(), machine(), data_sets(data))
    found = [one for part in parts for one in part]
    if form == "json":
        findings = [one._asdict() for one in found]
        output.show_json({"schema": 1, "ok": all(one.state != "broken" for one in found), "findings": findings})
    else:
        output.show_table("", [one._asdict() for one in found], {})
    if any(one.state == "broken" for one in found):
        raise typer.Exit(1)


def packages() -> Iterator[Finding]:
    """Check Python, tsadbench, its required packages, and the packages of each extra."""
    yield Finding("packages", "python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield Finding("packages", "tsadbench", "ok", version("tsadbench"))
    core = {one.name: one for one in _requirements("")}
    for name, one in core.items():
        fault = _fault_of(one)
        advice = f"pip install '{name}{one.specifier}'" if fault else ""
        yield Finding("packages", name, "broken" if fault else "ok", fault or version(name), advice)
    for extra in sorted(set(metadata("tsadbench").get_all("Provides-Extra") or []) - _UNREPORTED_EXTRAS):
        own = [one for one in _requirements(extra) if one.name not in core]
        if faults := ", ".join(f"{one.name} {fault}" for one in own if (fault := _fault_of(one))):
            yield Finding("extras", extra, "missing", faults, f"pip install 'tsadbench[{extra}]'")
        else:
            yield Finding("extras", extra, "ok", ", ".join(f"{one.name} {version(one.name)}" for one in own))


def _requirements(extra: str) -> list[Requirement]:
    """Return the packages that tsadbench requires, with or without an extra."""
    from packaging.requirements import Requirement

    parsed = map(Requirement, requires("tsadbench") or [])
    return [one for one in parsed if not one.marker or one.marker.evaluate({"extra": extra})]


def _fault_of(requirement: Requirement) -> str:
    """Return why an installed package does not meet a requirement, or ""."""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return "is not installed"
    sound = requirement.specifier.contains(installed, prereleases=True)
    return "" if sound else f"is {installed}, expected {requirement.specifier}"


def plugins() -> Iterator[Finding]:
    """Load every plugin in a box; report plugins that crash or hang it, and continue in another box."""
    packages = {(kind, one.name): api.package_of(one) for kind in _KINDS for one in api.entries(kind)}
    with api.asking():
        for (kind, name), package in packages.items():
            title = f"{name} ({kind})"
            try:
                source = api.locate_entry(kind, name)
                text = api.ask(source, plugin_text, str, kind, source, seconds=_SECONDS)
            except MissingExtraError as error:
                yield Finding("plugins", title, "missing", str(error))
            except TsadbenchError as error:
                advice = f"repair or uninstall its package, {package}"
                yield Finding("plugins", title, "broken", api.one_line(str(error)), advice)
            else:
                yield Finding("plugins", title, "ok", api.one_line(text))


def plugin_text(kind: api.Kind, source: api.Source) -> str:
    """Load a plugin; return a detector's family, or "loads". Runs in a box."""
    loaded: Any = source.load(kind)
    return str(loaded.traits.family) if kind == "detectors" else "loads"


def machine() -> Iterator[Finding]:
    """Check the system, and whether the kernel seals boxes."""
    yield Finding("machine", "system", "ok", f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} cores")
    status = api.seal_status()
    sealed = status.seal == "sealed"
    advice = "" if sealed else "detectors run, but the audit hook only stops mistakes, and --require-seal refuses"
    text = f"{status.seal}: {status.reason}" if status.reason else status.seal
    yield Finding("machine", "seal", "ok" if sealed else "missing", text, advice)


def data_sets(directory: Path | None) -> Iterator[Finding]:
    """Check every registered data set and the location of its files, without downloading or reading them."""
    folder = os.environ.get(api.VARIABLE) if directory is None else None
    if folder and not os.path.isdir(os.path.expanduser(folder)):
        text = f"names {folder}, which is not a folder"
        yield Finding("data sets", api.VARIABLE, "broken", text, f"correct or unset {api.VARIABLE}")
    for one in api.listed(directory):
        yield Finding("data sets", one["name"], "ok" if one["here"] else "missing", one["where"])
