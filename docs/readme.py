"""Keep README.md equal to what is committed: ``python docs/readme.py --check`` or ``--write`` (``make readme``).

README.md marks what is generated, in comments that a rendered page does not show:

- a block, on lines of its own: ``<!-- generated: NAME -->`` to ``<!-- end -->``; NAME is a key of `blocks`;
- a value in a sentence: ``<!--= FACT -->VALUE<!--/-->``. FACT is a cell of a table, ``skab/strict/overall dprgm auprc``
  (also ``rank`` for the detector's place without the floors, and ``n_rows``), or a key of `facts`.

`claims` are statements of the text without a number in it: ``--check`` and ``--write`` fail if one is no longer true.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from typer.main import get_command

from tsadbench.cli import app
from tsadbench.leaderboard.ranking import Summary
from tsadbench.studies.reproduction.paper import reference_rows
from tsadbench.utils.markdown import fill_blocks, number, table_lines

ROOT = Path(__file__).parent.parent
METRICS = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "bf_f1": "BF-F1*",
    "prac_f1": "Prac-F1",
    "mcc": "MCC",
    "flagged": "Flagged",
}
PYOD = "pyod/skab/strict/overall"
_VALUE = re.compile(r"(<!--= (.+?) -->).*?(<!--/-->)", re.S)


@cache
def rows(table: str) -> Mapping[str, Mapping[str, str]]:
    """Return a committed leaderboard's rows by label, best first; "overall" is a name of a CSV without its ending."""
    with (ROOT / "leaderboards" / f"{table}.csv").open(encoding="utf-8") as file:
        return {row["detector"]: row for row in csv.DictReader(file)}


def is_floor(row: Mapping[str, str]) -> bool:
    """Whether a row is a floor's."""
    return row["family"] == "floor"


def summary(row: Mapping[str, str], metric: str) -> str:
    """Return a cell as mean(std)."""
    deviation = row[f"{metric}_std"]
    return Summary(float(row[f"{metric}_mean"]), float(deviation) if deviation else None).text()


def cell(table: str, label: str, column: str) -> str:
    """Return one cell of a committed leaderboard, the detector's rank, or how many rows were evaluated."""
    if column == "rank":
        ranked = [name for name, row in rows(table).items() if not is_floor(row)]
        return f"{ranked.index(label) + 1}th"
    if column == "n_rows":
        content = json.loads((ROOT / "leaderboards" / f"{table}.json").read_text(encoding="utf-8"))
        return next(f"{row['n_rows']:,}" for row in content["rows"] if row["label"] == label)
    return summary(rows(table)[label], column)


def page_rows(page: str, section: str = "") -> list[list[str]]:
    """Return the cells of all table rows of a committed page, or of one of its sections."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def line_of(lines: Iterable[Sequence[str]], *first: str) -> Sequence[str]:
    """Return the table row that begins with these cells."""
    return next(line for line in lines if tuple(line[: len(first)]) == first)


def better_than_floors(table: str, metric: str) -> list[str]:
    """Return the detectors whose mean is above every floor's, in alphabetical order."""
    means = {label: float(row[f"{metric}_mean"]) for label, row in rows(table).items()}
    best = max(mean for label, mean in means.items() if is_floor(rows(table)[label]))
    return sorted(label for label, mean in means.items() if mean > best)


def facts() -> dict[str, str]:
    """Return what sentences say, by name."""
    audit, comparison = page_rows("audits/skab.md"), page_rows("comparisons/skab-strict.md")
    tuned, found = page_rows("tuning-dprgm.md", "skab"), {}
    for objective, *counts in re.findall(
        r"^- `(\w+)`: of (\d+) cases better than the defaults in (\d+), worse in (\d+)",
        (ROOT / "docs/tuning.md").read_text(encoding="utf-8"),
        re.M,
    ):
        found |= {f"tuning {objective} {name}": n for name, n in zip(("cases", "better", "worse"), counts, strict=True)}
    theirs = [label for label in rows(PYOD) if ":" in label]
    best = max(theirs, key=lambda label: float(rows(PYOD)[label]["auprc_mean"]))
    robust = [f"`{label}`" for label in better_than_floors(PYOD, "prac_f1")]
    with (ROOT / "leaderboards/paper/graph_source_ablation_20_runs.csv").open(encoding="utf-8") as file:
        drawn = next(
            row
            for row in csv.DictReader(file)
            if (row["detector"], row["split"], row["metric"]) == ("dprgm[graph=random]", "overall", "auroc")
        )
    return found | {
        "comparison dprgm mean": line_of(comparison, "dprgm")[2],
        "comparison sensor-range mean": line_of(comparison, "sensor-range")[2],
        "comparison dprgm sensor-range p": line_of(comparison, "dprgm", "sensor-range")[8],
        "random graph auroc": Summary(float(drawn["ours_mean"]), float(drawn["ours_std"])).text(),
        "pyod number": str(len(theirs)),
        "pyod best": f"`{best}`",
        "pyod best auprc": summary(rows(PYOD)[best], "auprc"),
        "pyod above floors in prac_f1": f"{', '.join(robust[:-1])} and {robust[-1]}",
        "tuned dprgm before": line_of(tuned, "`dprgm[epochs=4]`", "defaults")[5].partition("(")[0],
        "tuned dprgm after": _injected(tuned)[5].partition("(")[0],
        "tuned dprgm agreement": _injected(tuned)[3],
        "audit position": number(float(line_of(audit, "position")[1]), 3),
        "audit time": number(float(line_of(audit, "time")[1]), 3),
        "audit longest gap": re.findall(r"the longest: (\d+) s", (ROOT / "docs/audits/skab.md").read_text("utf-8"))[0],
        **{f"shared {line[0]} {line[1]}": line[3] for line in audit if len(line) == 5},
        **{f"contradicting {line[0]} {line[1]}": line[4] for line in audit if len(line) == 5},
    }


