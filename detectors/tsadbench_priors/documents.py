"""A system's documentation as text, from Markdown, plain text or PDF."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tsadbench import UsageError
from tsadbench.base import extra

_TEXT = (".md", ".markdown", ".txt", ".rst", "")
# About 200,000 tokens, the size of smaller context windows.
MOST_CHARACTERS = 600_000


@dataclass(frozen=True, slots=True)
class Document:
    """The name of a file, and its text."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        """Hash of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_documents(paths: Sequence[Path]) -> tuple[Document, ...]:
    """Read documents.

    Raises
    ------
    UsageError
        If one cannot be read or holds no text, or they are too long for a model.
    MissingExtraError
        If one is a PDF and pypdf is not installed.
    """
    documents = tuple(Document(path.name, _text(path)) for path in paths)
    for document in documents:
        if not document.text.strip():
            raise UsageError(f"{document.name}: holds no text; a scanned PDF needs text recognition (OCR) first")
    length = sum(len(document.text) for document in documents)
    if length > MOST_CHARACTERS:
        raise UsageError(
            f"--system: {length:,} characters, expected at most {MOST_CHARACTERS:,}; give only the relevant ones"
        )
    return documents


def _text(path: Path) -> str:
    ending = path.suffix.lower()
    if ending == ".pdf":
        return _pdf_text(path)
    if ending not in _TEXT:
        raise UsageError(f"{path}: expected Markdown, text or PDF, found {ending}; convert it to one of these")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected text in UTF-8; save it in that encoding") from error


def _pdf_text(path: Path) -> str:
    with extra("reading PDF", "prior"):
        import pypdf
    try:
        return "\n\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    except pypdf.errors.PyPdfError as error:
        raise UsageError(f"{path}: not a PDF that can be read ({error}); print it to a new file") from error
