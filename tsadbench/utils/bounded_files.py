"""Read whole files, but only up to a stated size: some never end, and some are larger than the memory."""

from __future__ import annotations

import os
from pathlib import Path

_BYTES_AT_ONCE = 2**20


def read_bytes(file: Path, most: int) -> bytes:
    """Return the content of a file, a pipe or a device. Raises an OSError if it holds more than ``most`` bytes."""
    parts, left = list[bytes](), most
    with file.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size > most:  # 0 if it is not a regular file
            left = -1
        while left >= 0 and (part := stream.read(_BYTES_AT_ONCE)):
            parts.append(part)
            left -= len(part)
    if left < 0:
        raise OSError(f"it is too large: expected at most {most:,} bytes")
    return b"".join(parts)


def read_text(file: Path, most: int, encoding: str = "utf-8") -> str:
    """Return a text file's content with line ends as Python has them; errors as for `read_bytes`."""
    return read_bytes(file, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
