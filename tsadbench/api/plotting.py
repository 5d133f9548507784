"""Draws figures of stored trials for ``tsadbench plot`` and `tsadbench.Board.plot`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsadbench.analysis.sensor_graph import sensor_graph
from tsadbench.analysis.stored import Stored, select
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import check_ending, save
from tsadbench.utils.files import require_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(
    kind: str,
    runs: str | Path | Store,
    out: str | Path | None = None,
    *,
    recording: str | None = None,
    metrics: Sequence[str] = (),
    **choice: Any,
) -> Figure:
    """Draw a figure of stored trials; the same store gives the same file.

    ``kind`` is roc, precision-recall, recording, threshold, seeds, speed or graph; ``runs`` a run store or its folder;
    ``out`` the file to write, if any: .svg, .png or .pdf. ``recording`` is for recording and threshold, ``metrics`` are
    for seeds and speed. Other options choose trials, as for `select`: ``detectors``, ``split``, ``seed``, ``dataset``,
    ``protocol``, ``data``.
    """
    # Deriving a graph runs a detector's code, so the user must name it: a store may come from a stranger.
    for what, field, given in (("recording", "recording", recording), ("graph", "detectors", choice.get("detectors"))):
        if kind == what and not given:
            raise UsageError(f"a figure of kind {kind} shows one detector: name it", field=field)
    if out is not None:
        require_figure(Path(out))
    chosen = select(runs, everything=kind in ("seeds", "speed", "graph"), **choice)
    for row, reason in chosen.left_out.items():
        warnings.warn(f"left out: {row}: {reason}", stacklevel=2)
    from matplotlib.figure import Figure

    with figures.style():
        page = Figure(figsize=(6.0, 6.0), layout="constrained")
        _draw(kind, chosen, recording, metrics, page)
        if out is not None:
            save(page, Path(out))
    return page


def _draw(kind: str, chosen: Stored, recording: str | None, metrics: Sequence[str], page: Figure) -> None:
    """Draw one kind of figure on an empty canvas."""
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
            figures.graph(sensor_graph(chosen.results(one_each=True)[0]), page)
        case "seeds" | "speed":
            records = [record for of_row in chosen.rows["records"] for record in of_row]
            trials = figures.trial_frame(Leaderboard.from_records(records, [chosen.split]))
            figures.draw_trials("seeds" if kind == "seeds" else "speed", trials, metrics, page)
            title = f"{records[0].dataset} · {chosen.split} · protocol {records[0].rules}"
            page.suptitle(title, x=0.01, ha="left", parse_math=False)
        case _:
            raise UsageError(f"there is no figure {kind!r}", field="kind")


def require_figure(file: Path) -> None:
    """Raise a UsageError if a figure cannot be written to a file; called before long work."""
    check_ending(file)
    require_writable(file)
