"""Every error that tsadbench raises on purpose. Messages say what was expected, what was found, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TsadbenchError(Exception):
    """Base class of all errors that tsadbench raises on purpose."""


class UsageError(TsadbenchError, ValueError):
    """A wrong option, name or parameter: something the caller can correct.

    Parameters
    ----------
    message
        What is wrong.
    field
        The argument that is wrong, as Python calls it; the command line names its option instead.
    """

    field: str | None = None  # for errors from a box, which are made without the constructor

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.field is None or text.startswith(f"{self.field}: ") else f"{self.field}: {text}"


@contextmanager
def about(field: str) -> Iterator[None]:
    """Set ``field`` on a UsageError raised in the block; an inner block wins."""
    try:
        yield
    except UsageError as error:
        error.field = error.field or field
        raise


class DataError(TsadbenchError, ValueError):
    """A file or an array is invalid."""


class DataNotFoundError(DataError):
    """A data set's files are not on this machine."""


class ContractError(TsadbenchError, ValueError):
    """A detector broke its contract: its scores cannot be judged."""


class NotFittedError(TsadbenchError, ValueError, AttributeError):
    """A detector was asked for scores before it was fitted."""


class MissingExtraError(TsadbenchError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs packages that are not installed: run  pip install 'tsadbench[{extra}]'")


class PluginError(TsadbenchError, ImportError):
    """A plugin is missing, broken, or shares its name with another one."""


class ClusterError(TsadbenchError, RuntimeError):
    """A cluster is lost, or one of its workers cannot run a task."""


class StoreError(TsadbenchError, ValueError):
    """A run store cannot be read or written."""


class BrokenTrialError(StoreError):
    """The record or the arrays of a stored trial are damaged or malformed."""


class BrokenTrialWarning(UserWarning):
    """A broken trial of a run store was skipped."""


class ModelFileError(TsadbenchError, ValueError):
    """A model file is invalid, or a detector cannot be stored in one."""
