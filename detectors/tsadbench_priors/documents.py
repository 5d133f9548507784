"""A system's documentation as text, from Markdown, plain text or PDF."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tsadbench import UsageError
from tsadbench.base import extra


class Document(NamedTuple):
    """The name of a file, and its text."""

    name: str
    text: str


def read_document(path: Path) -> Document:
    """Return a document; a UsageError if it cannot be read or holds no text."""
    text = _pdf_text(path) if path.suffix.lower() == ".pdf" else _text(path)
    if not text.strip():
        raise UsageError(f"{path}: holds no text; a scanned PDF needs text recognition (OCR) first")
    return Document(path.name, text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: expected a PDF, or Markdown or text in UTF-8; convert it to one") from error


def _pdf_text(path: Path) -> str:
    with extra("reading PDF", "prior"):
        import pypdf
    try:
        return "\n\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    except pypdf.errors.PyPdfError as error:
        raise UsageError(f"{path}: not a PDF that can be read ({error}); print it to a new file") from error
