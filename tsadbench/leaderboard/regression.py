"""Runs the trials of committed leaderboards again and compares every cell with its tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import CARD_ENDING, load_dataset
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plan
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.execution.request import RunRequest
from tsadbench.leaderboard.frame import rows, trials
from tsadbench.leaderboard.render import Table, render
from tsadbench.results.trial_result import protocol_of
from tsadbench.utils.grouping import grouped
from tsadbench.utils.parameters import parse_label
from tsadbench.utils.text import printable

ROW = ["dataset", "protocol", "split", "detector"]
# Of a deterministic detector: another processor's linear algebra may swap rows of nearly equal score. An order that an
# information criterion chose moved by 1.4e-6 (arima on SKAB), switches whose rows repeat by 1e-5 (t2 on causrca).
EXACT = 1e-5
# Of a stochastic one: three standard errors of the difference of two means, and a little for a spread of nearly 0.
SPREADS, SLACK = 3.0, 1e-3
# Of one that does not forget: multiview[adaptive=on] moved by .0014 between two processors.
UNFORGOTTEN = 5e-3
# What a trial of the quick set may have cost when the baseline was made, in CPU seconds. Few networks are so cheap, and
# their last bits depend on the processor.
QUICK_SECONDS = 0.5


def read_baselines(folder: Path) -> list[tuple[Record, ...]]:
    """Return the records of every table below a folder that `tsadbench run --write` has written.

    A UsageError if no table is found. A StoreError if a line is not a record.
    """
    files = sorted(folder.glob(f"*/*/{RECORDS}"))
    found = [grouped(read_records(file), lambda record: (record.dataset, record.rules)).values() for file in files]
    if not any(found):
        raise UsageError(
            f"--baseline {folder}: expected a folder with <data set>/<protocol>/{RECORDS} in it, as "
            f"`tsadbench run --write {folder}` writes it; found none"
        )
    return [records for of_file in found for records in of_file]


def quick(records: Iterable[Record]) -> list[Record]:
    """Return the records of those detectors whose trials are cheap."""
    frame = pd.DataFrame([(one, one.label, _cost(one)) for one in records], columns=["record", "label", "cost"])
    return frame.loc[frame.groupby("label")["cost"].transform("mean") <= QUICK_SECONDS, "record"].tolist()


def _cost(record: Record) -> float:
    fit, score = record.fit_cpu_seconds or record.fit_seconds, record.score_cpu_seconds or record.score_seconds
    return (fit or 0.0) + (score or 0.0)


def compared(baseline: Iterable[Record], records: Iterable[Record]) -> pd.DataFrame:
    """Return every cell of a baseline's tables: its row, ``metric``, ``baseline``, ``found``, ``tolerance``, ``holds``.

    Undefined equals only undefined. A trial that failed although the baseline's did not has no metrics, so its cells do
    not hold.
    """
    there, here = rows(trials(baseline)), rows(trials(records))
    there = there[there["ok"]].set_index(ROW)
    here = here.set_index(ROW).reindex(index=there.index, columns=there.columns)
    n_here = here["seeds"].map(len, na_action="ignore").fillna(1)
    errors = np.sqrt(1 / there["seeds"].map(len) + 1 / n_here.astype(float))
    counted = np.array([one is not None and one.correlation is not None for one in there["replay"]])
    least = np.where(counted & ~there["forgets"], UNFORGOTTEN, 0.0)
    cells = []
    for name in [name[:-4] for name in map(str, there) if name.endswith("_std") and not name.endswith("_entity_std")]:
        tolerance = np.maximum((SPREADS * there[f"{name}_std"] * errors + SLACK).fillna(EXACT), least)
        means = {"baseline": there[f"{name}_mean"], "found": here[f"{name}_mean"].astype(float)}
        cells.append(pd.DataFrame({"metric": name, **means, "tolerance": tolerance}).reset_index())
    frame = pd.concat(cells).sort_index(kind="stable").reset_index(drop=True)
    undefined = frame["baseline"].isna() & frame["found"].isna()
    return frame.assign(holds=undefined | ((frame["found"] - frame["baseline"]).abs() <= frame["tolerance"]))


def lost_seals(baseline: Iterable[Record], records: Iterable[Record]) -> list[str]:
    """Return a note on each row that ran sealed in the baseline and is guarded now; no cell of it breaks."""
    there, here = (rows(trials(some)).drop_duplicates("detector") for some in (baseline, records))
    sealed = there.loc[there["seal"] == "sealed", "detector"]
    lost = here[here["detector"].isin(sealed) & (here["seal"] != "sealed")]
    return [
        f"{dataset}, {protocol}: {detector} ran sealed in the baseline, and is guarded here: "
        f"{'; '.join(reasons) or 'no reason was recorded'}"
        for dataset, protocol, detector, reasons in lost[["dataset", "protocol", "detector", "seal_reasons"]].to_numpy()
    ]


def run_again(
    folder: Path,
    *,
    run: Callable[[Plan], Sequence[Record]],
    cheap: bool = False,
    detectors: Sequence[str] = (),
    datasets: Sequence[str] = (),
    protocols: Sequence[str] = (),
    seeds: int | None = None,
    directory: Path | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Run baselines again; return every cell of theirs as `compared` does, and notes.

    A UsageError if nothing fits the restrictions, or another version of a protocol judged a baseline.
    """
    cards = {card: load_dataset(card)(DataOptions()).dataset.name for card in datasets if card.endswith(CARD_ENDING)}
    names = [cards.get(name, name) for name in datasets]
    cells: list[pd.DataFrame] = []
    notes: list[str] = []
    for records in read_baselines(folder):
        first = records[0]
        if (names and first.dataset not in names) or (protocols and first.protocol not in protocols):
            continue
        named = [one for one in records if not detectors or {one.label, one.detector} & {*detectors}]
        if chosen := quick(named) if cheap else named:
            dataset = next((card for card, name in cards.items() if name == first.dataset), first.dataset)
            found = _records(chosen, dataset, run, seeds, directory)
            cells.append(compared(chosen, found))
            notes += lost_seals(chosen, found)
    if not cells:
        raise UsageError(f"--baseline {folder}: nothing there fits --set, --detector, --dataset and --protocol")
    return pd.concat(cells, ignore_index=True), notes


