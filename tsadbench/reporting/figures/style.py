"""Style of all figures: fonts, colours for colour-blind readers, and reproducible files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import matplotlib as mpl
from markupsafe import Markup
from matplotlib import pyplot
from matplotlib.figure import Figure

from tsadbench.errors import UsageError
from tsadbench.utils.files import write_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

# Okabe and Ito's palette for colour-blind readers, and six more colours for figures with many series.
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (
    BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, "#7a5bd0", "#b3225c", "#7f8c1f", "#9c5a2e", "#1aa6a6", "#5c6f82",
)  # fmt: skip
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "p", "h")
# Pages replace these by their own colours of text, lines and paper (`inline_svg`).
INK, GREY, GRID, PAPER = "#1a1a1b", "#8c8c8d", "#e0e0e1", "#fefeff"
ENDINGS = (".svg", ".png", ".pdf")

Dashes: TypeAlias = Literal["-", "-.", ":", "--"]


class Look(NamedTuple):
    """Style of one detector, the same in every panel of a figure."""

    colour: str
    marker: str
    dashes: Dashes


@contextmanager
def style() -> Iterator[None]:
    """Apply the project's style inside the block; otherwise, functions keep the caller's style."""
    with mpl.style.context("tsadbench.reporting.figures.tsadbench"):
        yield


def looks(floors: Sequence[bool]) -> list[Look]:
    """Return each detector's style, in order: twelve colours and markers; floors are dashed and grey."""
    lines: tuple[Dashes, ...] = ("-", "-.", ":")
    detectors = (
        Look(colour, marker, dashes) for dashes in cycle(lines) for colour, marker in zip(PALETTE, MARKERS, strict=True)
    )
    grey = (Look(colour, "X", "--") for colour in cycle((GREY, "0.35", "0.72")))
    n_floors = sum(floors)
    chosen = {False: islice(detectors, len(floors) - n_floors), True: islice(grey, n_floors)}
    return [next(chosen[floor]) for floor in floors]


def plain(text: str, limit: int = 34) -> str:
    """Return a name that matplotlib shows unchanged: no formulas, one line, long names shortened in the middle."""
    one_line = " ".join(text.split()) or " "
    if len(one_line) > limit:
        head = (limit - 1) * 2 // 3
        one_line = f"{one_line[:head]}…{one_line[len(one_line) - (limit - 1 - head) :]}"
    # A legend omits labels that begin with an underscore.
    return (f" {one_line}" if one_line.startswith("_") else one_line).replace("$", r"\$")


def own_axes(ax: Axes | None, width: float = 5.6, height: float = 3.6) -> Axes:
    """Return the given axes, or the axes of a new figure, which notebooks show automatically."""
    return ax if ax is not None else _new_figure(width, height).add_subplot()


def own_figure(figure: FigureBase | None, width: float, height: float) -> FigureBase:
    """Return the given figure or subfigure, or a new figure, which notebooks show automatically."""
    if figure is None:
        return _new_figure(width, height)
    if isinstance(figure, Figure) and not figure.axes:
        figure.set_size_inches(width, height)
    return figure


def _new_figure(width: float, height: float) -> Figure:
    with style():
        return pyplot.figure(figsize=(width, height), layout="constrained")


class _Page(Figure):
    def _repr_png_(self) -> bytes:  # notebooks can show it, although pyplot did not create it
        return _bytes(self, "png", "tsadbench")


@contextmanager
def page(file: Path | None, width: float = 6.0, height: float = 6.0, *, salt: str = "tsadbench") -> Iterator[Figure]:
    """Provide an empty figure that is not shown automatically; write it to a file, if any, when the block ends."""
    figure = _Page(figsize=(width, height), layout="constrained")
    yield figure
    if file is not None:
        save(figure, file, salt)


def blank(ax: Axes, reason: str) -> None:
    """Write into a panel why it is empty."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, reason, ha="center", va="center", transform=ax.transAxes, color=GREY, wrap=True)


def save(figure: Figure, file: Path, salt: str = "tsadbench") -> None:
    """Write a figure; the same figure gives the same file, byte for byte.

    Raises a UsageError if the ending is unknown, or the file cannot be written.
    """
    check_ending(file)
    write_file(file, _bytes(figure, file.suffix.lower()[1:], salt))


@contextmanager
def panel(name: str, width: float, height: float) -> Iterator[tuple[Axes, list[Markup]]]:
    """Provide the axes of a new figure in the project's style, and a list that has its SVG after the block."""
    svg: list[Markup] = []
    with style():
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure.add_subplot(), svg
        svg.append(Markup(inline_svg(figure, name)))


def inline_svg(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element in the page's colours, at most as wide as its column.

    The page may set ``--ink``, ``--muted``, ``--grid`` and ``--paper``. ``name`` must be unique on the page.
    """
    text = _bytes(figure, "svg", name, transparent=True).decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    width = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', text)
    if width:
        shown = f'style="width:100%;max-width:{float(width[1]) * 4 / 3:.0f}px;height:auto"'
        text = text.replace(width[0], shown, 1)
    text = re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{name}-", text)
    for colour, variable in ((INK, "ink"), (GREY, "muted"), (GRID, "grid"), (PAPER, "paper")):
        text = text.replace(colour, f"var(--{variable}, {colour})")
    # Markdown ends a block of HTML at an empty line.
    return "\n".join(line for line in text.splitlines() if line.strip())


def _bytes(figure: Figure, ending: str, salt: str, *, transparent: bool = False) -> bytes:
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(ending)
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}), warnings.catch_warnings():
        # Sensor names may use any script; an SVG shows them in the reader's fonts.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=ending, metadata=metadata, transparent=transparent)
    return drawn.getvalue()


def check_ending(file: Path) -> None:
    """Raise a UsageError if a file's ending is not a figure format."""
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(f"{file}: expected a name that ends in {', '.join(ENDINGS)}")
