"""The record of one trial, kept as JSON. It may come from a stranger: every field says what it may hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from annotated_types import Interval
from pydantic import AfterValidator, ConfigDict, JsonValue, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from tsadbench.base.protocol import Count, EpisodeThreshold, SplitJudgement
from tsadbench.base.replay import Replay
from tsadbench.base.status import Seal, Status
from tsadbench.base.training_facts import EpisodeTraining
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import BrokenTrialError
from tsadbench.utils.names import LabelText, corpora_fault, name_fault
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import one_line, printable

SCHEMA: Final = 2
RECORDS = "records.jsonl"


def _file_name(text: str) -> str:
    if fault := name_fault(text):
        raise ValueError(fault)
    return text


def _label(text: str) -> str:
    parse_label(text)
    return text


def _protocol(text: str) -> str:
    _file_name(parse_label(text).target)
    return text


def _dataset(name: str) -> str:
    if name.endswith(CARD_ENDING):
        raise ValueError("it is the path of a card")
    return name


def _seconds(value: float) -> float:
    if 0.0 < value < 1e-12:
        raise ValueError("no clock measures that")  # and a rate per second would be infinite
    return value


def _corpora(names: tuple[str, ...]) -> tuple[str, ...]:
    if fault := corpora_fault(names):
        raise ValueError(fault)
    return names


def _manifest(entries: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    json.dumps(entries, allow_nan=False)
    return entries


_FileName: TypeAlias = Annotated[str, AfterValidator(_file_name)]
_Label: TypeAlias = Annotated[LabelText, AfterValidator(_label)]
# Texts that tables show are made printable.
_Text: TypeAlias = Annotated[str, AfterValidator(printable)]
_Line: TypeAlias = Annotated[str, AfterValidator(one_line)]
_Measured: TypeAlias = Annotated[float, Interval(ge=0.0, le=1e15), AfterValidator(_seconds)]


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class Record:
    """The result of one trial: a detector with its parameters, a data set, a protocol, a seed, a number of threads.

    Parameters
    ----------
    schema
        Version of this layout.
    trial
        Hash of the scoring identity and the protocol's label; the name of its file.
    detector, label, family, parameters
        Registered name; name with the parameters that differ from their defaults; kind of method; all parameters.
    floor
        Whether it is one of the floors that every table shows.
    look_ahead
        How many rows after a row its score may depend on.
    dataset, protocol
        Names; the protocol's with the parameters that differ from their defaults.
    notes
        What tables must say about the data.
    seed, threads
        As given to the trial.
    status, reason
        "ok", or what went wrong and why.
    splits
        What the judge found, by split; empty unless the status is "ok".
    thresholds
        One for each episode, with diagnostics.
    fit_seconds, score_seconds
        Wall clock of the box's work, measured by the harness: fitting, and scoring training and test recordings.
    fit_cpu_seconds, score_cpu_seconds
        CPU seconds of all its threads and processes together; None if not measured.
    rows_scored
        Normal and test rows that were scored in ``score_seconds``; None if not counted.
    protocol_notes
        What tables must say about the protocol's use of the data.
    leaky
        What the detector learns that it must not, if its parameters reproduce a published leak.
    note
        What tables must say about the detector.
    scoring
        Hash of all that determines the scores: detector, parameters, what its code does, library versions, data,
        episodes, seed, threads.
    judging
        Hash of all that determines what the judge makes of the scores: protocol, what its code does, labels, the
        threshold that a floor brings.
    smoothing
        Over how many rows the scores were averaged before they were judged; 1 in every kept record.
    training
        What the detector stated about its fits, for each episode in which it did.
    protocol_version
        Version of the protocol whose rules judged the trial.
    seal, seal_reason
        Whether the kernel kept the detector's process from everything but its recordings ("sealed") or an audit hook
        guarded it ("guarded"), and why the latter.
    replay
        What scoring again in other circumstances found; None if the trial is not ok.
    dataset_version
        Version of the data set.
    pretrained_on
        What the detector says that its weights were trained on before its fit (`Traits.pretrained_on`).
    peak_memory_mib
        Largest resident size of the process that held the detector.
    manifest
        Versions, platform, hashes, command, times: what is needed to repeat the trial.
    """

    schema: Literal[2]
    trial: _FileName
    detector: LabelText
    label: _Label
    family: _Text
    parameters: Mapping[str, JsonValue]
    floor: bool = False
    look_ahead: Count
    dataset: Annotated[_FileName, AfterValidator(_dataset)]
    protocol: Annotated[LabelText, AfterValidator(_protocol)]
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
    manifest: Annotated[Mapping[str, JsonValue], AfterValidator(_manifest)]
    fit_cpu_seconds: _Measured | None = None
    score_cpu_seconds: _Measured | None = None
    rows_scored: Count | None = None
    protocol_notes: tuple[_Text, ...] = ()
    leaky: _Text = ""
    note: _Text = ""
    scoring: _FileName
    judging: LabelText
    training: tuple[EpisodeTraining, ...] = ()
    smoothing: Count = 1
    protocol_version: Count = 1
    seal: Seal = "guarded"
    seal_reason: _Text = ""
    replay: Replay | None = None
    dataset_version: Count = 1
    pretrained_on: Annotated[tuple[str, ...], AfterValidator(_corpora)] = ()

    @model_validator(mode="after")
    def _judged_if_ok(self) -> Record:
        if self.status == "ok" and not (self.splits and self.thresholds):
            raise ValueError(f"its status is ok, yet it has no {'thresholds' if self.splits else 'splits'}")
        return self

    @property
    def rules(self) -> str:
        """The protocol with the version of its rules, ``strict 2``: only trials of the same are compared."""
        return f"{self.protocol} {self.protocol_version}"

    @property
    def rows_per_second(self) -> float | None:
        """Training and test rows scored per second of wall clock; None if either is not known."""
        return self.rows_scored / self.score_seconds if self.rows_scored and self.score_seconds else None

    def to_json(self, indent: int | None = 2) -> str:
        """Return the record as JSON without what has its default; on one line if ``indent`` is None."""
        text = _adapter().dump_json(self, indent=indent, exclude_defaults=True).decode()
        return text if indent is None else f"{text}\n"

    @classmethod
    def from_json(cls, text: str | bytes, origin: str) -> Record:
        """Read a record.

        Parameters
        ----------
        text
            JSON.
        origin
            The file, for messages.

        Raises
        ------
        BrokenTrialError
            If it is not a record of this schema.
        """
        try:
            return _adapter().validate_json(text)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(map(str, fault["loc"]))
            what = fault["msg"].removeprefix("Value error, ")
            if where:
                what = f"{where:.200}: {what}" + ("" if "found" in what else f", found {fault['input']!r:.60}")
            raise BrokenTrialError(f"{origin}: not a record ({one_line(what)}); run that trial again") from error


def read_records(file: Path | Traversable) -> tuple[Record, ...]:
    """Return the records of a file with one a line; a BrokenTrialError if a line is not a record."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(Record.from_json(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1))


def committed_records(folder: Path | None, dataset: str, protocol: str) -> tuple[Record, ...]:
    """Return the records of a table below a folder that `tsadbench run --write` writes to; none if it has none."""
    file = None if folder is None else folder / dataset / protocol / RECORDS
    return read_records(file) if file is not None and file.is_file() else ()


@cache
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)
