"""Cards and folders that nobody would make in good faith: each is told in a few lines; nothing hangs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tsadbench import DataError
from tsadbench.datasets.cards.draft import draft_card
from tsadbench.datasets.cards.reader import load_card

CARD = """\
schema = 1
name = "c"
[train]
files = ["train.csv"]
[test]
files = ["test.csv"]
[columns]
label = "label"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, label in (("train", 0), ("test", 1)):
        (tmp_path / f"{name}.csv").write_text(f"a,b,label\n1,2,{label}\n3,4,{label}\n")
    return tmp_path


def told(folder: Path, card: str | bytes) -> str:
    """Return what is told of a card; None of it may break a terminal."""
    (folder / "card.toml").write_bytes(card if isinstance(card, bytes) else card.encode())
    with pytest.raises(DataError) as caught:
        load_card(folder / "card.toml")
    message = str(caught.value)
    assert message.isprintable() or all(line.isprintable() for line in message.split("\n"))
    assert len(message.split("\n")) < 120
    return message


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (".", "expected a name or pattern"),
        ("***", "expected a name or pattern"),
        ("a***", "expected a name or pattern"),
        ("a/***/b", "expected a name or pattern"),
        ("**", "there is no such file"),
        ("[a", "there is no such file"),
        ("\\u0000", "there is no such file"),
        ("train.csv/", "is no folder"),
        ("a\\nb", "there is no such file"),
        ("", "below the card's folder"),
    ],
)
def test_a_pattern_that_names_no_file_is_told(folder, pattern, message):
    text = told(folder, CARD.replace('["train.csv"]', f'["{pattern}"]'))
    assert "card.toml: files" in text
    assert message in text


STRANGE = {
    "a link in a loop": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("pattern", ["x*.csv", "**/x.csv", "x.csv"])
def test_what_is_no_file_is_named_and_not_skipped(folder, kind, pattern):
    STRANGE[kind](folder / "x.csv")
    text = told(folder, CARD.replace('["train.csv"]', f'["train.csv", "{pattern}"]'))
    assert "files 'x.csv'" in text or f"files '{pattern}'" in text
    assert kind in text


@pytest.mark.parametrize("kind", STRANGE)
def test_a_description_or_prior_that_is_no_file_is_told(folder, kind):
    STRANGE[kind](folder / "x")
    assert told(folder, f'description = "x"\nprior = "x"\n{CARD}').count(kind) == 2


def test_a_description_of_gigabytes_is_not_read(folder):
    with (folder / "x").open("wb") as file:
        file.truncate(2**40)
    assert "too large" in told(folder, f'description = "x"\n{CARD}')


@pytest.mark.parametrize(("name", "shown"), [(b"x\xff.csv", "x\\udcff.csv"), (b"x\n\x1b[31m.csv", "x\\n\\x1b[31m.csv")])
def test_a_name_that_cannot_be_shown_is_told(folder, name, shown):
    Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).write_text("a,b,label\n1,2,0\n")
    assert f"files '{shown}': its name" in told(folder, CARD.replace('["train.csv"]', '["*.csv"]'))


def test_links_to_a_folder_above_are_no_endless_way(folder):
    (folder / "below").mkdir()
    (folder / "below" / "up").symlink_to("..")
    (folder / "card.toml").write_text(CARD.replace('"train.csv"', '"**/train.csv"'))
    assert [one.id for one in load_card(folder / "card.toml").dataset.train] == ["train"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "{a=" * 5000, "nested too deeply"),
        (".".join("a" * 20_000) + " = 1", "nested too deeply"),
        (" . ".join(['"a"'] * 20_000) + " = 1", "nested too deeply"),
        ("[" + ".".join("a" * 20_000) + "]", "nested too deeply"),
        ("x = " + "9" * 5000, "too many digits"),
        ("name = 1" + "0" * 4000, "expected a string"),
        ("x = 1979-13-45", "not TOML"),
    ],
)
def test_toml_that_is_deep_or_huge_is_told(folder, line, message):
    text = told(folder, CARD.replace('name = "c"\n', f"{line}\n"))
    assert message in text
    assert max(map(len, text.splitlines())) < 600


def test_long_texts_and_lists_with_many_points_are_no_deep_keys(folder):
    sentences = "One sentence. " * 30 + "..." * 100
    (folder / "card.toml").write_text(
        f'citation = "{sentences}"\n{CARD}anomalous = [{", ".join(f"{i}.5" for i in range(100))}, 1]\n'
    )
    assert load_card(folder / "card.toml").dataset.citation == sentences


@pytest.mark.parametrize("value", ["1" + "0" * 30, "0", "-1", "1" + "0" * 17])
def test_a_header_line_that_no_file_has_is_told(folder, value):
    assert "header_line" in told(folder, CARD.replace("[columns]", f"[files]\nheader_line = {value}\n[columns]"))


@pytest.mark.parametrize("line", ["time = 'a'\ntime_format = '%Q'", "time = 'a'\ntime_format = '%d %d'"])
def test_a_time_format_that_no_time_has_is_told(folder, line):
    assert "time_format" in told(folder, f"{CARD}{line}\n")


@pytest.mark.parametrize("separator", ["", '\\"', "\\n", ", "])
def test_a_separator_that_separates_nothing_is_told(folder, separator):
    text = told(folder, CARD.replace("[columns]", f'[files]\nseparator = "{separator}"\n[columns]'))
    assert "separator: expected one character" in text


def test_very_many_faults_are_counted(folder):
    wrong = told(folder, CARD.replace('["train.csv"]', "[" + "1,\n" * 20_000 + "]"))
    assert "19900 more values or keys are wrong" in wrong
    assert "4900 more" in told(folder, "".join(f"k{i} = 1\n" for i in range(5000)) + CARD)


def test_a_draft_names_what_it_leaves_out(folder):
    os.mkfifo(folder / "pipe.csv")
    (folder / "loop.csv").symlink_to("loop.csv")
    Path(os.fsdecode(os.path.join(os.fsencode(folder), b"x\xff.csv"))).write_text("a,b\n1,2\n")
    card = draft_card(folder).text
    assert "left out loop.csv, pipe.csv, x\\udcff.csv: no file, or a name that is not UTF-8\n" in card
    assert "udcff" not in card.partition("[train]")[2]
