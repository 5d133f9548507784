"""The record of one trial, stored as JSON. It may come from a stranger, so every field is validated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from annotated_types import Interval
from pydantic import AfterValidator, ConfigDict, JsonValue, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from tsadbench.base.detector import Departure
from tsadbench.base.protocol import Count, EpisodeThreshold, SplitJudgement
from tsadbench.base.replay import Replay
from tsadbench.base.status import Seal, Status
from tsadbench.base.training_facts import Fact
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import BrokenTrialError
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import Corpora, LabelText, name_fault, one_line, printable
from tsadbench.utils.toml import fault_text

SCHEMA: Final = 2
RECORDS = "records.jsonl"
T = TypeVar("T")


def _refused_if(fault: Callable[[Any], str]) -> AfterValidator:
    """Return a validator that rejects values for which ``fault`` returns a reason."""

    def check(value: T) -> T:
        if found := fault(value):
            raise ValueError(found)
        return value

    return AfterValidator(check)


_FileName: TypeAlias = Annotated[str, _refused_if(name_fault)]
_Label: TypeAlias = Annotated[LabelText, AfterValidator(lambda text: parse_label(text) and text)]
# Texts that tables show are made printable.
_Text: TypeAlias = Annotated[str, AfterValidator(printable)]
_Line: TypeAlias = Annotated[str, AfterValidator(one_line)]
_Finite = AfterValidator(lambda entries: json.dumps(entries, allow_nan=False) and entries)
_Manifest: TypeAlias = Annotated[Mapping[str, JsonValue], _Finite]
# Shorter times would make rates infinite.
_Measured: TypeAlias = Annotated[
    float, Interval(ge=0.0, le=1e15), _refused_if(lambda value: "no clock measures that" if 0.0 < value < 1e-12 else "")
]


@dataclass(frozen=True, slots=True)
class EpisodeTraining:
    """A detector's facts about its fit in one episode, by name."""

    episode: LabelText
    facts: Mapping[str, Fact]


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Record:
    """The result of one trial: a detector with its parameters, a data set, a protocol, a seed, a number of threads.

    ``trial`` names it: a hash of ``scoring``, the identity of what determines the scores, and of the protocol's label;
    ``judging`` is the identity of their judgement. ``splits`` and ``thresholds`` are empty unless the status is "ok";
    ``reason`` says why it is not. ``notes``, ``note`` and ``protocol_notes`` are remarks on the data set, the detector
    and the protocol for tables; ``leaky`` is a published leak that the detector reproduces, and ``differs`` says how it
    departs from its publication. Costs are None if not measured; rows scored are training, calibration and test rows.
    ``replay`` is the result of the replay audit. ``manifest`` has what is needed to repeat the trial: versions,
    platform, hashes, command, times.
    """

    schema: Literal[2]
    trial: _FileName
    detector: LabelText
    label: _Label
    family: _Text
    parameters: Mapping[str, JsonValue]
    floor: bool = False
    look_ahead: Count
    dataset: Annotated[_FileName, _refused_if(lambda name: "it is a card" if name.endswith(CARD_ENDING) else "")]
    protocol: Annotated[_Label, _refused_if(lambda text: name_fault(parse_label(text).target))]
    notes: tuple[_Text, ...] = ()
    seed: Count
    threads: Count
    status: Status
    reason: _Line | None = None
    splits: Mapping[LabelText, SplitJudgement]
    thresholds: tuple[EpisodeThreshold, ...]
    fit_seconds: _Measured | None = None
    score_seconds: _Measured | None = None
    peak_memory_mib: _Measured | None = None
    manifest: _Manifest
    fit_cpu_seconds: _Measured | None = None
    score_cpu_seconds: _Measured | None = None
    rows_scored: Count | None = None
    protocol_notes: tuple[_Text, ...] = ()
    leaky: _Text = ""
    differs: tuple[Departure, ...] = ()
    note: _Text = ""
    scoring: _FileName
    judging: LabelText
    training: tuple[EpisodeTraining, ...] = ()
    protocol_version: Count = 1
    seal: Seal = "guarded"
    seal_reason: _Text = ""
    replay: Replay | None = None
    dataset_version: Count = 1
    pretrained_on: Corpora = ()

    @model_validator(mode="after")
    def _judged_if_ok(self) -> Record:
        if self.status == "ok" and not (self.splits and self.thresholds):
            raise ValueError(f"its status is ok, but it has no {'thresholds' if self.splits else 'splits'}")
        return self

    @property
    def rules(self) -> str:
        """The protocol with the version of its rules, ``strict 2``. Only trials under equal rules are compared."""
        return f"{self.protocol} {self.protocol_version}"

    @property
    def rows_per_second(self) -> float | None:
        """Rows scored per second of wall clock; None if the number of rows or the time is not known."""
        return self.rows_scored / self.score_seconds if self.rows_scored and self.score_seconds else None

    def to_json(self, indent: int | None = 2) -> str:
        """Return the record as JSON without default values; on one line if ``indent`` is None."""
        text = _ADAPTER.dump_json(self, indent=indent, exclude_defaults=True).decode()
        return text if indent is None else f"{text}\n"

    @classmethod
    def from_json(cls, text: str | bytes, origin: str) -> Record:
        """Parse a record; a BrokenTrialError, which names its ``origin``, if the text is not a record."""
        try:
            return _ADAPTER.validate_json(text)
        except ValidationError as error:
            raise BrokenTrialError(f"{origin}: not a record ({fault_of(error)}); run that trial again") from error


def fault_of(error: ValidationError) -> str:
    """Return which field of a record is invalid, and why, on one line."""
    fault = error.errors(include_url=False)[0]
    return one_line(": ".join([*map(str, fault["loc"]), fault_text(fault)]), 300)


def read_records(file: Path) -> tuple[Record, ...]:
    """Return the records of a file, one per line; a BrokenTrialError if a line is not a record."""
    lines = file.read_bytes().splitlines()
    return tuple(Record.from_json(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1))


def committed_records(folder: Path, dataset: str, protocol: str) -> tuple[Record, ...]:
    """Return the records that `tsadbench leaderboard RUNS --write` wrote for a table below a folder, if any."""
    file = folder / dataset / protocol / RECORDS
    return read_records(file) if file.is_file() else ()


_ADAPTER = TypeAdapter(Record)
