"""The form of a submission: a folder of a few named files, within a budget, and the statement that its maker signs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from tsadbench.errors import StoreError
from tsadbench.utils.digests import digest
from tsadbench.utils.names import corpora_fault, label_fault
from tsadbench.utils.parameters import JsonValue, parse_label
from tsadbench.utils.text import one_line

SCHEMA = 1
# Not records.jsonl, which is the name of the records of a committed table.
DESCRIPTION, STATEMENT, RECORDS, CHECKS = "submission.json", "statement.txt", "trials.jsonl", "checks.jsonl"
SCORES, CODE = "scores", "code"
ENDING = ".parquet"
# What one file, and all files together, may have. A score takes at most four bytes: four million rows fit into a file.
MOST_FILE_BYTES, MOST_BYTES, MOST_FILES = 2**24, 2**26, 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
# Letters, digits and what labels need; nothing that a page, a table or a shell takes for more than text.
_PLAIN = re.compile(r"[A-Za-z0-9 _.,:;=+*/()\[\]@#%^~-]*")
_MARKUP = re.compile(r"<[A-Za-z/!?]|&#|javascript:", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedDetector:
    """One detector of a submission.

    Parameters
    ----------
    label
        As its rows are labelled.
    code
        Where its class is: ``code/FILE.py:Class``, ``package.module:Class`` of a package in ``code/``, "shipped" if it
        comes with tsadbench, or "closed" if its code is not part of the submission.
    pretrained_on
        What it was trained on before its fit, besides what its traits say.
    """

    label: str
    code: str
    pretrained_on: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether its code is here, in the submission or in tsadbench."""
        return self.code != "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What ``submission.json`` holds.

    Parameters
    ----------
    schema
        Version of this layout.
    name
        The submission's, and its folder's.
    made
        Day, UTC.
    tsadbench
        The version that wrote it.
    detectors
        One for each label.
    trials
        The score file of each trial, by the trial's name.
    files
        SHA-256 of every file but this one and the statement, by its path in the folder.
    """

    schema: int
    name: str
    made: str
    tsadbench: str
    detectors: tuple[SubmittedDetector, ...]
    trials: Mapping[str, str]
    files: Mapping[str, str]

    def to_json(self) -> bytes:
        """Return it as JSON."""
        return to_json(self, indent=1) + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> Description:
        """Read it; a StoreError says what is wrong."""
        try:
            content = from_json(text, allow_inf_nan=False)
        except ValueError as error:
            raise StoreError(f"it is not JSON ({one_line(str(error), 200)})") from error
        schema = content.get("schema") if isinstance(content, dict) else None
        if schema != SCHEMA:
            raise StoreError(f"expected a submission of schema {SCHEMA}, found {schema!r:.40}")
        if fault := next(unfit_texts(content), ""):
            raise StoreError(fault)
        try:
            found = _adapter().validate_python(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = one_line(".".join(map(str, first["loc"])), 100)
            raise StoreError(f"{where}: {first['msg']}") from error
        if fault := next(found.faults(), ""):
            raise StoreError(fault)
        return found

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with its names."""
        if fault := submission_name_fault(self.name):
            yield f"name: {fault}"
        labels = [one.label for one in self.detectors]
        if len(set(labels)) < len(labels):
            yield "it has a detector twice"
        for detector in self.detectors:
            if fault := submitted_label_fault(detector.label) or corpora_fault(detector.pretrained_on):
                yield f"{detector.label:.80}: {fault}"


def submission_name_fault(name: str) -> str:
    """Return why a text cannot be the name of a submission; nothing if it can."""
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r:.80}: expected 1 to 63 small letters, digits and hyphens, a letter or digit first"


def submitted_label_fault(label: str) -> str:
    """Return why a submission cannot have a label; nothing if it can."""
    if fault := label_fault(label, 300) or plain_fault(label):
        return fault
    target = parse_label(label).target
    if target.startswith(("/", "~")) or ".." in target or re.match(r"[A-Za-z]:[/\\]", target):
        return "it is a path that leads elsewhere: run the detector by its name, or by a file of the folder you are in"
    return ""


def plain_fault(name: str) -> str:
    """Return why a name is not shown as it is; nothing if it consists of plain letters, digits and signs."""
    if _PLAIN.fullmatch(name):
        return next(unfit_texts(name), "")
    odd = "".join(dict.fromkeys(sign for sign in name if not _PLAIN.fullmatch(sign)))
    return f"the name {name!r:.80} holds {odd!r:.40}; expected letters, digits and plain signs"


def unfit_texts(content: JsonValue, where: str = "") -> Iterator[str]:
    """Yield which texts of JSON hold control characters or what a page would take for markup; keys count."""
    if isinstance(content, str):
        if not content.isprintable():
            yield f"{where or 'a text'}: {content!r:.80} holds control characters"
        elif _MARKUP.search(content):
            yield f"{where or 'a text'}: {content!r:.80} holds markup"
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from unfit_texts(key, where)
            yield from unfit_texts(value, one_line(f"{where}.{key}".strip("."), 80))
    elif isinstance(content, list):
        for value in content:
            yield from unfit_texts(value, where)


def statement(description: bytes, name: str, signed_by: str = "", day: date | None = None) -> str:
    """Return the statement of a submission.

    Parameters
    ----------
    description
        The content of ``submission.json``, which holds the digests of all other files.
    name
        The submission's.
    signed_by, day
        Who signs it and when; without a name the two lines are left empty.
    """
    signature = signed_by and day and f"Name: {one_line(signed_by, 100)}\nDate: {day.isoformat()}\n"
    return _STATEMENT.format(name=name, digest=digest(description)) + (signature or "Name:\nDate:\n")


def signer_fault(name: str) -> str:
    """Return why a text cannot be the name of who signs; nothing if it can, and if it is empty."""
    if not name.isprintable() or _MARKUP.search(name) or len(name) > 100:
        return f"{name!r:.80} holds control characters or markup, or is longer than 100 characters"
    return "expected a name, found blanks" if name and not name.strip() else ""


def statement_fault(text: str, description: bytes, name: str) -> str:
    """Return what is wrong with a statement; nothing if it is this submission's, word for word, and signed."""
    expected = statement(description, name).splitlines()[:-2]
    *said, named, dated = ["", "", *text.replace("\r\n", "\n").rstrip().splitlines()]
    if said[2:] != expected:
        return (
            "it is not the statement of this content: a word of it, or a digest, is another; write it again with "
            "tsadbench submit"
        )
    signer, day = named.removeprefix("Name:").strip(), dated.removeprefix("Date:").strip()
    if not (named.startswith("Name:") and dated.startswith("Date:") and signer and day):
        return "it is not signed: write your name and the day behind Name: and Date:"
    if fault := signer_fault(signer):
        return f"Name: {fault}"
    try:
        date.fromisoformat(day)
    except ValueError:
        return f"Date: expected a day such as 2026-11-23, found {day!r:.40}"
    return ""


_STATEMENT = """\
Statement on the submission {name} to the leaderboards of tsadbench

The content of submission.json has the SHA-256
{digest}
and names every other file of the submission by its own.

I vouch that
1. the scores come from the detector that is named, run by tsadbench on the data named, and were not edited;
2. neither the detector nor its parameters were chosen, tuned or thresholded by the labels of a test recording;
3. everything that the detector was trained on before its fit is named under pretrained_on, as far as I know;
4. no trial was left out because of its result, and all seeds that were run are here;
5. I may publish these files, and publish them under the licence of the repository.

"""


@cache
def _adapter() -> TypeAdapter[Description]:
    return TypeAdapter(Description)
