"""Plants that a draft may misunderstand: each doubt is told, no sensor is lost without a word, no test file trains."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from tsadbench.datasets.cards.draft import draft_card
from tsadbench.datasets.cards.reader import load_card

START = datetime(2026, 1, 5, 9)
ROWS = 60


def write(
    path: Path,
    cells: Callable[[int], str],
    header: str = "Time;Flow;Speed",
    form: str = "%Y-%m-%d %H:%M:%S",
    start: datetime = START,
    step: timedelta = timedelta(minutes=1),
) -> None:
    """Write a table: each row has a time and what `cells` returns for its number."""
    lines = [header, *(f"{start + row * step:{form}};{cells(row)}" for row in range(ROWS))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def flow(row: int) -> str:
    return f"{40 + row % 7 / 8:.4f}"


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            lambda row: f'{flow(row)};"{1200 + row:,}.5"',
            "'1,200.5' and is left out: write its numbers without thousands",
        ),
        (lambda row: f"{flow(row)};{1200 + row:,}", "'1,200' and is left out: write its numbers without thousands"),
        (lambda row: f"{flow(row)};{row}.5 1/min", "'0.5 1/min' and is left out: write its numbers without units"),
        (lambda row: f"{flow(row)};{'Stand by' if row % 3 else 'Full load'}", "give its texts numbers in [states]"),
        (lambda row: f"{flow(row)};06:{row:02d}", 'name it, as in time = ["Date", "Time"]'),
        (lambda row: f"{flow(row)};", "Columns without a value at the beginning of a file are left out: Speed"),
    ],
)
def test_a_column_that_is_no_sensor_yet_is_named(tmp_path, cells, told):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{cells(row)}", "Time;Head;Flow;Speed")
    draft = draft_card(tmp_path)
    assert [text for text in draft.decide if "Speed" in text and told in text], draft.decide
    assert 'sensors = ["Head", "Flow"]' in draft.text


def test_points_that_may_separate_thousands(tmp_path):
    """985, 995, 1.005: three digits after each point, and whole numbers of three digits beside them."""
    write(tmp_path / "normal.csv", lambda row: f"{row};{f'{985 + 10 * row:,}'.replace(',', '.')}")
    assert [text for text in draft_card(tmp_path).decide if "'Speed' holds 1.005 beside whole numbers" in text]


def test_decimals_with_three_places_raise_no_doubt(tmp_path):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{1 + row / 1000:.3f}")
    assert not any("Speed" in text for text in draft_card(tmp_path).decide)


def test_commas_that_may_separate_thousands_are_no_decimal_mark_beside_points(tmp_path):
    write(tmp_path / "normal.csv", lambda row: f"{40 + row / 10:.1f};{1200 + row:,}")
    assert 'decimal = "."' in draft_card(tmp_path).text


def test_a_decimal_comma_in_quotes(tmp_path):
    (tmp_path / "normal.csv").write_text(
        "Time,Flow\n"
        + "".join(f'{START + timedelta(minutes=row)},"{row / 8}"\n'.replace(".", ",") for row in range(ROWS))
    )
    (tmp_path / "card.toml").write_text(draft_card(tmp_path).text)
    values = load_card(tmp_path / "card.toml").dataset.train[0].values
    assert np.array_equal(values[:, 0], np.arange(ROWS) / 8)


def test_utf_16_as_spreadsheets_write_it(tmp_path):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}", "Zeit;Durchfluß;Drehzahl")
    text = (tmp_path / "normal.csv").read_text(encoding="utf-8")
    (tmp_path / "normal.csv").write_text(text, encoding="utf-16")
    (tmp_path / "card.toml").write_text(draft_card(tmp_path).text, encoding="utf-8")
    assert load_card(tmp_path / "card.toml").dataset.sensors == ("Durchfluß", "Drehzahl")


@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p"])
def test_a_date_that_can_be_read_both_ways_is_told(tmp_path, form):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}", form=form)
    assert [text for text in draft_card(tmp_path).decide if "with the day or with the month first" in text]


@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"])
def test_rows_across_midnight_and_other_files_tell_the_day_from_the_month(tmp_path, form):
    """The normal file has one reading in which its rows follow each other; the test file of one day has two."""
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}", form=form, step=timedelta(hours=1))
    write(tmp_path / "test.csv", lambda row: f"{flow(row)};{row}", form=form, start=datetime(2026, 2, 3))
    draft = draft_card(tmp_path)
    assert f'time_format = "{form}"' in draft.text
    assert not any("month first" in text for text in draft.decide)


def test_two_digits_of_the_year(tmp_path):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}", form="%d.%m.%y %H:%M")
    (tmp_path / "card.toml").write_text(draft_card(tmp_path).text)
    time = load_card(tmp_path / "card.toml").dataset.train[0].time
    assert time is not None
    assert time[0] == (START - datetime(1970, 1, 1)).total_seconds()


def test_units_under_the_header(tmp_path, tsadbench):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}", "Time;Flow;Speed\n;m3/h;1/min")
    made = tsadbench("data", "new", tmp_path)
    assert made.code == 2
    assert "left out normal.csv: line 2 holds units (m3/h, 1/min), not values: delete it" in made.err


def test_an_empty_log_book(tmp_path):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}")
    (tmp_path / "log.csv").write_text("begin;end;what\n")
    draft = draft_card(tmp_path)
    assert "left out log.csv: a table with no rows" in draft.sorted_files
    assert not draft.problems


def test_columns_of_some_files_only(tmp_path):
    write(tmp_path / "normal_1.csv", lambda row: f"{flow(row)};{row}")
    write(tmp_path / "normal_2.csv", lambda row: f"{flow(row)};{row};20", "Time;Flow;Speed;Heat")
    assert "Columns that not every file has are left out: Heat" in draft_card(tmp_path).decide


def test_a_test_file_does_not_train_where_the_normal_one_cannot_be_read(tmp_path, tsadbench):
    """In October, the clock goes back: the file stays in [train], and its line is named."""
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}")
    write(tmp_path / "test.csv", lambda row: f"{flow(row)};{row}")
    lines = (tmp_path / "normal.csv").read_text().splitlines()
    (tmp_path / "normal.csv").write_text("\n".join([*lines[:40], *lines[20:]]) + "\n")
    made = tsadbench("data", "new", tmp_path)
    assert made.code == 2
    assert "normal.csv, line 41: column 'Time': the time lies before that of the row above" in made.err
    assert "if a clock was set back, write times in UTC" in made.err
    assert 'files = ["normal.csv"]' in (tmp_path / "card.toml").read_text().partition("[test]")[0]


@pytest.mark.parametrize("name", ["unhealthy", "normal_then_fault", "no-good", "non_normal", "freezer", "gestoert"])
def test_a_name_that_speaks_of_faults_is_not_normal(tmp_path, name):
    write(tmp_path / "normal.csv", lambda row: f"{flow(row)};{row}")
    write(tmp_path / f"{name}.csv", lambda row: f"{flow(row)};{row + 1}")
    assert f"test     {name}.csv: its name does not say normal" in draft_card(tmp_path).sorted_files


@pytest.mark.parametrize("name", ["fault-free", "anomaly_free", "Störungsfrei", "test_normal"])
def test_a_name_that_denies_faults_is_normal(tmp_path, name):
    write(tmp_path / f"{name}.csv", lambda row: f"{flow(row)};{row}")
    write(tmp_path / "run.csv", lambda row: f"{flow(row)};{row + 1}")
    assert f"train    {name}.csv: its name says normal or training" in draft_card(tmp_path).sorted_files