def _records(
    baseline: Sequence[Record],
    dataset: str,
    run: Callable[[Plan], Sequence[Record]],
    seeds: int | None,
    directory: Path | None,
) -> list[Record]:
    first = baseline[0]
    if first.protocol_version != (version := protocol_of(first).version):
        raise UsageError(
            f"--baseline: the tables of {first.dataset} are of protocol {first.rules}, and version {version} is "
            "installed: make them again (`tsadbench run --write`), or choose others by --dataset and --protocol"
        )
    protocol = parse_label(first.protocol)
    records: list[Record] = []
    # Rows of one table may have run with different numbers of threads and seeds; the mean of more seeds differs.
    of_row = grouped(baseline, lambda record: (record.label, record.threads))
    n_seeds = {row: 1 + max(record.seed for record in some) for row, some in of_row.items()}
    for (threads, n_of_rows), alike in sorted(grouped(of_row, lambda row: (row[1], n_seeds[row])).items()):
        request = RunRequest(
            detectors=[label for label, _ in alike],
            datasets=[dataset],
            protocols=[protocol.target],
            settings={f"{protocol.target}.{key}": value for key, value in protocol.arguments.items()},
            seeds=min(seeds or n_of_rows, n_of_rows),
            threads=threads,
            floors=False,
            data=directory,
            contributions=False,
        )
        plan = make_plan(request)
        if plan.data.dataset.version != first.dataset_version:
            raise UsageError(
                f"--baseline: the tables of {first.dataset} are of version {first.dataset_version} of the data, and "
                f"version {plan.data.dataset.version} is installed: make them again"
            )
        records += run(plan)
    return records


def to_markdown(cells: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """Return a summary: what holds and, cell by cell, what does not; then notes."""
    by = cells.assign(row=cells["split"] + cells["detector"]).groupby(["dataset", "protocol"], sort=False)
    counts = by.agg(rows=("row", "nunique"), cells=("row", "size"), left=("holds", lambda holds: (~holds).sum()))
    tables = [Table("Regression check", counts.rename(columns={"left": "left their tolerance"}).reset_index())]
    if not cells["holds"].all():
        broken = cells[~cells["holds"]].drop(columns="holds")
        tables.append(Table("Cells that left their tolerance", broken, {"baseline": 7, "found": 7, "tolerance": 7}))
    return render(tables, notes, "markdown")


def to_junit(cells: pd.DataFrame) -> str:
    """Return JUnit XML: a test suite per table, a test case per row, a failure if cells of it do not hold.

    XML has no characters that cannot be printed, not even as references.
    """
    top = ElementTree.Element("testsuites", name="tsadbench regress")
    for (dataset, protocol), table in cells.groupby(["dataset", "protocol"], sort=False):
        cases = table.groupby(["split", "detector"], sort=False)
        counts = {"tests": str(cases.ngroups), "failures": str(int((~cases["holds"].all()).sum()))}
        suite = ElementTree.SubElement(top, "testsuite", {"name": printable(f"{dataset}.{protocol}"), **counts})
        for (split, detector), row in cases:
            about = {"classname": suite.attrib["name"], "name": printable(f"{split}: {detector}")}
            case = ElementTree.SubElement(suite, "testcase", about)
            broken = [
                f"{one.metric}: baseline {one.baseline:.7f}, found {one.found:.7f}, tolerance {one.tolerance:.2g}"
                for one in row[~row["holds"]].itertuples()
            ]
            if broken:
                failure = ElementTree.SubElement(case, "failure", message=f"{len(broken)} cells left their tolerance")
                failure.text = "\n".join(broken)
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"
