"""Requires a machine whose kernel seals boxes."""

from __future__ import annotations

import os

import pytest

from tsadbench.sandbox import seal_status


def require_seal() -> None:
    """Skip, or fail in CI, on a machine that cannot seal: there hostile detectors would do real harm."""
    status = seal_status()
    if status.seal != "sealed":
        message = f"boxes are not sealed here: {status.reason}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
