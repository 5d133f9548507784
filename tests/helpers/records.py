"""Records made by hand, and the texts in a record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from tsadbench.base.protocol import EpisodeThreshold, SplitJudgement, Threshold
from tsadbench.execution.record import SCHEMA, Record


def record(label, seed=0, floor=False, status="ok", split="overall", dataset="d", notes=(), **metrics):
    ok = status == "ok"
    name = hashlib.sha256(f"{label} {seed} {dataset}".encode()).hexdigest()[:24]
    judged = SplitJudgement({"prac_f1": 0.5, "auroc": 0.5, "auprc": 0.5, **metrics}, 100, 35, 1.0)
    threshold = Threshold(
        value=2.0, method="pot", status="ok", t=1.0, level=0.98, q=0.001, n=500, excesses=30, gamma=0.1, sigma=0.2
    )
    return Record(
        schema=SCHEMA,
        trial=name,
        detector=label.partition("[")[0],
        label=label,
        family="floor" if floor else "statistics",
        parameters={"window": 30},
        floor=floor,
        look_ahead=9,
        dataset=dataset,
        protocol="strict",
        notes=notes,
        seed=seed,
        threads=1,
        status=status,
        reason=None if ok else "it broke",
        splits={split: judged} if ok else {},
        thresholds=(EpisodeThreshold("all", threshold),) if ok else (),
        fit_seconds=2.0 + seed,
        score_seconds=1.0,
        rows_scored=1_200,
        peak_memory_mib=100.0 + seed,
        protocol_version=2,
        scoring=name,
        judging="rules",
        manifest={},
    )


def strings(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, keys excepted."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)
