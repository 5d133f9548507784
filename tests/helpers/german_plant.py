"""A plant whose files are German: semicolons, decimal commas, dates by day; with gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

CARD = """\
schema = 1
name = "little"
[files]
separator = ";"
decimal = ","
remove_prefix = "PLC."
missing = ["Bad Input", "-999"]
[train]
files = ["normal.csv"]
[test]
files = ["run.csv"]
[columns]
time = "Datum"
time_format = "%d.%m.%Y %H:%M:%S"
ignore = ["operator"]
[labels]
kind = "column"
column = "fault"
[gaps]
policy = "forward-fill"
at_most = 2
"""
HEADER = "Datum;PLC.Pressure [bar];PLC.Flow;operator;fault"


def lines(seed: int, n_rows: int, faulty: range = range(0)) -> list[str]:
    """Return rows in the format of the card's files."""
    rng = np.random.default_rng(seed)
    written = []
    for row in range(n_rows):
        pressure, flow = rng.normal(5.0, 1.0) + 9.0 * (row in faulty), rng.normal(100.0, 3.0)
        cells = [f"01.02.2026 {row // 3600:02}:{row // 60 % 60:02}:{row % 60:02}", repr(pressure), repr(flow)]
        written.append(";".join(cells).replace(".", ",").replace("01,02,", "01.02.") + f";Ann;{int(row in faulty)}")
    return written


def write_german_plant(folder: Path) -> Path:
    """Write the card, a training recording, and a test recording with faults in rows 40 to 49; return the card."""
    (folder / "normal.csv").write_text("\n".join([HEADER, *lines(0, 200)]) + "\n")
    (folder / "run.csv").write_text("\n".join([HEADER, *lines(1, 60, range(40, 50))]) + "\n")
    (folder / "card.toml").write_text(CARD)
    return folder / "card.toml"
