"""Texts that stand for numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.cells import numbers_of, rows_of_numbers
from tsadbench.datasets.reading.csv import open_csv
from tsadbench.datasets.reading.states import states_of

PLANT = FileFormat(
    states=(("valve*", (("Open", 1.0), ("Closed", 0.0), ("None", -1.0))), ("*", (("true", 1.0), ("Open", 7.0)))),
    missing=("-1",),
)


def test_the_first_pattern_decides_and_all_that_fit_count():
    assert states_of(PLANT, "valve 3") == {"Open": 1.0, "Closed": 0.0, "None": -1.0, "true": 1.0}
    assert states_of(PLANT, "pump") == {"true": 1.0, "Open": 7.0}


def test_numbers_stay_numbers_and_a_declared_text_is_not_missing():
    cells = pd.Series(["Open", " Closed ", "2.5", "", "None", "NaN", "-1", "Shut", "1_0"], dtype="object")
    numbers, wrong = numbers_of(cells, PLANT, states_of(PLANT, "valve 3"))
    np.testing.assert_array_equal(numbers, [1.0, 0.0, 2.5, np.nan, -1.0, np.nan, np.nan, 0.0, 0.0])
    assert wrong.tolist() == [7, 8]


def test_truth_values_of_parquet_files_are_named_as_the_card_names_them():
    numbers, wrong = numbers_of(pd.Series([True, False, None], dtype="object"), PLANT, {"true": 3.0, "False": 4.0})
    np.testing.assert_array_equal(numbers, [3.0, 4.0, np.nan])
    assert len(wrong) == 0


def test_rows_that_arrive_are_read_as_files_are():
    values, wrong = rows_of_numbers([["Open", "1"], ["Closed", "Open"]], PLANT, [states_of(PLANT, "valve"), {}])
    assert wrong == (1, 1)
    np.testing.assert_array_equal(values[:, 0], [1.0, 0.0])


@pytest.mark.parametrize(("text", "number"), [("Closed", 0.0), ("Open", 1.0), ("None", -1.0), ("0", 0.0)])
def test_pandas_leaves_texts_of_a_csv_file_as_they_are(tmp_path, text, number):
    path = tmp_path / "a.csv"
    path.write_text(f"valve,flow\n{text},1\n{text},2\n")
    table, _ = open_csv(path, path.name, replace(PLANT, states=PLANT.states[:1]), 1, ["valve", "flow"])
    (rows,) = table.chunks([0, 1])
    numbers, wrong = numbers_of(rows[0], PLANT, states_of(PLANT, "valve"))
    assert numbers.tolist() == [number, number]
    assert len(wrong) == 0
    assert rows[1].dtype == np.int64
