"""A run store of many trials, made in seconds: ``python -m tests.helpers.synthetic_store FOLDER TRIALS``.

Records are those of real trials under other labels, seeds and times, and every trial's scores are those that its
metrics were computed from, so that `tsadbench verify` finds all as recorded. Trials share files of scores: hard links.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np

from tests.helpers.plans import make_plan
from tsadbench.execution.plan import Contender, Plan, Trial, contender_from_label
from tsadbench.execution.provenance import identity, imported_versions
from tsadbench.execution.record import Record
from tsadbench.execution.run_store import Store
from tsadbench.execution.score_arrays import arrays_hash, scored_episodes
from tsadbench.execution.trial import Outcome, run_trial
from tsadbench.sandbox import Interview

TABLES = (("skab", "strict"), ("skab", "published"), ("pumploop", "strict"), ("pumploop", "published"))
SEEDS = 5
# Detectors without a network, with a parameter that a sweep would vary.
_SWEPT = {
    "t2": "smoothing",
    "t2-q": "smoothing",
    "mset": "memory_rows",
    "isolation-forest": "n_estimators",
}
_FLOORS = ("max-z", "l2-z", "sensor-range", "nearest-neighbour")
# Different scores, and so metrics, of a table; a file system allows some ten thousand links to a file.
_SOURCES = 24
_LINKS = 5000
_ONE_IN = 200  # trials that failed


@dataclass(frozen=True)
class _Source:
    """Scores that were judged, and the files that hold them."""

    record: Record
    arrays: dict[str, np.ndarray]
    hash: str


def synthetic_store(folder: Path, n_trials: int, tables: Sequence[tuple[str, str]] = TABLES) -> Store:
    """Return a store of so many trials: labels by `SEEDS` seeds in each table, four floors, one failure in 200."""
    store = Store.create(folder)
    for place, (dataset, protocol) in enumerate(tables):
        plan = make_plan([], dataset=dataset, protocol=protocol, floors=True, contributions=False)
        _fill(store, plan, range(place, n_trials, len(tables)))
    return store


def _fill(store: Store, plan: Plan, numbers: Sequence[int]) -> None:
    sources = list(_sources(plan))
    linked: dict[int, tuple[int, Path]] = {}
    for place, number in enumerate(numbers):
        label, seed = divmod(place, SEEDS)
        chosen = (7 * label + seed) % len(sources)
        record = _record(sources[chosen], plan, label, seed, number)
        n_links, scores = linked.get(chosen, (_LINKS, store.path))
        if record.status != "ok":
            _write(store.path / record.trial, record, None)
        elif n_links < _LINKS:
            _write(store.path / record.trial, record, scores)
            linked[chosen] = n_links + 1, scores
        else:
            store.add(Outcome(record, sources[chosen].arrays))
            linked[chosen] = 1, store.path / record.trial / "scores.npz"


def _write(folder: Path, record: Record, scores: Path | None) -> None:
    folder.mkdir()
    (folder / "record.json").write_text(record.to_json(), encoding="utf-8")
    if scores is None:
        (folder / "log.txt").write_text("Traceback (most recent call last):\n", encoding="utf-8")
    else:
        os.link(scores, folder / "scores.npz")


def _sources(plan: Plan) -> Iterator[_Source]:
    """Yield variations of one real trial: its scores with more and more noise, judged."""
    first = next(trial for trial in plan.trials if trial.contender.name == "max-z")
    outcome = run_trial(first, plan)
    for noise in np.linspace(0.0, 2.0, _SOURCES):
        rng = np.random.default_rng(int(1000 * noise))
        arrays = {
            name: np.abs(rows) * np.exp(noise * rng.normal(size=len(rows))) for name, rows in outcome.scores.items()
        }
        judgement = plan.protocol.judge(scored_episodes(arrays, plan.episodes, None), plan.data.labels)
        yield _Source(
            replace(outcome.record, splits=judgement.splits, thresholds=judgement.thresholds),
            arrays,
            arrays_hash(arrays),
        )


def _record(chosen: _Source, plan: Plan, label: int, seed: int, number: int) -> Record:
    """Return a record as a sweep would have left it."""
    floor = label < len(_FLOORS)
    name = _FLOORS[label] if floor else tuple(_SWEPT)[label % len(_SWEPT)]
    source = chosen.record
    contender = _contender(name if floor else f"{name}[{_SWEPT[name]}={label}]", plan)
    names = identity(Trial(contender, seed, source.threads), plan)
    started = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=20 * number)
    made = replace(
        source,
        trial=names.trial,
        scoring=names.scoring,
        detector=name,
        label=contender.label,
        family=contender.traits.family,
        look_ahead=contender.traits.look_ahead,
        parameters=contender.parameters,
        floor=floor,
        seed=seed,
        fit_seconds=0.1 + 1e-4 * label + 1e-3 * seed,
        score_seconds=0.02 + 1e-5 * label,
        manifest={
            **source.manifest,
            "seed": seed,
            "started": started.isoformat(timespec="seconds"),
            "ended": (started + timedelta(seconds=18)).isoformat(timespec="seconds"),
            "code_hash": contender.description.code_hash,
            "imported": dict(imported_versions(contender.description.imported)),
            "scores_hash": chosen.hash,
        },
    )
    made = replace(made, manifest={**made.manifest, "checksum": made.checksum})
    if number % _ONE_IN != _ONE_IN - 1:
        return made
    reason = f"LinAlgError: singular matrix after {number} steps"
    return replace(made, status="error", reason=reason, splits={}, thresholds=())


_CONTENDERS: dict[tuple[str, str], Contender] = {}


def _contender(label: str, plan: Plan) -> Contender:
    dataset = plan.data.dataset
    if (label, dataset.name) not in _CONTENDERS:
        _CONTENDERS[label, dataset.name] = contender_from_label(label, dataset, _interview())
    return _CONTENDERS[label, dataset.name]


@cache
def _interview() -> Interview:
    interview = Interview()
    atexit.register(interview.__exit__, None, None, None)
    return interview


if __name__ == "__main__":
    began = time.perf_counter()
    made = synthetic_store(Path(sys.argv[1]), int(sys.argv[2]))
    print(f"{made.path}: {sys.argv[2]} trials in {time.perf_counter() - began:.1f} s")
