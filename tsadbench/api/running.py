"""`tsadbench.run`: from Python what ``tsadbench run`` does on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tsadbench.api.request import PythonRequest, naming_arguments, one_or_several
from tsadbench.execution.plan import make_plans
from tsadbench.execution.request import DEFAULT_PROTOCOL, DatasetSpec, DetectorSpec
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.shipped import stored_beside

_DEFAULT_DATASET = "skab"


def run(
    detectors: DetectorSpec | Sequence[DetectorSpec],
    dataset: DatasetSpec | Sequence[DatasetSpec] = _DEFAULT_DATASET,
    protocol: str | Sequence[str] = DEFAULT_PROTOCOL,
    *,
    seeds: int | Sequence[int] = 5,
    splits: str | Sequence[str] = (),
    threads: int = 1,
    jobs: int = 1,
    settings: str | Sequence[str] = (),
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
        One or several: names as on the command line, detector classes, or detectors. ``[]`` runs the floors alone.
    dataset
        One or several: the name of a data set, the path of its card, or the data themselves
        (`tsadbench.dataset_from_frames`).
    protocol
        The name of one or several protocols.
    seeds
        A number, for the seeds 0 to ``seeds - 1``, or a list of seeds.
    threads, jobs, settings, floors, splits, data, timeout, require_seal, cluster
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
        With ``to_frame``, ``to_json``, ``to_csv``, ``to_markdown``; ``print`` and notebooks show it as tables.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        Before anything runs; a UsageError names the argument. A detector that fails while it runs becomes a row with
        its status.

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
    asked: dict[str, Any] = {  # whatever the caller gave: the request checks it
        "detectors": one_or_several(detectors),
        "suite": suite,
        "against": against,
        "splits": one_or_several(splits),
        "seeds": seeds,
        "threads": threads,
        "jobs": jobs,
        "cluster": cluster,
        "floors": floors,
        "contributions": out is not None,
        "timeout": timeout,
        "memory": memory_mib,
        "require_seal": require_seal,
        "data": data,
        "settings": one_or_several(settings),
    }
    # Defaults stand back for what is to be used instead of them.
    if suite is None or dataset is not _DEFAULT_DATASET:
        asked["datasets"] = one_or_several(dataset)
    if against is None or protocol is not DEFAULT_PROTOCOL:
        asked["protocols"] = one_or_several(protocol)
    if out is not None:
        asked["out"] = out
    with naming_arguments():
        request = PythonRequest(**asked)
        plans = make_plans(request)
    with naming_arguments("out"):
        store = None if out is None else Store.create(request.out)
    with naming_arguments("against"):
        stored = [() if against is None else stored_beside(plan) for plan in plans]
    with naming_arguments("cluster"):
        records = [run_plan(plan, store, jobs=request.jobs, cluster=request.cluster) for plan in plans]
    return Leaderboard.joined(
        [
            Leaderboard.from_records(of_plan, plan.splits, stored=beside)
            for plan, of_plan, beside in zip(plans, records, stored, strict=True)
        ]
    )
