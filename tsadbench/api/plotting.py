"""Draws figures of stored trials for ``tsadbench plot`` and `tsadbench.Board.plot`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsadbench.analysis.sensor_graph import sensor_graph
from tsadbench.analysis.stored import select
from tsadbench.base.recording import Series, as_recording
from tsadbench.errors import UsageError
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.reporting import figures
from tsadbench.reporting.figures.style import check_ending, page
from tsadbench.results.trial_result import ScoredRecording
from tsadbench.serving.model import Model
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
            raise UsageError(f"a figure of kind {kind} needs one; name it", field=field)
    file = require_figure(out)
    chosen = select(runs, everything=kind in ("seeds", "speed", "graph"), **choice)
    for row, reason in chosen.left_out.items():
        warnings.warn(f"left out: {row}: {reason}", stacklevel=2)
    with figures.style(), page(file) as figure:
        match kind:
            case "roc" | "precision-recall":
                figure.set_size_inches(6.2, 3.9)
                curves = figures.roc if kind == "roc" else figures.precision_recall
                curves(chosen.results(), figure.add_subplot(), chosen.split)
            case "recording":
                figures.recording(chosen.results(one_each=True), recording or "", figure)
            case "threshold":
                figures.threshold(chosen.results(one_each=True), figure, chosen.split, recording)
            case "graph":
                figures.graph(sensor_graph(chosen.results(one_each=True)[0]), figure)
            case "seeds" | "speed":
                trials = figures.trial_frame(Leaderboard(chosen.trials, frame=chosen.rows))
                figures.draw_trials("seeds" if kind == "seeds" else "speed", trials, metrics, figure)
                title = f"{chosen.first.dataset} · {chosen.split} · protocol {chosen.first.rules}"
                figure.suptitle(title, x=0.01, ha="left", parse_math=False)
            case _:
                raise UsageError(f"there is no figure {kind!r}", field="kind")
    return figure


def plot_scores(
    model: Model, rows: Series, out: str | Path | None = None, *, answers: pd.DataFrame | None = None, name: str = ""
) -> Figure:
    """Draw rows that a model scores: the sensors that contributed most, the score, its threshold, flagged stretches.

    ``rows`` are a data frame (its index may be times), a recording or an array; ``out`` is the file to write, if any:
    .svg, .png or .pdf; ``name`` is the title. ``answers`` are the model's answers to these rows, if known already;
    only then may values be missing.
    """
    file = require_figure(out)
    if answers is None:
        answers = model.score(rows, contributions=model.detector.offers_contributions())
    one = replace(as_recording(rows.ffill().bfill() if isinstance(rows, pd.DataFrame) else rows), id=name or "rows")
    scores, parts = answers["score"].to_numpy(np.float64), answers.filter(regex="^contribution_").to_numpy(np.float32)
    known, kept = ~np.isnan(scores), parts if parts.size else None
    limits = np.full(len(scores), model.card.threshold.value)
    with figures.style(), page(file) as figure:
        figures.alarms(ScoredRecording(one, ~known, scores, known, "", limits, kept), model.card.label, figure)
    return figure


def require_figure(out: str | Path | None) -> Path | None:
    """Return a figure's path, if any; raise a UsageError, before long work, if it cannot be written."""
    file = None if out is None else Path(out)
    if file is not None:
        check_ending(file)
        require_writable(file)
    return file
