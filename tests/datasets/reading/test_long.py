"""Long tables: what pandas' pivot gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.csv import open_csv
from tsadbench.datasets.reading.long import Changes, open_long
from tsadbench.datasets.reading.resampling import grid_of
from tsadbench.datasets.reading.text import MalformedError

FORM = FileFormat(time=("t",), time_formats=("seconds",), long=("tag", "value"), resample_every=2.0, resample_by="mean")


def _table(tmp_path, text, form=FORM):
    path = tmp_path / "long.csv"
    path.write_text(text)
    return open_csv(path, path.name, form, 1, text.partition("\n")[0].split(","))[0]


@pytest.mark.parametrize("by", ["mean", "median", "last"])
def test_values_on_the_grid_are_those_of_a_pivot(tmp_path, by):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": np.sort(rng.integers(0, 60, 300)), "tag": rng.choice(list("abcd"), 300)})
    frame["value"] = rng.normal(size=300)
    table = open_long(_table(tmp_path, frame.to_csv(index=False)), "tag", "value", ["t"])
    assert sorted(table.sensors) == list("abcd")
    assert table.header == ("t", *dict.fromkeys(frame["tag"]))
    changes = Changes(300, ["c", "a"])
    for _, own in changes.rows_of(frame["tag"], 0):
        changes.add(own, frame["value"].to_numpy()[own])
    grid = grid_of(frame["t"].to_numpy(np.float64), 2.0)
    bins = (frame["t"] - frame["t"].iloc[0]) // 2
    wide = frame.pivot_table(index=bins, columns="tag", values="value", aggfunc=by).reindex(range(grid.n_rows))
    expected = (wide.ffill() if by == "last" else wide)[["c", "a"]].to_numpy()
    np.testing.assert_allclose(changes.laid_on(grid, by), expected, rtol=1e-12)


def test_a_sensor_may_be_called_like_a_number_or_a_missing_value(tmp_path):
    table = open_long(_table(tmp_path, "t,tag,value\n0,NA,1\n1,01,2\n2, x ,3\n"), "tag", "value", ["t"])
    assert table.sensors == ("NA", "01", "x")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("t,tag,value\n0,a,1\n1,,2\n", 3, "expected a sensor's name, found an empty cell"),
        ("t,name,value\n0,a,1\n", 1, "the column of sensors' names 'tag' is missing"),
        ("t,tag,tag,value\n0,a,a,1\n", 1, "the column 'tag' occurs twice"),
    ],
)
def test_a_malformed_long_table_is_told_with_its_line(tmp_path, text, line, words):
    with pytest.raises(MalformedError, match=words) as caught:
        open_long(_table(tmp_path, text), "tag", "value", ["t"])
    assert caught.value.line == line
