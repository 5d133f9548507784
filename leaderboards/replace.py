"""Put a store's trials into the committed tables, in place of those of the same label and seed; other rows stay.

For a store that does not hold the whole table, as `tsadbench leaderboard --write` needs it. A trial that is in the
table already is left alone. Then: make tables suites readme changes.

    python leaderboards/replace.py runs/tep              # what would be replaced and added
    python leaderboards/replace.py runs/tep --write
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.errors import StoreError, TsadbenchError
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.execution.run_store import Store
from tsadbench.results.trial_result import protocol_of, readable_result
from tsadbench.results.unit_values import RECORDINGS, UnitValues
from tsadbench.utils.atomic_files import write_file
from tsadbench.utils.grouping import grouped

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Replace and add trials, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("store", type=Path, help="run store with the new trials")
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    parser.add_argument("--write", action="store_true", help="write the files (default: only report)")
    options = parser.parse_args(arguments)
    try:
        store = Store.open(options.store)
        found = grouped(
            (one for one in store.readable() if one.status == "ok"), lambda one: (one.dataset, one.protocol)
        )
        for (dataset, protocol), records in found.items():
            put(records, store, options.tables / dataset / protocol, write=options.write)
    except TsadbenchError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def put(records: Sequence[Record], store: Store, folder: Path, *, write: bool) -> None:
    """Put trials of one data set and protocol into the table of a folder."""
    file = folder / RECORDS
    lines = {
        (record.label, record.seed): (record.trial, line)
        for record, line in zip(read_records(file), file.read_text(encoding="utf-8").splitlines(), strict=True)
    }
    new = [one for one in records if (one.label, one.seed) not in lines or lines[one.label, one.seed][0] != one.trial]
    for one in new:
        old = "replaces " + lines[one.label, one.seed][0] if (one.label, one.seed) in lines else "is new"
        print(f"{one.dataset}, {one.protocol}: {one.label}, seed {one.seed}: {one.trial} {old}")
    print(f"{records[0].dataset}, {records[0].protocol}: {len(new)} of {len(records)} trials are others than committed")
    if not write or not new:
        return
    lines |= {(one.label, one.seed): (one.trial, one.to_json(indent=None)) for one in new}
    values = with_values(UnitValues.read(folder / RECORDINGS), new, store)
    write_file(file, "".join(f"{lines[key][1]}\n" for key in sorted(lines)))
    write_file(folder / RECORDINGS, "".join(f"{line}\n" for line in values.lines()))


def with_values(committed: UnitValues, new: Sequence[Record], store: Store) -> UnitValues:
    """Return the metrics by recording of a table with those of new trials."""
    data = load_dataset(committed.dataset)(DataOptions())
    episodes = tuple(protocol_of(new[0]).episodes(data.dataset))
    results = (readable_result(one, store, data, episodes) for one in new)
    fresh = UnitValues.of([one for one in results if one is not None], data)
    for name in ("protocol_version", "data_hash", "labels_hash", "metrics", "units"):
        if getattr(fresh, name) != getattr(committed, name):
            raise StoreError(f"{store.path}: its {name} is not that of the committed table; run the whole table again")
    gone = {(one.label, one.seed) for one in new}
    kept = {key: table for key, table in committed.values.items() if key[:2] not in gone}
    return replace(committed, values={**kept, **fresh.values})


if __name__ == "__main__":
    sys.exit(main())
