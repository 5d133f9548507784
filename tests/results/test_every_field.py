"""An edit of any field of a record or its manifest is found, except for the fields listed here, with the reason."""

from __future__ import annotations

import copy
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from tests.helpers.data import make_data
from tests.helpers.plans import make_plan
from tests.helpers.stored import stored
from tsadbench.base.dataset import LabelledDataset, Labels
from tsadbench.errors import DataNotFoundError
from tsadbench.execution.runner import run_plan
from tsadbench.execution.store import Store
from tsadbench.results.verification import verify

# Fields that nothing else determines: remarks, facts of the fit, costs, seal and replay (`--redo` measures them),
# circumstances, and the hash of the rules that judged (another means older rules, and the trial is judged again).
NEVER = {
    *("judging", "notes", "note", "training", "peak_memory_mib"),
    *("fit_seconds", "score_seconds", "fit_cpu_seconds", "score_cpu_seconds"),
    *("seal", "seal_reason", "replay", "manifest.device", "manifest.command", "manifest.started", "manifest.ended"),
    *("manifest.platform", "manifest.processor", "manifest.cpu_count", "manifest.blas", "manifest.fit_shared_with"),
    *("manifest.crossing", "manifest.versions.python", "manifest.versions.tsadbench", "manifest.rules"),
}
# Other values of fields that admit only some.
OTHER = {
    ("seal",): "guarded",
    ("status",): "error",
    ("thresholds", 0, "threshold", "method"): "dspot",
    ("thresholds", 0, "threshold", "status"): "degenerate",
}

DATA = make_data(n_rows=400)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> SimpleNamespace:
    store = Store.create(tmp_path_factory.mktemp("fields") / "runs")
    (record,) = run_plan(make_plan(["t2"], dataset=DATA, floors=False, seeds=1), store)
    file = stored(store.path, record.trial).record
    return SimpleNamespace(store=store, file=file, content=json.loads(file.read_text()))


def load(name: str):
    if name != DATA.dataset.name:
        raise DataNotFoundError(name)
    return DATA


def fields(content: dict) -> list[tuple[str | int, ...]]:
    """Return the paths of a record's fields, of its manifest's, and of the numbers of a split and a threshold."""
    manifest = content["manifest"]
    versions = [("manifest", "versions", name) for name in manifest["versions"]]
    of_manifest = [("manifest", name) for name in manifest if name != "versions"]
    overall = content["splits"]["overall"]
    judged = [("splits", "overall", name) for name in overall if name != "metrics"]
    judged += [("splits", "overall", "metrics", name) for name in overall["metrics"]]
    judged += [("thresholds", 0, "threshold", name) for name in content["thresholds"][0]["threshold"]]
    return [(name,) for name in content if name != "manifest"] + of_manifest + versions + judged


def edited(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    if isinstance(value, list):
        return [*value, value[0] if value else "x"]
    if isinstance(value, dict):
        name = next(reversed(value), "x")
        return {**value, name: edited(value.get(name, ""))}
    return "x"


def undiscovered(made: SimpleNamespace) -> set[str]:
    missed = set()
    for path in fields(made.content):
        content = copy.deepcopy(made.content)
        *above, last = path
        where = content
        for name in above:
            where = where[name]
        where[last] = OTHER.get(path) or edited(where[last])
        made.file.write_text(json.dumps(content))
        (found,) = verify(made.store, load)
        if found.verdict == "same":
            missed.add(".".join(map(str, path)))
    made.file.write_text(json.dumps(made.content))
    return missed


def test_every_edit_is_found_except_those_listed(made):
    assert undiscovered(made) <= NEVER


def test_edited_scores_and_contributions_and_other_labels_are_found(made, tmp_path):
    (same,) = verify(made.store, load)
    assert same.verdict == "same"
    for kind in ("scores", "contributions"):
        shutil.copytree(made.store.path, tmp_path / kind)
        file = getattr(stored(tmp_path / kind, same.trial), kind)
        arrays = dict(np.load(file))
        name = next(name for name in arrays if name.endswith(DATA.dataset.test[0].id))
        arrays[name].flat[50] *= 1 + 1e-6
        np.savez(file, **arrays)
        (found,) = verify(Store.open(tmp_path / kind), load)
        assert (found.verdict, any(kind in fault for fault in found.faults)) == ("differs", True)
    rows = {name: rows.copy() for name, rows in DATA.labels.rows.items()}
    next(iter(rows.values()))[60] ^= True
    relabelled = LabelledDataset(DATA.dataset, Labels(rows, DATA.labels.splits))
    (found,) = verify(made.store, lambda _: relabelled)
    assert (found.verdict, any("labels" in fault for fault in found.faults)) == ("differs", True)
