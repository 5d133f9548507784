"""Figures of stored trials: what ``tsadbench plot`` and `tsadbench.Board.plot` draw."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.analysis.sensor_graph import offers_sensor_graph, sensor_graph
from tsadbench.base.dataset import LabelledDataset
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.selection import Selection, select
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import check_ending, save
from tsadbench.results.admission import refusal
from tsadbench.results.trial_result import TrialResult
from tsadbench.utils.files import require_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(
    kind: str,
    runs: str | Path | Store,
    out: str | Path | None = None,
    *,
    detectors: Sequence[str] = (),
    split: str | None = None,
    recording: str | None = None,
    metrics: Sequence[str] = (),
    seed: int | None = None,
    dataset: str | LabelledDataset | None = None,
    protocol: str | None = None,
    data: str | Path | None = None,
) -> Figure:
    """Draw a figure of stored trials; the same store gives the same file.

    Parameters
    ----------
    kind
        ``roc``, ``precision-recall``, ``recording``, ``threshold``, ``seeds``, ``speed`` or ``graph``.
    runs, out
        A run store, or its folder; the file to write, if any: .svg, .png or .pdf.
    detectors
        Labels (default: the best five by AUPRC and the best floor; seeds, speed: all; graph: the best that has one).
    split, seed
        The split to show and to rank by; the seed, by default all where a figure shows several.
    recording, metrics
        The test recording, for kinds recording and threshold; the metrics, for kinds seeds and speed.
    dataset, protocol, data
        Needed if the store has several; the folder with the data sets' folders.
    """
    if kind == "recording" and recording is None:
        raise UsageError("a figure of the kind recording draws one recording: name it", field="recording")
    if out is not None:
        require_figure(Path(out))
    chosen = select(
        runs,
        dataset=dataset,
        protocol=protocol,
        detectors=detectors,
        split=split,
        seed=seed,
        data=data,
        everything=kind in ("seeds", "speed", "graph"),
    )
    for line in chosen.left_out:
        warnings.warn(f"left out: {line}", stacklevel=2)
    from matplotlib.figure import Figure

    with figures.style():
        page = Figure(figsize=(6.0, 6.0), layout="constrained")
        _draw(kind, chosen, recording, metrics, page, named=bool(detectors))
        if out is not None:
            save(page, Path(out))
    return page


def _draw(
    kind: str, chosen: Selection, recording: str | None, metrics: Sequence[str], page: Figure, *, named: bool
) -> None:
    """Draw one kind of figure on an empty page; ``named``: the user has named the detectors."""
    match kind:
        case "roc" | "precision-recall":
            page.set_size_inches(6.2, 3.9)
            curves = figures.roc if kind == "roc" else figures.precision_recall
            curves(chosen.results(), page.add_subplot(), chosen.split)
        case "recording":
            figures.recording(chosen.results(one_each=True), recording or "", page)
        case "threshold":
            figures.threshold(chosen.results(one_each=True), page, chosen.split, recording)
        case "graph":
            figures.graph(sensor_graph(_with_graph(chosen, named=named)), page)
        case "seeds" | "speed":
            records = [record for of_row in chosen.rows["records"] for record in of_row]
            trials = figures.trial_frame(Leaderboard.from_records(records, [chosen.split]))
            figures.draw_trials("seeds" if kind == "seeds" else "speed", trials, metrics, page)
            title = f"{records[0].dataset} · {chosen.split} · protocol {records[0].rules}"
            page.suptitle(title, x=0.01, ha="left", parse_math=False)
        case _:
            raise UsageError(f"there is no figure {kind!r}", field="kind")


def _with_graph(chosen: Selection, *, named: bool) -> TrialResult:
    """Return a trial of the best detector that works on a sensor graph; of the best detector if none does.

    Code and files that a store names are used only if the user has named the detector.
    """
    first = [records[0] for records in chosen.rows["records"]]
    admitted = [record for record in first if named or not refusal(record)]
    if not admitted:
        message = f"name one of {', '.join(chosen.rows['detector'])}, which runs its code"
        raise UsageError(message, field="detectors")
    best = next(filter(offers_sensor_graph, admitted), admitted[0])
    return chosen.only(best.label).results(one_each=True)[0]


def require_figure(file: Path) -> None:
    """Raise a UsageError before long work if a figure cannot be written to a file."""
    check_ending(file)
    require_writable(file)
