"""What readers of a table must know about its data or its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tsadbench.base.training_facts import LEVELLED, STILL_FALLING, share_note
from tsadbench.errors import PluginError, UsageError
from tsadbench.execution.identity import code_of
from tsadbench.execution.record import Record
from tsadbench.registry import load_protocol
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import first_of

_MOST_NAMES = 30  # in one note


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on the tables of a data set, under one protocol or all; as text it begins with these."""

    dataset: str
    text: str
    protocol: str = ""

    def __str__(self) -> str:
        """Return the remark, with its data set and protocol in front."""
        return f"{self.dataset}{f', protocol {self.protocol}' if self.protocol else ''}: {self.text}"

    def concerns(self, dataset: str, protocol: str) -> bool:
        """Return whether the remark belongs below the tables of a data set and protocol."""
        return self.dataset == dataset and self.protocol in ("", protocol)


def notes_on(records: Sequence[Record]) -> tuple[Note, ...]:
    """Return what records say of their data, protocol and trial, and in what they are not comparable."""
    notes = [Note(record.dataset, text) for record in records for text in record.notes]
    notes += [Note(record.dataset, text, record.protocol) for record in records for text in record.protocol_notes]
    notes += [Note(record.dataset, f"{record.label}: {record.note}") for record in records if record.note]
    notes += _unfinished_trainings(records)
    notes += older_rules(records)
    for dataset in dict.fromkeys(record.dataset for record in records):
        notes += [Note(dataset, text) for text in _mixtures([one for one in records if one.dataset == dataset])]
    return tuple(dict.fromkeys(notes))


def _unfinished_trainings(records: Sequence[Record]) -> Iterator[Note]:
    """Yield which rows' fits did not see all windows, or ended while the loss was falling; equal rows in one note."""
    rows = grouped(records, lambda record: (record.dataset, record.protocol, record.label))
    said = []
    for (dataset, protocol, label), of_row in rows.items():
        facts = [fit.facts for record in of_row for fit in record.training]
        said.append((dataset, protocol, share_note(facts), label))
        if n_falling := sum(one.get(LEVELLED) is False for one in facts):
            share = "" if n_falling == len(facts) else f" ({n_falling} of {len(facts)} fits)"
            said.append((dataset, protocol, STILL_FALLING, label + share))
    for (dataset, protocol, text), alike in grouped(said, lambda one: one[:3]).items():
        if text:
            yield Note(dataset, f"{first_of(sorted(label for *_, label in alike), _MOST_NAMES)}: {text}", protocol)


def older_rules(records: Sequence[Record]) -> Iterator[Note]:
    """Yield which rows another version of their protocol has judged than the installed one."""
    for dataset, protocol, version in dict.fromkeys(
        (one.dataset, one.protocol, one.protocol_version) for one in records
    ):
        try:
            installed = load_protocol(protocol.partition("[")[0]).version
        except (PluginError, UsageError):
            continue
        if version != installed:
            text = (
                f"rows of version {version} are shown as they were judged; version {installed} of the protocol is "
                "installed, and judges them again if their scores and their data are here; otherwise run them again"
            )
            yield Note(dataset, text, protocol)


def _mixtures(records: Sequence[Record]) -> Iterator[str]:
    """Yield in what the records of one data set differ although their rows are compared."""
    codes = {(record.label, code_of(record.manifest)) for record in records}
    if len(codes) > len({label for label, _ in codes}):
        yield "seeds of one row were made with different versions of its detector's code"
    if older := sum("sources" not in record.manifest for record in records):
        yield f"older code made {'these rows' if older == len(records) else 'some of these rows'}"
    versions = [one if isinstance(one := record.manifest.get("versions"), dict) else {} for record in records]
    if len({(name, str(of[name])) for of in versions for name in of}) > len({name for of in versions for name in of}):
        yield "these rows were not all made with the same package versions"
    origins: dict[str, Iterable[object]] = {
        "data": (record.manifest.get("data_hash") for record in records),
        "version of the data set": (record.dataset_version for record in records),
        "number of threads": (record.threads for record in records),
    }
    for what, values in origins.items():
        first, *others = values
        if any(other != first for other in others):
            yield f"these rows were not all made with the same {what}"
