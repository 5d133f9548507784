"""`tsadbench.run`: from Python what ``tsadbench run`` does on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tsadbench.api.board import Board
from tsadbench.api.live import RunProgress, watched
from tsadbench.api.request import PythonRequest, naming_arguments, one_or_several
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.loading import loader
from tsadbench.errors import UsageError
from tsadbench.execution.plan import Plan, make_plans
from tsadbench.execution.record import Record
from tsadbench.execution.request import DEFAULT_PROTOCOL, DatasetSpec, DetectorSpec
from tsadbench.execution.runner import n_kept, run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.results.shipped import stored_records

_DEFAULT_DATASET = "skab"


def run(
    detectors: DetectorSpec | Sequence[DetectorSpec],
    dataset: DatasetSpec | Sequence[DatasetSpec] = _DEFAULT_DATASET,
    protocol: str | Sequence[str] = DEFAULT_PROTOCOL,
    *,
    seeds: int | Sequence[int] = 5,
    splits: str | Sequence[str] = (),
    threads: int = 1,
    jobs: int | None = None,
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
    progress: bool | None = None,
) -> Board:
    """Run detectors on a data set, or all of a suite, under a protocol and rank them, the floors beside them.

    Parameters
    ----------
    detectors
        One or several: names as on the command line, detector classes, detectors, or outlier estimators and
        pipelines of scikit-learn. ``[]`` runs the floors alone.
    dataset
        One or several: the name of a data set, the path of its card, or the data themselves
        (`tsadbench.dataset_from_frames`).
    protocol
        The name of one or several protocols.
    seeds
        A number, for the seeds 0 to ``seeds - 1``, or a list of seeds.
    splits, floors
        The splits that the table shows (none: all); whether every registered floor takes part.
    threads, jobs, cluster
        Threads of a trial's libraries; trials at a time, by default as many as there are cores; or the address of a
        Dask cluster that runs them: ``tcp://host:port``, ``tls://host:port`` or ``local:N``.
    settings, data, require_seal
        Parameters of detectors and protocols, ``NAME.key=value``; the folder that holds the data sets' folders; whether
        to refuse machines and detectors whose boxes the kernel cannot seal.
    out
        Folder of a run store that keeps every trial; None keeps none.
    timeout, memory_mib
        What one trial may use: wall-clock seconds, resident MiB.
    against
        Protocol whose shipped leaderboard is shown beside, used instead of ``protocol``.
    suite
        Name of a suite, used instead of ``dataset``: ``plants``, ``servers`` or ``all``.
    progress
        Whether to show which trials run, how many have ended and failed, on standard error: by bars on a terminal, by a
        line per trial elsewhere. None: in notebooks and on terminals alone.

    Returns
    -------
    Board
        A leaderboard with ``to_frame``, ``to_json``, ``to_csv``, ``to_markdown``; ``print`` and notebooks show it as
        tables. With ``out``, it also has ``compare`` and ``report``.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        Before anything runs; a UsageError names the argument. A detector that fails while it runs becomes a row with
        its status.
    KeyboardInterrupt
        If the user interrupts: trials that run are ended, and those that have ended are kept in ``out``.

    Examples
    --------
    >>> import numpy as np
    >>> import tsadbench
    >>> import pandas as pd
    >>> rows = pd.DataFrame(np.random.default_rng(0).normal(size=(600, 2)), columns=["flow", "pressure"])
    >>> rows[500:540] += 9.0
    >>> mine = tsadbench.dataset_from_frames(rows[:300], rows[300:], labels=[(200, 239)], name="mine")
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
    asked |= {name: value for name, value in (("jobs", jobs), ("out", out)) if value is not None}
    if progress is not None and not isinstance(progress, bool):
        raise UsageError(f"progress: expected True, False or None, found {progress!r}")
    with naming_arguments():
        request = PythonRequest(**asked)
        _require_labels(request.datasets)
        plans = make_plans(request)
    with naming_arguments("out"):
        store = None if out is None else Store.create(request.out)
    with naming_arguments("against"):
        stored = stored_beside(plans, against)
    with naming_arguments("cluster"):
        records = _records(plans, store, request, progress)
    board = ranked(plans, records, stored, store)
    own = {plan.data.dataset.name: plan.data for plan in plans}
    return Board(
        board,
        store=store,
        load=loader((), request.data, own),
        data=own,
        directory=request.data,
    )


def stored_beside(plans: Sequence[Plan], against: str | None) -> list[tuple[Record, ...]]:
    """Return the shipped records to show beside each plan's. A UsageError or a DataError as for `stored_records`."""
    return [() if against is None else stored_records(plan.data, plan.protocol_label) for plan in plans]


def ranked(
    plans: Sequence[Plan],
    records: Sequence[Sequence[Record]],
    stored: Sequence[Sequence[Record]],
    store: Store | None,
    splits: Sequence[str] = (),
) -> Leaderboard:
    """Rank the records of plans beside stored ones; the store keeps what it was shown against.

    ``splits`` are those to show, by default each plan's.
    """
    sessions: dict[str, dict[str, int]] = {}
    against: dict[str, str] = {}
    for plan, beside in zip(plans, stored, strict=True):
        session_of = plan.data.dataset.sessions
        splits_of = plan.data.dataset.splits.items()
        sessions[plan.data.dataset.name] = {name: len({session_of[one] for one in ids}) for name, ids in splits_of}
        against |= {plan.data.dataset.name: plan.protocol_label} if beside else {}
    if store is not None:
        store.remember(sessions=sessions, against=against)
    checked_in = None if store is None else store.path
    return Leaderboard.joined(
        [
            Leaderboard.from_records(
                of_plan,
                [one for one in splits if one in plan.splits] or plan.splits,
                stored=beside,
                checked_in=checked_in,
                sessions=sessions,
            )
            for plan, of_plan, beside in zip(plans, records, stored, strict=True)
        ]
    )


def _require_labels(datasets: Sequence[DatasetSpec]) -> None:
    """Raise a UsageError if data that the caller made cannot be judged."""
    for data in datasets:
        if isinstance(data, LabelledDataset) and data.missing:
            raise UsageError(
                f"{data.dataset.name!r} has no {data.missing}, so there is nothing to judge: give them to "
                "dataset_from_frames; to fit a detector and score rows without, there are fit_model and load_model",
                setting="datasets",
            )


def _records(
    plans: Sequence[Plan], store: Store | None, request: PythonRequest, progress: bool | None
) -> list[tuple[Record, ...]]:
    """Run plans, with progress; an interrupt says what is kept."""
    observer = RunProgress(plans) if progress or (progress is None and watched()) else None
    try:
        with observer or nullcontext():
            return [run_plan(plan, store, observer, jobs=request.jobs, cluster=request.cluster) for plan in plans]
    except KeyboardInterrupt as interrupt:
        n_trials = sum(len(plan.trials) for plan in plans)
        kept = "nothing is kept: give out=FOLDER to keep trials"
        if store is not None:
            kept = f"{n_kept(plans, store)} of {n_trials} trials are kept in {store.path}; run again to go on"
        interrupt.add_note(kept)
        raise
