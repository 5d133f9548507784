"""Reading large files of one's own: 10^7 rows, or 10^5 columns."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.memory import LOAD
from tsadbench.datasets.cards.reader import load_card


@pytest.mark.parametrize(("n_rows", "n_sensors"), [(10**7, 2), (2 * 10**6, 40)])
def test_a_long_csv_file(benchmark, tmp_path, n_rows, n_sensors):
    """Seconds for sensors, a time and a label, and the peak of memory as a multiple of the values' own: at most 3."""
    for folder, rows in (("small", 100), ("large", n_rows)):
        path = tmp_path / folder
        path.mkdir()
        (path / "card.toml").write_text(
            'schema = 1\nname = "big"\n[train]\nfiles = ["train.csv"]\n[test]\nfiles = ["test.csv"]\n'
            '[columns]\ntime = "time"\ntime_format = "seconds"\nlabel = "label"\n'
        )
        # Rows repeat, so that writing is fast; that does not change what reading takes.
        cells = [",".join(f"{(i * 31 + sensor) % 97 / 8}" for sensor in range(n_sensors)) for i in range(1000)]
        for part, n in (("train", 100), ("test", rows)):
            with (path / f"{part}.csv").open("w") as file:
                file.write(f"time,{','.join(f's{sensor}' for sensor in range(n_sensors))},label\n")
                file.writelines(f"{i},{cells[i % 1000]},0\n" for i in range(n))
    arguments = [sys.executable, "-c", LOAD, str(tmp_path / "small/card.toml"), str(tmp_path / "large/card.toml")]
    done = benchmark.pedantic(
        lambda: subprocess.run(arguments, capture_output=True, text=True, check=True), rounds=1, iterations=1
    )
    taken, values = map(int, done.stdout.split())
    benchmark.extra_info["memory_ratio"] = taken / values
    print(f"{taken / values:.2f} times the values")
    assert values >= n_rows * n_sensors * 8
    assert taken < 3 * values


@pytest.mark.parametrize("n_columns", [100_000])
def test_a_wide_csv_file(benchmark, tmp_path, n_columns):
    """Seconds for 20 training and 20 test rows of very many sensors."""
    (tmp_path / "card.toml").write_text(
        'schema = 1\nname = "wide"\n[train]\nfiles = ["train.csv"]\n[test]\nfiles = ["test.csv"]\n'
        '[columns]\nlabel = "label"\n'
    )
    for part, label in (("train", 0), ("test", 1)):
        with (tmp_path / f"{part}.csv").open("w") as file:
            file.write(",".join([*(f"s{i}" for i in range(n_columns)), "label"]) + "\n")
            for row in range(20):
                file.write(",".join([*(f"{i % 97 / 8 + row}" for i in range(n_columns)), str(label)]) + "\n")
    loaded = benchmark.pedantic(load_card, [tmp_path / "card.toml"], rounds=3, iterations=1)
    assert len(loaded.dataset.sensors) == n_columns
