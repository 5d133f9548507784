"""Optional dependencies: one way to import them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tsadbench.errors import MissingExtraError


@contextmanager
def extra(feature: str, name: str) -> Iterator[None]:
    """Turn a failed import of optional packages into a MissingExtraError: ``feature`` needs ``tsadbench[name]``.

    A package that is installed but broken raises its own error: installing the extra would not help.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tsadbench"):
            raise
        raise MissingExtraError(feature, name) from error
