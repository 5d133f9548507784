"""Optional dependencies: one way to import them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tsadbench.errors import MissingExtraError


@contextmanager
def extra(feature: str, name: str) -> Iterator[None]:
    """Turn a failed import of optional packages into an error that says what to install.

    Parameters
    ----------
    feature
        What needs the packages, as the message calls it.
    name
        The extra that brings them: ``pip install 'tsadbench[name]'``.

    Raises
    ------
    MissingExtraError
        If a package is not found. One that is installed but broken raises its own error, and so does a missing module
        of tsadbench itself: installing the extra would help in neither case.

    Examples
    --------
    >>> with extra("arithmetic", "deep"):
    ...     import math
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tsadbench"):
            raise
        raise MissingExtraError(feature, name) from error
