"""What Python asks for: the request of the command line, with the names that Python's arguments have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.request import RunRequest

# Arguments whose settings have other names; the others have those of their settings.
_ARGUMENTS = {"datasets": "dataset", "protocols": "protocol", "memory": "memory_mib"}
# Options of the command line by whose names messages call what these arguments give.
_OPTIONS = {"set": "settings", "split": "splits", "detector": "detectors", "memory": "memory_mib"} | {
    name.replace("_", "-"): name
    for name in ("against", "cluster", "data", "dataset", "jobs", "out", "protocol", "require_seal", "seeds", "suite")
}
# What a message quotes: commands keep their options.
_COMMAND = re.compile(r"(`?tsadbench [^;)`]*)")


class PythonRequest(RunRequest):
    """A `RunRequest` whose messages name the arguments of `tsadbench.run`."""

    called: ClassVar[Mapping[str, str]] = _ARGUMENTS


@contextmanager
def naming_arguments(setting: str | None = None) -> Iterator[None]:
    """Let the message of a UsageError from inside the block begin with the argument that is wrong, as Python calls it.

    Parameters
    ----------
    setting
        The setting that is wrong if the error names none.
    """
    try:
        yield
    except UsageError as error:
        parts = _COMMAND.split(str(error))
        parts[::2] = [re.sub(r"--([a-z-]+)", _argument, part) for part in parts[::2]]
        text = "".join(parts)
        wrong = error.setting or setting
        name = _ARGUMENTS.get(wrong, wrong) if wrong else None
        error.args = (text if name is None or re.match(rf"{name}\b", text) else f"{name}: {text}",)
        raise


def one_or_several(value: object) -> Sequence[object]:
    """Return a single value as a list of it; a list or a tuple of several as it is."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | LabelledDataset):
        return value
    return [value]


def _argument(option: re.Match[str]) -> str:
    return _OPTIONS.get(option[1], option[0])