def _injected(tuned: Iterable[Sequence[str]]) -> Sequence[str]:
    return next(line for line in tuned if line[1] == "injection")


def claims() -> dict[str, bool]:
    """Return the statements that the text makes without a number."""
    strict, published = rows("skab/strict/overall"), rows("skab/published/overall")
    floors = ("sensor-range", "max-z")
    tuned = page_rows("tuning-dprgm.md", "skab")
    after, sensor_range = float(_injected(tuned)[5].partition("(")[0]), float(strict["sensor-range"]["auprc_mean"])
    return {
        f"on {table} both floors are before DPR-GM, and DPR-GM before all others": all(
            float(board[floor]["auprc_mean"]) > float(board["dprgm"]["auprc_mean"]) for floor in floors
        )
        and next(iter(board)) == "dprgm"
        for table, board in (("strict", strict), ("published", published))
    } | {
        "under published DPR-GM beats every floor on the group other": not rows("skab/published/other")["dprgm"][
            "below_floor"
        ],
        "under skab GDN has the best AUROC, and DPR-GM is below a floor": _leads("skab/skab/overall", "gdn", "auroc")
        and bool(rows("skab/skab/overall")["dprgm"]["below_floor"]),
        "none of PyOD and scikit-learn is above the floors in AUROC or AUPRC": not better_than_floors(PYOD, "auroc")
        and not better_than_floors(PYOD, "auprc"),
        "tuned DPR-GM is above sensor-range": after > sensor_range,
        "tuning DPR-GM gains on all three data sets": "`injection`: of 3 cases better than the defaults in 3,"
        in (ROOT / "docs/tuning-dprgm.md").read_text(encoding="utf-8"),
    }


def _leads(table: str, label: str, metric: str) -> bool:
    means = {name: float(row[f"{metric}_mean"]) for name, row in rows(table).items() if not is_floor(row)}
    return max(means, key=lambda name: means[name]) == label


def published_table() -> list[str]:
    """Return the lines of the table under `published`, the paper's own rows last."""
    lines = [
        [f"`{label}`{' (floor)' if is_floor(row) else ''}", *(summary(row, metric) for metric in METRICS)]
        for label, row in rows("skab/published/overall").items()
    ]
    for name, label in (("DPR-GM", "dprgm"), ("isolation forest", "isolation-forest")):
        values = reference_rows().values["skab", "published", "overall", label]
        cells = [values[metric].text() if metric in values else "" for metric in METRICS]
        lines.append([f"*{name}, in the paper*", *cells])
    return table_lines(["", *METRICS.values()], lines)


def command_table() -> list[str]:
    """Return the lines of a table of every command with the first sentence of its help."""
    lines = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined] # Typer's class is private
        help_text = " ".join((command.help or "").partition("\n\n")[0].split())
        members = ", ".join(getattr(command, "commands", {}))
        lines.append([f"`{name}`", help_text + (f" (`{members}`)" if members else "")])
    return table_lines(["command", "what it does"], lines)


def generated(text: str) -> str:
    """Return README.md's text with every block and value brought up to date.

    Raises
    ------
    KeyError
        If a marker names a block or a fact that does not exist.
    """
    blocks = {"published table": published_table, "commands": command_table}
    named = facts()

    def value(found: re.Match[str]) -> str:
        parts = found[2].split()
        fact = named[found[2]] if found[2] in named else cell(*parts)
        return f"{found[1]}{fact}{found[3]}"

    return _VALUE.sub(value, fill_blocks(text, lambda name: blocks[name]()))


def main() -> int:
    """Check or rewrite README.md; exit code 1 if it is out of date, or claims what no longer holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="report what differs")
    action.add_argument("--write", action="store_true", help="rewrite it")
    parser.add_argument("--file", type=Path, default=ROOT / "README.md")
    arguments = parser.parse_args()
    text = arguments.file.read_text(encoding="utf-8")
    current = generated(text)
    wrong = [f"no longer true: {claim}" for claim, holds in claims().items() if not holds]
    if arguments.write:
        arguments.file.write_text(current, encoding="utf-8")
    else:
        old, new = text.splitlines(), current.splitlines()
        wrong += [f"expected: {line}" for line in new if line not in old]
        wrong += [f"found:    {line}" for line in old if line not in new]
        if text != current:
            wrong.append("README.md differs from what is committed: run `make readme`")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
