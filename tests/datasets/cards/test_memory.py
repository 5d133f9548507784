"""Wide and long files load within three times the memory of their values."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from tests.helpers.memory import LOAD


@pytest.mark.parametrize(
    ("n_rows", "n_sensors", "ending"), [(1_000_000, 8, "csv"), (8_000, 1_000, "csv"), (1_000_000, 8, "parquet")]
)
@pytest.mark.processes
def test_loading_takes_less_than_three_times_the_values(tmp_path, n_rows, n_sensors, ending):
    if not sys.platform.startswith("linux"):
        pytest.skip("the peak of a process's memory is read from /proc")
    names = [f"s{i}" for i in range(n_sensors)]
    for folder, rows in (("small", 100), ("large", n_rows)):
        path = tmp_path / folder
        path.mkdir()
        # Few digits, so that writing is fast; their number does not change the memory that reading takes.
        values = np.random.default_rng(0).integers(0, 100, size=(rows, n_sensors)) / 8
        table = pd.DataFrame(values, columns=names)
        table["time"] = np.arange(rows)
        table["label"] = (np.arange(rows) % 1000 == 999).astype(int) if rows > 1000 else 0
        for part, rows_of in (("test", table), ("train", table.head(100).assign(label=0))):
            file = path / f"{part}.{ending}"
            rows_of.to_csv(file, index=False) if ending == "csv" else rows_of.to_parquet(file)
        (path / "card.toml").write_text(
            f'schema = 1\nname = "big"\n[train]\nfiles = ["train.{ending}"]\n[test]\nfiles = ["test.{ending}"]\n'
            '[columns]\ntime = "time"\ntime_format = "seconds"\nlabel = "label"\n'
        )
    arguments = [sys.executable, "-c", LOAD, str(tmp_path / "small/card.toml"), str(tmp_path / "large/card.toml")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    taken, values_take = map(int, done.stdout.split())
    assert values_take >= n_rows * n_sensors * 8
    # Less than the values themselves would mean that nothing was measured.
    assert 0.9 * values_take < taken < 3 * values_take, f"{taken / values_take:.2f} times the values"
