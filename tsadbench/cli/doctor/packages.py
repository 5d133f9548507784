"""Python, the packages that tsadbench needs, and those of its extras."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version

from packaging.requirements import Requirement

from tsadbench.cli.doctor.finding import Finding

_SECTION, _EXTRAS = "packages", "extras"
# Not features: all of them together, and what its developers need.
_NOT_TOLD = ("all", "dev")


def packages() -> Iterator[Finding]:
    """Give Python, and every package that tsadbench cannot do without."""
    yield Finding(_SECTION, "python", "ok", f"{platform.python_version()} ({sys.executable})")
    try:
        yield Finding(_SECTION, "tsadbench", "ok", version("tsadbench"))
    except PackageNotFoundError:
        yield Finding(
            _SECTION, "tsadbench", "broken", "not installed, so nothing is registered", "pip install -e . in its folder"
        )
        return
    for requirement in _required(None):
        fault = _fault(requirement)
        if fault is None:
            yield Finding(_SECTION, requirement.name, "ok", version(requirement.name))
        else:
            yield Finding(_SECTION, requirement.name, "broken", fault, f"pip install '{_plain(requirement)}'")


def extras() -> Iterator[Finding]:
    """Give each extra: whether all of its packages are here."""
    try:
        known = metadata("tsadbench").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return
    for extra in sorted(set(known) - set(_NOT_TOLD)):
        wanted = _required(extra)
        faults = [f"{one.name} {fault}" for one in wanted if (fault := _fault(one)) is not None]
        if faults:
            advice = f"pip install 'tsadbench[{extra}]'"
            yield Finding(_EXTRAS, extra, "missing", ", ".join(faults), advice)
        else:
            yield Finding(_EXTRAS, extra, "ok", ", ".join(f"{one.name} {version(one.name)}" for one in wanted))


def _required(extra: str | None) -> list[Requirement]:
    """Return what tsadbench asks for by itself, or an extra asks for beside that."""
    found = [Requirement(text) for text in requires("tsadbench") or []]
    if extra is None:
        return [one for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]
    own = {one.name for one in _required(None)}
    return [one for one in found if one.name not in own and one.marker and one.marker.evaluate({"extra": extra})]


def _fault(requirement: Requirement) -> str | None:
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return "is not installed"
    if requirement.specifier.contains(found, prereleases=True):
        return None
    return f"is {found}, expected {requirement.specifier}"


def _plain(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"


def installed(names: Iterable[str]) -> bool:
    """Whether all of these packages are installed."""
    return all(_fault(Requirement(name)) is None for name in names)
