"""The page on sizes of networks: its tables come from its records, and records from normal rows."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from tests.helpers.scripts import load_script
from tsadbench import Dataset, Detector, Labels, Recording
from tsadbench.base.dataset import LabelledDataset
from tsadbench.tuning.folds import Fold, Reach, make_folds
from tsadbench.utils.markdown import fill_blocks

FOLDER = Path(__file__).parents[2] / "docs/studies"


@pytest.fixture
def study() -> ModuleType:
    return load_script(FOLDER / "sizes.py")


def test_the_committed_page_comes_from_the_committed_records(study: ModuleType) -> None:
    page = (FOLDER / "sizes.md").read_text(encoding="utf-8")
    assert fill_blocks(page, study.block) == page


def test_the_page_says_in_words_what_the_records_say_the_defaults_lose(study: ModuleType) -> None:
    found = {}
    for line in study.differences()[2:]:
        dataset, detector, beside, _, ratios, gaps = (cell.strip().replace("`", "") for cell in line[1:-1].split("|"))
        found[dataset, detector, beside] = [[float(one) for one in text.split()] for text in (ratios, gaps)]
    loss, planted = ({key: both[i] for key, both in found.items()} for i in (0, 1))

    assert found["skab", "vanilla-ae", "size=paper"] == [[1.0, 1.0], [0.0, 0.0]]
    one, other = sorted(loss["skab", "lstm-vae", "size=paper"])
    assert one < 1 < other
    assert min(planted["skab", "lstm-vae", "size=paper"]) > 0
    assert min(planted["skab", "mscred", "size=paper"]) > 0
    assert min(loss["skab", "mscred", "channels=32"]) > 2
    worse, better = planted["skab", "mscred", "channels=32"]
    assert worse < 0 < better
    statistics = [key for key in found if key[1] == "grelen"]
    assert len(statistics) == len(study.SCORINGS["grelen"])
    assert all(min(loss[key]) > 1 and min(planted[key]) > 0 for key in statistics)
    assert min(loss["skab", "mtad-gat", "max_steps=150,size=paper"]) > 1
    assert max(planted["skab", "mtad-gat", "max_steps=150,size=paper"]) < 0
    assert max(loss["tep", "vanilla-ae", "size=paper"]) < 1
    assert min(planted["tep", "vanilla-ae", "size=paper"]) > 0
    for beside in ("hidden_size=32,latent_size=4", "size=paper"):
        assert min(loss["tep", "lstm-vae", beside]) >= 1
        assert max(planted["tep", "lstm-vae", beside]) < 0


def test_every_case_was_measured_with_the_first_seed_and_none_twice(study: ModuleType) -> None:
    found = [(one["dataset"], one["detector"], one["arguments"], one["seed"], one["scoring"]) for one in study.kept()]
    assert len(set(found)) == len(found)
    measured = {one[:4] for one in found}
    cases = [(case.dataset, case.detector, case.arguments, case.seed) for case in study.CASES]
    assert {case for case in cases if case[3] == study.SEEDS[0]} <= measured <= set(cases)


def test_a_row_is_over_the_seeds(study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []
    for seed, value in enumerate((0.2, 0.4)):
        planted = dict.fromkeys(study.KIND_NAMES, value)
        planted["spike"] = 0.6 + value
        lines.append(
            {"dataset": "skab", "detector": "mscred", "arguments": "size=paper", "scoring": "", "seed": seed,
             "weights": 1234, "fit_seconds": 1.0 + seed, "training": {"steps": 7 + seed}, "held_out_loss": 10.0 * value,
             "planted": planted, "test_auroc": value, "test_auprc": value}
        )  # fmt: skip
    monkeypatch.setattr(study, "RECORDS", tmp_path / "records.jsonl")
    study.RECORDS.write_text("".join(json.dumps(line) + "\n" for line in lines))
    cells = [cell.strip() for cell in study.block("skab")[2].strip("|").split("|")]
    # Of six kinds five have .2 and .4, and one has .6 more.
    assert cells[:8] == ["`mscred`", "`size=paper`", "1,234", "2", "7 8", "2 4", ".4000(.1414)", ".9000(.1414)"]
    assert cells[8:] == [".3000(.1414)"] * 7
    assert study.block("tep")[2:] == []


class Known(Detector):
    """Scores a row by its first sensor, and keeps what it was fitted on."""

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        self.fitted_on_ = recordings

    def _score(self, recording: Recording) -> np.ndarray:
        return np.abs(recording.values[:, 0])


def test_planted_faults_are_found_by_who_sees_them(study: ModuleType) -> None:
    rows = Recording("a", np.random.default_rng(0).normal(size=(900, 1)), ("x",))
    (fold,) = [make_folds([rows], 3, Reach(30, 0))[-1]]
    assert isinstance(fold, Fold)
    found = study.planted(Known().fit(fold.train), fold, 3)
    assert list(found) == list(study.KIND_NAMES)
    # A jump by three to eight standard deviations stands out from the rows, a value that is repeated does not.
    assert found["spike"] > 0.5 > 0.4 > found["stuck"]


def test_test_recordings_are_pooled_from_the_first_row_that_counts(study: ModuleType) -> None:
    generator = np.random.default_rng(1)
    test = tuple(Recording(name, generator.normal(size=(50, 1)), ("x",)) for name in "ab")
    labels = {one.id: generator.random(50) < 0.4 for one in test}
    splits = {"overall": ("a", "b")}
    data = LabelledDataset(
        Dataset("plant", (Recording("train", test[0].values, ("x",)),), test, splits), Labels(labels, splits)
    )
    pooled = np.concatenate([labels[one.id][20:] for one in test])
    scores = np.abs(np.concatenate([one.values[20:, 0] for one in test]))
    found = study.tested(Known().fit(list(test)), data, 20)
    assert found["test_auroc"] == pytest.approx(roc_auc_score(pooled, scores), abs=1e-12)
    assert found["test_auprc"] == pytest.approx(average_precision_score(pooled, scores), abs=1e-12)
