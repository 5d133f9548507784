"""Carry the committed records over to today's identities, without running their trials again.

A record's ``trial``, ``scoring`` and ``judging`` and its manifest's ``code_hash`` become those of the code here now,
and a record from before scored rows were counted gets their number; everything else stays as it is, to the byte. This
is right only if today's code gives what the record says: ``--check`` takes run stores in which trials were fitted
again, and compares every metric, count and threshold to the bit. Networks give other last bits on another processor,
and training enlarges them: ``--before`` takes stores in which the code that made the records fitted the same trials on
the same machine, and then these two are compared.

A record is refused, and its file left alone, if today's code plans no such trial (another label, other parameters),
if the data, the labels or a library's version are others than those it was made with, or if it was fitted again with
another result.

    python leaderboards/carry_over.py                          # what would be written
    python leaderboards/carry_over.py --check runs/* --write   # check against stores, then write
    python leaderboards/carry_over.py --only t2 --check runs/t2 --write    # these labels alone
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tsadbench.errors import TsadbenchError
from tsadbench.execution.plan import Contender, Plan, Trial, contender_from_label, make_plan
from tsadbench.execution.provenance import (
    Identity,
    adapted_versions,
    identity,
    library_versions,
)
from tsadbench.execution.record import Record
from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.execution.request import RunRequest
from tsadbench.execution.run_store import Store
from tsadbench.utils.parameters import parse_label

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry over, and return the exit code: 1 if a record was refused."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    parser.add_argument("--check", type=Path, nargs="*", default=[], metavar="STORE", help="stores of refitted trials")
    parser.add_argument("--only", default="", help="labels that begin like this; all other records stay as they are")
    parser.add_argument("--write", action="store_true", help="write the files (default: only report)")
    parser.add_argument(
        "--before",
        type=Path,
        nargs="*",
        default=[],
        metavar="STORE",
        help="stores of the same trials, fitted on the same machine by the code that made the records",
    )
    options = parser.parse_args(arguments)
    refitted, before = (
        [record for store in stores for record in Store.open(store).records()]
        for stores in (options.check, options.before)
    )
    n_refused = 0
    for file in sorted(options.tables.rglob(RECORDS)):
        table = str(file.parent.relative_to(options.tables))
        lines, refusals, n_carried = [], [], 0
        for line, record, trial, plan in planned(file):
            if not record.label.startswith(options.only):
                lines.append(line)
                continue
            reason = trial if isinstance(trial, str) else refused(record, trial, plan)
            names = None if isinstance(trial, str) else identity(trial, plan)
            code = "" if isinstance(trial, str) else trial.contender.description.code_hash
            if names is not None and not reason:
                reason = compared(table, record, code, refitted, before)
            if names is None or reason:
                refusals.append(f"{table}, {record.label}, seed {record.seed}: refused: {reason}")
                continue
            lines.append(carried(line, record, names, code, rows_of(plan)))
            n_carried += 1
        print(f"{table}: {n_carried} records carried over, {len(refusals)} refused", *refusals, sep="\n  ")
        n_refused += len(refusals)
        if options.write and not refusals:
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return 1 if n_refused else 0


def planned(file: Path) -> Iterator[tuple[str, Record, Trial | str, Plan]]:
    """Yield each line of a file with its record, the trial that today's code plans (or why none), and the plan."""
    plans: dict[tuple[str, str], Plan] = {}
    contenders: dict[tuple[str, str], Contender | str] = {}
    lines = file.read_text(encoding="utf-8").splitlines()
    for line, record in zip(lines, read_records(file), strict=True):
        table = record.dataset, record.protocol
        if table not in plans:
            plans[table] = plan_of(record)
        key = record.dataset, record.label
        if key not in contenders:
            try:
                contenders[key] = contender_from_label(record.label, plans[table].data.dataset)
            except TsadbenchError as error:
                contenders[key] = str(error)
        contender = contenders[key]
        trial = contender if isinstance(contender, str) else Trial(contender, record.seed, record.threads)
        yield line, record, trial, plans[table]


def plan_of(record: Record) -> Plan:
    """Return a plan of the record's data set and protocol; its trials do not matter."""
    label = parse_label(record.protocol)
    settings = [f"{label.target}.{key}={value}" for key, value in label.arguments.items()]
    return make_plan(
        RunRequest(
            detectors=["all-positive"],
            datasets=[record.dataset],
            protocols=[label.target],
            settings=settings,
            floors=False,
        )
    )


