"""Numbers in cells: the fast way for a few rows reads what the other way reads, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from tsadbench.base.file_format import FileFormat
from tsadbench.datasets.reading.cells import as_number, rows_of_numbers
from tsadbench.datasets.reading.text import split


@pytest.mark.parametrize("cell", ["1", " 2.5 ", "-1e3", "1_000", "\uff11\uff12", "\xa03", "", "x", "NaN", "1,5", "+.5"])
def test_a_row_is_read_as_its_cells_are(cell):
    values, wrong = rows_of_numbers([["0", cell]], FileFormat())
    number = as_number(cell)
    if number is not None:
        assert (values[0, 1], wrong) == (number, None)
    else:
        assert wrong == (0, 1) or np.isnan(values[0, 1])


def test_a_quoted_cell_may_hold_the_separator_and_be_of_any_length():
    assert split('1,"a,b",2', ",") == ["1", "a,b", "2"]
    long = "x" * 200_000
    assert len(split(f'1,"{long}",2', ",")) == 3
