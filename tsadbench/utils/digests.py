"""Digests of whole files."""

from __future__ import annotations

import hashlib


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()
