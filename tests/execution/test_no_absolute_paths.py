"""A record contains names of files, never their folders on the machine that made it."""

from __future__ import annotations

import json
import sys

import pytest

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.records import strings
from tsadbench import UsageError
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.utils.text import without_folders

OWN = """
from __future__ import annotations
from tsadbench import Detector, Prior, Traits

class Own(Detector):
    traits = Traits(needs_prior=True)

    def __init__(self, *, prior: Prior | None = None) -> None:
        self.prior = prior

    def _fit(self, recordings):
        print(__file__)

    def _score(self, recording):
        return recording.values.sum(axis=1)

class Fails(Own):
    def _fit(self, recordings):
        raise FileNotFoundError(f"there is no {__file__}")
"""


@pytest.mark.processes
def test_no_string_of_a_record_is_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    prior = tmp_path / "prior.json"
    prior.write_text(json.dumps([{"source": "a", "target": "b"}]))
    monkeypatch.setattr(sys, "argv", [f"{tmp_path}/bin/tsadbench", "run", f"--out={tmp_path}/runs", str(tmp_path)])
    detectors = [f"{tmp_path}/own.py:{name}[prior={prior}]" for name in ("Own", "Fails")]
    plan = make_plan(detectors, dataset=make_data(), floors=False, seeds=1)
    records = run_plan(plan, Store.create(tmp_path / "runs"))
    assert [record.status for record in records] == ["ok", "error"]
    assert [record.detector for record in records] == ["own.py:Own", "own.py:Fails"]
    assert records[0].manifest["command"] == ["tsadbench", "run", "--out=runs", tmp_path.name]
    assert records[0].parameters["prior"] == "prior.json"
    for text in (text for record in records for text in strings(json.loads(record.to_json()))):
        assert without_folders(text) == text
        assert str(tmp_path) not in text


def test_two_files_of_one_name_are_refused(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text(OWN.replace("needs_prior=True", ""))
    with pytest.raises(UsageError, match=r"own\.py:Own"):
        make_plan([f"{tmp_path}/{folder}/own.py:Own" for folder in ("one", "two")], dataset=make_data())
