"""A prior as a figure: sensors on a circle, subsystems side by side, edges as arrows, the surer the darker."""

from __future__ import annotations

import math
from pathlib import Path

from tsadbench.errors import MissingExtraError, UsageError
from tsadbench.prior import Prior

_ENDINGS = (".svg", ".png", ".pdf")


def draw(prior: Prior, file: Path) -> None:
    """Draw a prior.

    Parameters
    ----------
    prior
        The prior.
    file
        Where to: .svg, .png or .pdf.

    Raises
    ------
    UsageError
        Where the ending is another, or the file cannot be written.
    MissingExtraError
        Where matplotlib is not installed.
    """
    if file.suffix.lower() not in _ENDINGS:
        raise UsageError(f"{file}: expected a name that ends in {', '.join(_ENDINGS)}")
    try:
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing a prior", "report") from error
    subsystem = {sensor.name: sensor.subsystem for sensor in prior.sensors}
    ends = dict.fromkeys(end for edge in prior.edges for end in (edge.source, edge.target))
    names = sorted({**ends, **subsystem}, key=lambda name: (subsystem.get(name, ""), name))
    parts = sorted({subsystem.get(name, "") for name in names})
    place = {
        name: (math.cos(2 * math.pi * i / len(names)), math.sin(2 * math.pi * i / len(names)))
        for i, name in enumerate(names)
    }
    size = min(16.0, 6.0 + 0.15 * len(names))
    figure = Figure(figsize=(size, size))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for edge in prior.edges:
        axes.annotate(
            "",
            xy=place[edge.target],
            xytext=place[edge.source],
            arrowprops={
                "arrowstyle": "-|>",
                "color": "0.25",
                "alpha": 1.0 if edge.votes is None else 0.2 + 0.8 * edge.votes,
                "shrinkA": 9,
                "shrinkB": 9,
                "connectionstyle": "arc3,rad=0.12",
            },
        )
    colours = colormaps["tab10"]
    for name, (x, y) in place.items():
        colour = colours(parts.index(subsystem.get(name, "")) % 10)
        axes.plot(x, y, "o", color=colour, markersize=11)
        angle = math.degrees(math.atan2(y, x))
        flipped = x < -1e-9
        axes.text(
            1.08 * x,
            1.08 * y,
            name,
            ha="right" if flipped else "left",
            va="center",
            rotation=angle + 180 if flipped else angle,
            rotation_mode="anchor",
            fontsize=9,
            parse_math=False,
        )
    for i, part in enumerate(parts):
        if part:
            axes.plot([], [], "o", color=colours(i % 10), label=part)
    if any(parts):
        axes.legend(loc="lower left", bbox_to_anchor=(-0.15, -0.15), frameon=False, fontsize=9)
    axes.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), aspect="equal")
    axes.set_axis_off()
    try:
        figure.savefig(file, bbox_inches="tight", metadata={"Date": None} if file.suffix == ".svg" else None)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror or error})") from error
