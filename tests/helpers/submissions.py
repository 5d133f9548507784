"""A submission of a detector of somebody else's, and ways to change one so that only our labels or a run can tell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from tests.helpers.plans import make_plan
from tsadbench.base.status import CHECKS_VERSION
from tsadbench.datasets.by_name import loader
from tsadbench.execution.check_reports import CheckReport, keep, version_texts, versions_of
from tsadbench.execution.record import CHECKSUM, Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.execution.score_arrays import arrays_hash
from tsadbench.results.bank.parquet_form import bank_bytes, read_bank_file
from tsadbench.results.submissions.form import DESCRIPTION, RECORDS, STATEMENT, statement
from tsadbench.results.submissions.making import submit
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.digests import digest

LOAD = loader([], None)
DETECTOR = '''
"""A detector of somebody else's."""

from __future__ import annotations

import numpy as np
from tsadbench.base import Detector, FloatArray, Recording, Traits


class Drift(Detector):
    """Distance of a row to the training rows' median, in their median deviations.

    Parameters
    ----------
    power
        Exponent of the norm over sensors.
    """

    traits = Traits(family="statistics", look_ahead=0, memory=0, pretrained_on=("UCR archive",))

    def __init__(self, *, power: float = 2.0) -> None:
        self.power = power

    def _fit(self, recordings: tuple[Recording, ...]) -> None:
        rows = np.concatenate([recording.values for recording in recordings])
        self.centre_ = np.median(rows, axis=0)
        spread = np.median(np.abs(rows - self.centre_), axis=0)
        self.scale_ = np.where(spread > 1e-9 * np.abs(self.centre_), spread, 1.0)

    def _score(self, recording: Recording) -> FloatArray:
        distance = np.abs((recording.values - self.centre_) / self.scale_)
        scores: FloatArray = (distance**self.power).sum(axis=1) ** (1.0 / self.power)
        return scores
'''


def report_of(record: Record, **changed: object) -> CheckReport:
    """Return a report that vouches for a trial without that any check ran."""
    report = CheckReport(
        schema=1,
        label=record.label,
        code_hash=str(record.manifest["code_hash"]),
        versions=version_texts(versions_of(record)),
        checks=CHECKS_VERSION,
        full=False,
        day="2026-11-23",
        results={"works": "pass"},
        reasons={},
    )
    return replace(report, **changed)


def run_drift(folder: Path) -> Store:
    """Run the detector from a file of the current folder on pumploop; its checks are vouched for."""
    (folder / "drift.py").write_text(DETECTOR, encoding="utf-8")
    store = Store.create(folder / "runs")
    (record,) = run_plan(make_plan(["drift.py:Drift"], dataset="pumploop", floors=False, seeds=1), store)
    assert record.status == "ok", record.reason
    keep(report_of(record), store.path)
    return store


def submitted(store: Store, name: str, folder: Path, **options: object) -> Path:
    """Write a store as a signed submission, and return its folder."""
    submit(store, name, folder, LOAD, **{"signed_by": "Jane Doe", **options})
    return folder / name


def copied(submission: Path, above: Path) -> Path:
    """Return a copy of a submission, to be changed, under the same name."""
    return Path(shutil.copytree(submission, above / submission.name))


def signed_again(submission: Path, change: Callable[[dict], None] = lambda _: None) -> None:
    """Have ``submission.json`` name the files as they are now, and sign it anew: what a forger does last."""
    file = submission / DESCRIPTION
    content = json.loads(file.read_text(encoding="utf-8"))
    content["files"] = {
        one.relative_to(submission).as_posix(): digest(one.read_bytes())
        for one in sorted(submission.rglob("*"))
        if one.is_file() and not one.is_symlink() and one.name not in (DESCRIPTION, STATEMENT)
    }
    change(content)
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    text = statement(file.read_bytes(), submission.name, "Jane Doe", date(2026, 11, 23))
    (submission / STATEMENT).write_text(text, encoding="utf-8")


def score_file(submission: Path) -> Path:
    """Return the first file of scores."""
    return sorted((submission / "scores").iterdir())[0]


def forged(
    submission: Path,
    record: Callable[[Record], Record] = lambda one: one,
    scores: Callable[[Mapping[str, FloatArray]], Mapping[str, FloatArray]] = dict,
    *,
    checksums: bool = True,
) -> None:
    """Change a record or its scores, and everything that names them, so that all digests agree again.

    Parameters
    ----------
    submission
        Is changed.
    record, scores
        Return what they become.
    checksums
        Whether the forger also computes the checksums inside the record anew.
    """
    file = score_file(submission)
    held = read_bank_file(file.read_bytes(), file.name)
    given = scores(held.scores).items()
    arrays = {name: np.asarray(values, dtype=np.float32).astype(np.float64) for name, values in given}
    changed = record(held.record)
    if checksums:
        changed = replace(changed, manifest={**changed.manifest, "scores_hash": arrays_hash(arrays)})
        changed = replace(changed, manifest={**changed.manifest, CHECKSUM: changed.checksum})
    packed = bank_bytes(changed, arrays)
    file.unlink()
    new = file.with_name(f"{digest(packed)}.parquet")
    new.write_bytes(packed)
    (submission / RECORDS).write_text(changed.to_json(indent=None) + "\n", encoding="utf-8")

    def renamed(content: dict) -> None:
        content["trials"] = {changed.trial: f"scores/{new.name}"}
        content["detectors"][0]["label"] = changed.label

    signed_again(submission, renamed)
