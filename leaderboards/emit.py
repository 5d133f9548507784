"""Write the committed tables and the rankings over suites from their records. Nothing is run.

CI runs this and checks that nothing has changed. `make reproduce` writes the paper's tables; `quick` has records alone,
for `make regress`.

    python leaderboards/emit.py        # or: make tables
"""

from __future__ import annotations

from pathlib import Path

from tsadbench.analysis.significance.rank import joined, rank
from tsadbench.datasets.loading import SUITES
from tsadbench.execution.record import RECORDS, read_records
from tsadbench.leaderboard.board import Leaderboard, known_sessions
from tsadbench.reporting.figures.significance import draw_ranking
from tsadbench.utils.files import write_file

HERE = Path(__file__).parent
# The splits with a committed table (.gitignore): those that people read. () means all.
SPLITS: dict[str, tuple[str, ...]] = {"skab": (), "tep": ("overall", "detectable")}


def main() -> None:
    """Write the tables, then the rankings over suites; their rank.md also ranks each data set."""
    for file in sorted([*HERE.glob(f"*/*/{RECORDS}"), *HERE.glob(f"pyod/*/*/{RECORDS}")]):
        splits = SPLITS.get(file.relative_to(HERE).parts[0], ("overall",))
        board = Leaderboard.from_records(read_records(file), splits, checked_in=HERE, sessions=known_sessions(HERE))
        written = board.write_tables(file.parents[2])
        print(f"{file.parent.relative_to(HERE)}: {len(written)} files")
    for name in SUITES:
        ranks, folder = rank(HERE, suites=[name]), HERE / "suites" / name
        (ranking,), of_each = ranks.over_all, joined(ranks.rankings, ())
        picture = "![Mean ranks with their 90 % intervals](rank.svg)\n"
        write_file(folder / "rank.md", f"{ranking.to_markdown()}\n{picture}\n{of_each.to_markdown()}")
        write_file(folder / "rank.csv", ranking.to_csv())
        draw_ranking(ranking, folder / "rank.svg")


if __name__ == "__main__":
    main()
