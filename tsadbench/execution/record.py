"""The record of one trial: immutable, versioned, kept as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING

from tsadbench.base.protocol import EpisodeThreshold, SplitJudgement
from tsadbench.base.replay import Replay
from tsadbench.base.status import Seal, Status
from tsadbench.base.training_facts import EpisodeTraining
from tsadbench.datasets.loading import CARD_ENDING
from tsadbench.errors import BrokenTrialError, UsageError
from tsadbench.utils.names import corpora_fault, label_fault, name_fault
from tsadbench.utils.parameters import JsonValue, parse_label
from tsadbench.utils.text import one_line, printable

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# 1: the first.
SCHEMA = 1
CHECKSUM = "checksum"
# Fields that a record's JSON leaves out if they have their default.
_USUAL = frozenset(
    {
        *("training", "replay", "rows_scored", "pretrained_on"),
        *("smoothing", "protocol_version", "dataset_version"),
    }
)
# Fields that judging again may change. They are not part of the checksum; `verify` computes them again.
_FOUND_ANEW = {
    *("schema", "trial", "scoring", "judging", "protocol", "protocol_version", "protocol_notes", "splits"),
    *("thresholds", "rows_scored", "status", "reason", "smoothing"),
}
# No clock of a program tells shorter times apart; more rows, years or MiB than the other nobody has.
_SMALLEST, _LARGEST = 1e-12, 1e15
_COUNTS = ("seed", "threads", "look_ahead", "smoothing", "protocol_version", "dataset_version", "rows_scored")
_MEASURED = ("fit_seconds", "score_seconds", "fit_cpu_seconds", "score_cpu_seconds", "peak_memory_mib")
_FOUND_ANEW_IN_MANIFEST = {
    *(CHECKSUM, "code_hash", "labels_hash", "judged", "config_hash", "tuning", "suite"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The result of one trial: a detector with its parameters, a data set, a protocol, a seed, a number of threads.

    Parameters
    ----------
    schema
        Version of this layout.
    trial
        Hash of the scoring identity and the protocol's label; the name of the trial's folder.
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
        Over how many rows the scores were averaged before they were judged; 1 in every record that is kept.
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

    schema: int
    trial: str
    detector: str
    label: str
    family: str
    parameters: Mapping[str, JsonValue]
    floor: bool
    look_ahead: int
    dataset: str
    protocol: str
    notes: tuple[str, ...]
    seed: int
    threads: int
    status: Status
    reason: str | None
    splits: Mapping[str, SplitJudgement]
    thresholds: tuple[EpisodeThreshold, ...]
    fit_seconds: float | None
    score_seconds: float | None
    peak_memory_mib: float | None
    manifest: Mapping[str, JsonValue]
    fit_cpu_seconds: float | None = None
    score_cpu_seconds: float | None = None
    rows_scored: int | None = None
    protocol_notes: tuple[str, ...] = ()
    leaky: str = ""
    note: str = ""
    scoring: str
    judging: str
    training: tuple[EpisodeTraining, ...] = ()
    smoothing: int = 1
    protocol_version: int = 1
    seal: Seal = "guarded"
    seal_reason: str = ""
    replay: Replay | None = None
    dataset_version: int = 1
    pretrained_on: tuple[str, ...] = ()

    @property
    def rules(self) -> str:
        """The protocol with the version of its rules, ``strict 2``: only trials of the same are compared."""
        return f"{self.protocol} {self.protocol_version}"

    @property
    def rows_per_second(self) -> float | None:
        """Training and test rows scored per second of wall clock; None if either is not known."""
        return self.rows_scored / self.score_seconds if self.rows_scored and self.score_seconds else None

    def to_json(self, indent: int | None = 2) -> str:
        """Return the record as JSON; on one line if ``indent`` is None."""
        usual = [one.name for one in fields(self) if one.name in _USUAL and getattr(self, one.name) == one.default]
        if (self.seal, self.seal_reason) == ("guarded", ""):
            usual += ["seal", "seal_reason"]
        one_model = {name: {"entities"} for name, split in self.splits.items() if not split.entities}
        left_out: dict[str, bool | dict[str, set[str]]] = {**dict.fromkeys(usual, True), "splits": one_model}
        return _adapter().dump_json(self, indent=indent, exclude=left_out).decode() + ("" if indent is None else "\n")

    @property
    def checksum(self) -> str:
        """Hash of what the trial's run put into the record, for its manifest: an edit of it is found, a forgery not."""
        content = json.loads(self.to_json())
        manifest = {name: value for name, value in content["manifest"].items() if name not in _FOUND_ANEW_IN_MANIFEST}
        made = {name: value for name, value in content.items() if name not in _FOUND_ANEW} | {"manifest": manifest}
        return hashlib.sha256(json.dumps(_known(made), sort_keys=True).encode()).hexdigest()[:24]

    @classmethod
    def from_json(cls, text: str | bytes, origin: str) -> Record:
        """Read a record.

        Parameters
        ----------
        text
            JSON.
        origin
            What messages call it, for instance the file.

        Raises
        ------
        BrokenTrialError
            If it is not JSON, of another schema, or not a record.
        """
        from pydantic import ValidationError
        from pydantic_core import from_json

        try:
            content = from_json(text, allow_inf_nan=False)
            json.dumps(content, allow_nan=False)  # 1e999 is a number of JSON, and infinite in Python
        except ValueError as error:
            raise BrokenTrialError(f"{origin}: not a record ({error}); remove that trial and run it again") from error
        schema = content.get("schema") if isinstance(content, dict) else None
        if schema != SCHEMA:
            raise BrokenTrialError(
                f"{origin}: expected a record of schema {SCHEMA}, found {schema!r:.40}; it was written by another "
                f"version of tsadbench: use that version, or another --out"
            )
        try:
            record = _adapter().validate_python(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BrokenTrialError(
                f"{origin}: not a record ({where:.200}: {first['msg']}); remove that trial and run it again"
            ) from error
        if fault := next(_faults(record), None):
            raise BrokenTrialError(f"{origin}: not a record ({fault}); remove that trial and run it again")
        return _shown(record)


def _faults(record: Record) -> Iterator[str]:
    """Yield what is wrong with the fields of a record, whose types are right."""
    names: dict[str, Iterable[str]] = {
        "trial": (record.trial,),
        "dataset": (record.dataset,),
        "protocol": (record.protocol.partition("[")[0],),
    }
    labels: dict[str, Iterable[str]] = {
        "detector": (record.detector,),
        "label": (record.label,),
        "protocol": (record.protocol,),
        "splits": record.splits,
        "metrics": {name for split in record.splits.values() for name in split.metrics},
        "entities": {name for split in record.splits.values() for name in split.entities},
        "thresholds": (entry.episode for entry in record.thresholds),
        "training": (entry.episode for entry in record.training),
    }
    for field, texts in names.items():
        yield from (f"{field}: {fault}" for text in texts if (fault := name_fault(text)))
    for field, texts in labels.items():
        yield from (f"{field}: {fault}" for text in texts if (fault := label_fault(text)))
    for field, text in (("label", record.label), ("protocol", record.protocol)):
        try:
            parse_label(text)
        except UsageError as error:
            yield f"{field}: {error}"
    yield from _impossible_numbers(record)
    if fault := corpora_fault(record.pretrained_on):
        yield f"pretrained_on: {fault}"
    if record.dataset.endswith(CARD_ENDING):
        yield "dataset: it is the path of a card"
    if record.status == "ok" and not (record.splits and record.thresholds):
        yield f"its status is ok, yet it has no {'thresholds' if record.splits else 'splits'}"


def _impossible_numbers(record: Record) -> Iterator[str]:
    """Yield which numbers nobody can have counted or measured; they would end a sum or a division."""
    splits, thresholds = record.splits.values(), [entry.threshold for entry in record.thresholds]
    counts: dict[str, Iterable[int | None]] = {
        **{name: (getattr(record, name),) for name in _COUNTS},
        "n_rows": [split.n_rows for split in splits],
        "n_anomalous": [split.n_anomalous for split in splits],
        "n": [threshold.n for threshold in thresholds],
        "excesses": [threshold.excesses for threshold in thresholds],
    }
    for name, found in counts.items():
        if any(count is not None and not 0 <= count <= _LARGEST for count in found):
            yield f"{name}: expected a number from 0 to {_LARGEST:g}"
    for name in _MEASURED:
        value = getattr(record, name)
        if value and not _SMALLEST <= value <= _LARGEST:
            yield f"{name}: {value:g}, expected 0, or {_SMALLEST:g} to {_LARGEST:g}"
    if any(not 0.0 <= split.coverage <= 1.0 for split in splits):
        yield "coverage: expected a share from 0 to 1"
    values = [value for split in splits for one in (split.metrics, *split.entities.values()) for value in one.values()]
    if any(value is not None and abs(value) > _LARGEST for value in values):
        yield f"metrics: expected at most {_LARGEST:g}"


def _shown(record: Record) -> Record:
    """Return the record with its texts fit to be shown: whoever sent it may have written anything into them."""
    return replace(
        record,
        family=printable(record.family),
        reason=None if record.reason is None else one_line(record.reason),
        notes=tuple(map(printable, record.notes)),
        protocol_notes=tuple(map(printable, record.protocol_notes)),
        leaky=printable(record.leaky),
        note=printable(record.note),
        seal_reason=printable(record.seal_reason),
    )


def _known(value: JsonValue) -> JsonValue:
    """Return a value without fields that are empty or False, at any depth."""
    if not isinstance(value, dict):
        return value
    known = {name: _known(item) for name, item in value.items()}
    return {name: item for name, item in known.items() if item not in (None, "", [], {}) and item is not False}


@cache
def _adapter() -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(Record)
