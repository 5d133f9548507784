"""Lines of text from bytes that come bit by bit; a line counts once its end is there."""

from __future__ import annotations

import codecs
import io

from tsadbench.errors import DataError


class Lines:
    """Cuts bytes into lines, which may end with LF, CRLF or CR.

    Parameters
    ----------
    name
        What messages call the input.
    encoding
        As Python names it.
    """

    def __init__(self, name: str, encoding: str) -> None:
        # Spreadsheets put a mark before UTF-8.
        marked = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
        self._decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(marked)(), translate=True)
        self._name = name
        self._encoding = encoding
        self._rest = ""
        self._n_lines = 0

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that the next bytes complete."""
        return self._cut(data, final=False)

    def end(self) -> list[str]:
        """Return the last line, where it has no end."""
        lines = self._cut(b"", final=True)
        return lines if not self._rest else [*lines, self._rest]

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun that has no end yet."""
        return bool(self._rest)

    def _cut(self, data: bytes, *, final: bool) -> list[str]:
        try:
            text = self._decoder.decode(data, final=final)
        except UnicodeDecodeError as error:
            line = self._n_lines + error.object.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{self._name}, line {line}: not {self._encoding}, found the byte 0x{error.object[error.start]:02x}; "
                f"write it in the encoding of the training files"
            ) from error
        *lines, self._rest = (self._rest + text).split("\n")
        self._n_lines += len(lines)
        return lines
