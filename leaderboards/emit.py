"""Write the committed tables anew from their records and from verified submissions: nothing is run.

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
from tsadbench.results.submissions.listed import ranked_submissions, submissions_below

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--tables", type=Path, default=HERE, help="folder of the committed tables")
    top = parser.parse_args(arguments).tables
    files = [file for file in sorted(top.rglob(RECORDS)) if file.parent != top / "paper"]
    submitted = ranked_submissions(top)
    reports = [report for submission in submissions_below(top) for report in submission.reports]
    for file in files:
        more = submitted.get((file.parent.parent.name, file.parent.name), ()) if file.parents[2] == top else ()
        board = Leaderboard.from_records([*read_records(file), *more], checked_in=top, reports=reports)
        written = board.write_tables(file.parents[2])
        print(f"{file.parent.relative_to(top)}: {len(written)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
