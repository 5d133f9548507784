"""Write the committed tables from their records. Nothing is run.

CI runs this and checks that nothing has changed. `make reproduce` writes the paper's tables; `quick` has records alone,
for `make regress`.

    python leaderboards/emit.py        # or: make tables
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tsadbench.execution.record import RECORDS, read_records
from tsadbench.leaderboard.board import Leaderboard, known_sessions

HERE = Path(__file__).parent
# The splits with a committed table (.gitignore): those that a person reads. () stands for all.
SPLITS: dict[str, tuple[str, ...]] = {"skab": (), "tep": ("overall", "detectable")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    top = parser.parse_args(arguments).tables
    for file in sorted([*top.glob(f"*/*/{RECORDS}"), *top.glob(f"pyod/*/*/{RECORDS}")]):
        splits = SPLITS.get(file.relative_to(top).parts[0], ("overall",))
        board = Leaderboard.from_records(read_records(file), splits, checked_in=top, sessions=known_sessions(top))
        written = board.write_tables(file.parents[2])
        print(f"{file.parent.relative_to(top)}: {len(written)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
