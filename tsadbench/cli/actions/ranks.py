"""Write rankings over several data sets: tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.analysis.significance.ranks import Ranks
from tsadbench.analysis.significance.suite_ranks import SuiteRanking
from tsadbench.datasets.suites import suite_named
from tsadbench.errors import UsageError
from tsadbench.reporting.figures.style import check_ending
from tsadbench.reporting.figures.suites import draw
from tsadbench.utils.atomic_files import require_writable, write_file

MARKDOWN, CSV, FIGURE = "rank.md", "rank.csv", "rank.svg"


def write_all(ranks: Ranks, write: Path | None, figure: Path | None) -> None:
    """Write ``<suite>/rank.md``, ``.csv`` and ``.svg`` below a folder, and a figure."""
    if write is not None:
        for ranking in ranks.over_all:
            _write_suite(ranks, ranking, write / ranking.suite.partition(" ")[0])
    if figure is not None:
        if not ranks.over_all:
            raise UsageError(
                "--figure draws a ranking over several data sets; here no two detectors have ranks on several"
            )
        draw(ranks.over_all[0], figure)


def check_outputs(suites: Sequence[str], write: Path | None, figure: Path | None) -> None:
    """Raise a UsageError before long work if its results could not be written."""
    if write is not None and not suites:
        raise UsageError("--write expects --suite: below DIR each suite has a folder")
    files = [write / suite_named(name).name / MARKDOWN for name in suites] if write is not None else []
    for file in files:
        require_writable(file)
    if figure is not None:
        require_figure(figure)


def require_figure(file: Path) -> None:
    """Raise a UsageError before long work if a figure cannot be written to a file."""
    check_ending(file)
    require_writable(file)


def _write_suite(ranks: Ranks, ranking: SuiteRanking, folder: Path) -> None:
    on_each = Ranks(tuple(one for one in ranks.rankings if one.dataset in ranking.datasets), ranks.resampled)
    picture = f"![Mean ranks, and which row is better than which on how many data sets]({FIGURE})\n"
    write_file(folder / MARKDOWN, f"{ranking.to_markdown()}\n{picture}\n{on_each.to_markdown()}")
    write_file(folder / CSV, ranking.to_csv())
    draw(ranking, folder / FIGURE)
