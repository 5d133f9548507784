"""The comment on a pull request with a submission: its rows beside floors and neighbours, or why it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tsadbench.errors import UsageError
from tsadbench.execution.check_reports import CheckReport
from tsadbench.execution.record import Record
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.presentation import Presentation
from tsadbench.leaderboard.ranking import Row, splits_of
from tsadbench.results.submissions.folder import Fault
from tsadbench.utils.grouping import grouped
from tsadbench.utils.markdown import plain, plain_table

# On each side of a new row, among the detectors.
_NEIGHBOURS = 2
# What a comment has room for, of a thousand files.
_MOST_FAULTS = 50


def refusal_comment(name: str, faults: Sequence[Fault]) -> str:
    """Return the comment on a submission that is refused: a reason for each file."""
    shown = faults[:_MOST_FAULTS]
    more = [f"\nand {len(faults) - len(shown)} more"] if len(faults) > len(shown) else []
    return "\n".join(
        [
            f"### Submission {plain(name)}: refused",
            "",
            *plain_table(["file", "reason"], [(fault.file, fault.reason) for fault in shown]),
            *more,
            "",
            "Nothing of it is listed. The same runs with `tsadbench verify` on your machine; "
            "docs/submitting.md says what each file must be.",
            "",
        ]
    )


def acceptance_comment(
    name: str,
    records: Sequence[Record],
    reports: Iterable[CheckReport],
    committed: Callable[[str, str], Sequence[Record]],
    remarks: Sequence[str] = (),
) -> str:
    """Return the comment on a submission that is not refused: each new row beside floors and neighbours.

    Parameters
    ----------
    name
        The submission's.
    records
        Its trials, with the trust that their rows have now.
    reports
        Of checks of its detectors.
    committed
        Returns the committed records of a data set and protocol.
    remarks
        What running code again gave, one line each.
    """
    known = tuple(reports)
    trusts: Mapping[str, tuple[Record, ...]] = grouped(records, lambda record: record.trust)
    counts = ", ".join(f"{len(_rows(of_trust))} {trust}" for trust, of_trust in trusts.items())
    lines = [f"### Submission {plain(name)}: verified", "", f"Rows by trust: {counts}.", ""]
    lines += [f"- {plain(remark)}" for remark in remarks]
    for (dataset, protocol), of_table in grouped(records, lambda record: (record.dataset, record.protocol)).items():
        beside = [*committed(dataset, protocol), *of_table]
        split = "overall" if "overall" in splits_of(of_table) else splits_of(of_table)[0]
        board = Leaderboard.from_records(beside, [split], reports=known)
        labels = {record.label for record in of_table}
        chosen = _with_neighbours(board.rows, labels)
        shown = board.presented(Presentation(detectors=tuple(chosen), order="auprc"))
        lines += ["", f"New in {plain(dataset)}, {plain(protocol)}: {', '.join(map(plain, sorted(labels)))}.", ""]
        lines.append(shown.to_markdown().rstrip())
    return "\n".join([*lines, ""])


def _rows(records: Iterable[Record]) -> set[tuple[str, str, str]]:
    return {(one.dataset, one.protocol, one.label) for one in records}


def _with_neighbours(rows: Sequence[Row], labels: Iterable[str]) -> list[str]:
    """Return labels with those of the detectors that stand next to them, in the order of the table."""
    detectors = [row.label for row in rows if row.ok and not row.floor]
    wanted = set(labels)
    if not wanted <= {row.label for row in rows}:
        raise UsageError("a submitted row is not in the table of its data set and protocol")
    near = {
        detectors[place]
        for at, label in enumerate(detectors)
        if label in wanted
        for place in range(max(0, at - _NEIGHBOURS), min(len(detectors), at + _NEIGHBOURS + 1))
    }
    return [row.label for row in rows if row.label in near | wanted]
