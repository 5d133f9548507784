"""What a detector's module does where the packages of its pip extra are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tsadbench.errors import MissingExtraError


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Turn a missing package inside the block into one line that names the pip command.

    Parameters
    ----------
    feature
        What needs the packages, for instance a detector's name.
    extra
        The pip extra that holds them.

    Raises
    ------
    MissingExtraError
        If a package other than this project's own cannot be found.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tsadbench"):
            raise
        raise MissingExtraError(feature, extra) from error
