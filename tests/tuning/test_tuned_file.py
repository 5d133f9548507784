"""The result of a study: a TOML file, whose provenance is in the manifests of runs that use it."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas as pd

import tsadbench
from tests.helpers.plans import make_plan
from tsadbench.tuning.study import label_at, write_tuned
from tsadbench.tuning.task import Settings, make_task

POINTS = pd.DataFrame(
    [
        ("complete", 0.4, {"variance": 0.85, "confidence": 0.999, "smoothing": 1}, {"spike": 0.5, "drift": 0.3}, ""),
        ("complete", 0.6, {"variance": 0.912, "confidence": 0.95, "smoothing": 7}, {"spike": 0.7, "drift": 0.5}, ""),
        ("pruned", np.nan, {"variance": 0.5, "confidence": 0.95, "smoothing": 7}, {"spike": 0.1}, ""),
        ("timeout", np.nan, {"variance": 0.6, "confidence": 0.95, "smoothing": 7}, {}, "not done"),
        ("interrupted", np.nan, {"variance": 0.6, "confidence": 0.95, "smoothing": 7}, {}, ""),
    ],
    columns=["state", "value", "parameters", "parts", "reason"],
).rename_axis("number")
LABEL = "t2-q[confidence=0.95,smoothing=7,variance=0.912]"


def test_the_file_holds_a_plan_and_its_provenance(task, tmp_path):
    study = task("t2-q", seed=3)
    file = write_tuned(study, POINTS, tmp_path / "new")
    assert file == tmp_path / "new" / f"{study.study}.toml"
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    assert (content["detectors"], content["datasets"]) == ([LABEL], ["small"])
    expected = {
        "label": LABEL, "value": 0.6, "value_of_defaults": 0.4, "objective": "injection", "study": study.study,
        "trial": 1, "trials": 4, "folds": 2, "seed": 3, "tsadbench": tsadbench.__version__,
        "parameters": {"variance": 0.912, "confidence": 0.95, "smoothing": 7}, "parts": {"spike": 0.7, "drift": 0.5},
        "states": {"complete": 2, "pruned": 1, "timeout": 1, "interrupted": 1},
    }  # fmt: skip
    assert content["tuned"].items() >= expected.items()


def test_the_data_sets_own_prior_is_not_part_of_the_label():
    plan = make_plan(["dprgm[horizon=2]"], dataset="pumploop", seeds=1, floors=False)
    tuned = make_task(plan, Settings())
    assert tuned.contender.construction.arguments["prior"] is plan.data.dataset.prior
    assert label_at(tuned, {"alpha": 0.5}) == "dprgm[alpha=0.5,horizon=2]"
