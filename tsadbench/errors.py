"""Every error that tsadbench raises on purpose. A message says what was expected, what was found, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TsadbenchError(Exception):
    """The base of all errors that tsadbench raises on purpose."""


class UsageError(TsadbenchError, ValueError):
    """A wrong option, name or parameter: something the caller can correct.

    Parameters
    ----------
    message
        What is wrong.
    field
        The argument that is wrong, as Python calls it; the command line names its option instead.
    """

    field: str | None = None  # of an error that a box reports, which is made without the constructor

    def __init__(self, message: str = "", *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.field is None or text.startswith(f"{self.field}: ") else f"{self.field}: {text}"


@contextmanager
def about(field: str) -> Iterator[None]:
    """Note on a UsageError from inside the block which argument is wrong; an inner block wins."""
    try:
        yield
    except UsageError as error:
        error.field = error.field or field
        raise


class DataError(TsadbenchError, ValueError):
    """A file or an array that is not what it has to be."""


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
    """A cluster is gone, or a worker of it cannot do what it is asked for."""


class StoreError(TsadbenchError, ValueError):
    """A run store cannot be read or written."""


class BrokenTrialError(StoreError):
    """A trial of a run store is damaged, or not what `tsadbench run` writes: its record or its arrays."""


class BrokenTrialWarning(UserWarning):
    """A trial of a run store is broken and was passed over."""


class ModelFileError(TsadbenchError, ValueError):
    """A file with a fitted detector is not what it has to be, or a detector cannot be kept in one."""
