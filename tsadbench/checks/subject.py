"""The detector under test: named, given as a class or as an instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from tsadbench.detector import Detector
from tsadbench.parameters import format_label, parameters_of, parse_arguments
from tsadbench.registry import load_detector, parse_request, registered_name

Wanted: TypeAlias = str | type[Detector] | Detector


@dataclass(frozen=True, slots=True)
class Subject:
    """A detector class with the caller's own parameters.

    Parameters
    ----------
    name
        As registered, or as the caller named it.
    cls
        The class.
    arguments
        What the caller set; `Detector.test_params` stand back behind it.
    """

    name: str
    cls: type[Detector]
    arguments: Mapping[str, object]

    @classmethod
    def of(cls, wanted: Wanted) -> Subject:
        """Return what a name as in ``tsadbench run``, a class or an instance stands for.

        Of an instance's parameters those count as set that differ from their defaults.

        Raises
        ------
        UsageError, PluginError, MissingExtraError
            Where there is no such detector, or no such parameter.
        """
        if isinstance(wanted, str):
            request = parse_request(wanted)
            found = load_detector(request.target)
            return cls(request.target, found, parse_arguments(found, request.arguments, request.target))
        if isinstance(wanted, type):
            return cls(registered_name(wanted), wanted, {})
        given = cast("Detector", wanted)  # mypy loses it: Detector's base has no types
        return cls(registered_name(type(given)), type(given), _set_by_hand(given))

    @property
    def label(self) -> str:
        """``NAME`` or ``NAME[key=value,...]``."""
        return format_label(self.name, self.cls, self.arguments) if self.arguments else self.name


def _set_by_hand(detector: Detector) -> dict[str, object]:
    defaults = {parameter.name: parameter.default for parameter in parameters_of(type(detector))}
    values: dict[str, object] = detector.get_params(deep=False)
    return {name: value for name, value in values.items() if value is not defaults[name] and value != defaults[name]}
