"""Checks tables: runs their trials again and compares each cell, or compares a table file with a run store."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from tsadbench.datasets.loading import loader
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, plan_of
from tsadbench.execution.record import RECORDS, Record, read_records
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.frame import metric_names, rows, trials
from tsadbench.leaderboard.render import Table, render
from tsadbench.utils.grouping import grouped
from tsadbench.utils.text import first_of

ROW = ["dataset", "protocol", "split", "detector"]
# Tolerance for deterministic detectors: another CPU's linear algebra may swap nearly equal scores (1e-5 on causrca).
EXACT = 1e-4
# For stochastic ones: three standard errors of the difference of two means, plus slack for a spread near 0.
SPREADS, SLACK = 3.0, 1e-3
# For detectors that do not forget: a variant of multiview moved by .0014 between two processors.
UNFORGOTTEN = 5e-3
# Most CPU seconds of a trial of the quick set. Few networks are that cheap; their last bits depend on the processor.
QUICK_SECONDS = 0.5
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def read_baselines(folder: Path) -> list[tuple[Record, ...]]:
    """Return the records of every table below a folder that `tsadbench leaderboard RUNS --write` has written.

    A UsageError if no table is found. A StoreError if a line is not a record.
    """
    records = [one for file in sorted(folder.glob(f"*/*/{RECORDS}")) for one in read_records(file)]
    if not records:
        written = "as `tsadbench leaderboard RUNS --write DIR` writes it"
        raise UsageError(f"--baseline {folder}: expected <data set>/<protocol>/{RECORDS} in it, {written}; found none")
    return list(grouped(records, lambda record: (record.dataset, record.rules)).values())


def quick(records: Sequence[Record]) -> list[Record]:
    """Return the records of those detectors whose trials are cheap."""
    fits = [one.fit_cpu_seconds or one.fit_seconds or 0.0 for one in records]
    scores = [one.score_cpu_seconds or one.score_seconds or 0.0 for one in records]
    costs = pd.Series(np.add(fits, scores)).groupby([one.label for one in records]).transform("mean")
    return [*compress(records, costs <= QUICK_SECONDS)]


def compared(baseline: Iterable[Record], records: Iterable[Record]) -> pd.DataFrame:
    """Return every cell of a baseline's tables: its row, ``metric``, ``baseline``, ``found``, ``tolerance``, ``holds``.

    Undefined equals only undefined. Metrics that an older baseline lacks have no cells; a failed trial's do not hold.
    """
    there, here = (rows(trials(some)).set_index(ROW) for some in (baseline, records))
    there = there[there["ok"]]
    here = here.reindex(index=there.index, columns=there.columns)
    n_here = here["seeds"].map(len, na_action="ignore").fillna(1).astype(float)
    errors = np.sqrt(1 / there["seeds"].map(len) + 1 / n_here)
    counted = np.array([one is not None and one.correlation is not None for one in there["replay"]])
    least = np.where(counted & ~there["forgets"], UNFORGOTTEN, 0.0)
    cells = []
    judged = [some[0].splits[split] for split, some in there["records"].reset_index("split").to_numpy()]
    for name in metric_names(there):
        tolerance = np.maximum((SPREADS * there[f"{name}_std"] * errors + SLACK).fillna(EXACT), least)
        means = {"baseline": there[f"{name}_mean"], "found": here[f"{name}_mean"].astype(float)}
        of_metric = pd.DataFrame({"metric": name, **means, "tolerance": tolerance})
        cells.append(of_metric[[name in one.metrics for one in judged]].reset_index())
    frame = pd.concat(cells).sort_index(kind="stable").reset_index(drop=True)
    undefined = frame["baseline"].isna() & frame["found"].isna()
    return frame.assign(holds=undefined | ((frame["found"] - frame["baseline"]).abs() <= frame["tolerance"]))


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
    """Run baselines again; return all their cells as `compared` does, and notes.

    A UsageError if nothing fits the restrictions, or a baseline is of another version of its protocol or data set.
    """
    source_of = dict(zip(loader(datasets)[0], datasets, strict=True))  # by name, the card or the name itself
    cells, notes = [], []
    for records in read_baselines(folder):
        dataset, protocol = records[0].dataset, records[0].protocol
        named = [one for one in records if not detectors or {one.label, one.detector} & {*detectors}]
        chosen = [one for one in (quick(named) if cheap else named) if one.status == "ok"]
        if chosen and (dataset in source_of or not datasets) and (protocol in protocols or not protocols):
            plans = _plans(chosen, source_of.get(dataset, dataset), seeds, directory)
            found = [record for plan in plans for record in run(plan)]
            cells.append(compared(chosen, found))
            sealed = {one.label for one in chosen if one.seal == "sealed"}
            lost = dict.fromkeys(one.label for one in found if one.seal != "sealed" and one.label in sealed)
            notes += [f"{dataset}, {protocol}: {label} was sealed, and is guarded here" for label in lost]
    if not cells:
        raise UsageError(f"--baseline {folder}: nothing there fits --set, --detector, --dataset and --protocol")
    return pd.concat(cells, ignore_index=True), notes


def _plans(baseline: Sequence[Record], dataset: str, seeds: int | None, directory: Path | None) -> Iterator[Plan]:
    """Yield plans of a table's trials: its rows may have run with different numbers of threads and seeds."""
    first = baseline[0]
    of_row = grouped(baseline, lambda record: (record.label, record.threads))
    n_seeds = {row: 1 + max(record.seed for record in some) for row, some in of_row.items()}
    for (threads, n_of_rows), alike in sorted(grouped(of_row, lambda row: (row[1], n_seeds[row])).items()):
        asked = {"seeds": min(seeds or n_of_rows, n_of_rows), "threads": threads, "data": directory}
        plan = plan_of([label for label, _ in alike], dataset, first.protocol, **asked, contributions=False)
        here = f"{first.protocol} {plan.protocol.version}, version {plan.data.dataset.version} of the data"
        if (there := f"{first.rules}, version {first.dataset_version} of the data") != here:
            raise UsageError(
                f"--baseline: the tables of {first.dataset} were made with {there}, but {here} is installed; make them "
                "again (`tsadbench leaderboard RUNS --write`), or choose others by --dataset and --protocol"
            )
        yield plan


