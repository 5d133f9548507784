"""An audit as Markdown and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.analysis.audit.audit import Audit
from tsadbench.utils.markdown import optional_number, table_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = {"good": "✓", "note": "·", "fault": "✗"}


def markdown(found: Audit) -> str:
    """Return an audit as Markdown: verdicts, then the tables behind them."""
    parts = [f"# Audit of the data set {found.dataset}", ""]
    parts += [f"- {MARKS[finding.grade]} **{finding.about}**: {finding.sentence}" for finding in found.findings]
    parts += ["", f"{MARKS['good']} good, {MARKS['note']} to be known, {MARKS['fault']} makes tables worth less.", ""]
    for title, header, rows in tables(found):
        if rows:
            parts += [f"## {title}", "", *table_lines(header, rows), ""]
    return "\n".join(parts)


def tables(found: Audit) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the tables behind the verdicts: title, header, rows."""
    return [
        (
            "What predicts the label",
            ["predictor", "AUROC", "AUPRC"],
            [[one.name, optional_number(one.auroc), optional_number(one.auprc)] for one in found.predictors],
        ),
        (
            "Rows that recordings share",
            ["first", "second", "roles", "rows", "with two labels"],
            [
                [one.first, one.second, one.roles, f"{one.n_rows:,}", _count(one.n_contradicting)]
                for one in found.shared
            ],
        ),
        (
            "Normal test rows against training rows",
            ["split", "sensor", "training median", "test median", "z", "outside the training range"],
            [
                [
                    one.split,
                    one.sensor,
                    f"{one.train_median:.4g}",
                    f"{one.test_median:.4g}",
                    "never moves" if one.z is None else f"{one.z:+.1f}",
                    f"{one.outside:.1%}",
                ]
                for one in found.shifts
            ],
        ),
        (
            "Recordings",
            ["recording", "role", "rows", "anomalous", "from row", "step, s", "gaps", "repeated rows", "never moves"],
            [
                [
                    one.id,
                    one.role,
                    f"{one.n_rows:,}",
                    _count(one.n_anomalous),
                    _count(one.first_anomalous),
                    "-" if one.step_seconds is None else f"{one.step_seconds:g}",
                    ", ".join(f"{gap.seconds:g} s before row {gap.row}" for gap in one.gaps) or "-",
                    str(one.duplicates),
                    ", ".join(one.constant) or "-",
                ]
                for one in found.recordings
            ],
        ),
    ]


def draw(found: Audit, file: Path) -> None:
    """Write a figure: where the anomalies lie in each test recording, what predicts them, how far sensors have moved.

    Parameters
    ----------
    found
        The audit.
    file
        Its ending decides the format: .svg, .png or .pdf.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    UsageError
        If the file cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from tsadbench.reporting.figures.style import check_ending, save

    check_ending(file)
    test = [one for one in found.recordings if one.role == "test"]
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(11, max(4.0, 0.16 * len(test) + 1.5)), layout="constrained")
        where, telling, moved = figure.subplots(1, 3, width_ratios=(2, 1, 1.4))
        _draw_recordings(where, found)
        _draw_predictors(telling, found)
        _draw_shifts(moved, found)
        figure.suptitle(f"Audit of {found.dataset}")
        save(figure, file, salt=found.dataset)


def _draw_recordings(axes: Axes, found: Audit) -> None:
    test = [one for one in found.recordings if one.role == "test"]
    for place, one in enumerate(test):
        axes.barh(place, one.n_rows, color="#d9d9d9", height=0.8)
        if one.n_anomalous and one.first_anomalous is not None:
            axes.barh(place, one.n_anomalous, left=one.first_anomalous, color="#d55e00", height=0.8)
    axes.set_yticks(range(len(test)), [one.id for one in test], fontsize=6)
    axes.invert_yaxis()
    axes.set_title("Test recordings: rows, and as many anomalous\nones from the first one on")
    axes.set_xlabel("row")


def _draw_predictors(axes: Axes, found: Audit) -> None:
    known = [one for one in found.predictors if one.auroc is not None]
    axes.barh([one.name for one in known], [one.auroc or 0.0 for one in known], color="#0072b2")
    axes.axvline(0.5, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title("AUROC of what knows\nnothing of faults")


def _draw_shifts(axes: Axes, found: Audit) -> None:
    splits = list(dict.fromkeys(one.split for one in found.shifts))
    sensors = list(dict.fromkeys(one.sensor for one in found.shifts))
    z = {(one.split, one.sensor): one.z for one in found.shifts}
    values = [[z.get((split, sensor)) or 0.0 for split in splits] for sensor in sensors]
    limit = max((abs(value) for row in values for value in row), default=1.0) or 1.0
    image = axes.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
    axes.set_xticks(range(len(splits)), splits, rotation=90, fontsize=6)
    axes.set_yticks(range(len(sensors)), sensors, fontsize=6)
    axes.set_title("Median z-score of\nnormal test rows")
    axes.figure.colorbar(image, ax=axes)


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