def refused(record: Record, trial: Trial, plan: Plan) -> str:
    """Return why today's trial is not the recorded one; empty if it is."""
    contender, manifest = trial.contender, record.manifest
    versions = manifest.get("versions")
    here = contender.parameters
    pairs: dict[str, tuple[object, object]] = {
        "label": (record.label, contender.label),
        "protocol": (record.protocol, plan.protocol_label),
        # A parameter that came later has its default value, or it would be in the label.
        "parameters": (dict(record.parameters), {name: here.get(name) for name in record.parameters}),
        "data": (manifest.get("data_hash"), plan.data.dataset.content_hash),
        "labels": (manifest.get("labels_hash"), plan.data.labels.content_hash),
        "versions": (
            {name: version for name, version in versions.items() if name != "python"}
            if isinstance(versions, dict)
            else None,
            library_versions(),
        ),
        "adapted": (manifest.get("adapted", {}), adapted_versions(contender.description.libraries)),
        "status": (record.status, "ok"),
    }
    differing = (f"{name}: recorded {then}, here {now}" for name, (then, now) in pairs.items() if then != now)
    return next(differing, "")


def compared(table: str, record: Record, code: str, refitted: Sequence[Record], before: Sequence[Record]) -> str:
    """Print how a record and the same trial, fitted again by code of this fingerprint, compare.

    Returns
    -------
    str
        The first difference, if that code is to blame; empty if all is equal, if nobody fitted the trial again, or if
        the code that made the record gives today's result, too, on the machine where it was fitted again.
    """
    again = next((trial for trial in refitted if same_trial(trial, record) and made_with(trial, code)), None)
    if again is None:
        return ""
    difference = first_difference(record, again)
    if not difference:
        print(f"{table}, {record.label}, seed {record.seed}: equal to the bit")
        return ""
    recorded = str(record.manifest.get("code_hash"))
    old = next((trial for trial in before if same_trial(trial, record) and made_with(trial, recorded)), None)
    if old is not None and not first_difference(old, again):
        print(
            f"{table}, {record.label}, seed {record.seed}: equal to the bit to what the code of the record gives on "
            f"the same machine; the record was made on another one: {difference}"
        )
        return ""
    print(f"{table}, {record.label}, seed {record.seed}: {difference}")
    return f"fitted again it gives another result: {difference}"


def same_trial(one: Record, other: Record) -> bool:
    """Whether two records are of the same detector, data set, protocol, seed and number of threads."""
    names = ("label", "dataset", "protocol", "seed", "threads")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def made_with(record: Record, code: str) -> bool:
    """Whether a record was made with code of this fingerprint."""
    return record.manifest.get("code_hash") == code


def first_difference(recorded: Record, again: Record) -> str:
    """Return the first metric, count or threshold that differs; empty if none does."""
    if again.status != recorded.status:
        return f"status {again.status}: {again.reason}"
    if list(again.splits) != list(recorded.splits):
        return f"splits {list(again.splits)}, recorded {list(recorded.splits)}"
    for split, before in recorded.splits.items():
        now = again.splits[split]
        values = {**before.metrics, "rows": before.n_rows, "anomalous": before.n_anomalous, "coverage": before.coverage}
        here = {**now.metrics, "rows": now.n_rows, "anomalous": now.n_anomalous, "coverage": now.coverage}
        for name in dict.fromkeys([*values, *here]):
            if values.get(name) != here.get(name):
                return f"{name} on {split}: {here.get(name)!r}, recorded {values.get(name)!r}"
    if len(again.thresholds) != len(recorded.thresholds):
        return f"{len(again.thresholds)} thresholds, recorded {len(recorded.thresholds)}"
    for before, now in zip(recorded.thresholds, again.thresholds, strict=True):
        if before != now:
            return f"threshold of {before.episode}: {now.threshold}, recorded {before.threshold}"
    return ""


def rows_of(plan: Plan) -> int:
    """Return how many training and test rows each trial of a plan scores."""
    return sum(one.n_rows for episode in plan.episodes for one in (*episode.train, *episode.test))


def carried(line: str, record: Record, names: Identity, code: str, n_rows: int) -> str:
    """Return a record's line under today's identity, with the number of rows that the trial scored."""
    if record.rows_scored is None:
        line = line.replace(',"protocol_notes":', f',"rows_scored":{n_rows},"protocol_notes":', 1)
    line = line.replace(f'"trial":"{record.trial}"', f'"trial":"{names.trial}"', 1)
    line = re.sub(r'"code_hash":"[0-9a-f]*"', f'"code_hash":"{code}"', line, count=1)
    identities = f',"scoring":"{names.scoring}","judging":"{names.judging}"'
    line, n_replaced = re.subn(r',"scoring":"[^"]*","judging":"[^"]*"', identities, line, count=1)
    return line if n_replaced else f"{line[:-1]}{identities}}}"


if __name__ == "__main__":
    sys.exit(main())