def to_markdown(cells: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """Return a summary: counts per table, the cells that do not hold, and notes."""
    by = cells.assign(row=cells["split"] + cells["detector"]).groupby(["dataset", "protocol"], sort=False)
    counts = by.agg(rows=("row", "nunique"), cells=("row", "size"), left=("holds", lambda holds: (~holds).sum()))
    tables = [Table("Regression check", counts.rename(columns={"left": "left their tolerance"}).reset_index())]
    if not cells["holds"].all():
        broken = cells[~cells["holds"]].drop(columns="holds")
        tables.append(Table("Cells that left their tolerance", broken, {"baseline": 7, "found": 7, "tolerance": 7}))
    return render(tables, notes, "markdown")


def to_junit(cells: pd.DataFrame) -> str:
    """Return JUnit XML: a test suite per table, a test case per row, a failure if any of its cells does not hold."""
    top = ElementTree.Element("testsuites", name="tsadbench regress")
    for (dataset, protocol), table in cells.groupby(["dataset", "protocol"], sort=False):
        name, rows = f"{dataset}.{protocol}", table.groupby(["split", "detector"], sort=False)
        counts = {"tests": str(rows.ngroups), "failures": str((~rows["holds"].all()).sum())}
        suite = ElementTree.SubElement(top, "testsuite", {"name": name, **counts})
        for (split, detector), row in rows:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"{split}: {detector}")
            if not row["holds"].all():
                broken = row.loc[~row["holds"], ["metric", "baseline", "found", "tolerance"]]
                failure = ElementTree.SubElement(case, "failure", message=f"{len(broken)} cells left their tolerance")
                failure.text = broken.to_string(index=False, float_format="{:.7f}".format)
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def check_table(file: Path, board: Leaderboard) -> tuple[list[str], int]:
    """Return how a table that `Leaderboard` wrote differs from a store's rows, and the number of cells compared.

    A UsageError if the file cannot be read, or the store lacks its tables.
    """
    try:
        found = _cells(file.read_text(encoding="utf-8"), file.suffix)
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"--table {file}: expected CSV or Markdown (`leaderboard --format`): {error}") from error
    tables = found.index.unique("table")
    right = _cells(board.to_csv() if file.suffix == ".csv" else board.to_markdown(), file.suffix)
    right = right[right.index.get_level_values("table").isin(tables)]
    if right.empty:
        raise UsageError(f"--table {file}: the store has no table {first_of(tables, 3)}")
    both = pd.concat([found, right], axis=1, keys=["table", "store"])
    rows, columns = (both.isna().groupby(level=level).all() for level in (["table", "detector", "copy"], "column"))
    faults = [f"row {row[1]}: missing in the {side}" for side in rows for row in rows.index[rows[side]]]
    faults += [f"column {name}: missing in the store" for name in columns.index[columns["store"]]]
    for (_, row, _, column), printed, expected in both.dropna().itertuples():
        one, other = (list(map(Decimal, _NUMBER.findall(text))) for text in (printed, expected))
        # Half a unit of the last digit that the file prints.
        close = (abs(a - b) <= Decimal(5).scaleb(int(a.as_tuple().exponent) - 1) for a, b in zip(one, other))  # noqa: B905
        if _NUMBER.sub("#", printed) != _NUMBER.sub("#", expected) or not all(close):
            faults.append(f"row {row}, {column}: {printed!r} in the table, {expected!r} in the store")
    return faults, len(both.dropna())


def _cells(text: str, form: str) -> Any:
    """Return the cells of a file, indexed by table, detector, number of earlier rows of that detector, and column."""
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False}
    if form == ".csv":
        frame = pd.read_csv(io.StringIO(text), **options)
        keys = ["dataset", "protocol", "split"]
        frame = frame.assign(table=[", ".join(key) for key in frame[keys].to_numpy()]).drop(columns=keys)
    else:
        options |= {"sep": r"\s*(?<!\\)\|\s*", "engine": "python", "quoting": 3}
        _, *parts = re.split(r"^### (.*)\n", text, flags=re.MULTILINE)
        lines = (io.StringIO("\n".join(re.findall(r"^\|.*", part, re.MULTILINE))) for part in parts[1::2])
        read = zip(parts[::2], lines, strict=True)
        frame = pd.concat([pd.read_csv(one, **options).iloc[1:, 1:-1].assign(table=title) for title, one in read])
    frame["copy"] = frame.groupby(["table", "detector"]).cumcount()
    return frame.set_index(["table", "detector", "copy"]).rename_axis(columns="column").stack().dropna()
