"""What the studies share: records, one line of JSON each, and a page whose tables are made of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.markdown import fill_blocks

Record: TypeAlias = dict[str, Any]


def parser_of(script: str | None) -> argparse.ArgumentParser:
    """Return a parser of a script's options that shows its docstring as it stands."""
    return argparse.ArgumentParser(description=script, formatter_class=argparse.RawDescriptionHelpFormatter)


def read_records(file: Path) -> list[Record]:
    """Return the committed records; none if there is no file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []


def write_records(file: Path, records: Iterable[Record]) -> None:
    """Replace the records."""
    write_file(file, "".join(f"{json.dumps(record, separators=(',', ':'))}\n" for record in records))


def page_of(file: Path, block: Callable[[str], Sequence[str]]) -> str:
    """Return a page whose generated blocks are made anew."""
    return fill_blocks(file.read_text(encoding="utf-8"), block)


def write_page(file: Path, block: Callable[[str], Sequence[str]]) -> None:
    """Make a page's generated blocks anew."""
    write_file(file, page_of(file, block))
