"""`tsadbench.run`: from Python what ``tsadbench run`` does on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.execution.plan import make_plans
from tsadbench.execution.request import DatasetSpec, DetectorSpec, RunRequest
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.shipped import stored_beside


def run(
    detectors: DetectorSpec | Sequence[DetectorSpec],
    dataset: DatasetSpec = "skab",
    protocol: str = "strict",
    *,
    seeds: int = 5,
    splits: Sequence[str] = (),
    threads: int = 1,
    jobs: int = 1,
    settings: Sequence[str] = (),
    floors: bool = True,
    out: str | Path | None = None,
    data: str | Path | None = None,
    timeout: float | None = None,
    memory_mib: float | None = None,
    require_seal: bool = False,
    against: str | None = None,
    cluster: str | None = None,
    suite: str | None = None,
) -> Leaderboard:
    """Run detectors on a data set, or all of a suite, under a protocol and rank them, the floors beside them.

    `RunRequest` (`tsadbench.execution.request`) documents the settings that are not explained here.

    Parameters
    ----------
    detectors
        One or several: names as on the command line, detector classes, or detectors.
    dataset, protocol
        The name of the data set, the path of its card, or the data themselves; the name of the protocol.
    seeds, threads, jobs, settings, floors, splits, data, timeout, require_seal, cluster
        As in a `RunRequest`.
    out
        Folder of a run store that keeps every trial; None keeps none.
    memory_mib
        ``memory`` of a `RunRequest`.
    against
        As in a `RunRequest`; it is used instead of ``protocol``.
    suite
        Name of a suite, used instead of ``dataset``: ``plants``, ``servers`` or ``all``.

    Returns
    -------
    Leaderboard
        With ``to_frame``, ``to_json``, ``to_csv``, ``to_markdown``; a notebook shows it as a table.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        Before anything runs. A detector that fails while it runs becomes a row with its status.

    Examples
    --------
    >>> import numpy as np
    >>> import tsadbench
    >>> from tsadbench.base.dataset import LabelledDataset
    >>> values = np.random.default_rng(0).normal(size=(600, 2))
    >>> values[500:540] += 9.0
    >>> labels = np.zeros(300, dtype=bool)
    >>> labels[200:240] = True
    >>> train = tsadbench.Recording("normal", values[:300], ("a", "b"))
    >>> test = tsadbench.Recording("fault", values[300:], ("a", "b"))
    >>> splits = {"overall": ("fault",)}
    >>> mine = LabelledDataset(
    ...     tsadbench.Dataset("mine", (train,), (test,), splits), tsadbench.Labels({"fault": labels}, splits)
    ... )
    >>> board = tsadbench.run("t2", mine, floors=False)
    >>> board.to_frame()[["detector", "status", "auroc_mean"]]
      detector status  auroc_mean
    0       t2     ok         1.0
    """
    request = RunRequest(
        detectors=[detectors] if isinstance(detectors, str) or not isinstance(detectors, Sequence) else list(detectors),
        **({"datasets": [dataset]} if suite is None else {"suite": suite}),
        protocols=[against or protocol],
        against=against,
        splits=list(splits),
        seeds=seeds,
        threads=threads,
        jobs=jobs,
        cluster=cluster,
        floors=floors,
        contributions=out is not None,
        timeout=timeout,
        memory=memory_mib,
        require_seal=require_seal,
        data=None if data is None else Path(data),
        settings=list(settings),
    )
    plans = make_plans(request)
    store = None if out is None else Store.create(Path(out))
    stored = [() if against is None else stored_beside(plan) for plan in plans]
    return Leaderboard.joined(
        [
            Leaderboard.from_records(
                run_plan(plan, store, jobs=request.jobs, cluster=request.cluster), plan.splits, stored=beside
            )
            for plan, beside in zip(plans, stored, strict=True)
        ]
    )
