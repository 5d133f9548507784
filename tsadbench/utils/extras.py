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
        If an import inside the ``with`` statement fails. One of tsadbench's own packages is no extra: if it cannot
        be imported, that is a defect, and its error is left as it is.

    Examples
    --------
    >>> with extra("arithmetic", "deep"):
    ...     import math
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").startswith("tsadbench"):
            raise
        raise MissingExtraError(feature, name) from error
