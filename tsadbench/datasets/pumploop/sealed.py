"""pumploop from a secret: nobody who publishes a detector can have seen it, and a digest shows that it stays the same.

The secret is 32 random bytes. What is published is their digest, the commitment: it tells nothing of the secret, and no
other secret has it. Once the secret is published too, everybody can draw the data set and compare.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from pathlib import Path

from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.pumploop import drawn_from
from tsadbench.errors import UsageError
from tsadbench.utils.bounded_files import read_text

_SECRET = re.compile(r"[0-9a-f]{64}")
_OTHERS = 0o077
# Digests of one secret for two purposes: neither tells the other.
_COMMITMENT, _KEY = b"tsadbench: commitment to a sealed pumploop, 1\n", b"tsadbench: draws of a sealed pumploop, 1\n"


def new_secret_file(file: Path) -> None:
    """Write a new secret, for its owner alone; a UsageError if there is a file already or it cannot be written."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror}); choose another place") from error
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(f"{secrets.token_hex(32)}\n")


def read_secret(file: Path) -> str:
    """Return the secret that a file holds.

    Raises
    ------
    UsageError
        If it holds none, or others than its owner can read it.
    """
    try:
        text = read_text(file, 1000).strip()
        mode = file.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read ({error})") from error
    if not _SECRET.fullmatch(text):
        raise UsageError(f"{file}: expected a secret of 64 hexadecimal digits, as tsadbench data seal draws it")
    if os.name == "posix" and mode & _OTHERS:
        raise UsageError(f"{file}: others than its owner can read it: chmod 600 {file}")
    return text


def commitment(secret: str) -> str:
    """Return the digest of a secret, 64 hex digits."""
    return hashlib.sha256(_COMMITMENT + bytes.fromhex(secret)).hexdigest()


def sealed_pumploop(secret: str) -> LabelledDataset:
    """Return the data set that a secret stands for; its name is that of its commitment."""
    key = int.from_bytes(hashlib.sha256(_KEY + bytes.fromhex(secret)).digest(), "big")
    return drawn_from((key,), f"pumploop-sealed-{commitment(secret)[:8]}")
