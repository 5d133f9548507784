"""One file of several parts: an uncompressed zip archive whose comment is the checksum of all bytes before it."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping

from tsadbench.errors import ModelFileError

_COMMENT = "tsadbench model, SHA-256 of the bytes before this line: "
_ENDING = re.compile(re.escape(_COMMENT).encode() + rb"([0-9a-f]{64})")
_ENDING_BYTES = len(_COMMENT) + 64
MAGIC = b"PK\x03\x04"


def pack(parts: Mapping[str, bytes]) -> bytes:
    """Return the content of one file with these parts; equal parts give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.comment = bytes(_ENDING_BYTES)
    before = buffer.getvalue()[:-_ENDING_BYTES]
    return before + f"{_COMMENT}{hashlib.sha256(before).hexdigest()}".encode()


def unpack(content: bytes) -> dict[str, bytes]:
    """Return the parts of a file's content.

    Raises
    ------
    ModelFileError
        If it is another kind of file, is truncated, or was changed.
    """
    if not content.startswith(MAGIC):
        raise ModelFileError("it is no model: expected a file that tsadbench fit has written")
    ending = _ENDING.fullmatch(content[-_ENDING_BYTES:])
    if ending is None:
        raise ModelFileError(
            "it is cut off, or was not written by tsadbench fit: its last line, with a checksum, is missing; copy it "
            "again from where it was fitted"
        )
    if hashlib.sha256(content[:-_ENDING_BYTES]).hexdigest().encode() != ending[1]:
        raise ModelFileError("it was changed after it was written: its checksum differs; copy it again")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            # Uncompressed, so that no part can be larger than the file.
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ModelFileError("it is no model: expected parts that are not compressed")
            if sum(member.file_size for member in members) > len(content):
                raise ModelFileError("it is no model: its parts hold more than the file")
            return {member.filename: archive.read(member) for member in members}
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"it is no model: its parts cannot be read ({error})") from error
