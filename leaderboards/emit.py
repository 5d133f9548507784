"""Write the committed tables anew from their records: nothing is run, and no record changes.

Needed if tables get a column. The paper's tables are not among them: `tsadbench reproduce` writes those.

    python leaderboards/emit.py        # or: make tables
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tsadbench.execution.records_file import RECORDS, read_records
from tsadbench.leaderboard.board import Leaderboard

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    top = parser.parse_args(arguments).tables
    files = [file for file in sorted(top.rglob(RECORDS)) if file.parent != top / "paper"]
    for file in files:
        written = Leaderboard.from_records(read_records(file), checked_in=top).write_tables(file.parents[2])
        print(f"{file.parent.relative_to(top)}: {len(written)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
