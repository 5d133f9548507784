"""What has changed since a trial ran is named: module, library, data, rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tsadbench.base.dataset import DataOptions
from tsadbench.datasets.loading import load_dataset
from tsadbench.execution.store import Store
from tsadbench.results.verification import why_new

MINE = "mine.py:Mine"
DETECTOR = """
import numpy as np
from tsadbench import Detector, Traits
from helpers import SCALE

class Mine(Detector):
    traits = Traits(family="statistics", memory=0)

    def _fit(self, recordings):
        self.mean_ = np.concatenate([one.values for one in recordings]).mean(axis=0)

    def _score(self, recording):
        return SCALE * np.abs(recording.values - self.mean_).sum(axis=1)
"""


@pytest.fixture
def store(tmp_path, tsadbench, monkeypatch) -> Store:
    """A store in the current folder with a trial of a detector that consists of two files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "mine.py").write_text(DETECTOR)
    (tmp_path / "helpers.py").write_text("SCALE = 1.0\n")
    done = tsadbench("run", "-d", MINE, "--dataset", "pumploop", "--no-floors", "--out", "runs")
    assert done.code == 0, done.err
    return Store.open(tmp_path / "runs")


def test_what_has_changed_since_a_trial_ran_is_named(store, tmp_path, tsadbench):
    (record,) = store.records()

    def changed(**of_manifest: object) -> list[str]:
        other = replace(record, manifest={**record.manifest, **of_manifest})
        return why_new(other, lambda name: load_dataset(name)(DataOptions()), {MINE})

    assert changed() == []
    versions = {**record.manifest["versions"], "numpy": "1.0", "python": "3.0"}
    (library,) = changed(versions=versions)
    assert library.startswith("numpy 1.0")
    assert len(changed(data_hash="0", labels_hash="0")) == 2
    (rule,) = changed(rules={**record.manifest["rules"], "tsadbench_protocols.pot": "0"})
    assert "tsadbench_protocols.pot" in rule
    (tmp_path / "mine.py").write_text(f"# Words.\n{DETECTOR}")
    assert changed() == []
    (tmp_path / "mine.py").write_text(DETECTOR.replace("sum(axis=1)", "max(axis=1)"))
    (module,) = changed()
    assert "mine.py" in module
    forged = {**record.manifest, "sources": {**record.manifest["sources"], "\x1b[31mred": "0"}}
    store.put(replace(record, manifest=forged))
    shown = tsadbench("runs", "show", "runs", record.trial, "--detector", MINE)
    assert (shown.code, module in shown.err, "red" in shown.err, "\x1b" in shown.err) == (0, True, True, False)
