"""docs/systems: what the pages of data sets count is what the data sets contain."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.helpers.scripts import load_script
from tsadbench.cli.actions.data import load_here

ROOT = Path(__file__).parents[2]
CONTENTS = json.loads((ROOT / "docs/systems/contents.json").read_text())

# Of each data set: training rows, test rows, anomalous rows, events, sensors; counted with numpy from the files alone.
KNOWN = {
    "skab": (9_405, 37_401, 13_067, 34, 8),
    "tep": (500, 22 * 960, 21 * 800, 21, 52),
    "cranfield": (8_296, 56_291, 39_144, 12, 23),
    "gecco2018": (16_265, 139_566 * 2 - 16_265 - 1_045 - 24_480, 4_055, 97, 9),
    "causrca": (99_003, 22_279, 7_829, 100, 34),
    "asd": (102_331, 51_840, 2_392, 76, 19),
    "smd": (189_565, 189_569, 12_296, 122, 38),
}


@pytest.mark.parametrize("name", KNOWN)
def test_counts_are_those_of_the_files(name: str) -> None:
    data = CONTENTS[name]
    test = data["test"]
    found = (data["train"]["rows"], test["rows"], test["anomalous"], test["events"], data["sensors"])
    assert found == KNOWN[name]


@pytest.mark.skipif("TSADBENCH_DATA" not in os.environ, reason="needs the data sets' files (TSADBENCH_DATA)")
@pytest.mark.parametrize("name", CONTENTS)
def test_counts_are_those_of_what_is_loaded(name: str) -> None:
    if name != "pumploop" and not Path(os.environ["TSADBENCH_DATA"], name).is_dir():
        pytest.skip(f"{name} is not here")
    counted = load_script(ROOT / "docs/systems/contents.py").counted
    assert json.loads(json.dumps(counted(load_here(name, None)))) == CONTENTS[name]


@pytest.mark.parametrize("name", [name for name, data in CONTENTS.items() if data["entities"]])
def test_entities_add_up(name: str) -> None:
    data = CONTENTS[name]
    for column in ("recordings", "rows", "anomalous", "events"):
        assert sum(entity[column] for entity in data["entities"]) == data["test"][column]
    assert sum(entity["training_rows"] for entity in data["entities"]) == data["train"]["rows"]


@pytest.mark.parametrize("name", CONTENTS)
def test_each_data_set_has_a_page(name: str) -> None:
    assert (ROOT / f"docs/systems/{name}.md").read_text().startswith("# ")
