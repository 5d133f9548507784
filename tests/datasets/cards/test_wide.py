"""Files of very many columns: read line by line, with the numbers and the messages of narrow ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tsadbench import DataError
from tsadbench.datasets.cards.reader import load_card
from tsadbench.datasets.reading.header import header_faults, matching

CELLS = ["1", "-0.5", " 2.25", "3e-7 ", "+4", ".5", "6.", "1e308", "0.1", "123456789012345678901", "\t7", '"8"']
# What a wide file pads its first columns with.
PADDING = 1200


def write(folder, rows, *, wide, card="", separator=",", decimal="."):
    """Write a card and two files of these rows; a wide one has more columns, which are ignored."""
    folder.mkdir()
    names = [f"s{i}" for i in range(len(rows[0]))]
    more = [f"p{i}" for i in range(PADDING)] if wide else []
    for name, label in (("train", "0"), ("test", "1")):
        text = [[*names, *more, "label"], *([*row, *["0"] * len(more), label] for row in rows)]
        (folder / f"{name}.csv").write_text("".join(separator.join(line) + "\n" for line in text))
    (folder / "card.toml").write_text(
        f'schema = 1\nname = "c"\n[files]\nseparator = "{separator}"\ndecimal = "{decimal}"\n'
        f'[train]\nfiles = ["train.csv"]\n[test]\nfiles = ["test.csv"]\n'
        f'[columns]\nlabel = "label"\nignore = ["p*"]\n{card}'
    )
    return folder / "card.toml"


def outcome(card):
    """Return a card's rows, or what is wrong with them."""
    try:
        return load_card(card).dataset.train[0].values
    except DataError as error:
        return str(error).partition(":")[2]


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        *((cell, {}) for cell in CELLS),
        *(
            (cell, {})
            for cell in ("x", "", "NA", "nan", "NAN", "inf", "-Infinity", "1e999", "1_000", "True", "٣", "1,5")
        ),
        *((cell, {"card": '[missing]\npolicy = "forward-fill"\n'}) for cell in ("", " NA", "null ", "x")),
        *((cell, {"card": '[missing]\npolicy = "forward-fill"\nvalues = ["-9", "bad"]\n'}) for cell in ("-9.0", "bad")),
        *((cell, {"separator": ";", "decimal": ","}) for cell in ("1,5", "1.5", "1.000,5", "2")),
    ],
)
def test_a_wide_file_gives_what_a_narrow_one_gives(tmp_path, cell, options):
    cell = f'"{cell}"' if cell == "1,5" and not options else cell
    rows = [["1", "2"], *([str(i), cell] for i in range(6))]
    narrow, wide = (outcome(write(tmp_path / str(kind), rows, wide=kind, **options)) for kind in (False, True))
    assert type(narrow) is type(wide)
    if isinstance(narrow, str):
        assert wide.splitlines()[1:] == narrow.splitlines()[1:]
    else:
        np.testing.assert_array_equal(wide, narrow)


def test_100_000_columns_are_pandas_numbers(tmp_path):
    """Quadratic work on the names would take minutes."""
    rng = np.random.default_rng(0)
    names = [f"s{i}" for i in range(100_000)]
    for name, label in (("train", 0), ("test", 1)):
        frame = pd.DataFrame(rng.normal(size=(3, len(names))).round(3), columns=names)
        frame["label"] = label
        with (tmp_path / f"{name}.csv").open("w") as file:
            file.write(",".join(frame.columns) + "\n")
            file.writelines(",".join(map(repr, row)) + "\n" for row in frame.to_numpy().tolist())
    card = 'schema = 1\nname = "c"\n[train]\nfiles = ["train.csv"]\n[test]\nfiles = ["test.csv"]\n[columns]\n'
    (tmp_path / "card.toml").write_text(card + 'label = "label"\n')
    dataset = load_card(tmp_path / "card.toml").dataset
    assert dataset.sensors == tuple(names)
    np.testing.assert_array_equal(dataset.test[0].values, frame[names].to_numpy())
    sensors = ", ".join(f'"{name}"' for name in reversed(names))
    (tmp_path / "card.toml").write_text(card + f'label = "label"\nsensors = [{sensors}]\n')
    assert load_card(tmp_path / "card.toml").dataset.sensors == tuple(reversed(names))


def test_a_header_without_any_of_100_000_columns_is_told_in_a_few_lines():
    faults = list(header_faults([f"s{i}" for i in range(100_000)], {f"t{i}": "sensor" for i in range(100_000)}))
    assert len(faults) == 21
    assert faults[0] == "the sensor 't0' is missing among 100000 columns"
    assert faults[-1] == "99980 more columns are missing"


def test_names_are_matched_by_pattern_each_once():
    assert matching(["b", "a1", "a2", "b"], ["a*", "b", "a1", "none"]) == ["a1", "a2", "b"]
    assert matching(["p [bar]", "p b"], ["p [bar]"]) == ["p [bar]", "p b"]
