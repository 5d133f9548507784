"""`tsadbench.run`: from Python what ``tsadbench run`` does on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.execution.plan import Wanted, make_plan
from tsadbench.execution.run_store import Store
from tsadbench.execution.runner import run_plan
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.shipped import stored_beside


def run(
    detectors: Wanted | Sequence[Wanted],
    dataset: str | LabelledDataset = "skab",
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
    against: str | None = None,
    cluster: str | None = None,
) -> Leaderboard:
    """Run detectors on a data set under a protocol and rank them, the floors beside them.

    Parameters
    ----------
    detectors
        One or several: names as on the command line, detector classes, or detectors.
    dataset
        Name, or the data themselves.
    protocol
        Name.
    seeds
        Seeds 0 to ``seeds - 1``; a detector that is not stochastic runs once.
    splits
        Splits to show; none given: all.
    threads
        How many threads a detector's libraries may use.
    jobs
        Trials at a time; the results do not depend on it.
    settings
        ``NAME.key=value`` for a detector's or the protocol's parameter.
    floors
        Whether the floors take part.
    out
        Folder of a run store that keeps every trial; None keeps none.
    data
        Folder with the data sets' files; None searches as the documentation says.
    timeout, memory_mib
        What one trial may use: wall-clock seconds, resident MiB.
    against
        Protocol whose leaderboard ships with the package: its rows stand beside, marked as stored, and none of them
        (floors included) is run again. It takes the place of ``protocol``.
    cluster
        A Dask cluster that runs the trials: ``tcp://host:port`` or ``local:N``; the data set must be named then.

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
    plan = make_plan(
        list(detectors) if isinstance(detectors, Sequence) and not isinstance(detectors, str) else [detectors],
        dataset=dataset,
        protocol=against or protocol,
        splits=splits,
        seeds=seeds,
        threads=threads,
        settings=settings,
        floors=floors and against is None,
        data=DataOptions(directory=None if data is None else Path(data)),
        timeout=timeout,
        memory_mib=memory_mib,
        contributions=out is not None,
    )
    store = None if out is None else Store.create(Path(out))
    stored = () if against is None else stored_beside(plan)
    return Leaderboard.from_records(run_plan(plan, store, jobs=jobs, cluster=cluster), plan.splits, stored=stored)
