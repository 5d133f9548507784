"""Does the calibration report's interval hold the true rate of false alarms? The records and tables of coverage.md.

    python docs/studies/coverage.py --repetitions 200      # simulates; records in coverage.jsonl are replaced
    python docs/studies/coverage.py                        # makes the page's tables from the records

Scores are a Gaussian AR(1) series of variance 1, so that the rate at which rows exceed a threshold is known exactly:
the normal tail. In each repetition Peaks-over-Threshold sets a threshold on 10^4 rows of a series of its own, and the
report's interval, made of the same rows, is compared with the true rate of the threshold that was set.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.stats import norm
from study_files import Record, parser_of, read_records, write_page, write_records

from tsadbench.analysis.calibration.clusters import FEWEST_CLUSTERS, FlaggedNormal, cross_fitted, rate_interval
from tsadbench.base import FloatArray
from tsadbench.execution.plan import make_protocol
from tsadbench.utils.markdown import number, table_lines

PAGE = Path(__file__).with_suffix(".md")
RECORDS = PAGE.with_suffix(".jsonl")
PHIS = (0.0, 0.5, 0.9)
RISKS = (1e-3, 1e-2)
ROWS = 10_000


def ar1(phi: float, n_rows: int, rng: np.random.Generator) -> FloatArray:
    """Return a stationary Gaussian AR(1) series [n_rows] of variance 1."""
    first = rng.normal()
    shocks = np.sqrt(1 - phi**2) * rng.normal(size=n_rows - 1)
    series, _ = lfilter([1.0], [1.0, -phi], shocks, zi=[phi * first])
    return np.concatenate([[first], series])


def simulated(phi: float, q: float, repetitions: int, n_rows: int = ROWS) -> Iterator[Record]:
    """Yield what each repetition reports, beside the true rate of the threshold that was set."""
    protocol, _ = make_protocol("strict", {"q": str(q)})
    for repetition in range(repetitions):
        scores = ar1(phi, n_rows, np.random.default_rng([repetition, round(1000 * phi), round(1e6 * q)]))
        threshold = protocol.threshold_from(scores)
        found = cross_fitted(scores, protocol.threshold_from)
        yield {
            "phi": phi,
            "q": q,
            "true": float(f"{norm.sf(threshold.value):.6g}"),
            "rows": n_rows,
            "sizes": found.sizes,
        }


def covered(records: list[Record], *, sizes: bool = True) -> str:
    """Return how many intervals hold the true rate; without ``sizes`` each cluster counts as one row would."""
    held = 0
    for record in records:
        found = FlaggedNormal(record["rows"], tuple(record["sizes"]))
        low, high = rate_interval(found.share, found.worth if sizes else len(found.sizes), found.n_rows)
        held += low <= record["true"] <= high
    return f"{held} ({held / len(records):.0%})" if records else "-"


def read() -> list[Record]:
    """Return the committed records."""
    return read_records(RECORDS)


def block(_: str) -> list[str]:
    """Return the lines of the page's table."""
    records = read()
    header = ["phi", "q", "true rate: median", "10 to 90 %", "clusters: median", "intervals shown", "cover it"]
    header += ["too few to show", "would cover it", "all, each cluster as one"]
    rows = []
    for phi, q in dict.fromkeys((record["phi"], record["q"]) for record in records):
        members = [record for record in records if (record["phi"], record["q"]) == (phi, q)]
        shown = [record for record in members if len(record["sizes"]) >= FEWEST_CLUSTERS]
        others = [record for record in members if len(record["sizes"]) < FEWEST_CLUSTERS]
        low, median, high = np.quantile([record["true"] for record in members], [0.1, 0.5, 0.9])
        cells = [number(phi, 1), number(q, 3), number(median, 4), f"{number(low, 4)} to {number(high, 4)}"]
        cells.append(f"{np.median([len(record['sizes']) for record in members]):.0f}")
        cells += [str(len(shown)), covered(shown), str(len(others)), covered(others), covered(members, sizes=False)]
        rows.append(cells)
    return table_lines(header, rows)


def main() -> None:
    """Simulate, or make the page's table."""
    parser = parser_of(__doc__)
    parser.add_argument("--repetitions", type=int, default=0)
    repetitions = parser.parse_args().repetitions
    if repetitions:
        write_records(RECORDS, (record for phi in PHIS for q in RISKS for record in simulated(phi, q, repetitions)))
    write_page(PAGE, block)


if __name__ == "__main__":
    main()
