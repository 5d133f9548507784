"""Python, the packages that tsadbench requires, and those of its extras."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement

from tsadbench.cli.actions.doctor.findings import Finding

# Not features: the sum of the extras, and the developers' tools.
_UNREPORTED_EXTRAS = {"all", "dev"}


def packages() -> Iterator[Finding]:
    """Yield Python, and every package that tsadbench requires."""
    yield Finding("packages", "python", "ok", f"{platform.python_version()} ({sys.executable})")
    try:
        yield Finding("packages", "tsadbench", "ok", version("tsadbench"))
    except PackageNotFoundError:
        text = "not installed, so no plugin is registered"
        yield Finding("packages", "tsadbench", "broken", text, "pip install -e . in its folder")
        return
    for requirement in _requirements():
        name, fault = requirement.name, fault_of(requirement)
        if fault is None:
            yield Finding("packages", name, "ok", version(name))
        else:
            yield Finding("packages", name, "broken", fault, f"pip install '{name}{requirement.specifier}'")


def extras() -> Iterator[Finding]:
    """Yield each extra: whether all of its packages are installed."""
    try:
        names = metadata("tsadbench").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return
    core = {requirement.name for requirement in _requirements()}
    for extra in sorted(set(names) - _UNREPORTED_EXTRAS):
        own = [requirement for requirement in _requirements(extra) if requirement.name not in core]
        faults = [f"{requirement.name} {fault}" for requirement in own if (fault := fault_of(requirement)) is not None]
        if faults:
            yield Finding("extras", extra, "missing", ", ".join(faults), f"pip install 'tsadbench[{extra}]'")
        else:
            versions = ", ".join(f"{requirement.name} {version(requirement.name)}" for requirement in own)
            yield Finding("extras", extra, "ok", versions)


def _requirements(extra: str = "") -> list[Requirement]:
    """Return the packages that tsadbench requires, alone or with an extra."""
    parsed = map(Requirement, requires("tsadbench") or [])
    return [
        requirement for requirement in parsed if not requirement.marker or requirement.marker.evaluate({"extra": extra})
    ]


def fault_of(requirement: Requirement) -> str | None:
    """Return why an installed package does not meet a requirement; None if it does."""
    try:
        installed = version(requirement.name)
    except PackageNotFoundError:
        return "is not installed"
    if requirement.specifier.contains(installed, prereleases=True):
        return None
    return f"is {installed}, expected {requirement.specifier}"
