"""Style of all figures: type, colours for the colour-blind, and files that are the same from run to run."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.figure import Figure

from tsadbench.errors import UsageError
from tsadbench.utils.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# Okabe and Ito's palette, which colour-blind readers can distinguish; without yellow, which is faint on white paper.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, BLACK, GREY = "#e69f00", "#56b4e9", "#000000", "#8c8c8c"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
ENDINGS = (".svg", ".png", ".pdf")


Dashes: TypeAlias = Literal["-", "-.", ":", "--"]
_DASHES: tuple[Dashes, ...] = ("-", "-.", ":")


class Look(NamedTuple):
    """Style of one detector, the same in every panel of a figure."""

    colour: str
    marker: str
    dashes: Dashes


@contextmanager
def style() -> Iterator[None]:
    """Apply the project's style inside the block; outside it, functions keep the caller's own."""
    with mpl.rc_context(
        {
            "font.family": ["sans-serif"],
            # The first ships with matplotlib, so the layout is the same everywhere; the others are for readers who
            # open an SVG without it.
            "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
            "font.size": 8.0,
            "axes.titlesize": 8.5,
            "axes.titlelocation": "left",
            "axes.labelsize": 8.0,
            "axes.linewidth": 0.6,
            "axes.edgecolor": "0.3",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "grid.color": "0.88",
            "grid.linewidth": 0.5,
            "xtick.labelsize": 7.0,
            "ytick.labelsize": 7.0,
            "xtick.major.width": 0.6,
            "ytick.major.width": 0.6,
            "xtick.minor.width": 0.4,
            "ytick.minor.width": 0.4,
            "legend.fontsize": 7.0,
            "legend.title_fontsize": 7.0,
            "legend.frameon": False,
            "lines.linewidth": 1.1,
            "path.simplify_threshold": 0.25,
            "savefig.dpi": 200.0,
        }
    ):
        yield


def looks(floors: Sequence[bool]) -> list[Look]:
    """Return the style of each detector, in order; floors are dashed and grey or black."""
    detectors = (
        Look(colour, marker, dashes)
        for dashes in cycle(_DASHES)
        for colour, marker in zip(PALETTE[:-1], MARKERS, strict=False)
    )
    of_floors = (Look(colour, "X", "--") for colour in cycle((BLACK, GREY, "0.75")))
    n_floors = sum(floors)
    chosen = {
        False: islice(detectors, len(floors) - n_floors),
        True: islice(of_floors, n_floors),
    }
    return [next(chosen[floor]) for floor in floors]


def plain(text: str, limit: int = 34) -> str:
    """Return a name that matplotlib shows unchanged: no formulas, one line, shortened in the middle if it is long."""
    one_line = " ".join(text.split()) or " "
    if len(one_line) > limit:
        head = (limit - 1) * 2 // 3
        one_line = f"{one_line[:head]}…{one_line[len(one_line) - (limit - 1 - head) :]}"
    # A legend omits labels that begin with an underscore.
    return one_line.replace("$", r"\$") if not one_line.startswith("_") else f" {one_line}".replace("$", r"\$")


def own_axes(axes: Axes | None, width: float = 5.6, height: float = 3.6) -> Axes:
    """Return the given axes, or those of a new figure, which a notebook shows by itself."""
    return axes if axes is not None else _new_figure(width, height).add_subplot()


def own_figure(figure: FigureBase | None, width: float, height: float) -> FigureBase:
    """Return the given figure or part of one, or a new figure, which a notebook shows by itself."""
    if figure is None:
        return _new_figure(width, height)
    if isinstance(figure, Figure) and not figure.axes:
        figure.set_size_inches(width, height)
    return figure


def _new_figure(width: float, height: float) -> Figure:
    with style():
        return pyplot.figure(figsize=(width, height), layout="constrained")


@contextmanager
def page(file: Path, width: float = 6.0, height: float = 6.0, *, salt: str = "tsadbench") -> Iterator[Figure]:
    """Give an empty figure, which no window or notebook shows, and write it to a file when the block ends."""
    check_ending(file)
    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    save(figure, file, salt)


def blank(axes: Axes, reason: str) -> None:
    """Write in a panel why there is nothing to draw."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, reason, ha="center", va="center", transform=axes.transAxes, color="0.35", wrap=True)


def save(figure: FigureBase, file: Path, salt: str = "tsadbench") -> None:
    """Write a figure; the same figure gives the same file, byte for byte.

    A UsageError if the ending is another, or the file cannot be written.
    """
    check_ending(file)
    ending = file.suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}), warnings.catch_warnings():
        # A sensor may be named in any script; an SVG shows it in the reader's fonts.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=ending[1:], metadata=metadata)  # type: ignore[attr-defined]
    write_file(file, drawn.getvalue())


def check_ending(file: Path) -> None:
    """Raise a UsageError if a file's ending is not a figure format."""
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(f"{file}: expected a name that ends in {', '.join(ENDINGS)}")
