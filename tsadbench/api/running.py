"""`tsadbench.run`, and the implementation of ``tsadbench run``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from tsadbench.api.board import Board
from tsadbench.api.live import RunProgress, bars, progress_bar, watched
from tsadbench.api.loading import one_or_several
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.loading import loader
from tsadbench.datasets.shipped import find
from tsadbench.errors import DataNotFoundError, MissingExtraError, about
from tsadbench.execution.plan import Plan, make_plans
from tsadbench.execution.record import Record
from tsadbench.execution.request import DEFAULT_PROTOCOL, DatasetSpec, DetectorSpec, RunRequest
from tsadbench.execution.runner import ALL_BUT_OK, NO_CONTRIBUTIONS, n_kept, run_plan
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.render import number
from tsadbench.registry import defaults
from tsadbench.results.shipped import require_shipped
from tsadbench.sandbox import asking, describe
from tsadbench.utils.parameters import require_known
from tsadbench.utils.text import counted

_DEFAULT_DATASET = "skab"
# Arguments of `tsadbench.run` that `RunRequest` names differently, and those that take one or several values.
_SETTINGS = {"dataset": "datasets", "protocol": "protocols", "memory_mib": "memory"}
_LISTS = ("detectors", "dataset", "protocol", "splits", "settings")


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
    """Run detectors on a data set (or a suite) under a protocol, and rank them together with the floors.

    Parameters
    ----------
    detectors
        One or several: names as on the command line, detector classes or objects, or scikit-learn outlier estimators
        and pipelines. ``[]`` runs only the floors.
    dataset, protocol
        One or several data sets (names, paths of cards, or objects of `tsadbench.dataset_from_frames`) and protocols.
    seeds
        A number, for the seeds 0 to ``seeds - 1``, or a list of seeds.
    splits, floors
        The splits in the table (default: all); whether to run all registered floors.
    threads, jobs, cluster
        Threads of a trial's libraries; parallel trials (default: one per core that has 2 GiB of memory); or the
        address of a Dask cluster that runs them: ``tcp://host:port``, ``tls://host:port`` or ``local:N``.
    settings, data, require_seal
        Parameters of detectors and protocols, ``NAME.key=value``; the folder with the data sets' folders; whether to
        refuse machines and detectors whose boxes the kernel cannot seal.
    out
        Folder of a run store for all trials; None keeps them only as long as the board.
    timeout, memory_mib
        Limits of one trial: wall-clock seconds, resident MiB.
    against, suite
        A protocol (instead of ``protocol``) whose shipped leaderboard is shown as well; a suite (instead of
        ``dataset``): ``plants``, ``servers``, ``core`` or ``all``.
    progress
        Whether to show progress on standard error: a bar on a terminal, lines elsewhere. None: only in notebooks and
        on terminals.

    Raises
    ------
    UsageError, DataError, PluginError, MissingExtraError
        Before anything runs; a UsageError names the argument. A detector that fails becomes a row with its status. A
        KeyboardInterrupt ends running trials; finished trials are kept in ``out``.

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
    # The request checks all arguments, and has its own defaults for these two.
    given = [one for one in locals().items() if one[0] != "progress" and one not in (("jobs", None), ("out", None))]
    lists = {name: one_or_several(value) for name, value in given if name in _LISTS}
    asked: dict[str, Any] = {_SETTINGS.get(name, name): value for name, value in {**dict(given), **lists}.items()}
    # A suite or `against` replaces the default data set and protocol.
    if suite is not None and dataset is _DEFAULT_DATASET:
        del asked["datasets"]
    if against is not None and protocol is DEFAULT_PROTOCOL:
        del asked["protocols"]
    request = RunRequest(**asked, contributions=out is not None)
    return run_request(request, progress=watched() if progress is None else progress, keep=out is not None)


def run_request(
    request: RunRequest, *, rerun: Collection[str] = ALL_BUT_OK, progress: bool = True, keep: bool = True
) -> Board:
    """Run the trials of a request that its store lacks, and rank all of them; errors as for `run`.

    ``rerun`` is as for `tsadbench.execution.runner.run_plan`; without ``keep``, the store is deleted with the board.
    """
    known = {*ALL_BUT_OK, "ok", *([NO_CONTRIBUTIONS] if request.contributions else [])}
    require_known(rerun, known, "there is no status", "rerun")
    named = ", ".join(one.dataset.name if isinstance(one, LabelledDataset) else str(one) for one in request.datasets)
    with progress_bar(f"Reading {named}", shown=progress):  # may download files
        plans = make_plans(request)
    datasets = {plan.data.dataset.name: plan.data for plan in plans}
    with about("against"):
        for data in datasets.values() if request.against else ():
            require_shipped(data, plans[0].protocol_label)
    with about("out"):
        store = Store.create(request.out if keep else Path(mkdtemp(prefix="tsadbench-")))
    if not keep:
        finalize(store, rmtree, store.path, ignore_errors=True)
    sessions: dict[str, dict[str, int]] = {}
    for name, data in datasets.items():
        of, splits = data.dataset.session_of, data.dataset.splits.items()
        sessions[name] = {split: len({of[one] for one in ids}) for split, ids in splits}
    shown = datasets if request.against else ()
    store.remember(sessions=sessions, against=dict.fromkeys(shown, plans[0].protocol_label))
    records, n_earlier = run_plans(plans, store, request, rerun=rerun, progress=progress, keep=keep)
    trials = [one for of_plan in records for one in of_plan]
    board = Leaderboard.of_store(store, trials, request.splits)
    labels = {label for plan in plans for label in plan.named}
    others = {*board.frame.loc[~board.frame["floor"], "detector"]} - labels
    said, load = list(_said(plans, store, trials, n_earlier, labels)), loader(datasets.values(), request.data)[1]
    return Board(board, store=store, load=load, said=said, own=labels if others else (), ran=trials)


def completed(request: RunRequest) -> tuple[RunRequest, list[str]]:
    """Add the default detectors to a request; return it, and messages about those that cannot run here.

    If it names no data set either and SKAB's files are unavailable, it uses pumploop, which needs no files.
    """
    found, said = [], list[str]()
    with asking():
        for name in defaults("run"):
            try:
                describe(name)
                found.append(name)
            except MissingExtraError as error:
                said.append(f"left out: {error}")
    instead: dict[str, Any] = {"detectors": found, "seeds": 1, "splits": ["overall"], "contributions": False}
    own = request.model_fields_set - {"detectors"}
    try:
        with progress_bar(f"Reading {_DEFAULT_DATASET}"):
            if "datasets" not in own:
                find(_DEFAULT_DATASET, request.data)
    except DataNotFoundError as error:
        instead["datasets"] = ["pumploop"]
        said.append(f"{error}; the simulated pumploop, which needs no files, is used instead")
    return request.model_copy(update={name: value for name, value in instead.items() if name not in own}), said


def run_plans(
    plans: Sequence[Plan],
    store: Store | None,
    request: RunRequest,
    *,
    rerun: Collection[str] = ALL_BUT_OK,
    progress: bool = True,
    keep: bool = True,
) -> tuple[list[tuple[Record, ...]], int]:
    """Run plans; return their records, and the number of earlier trials. An interrupt reports what is kept."""
    try:
        with bars(shown=progress) as shown, about("cluster"):
            observer = RunProgress(plans, shown)
            how: dict[str, Any] = {"jobs": request.jobs, "cluster": request.cluster, "rerun": rerun}
            records = [run_plan(plan, store, observer, **how) for plan in plans]
    except KeyboardInterrupt as interrupt:
        kept = "nothing is kept"
        if store is not None and keep:
            n_trials = counted(sum(len(plan.trials) for plan in plans), "trial")
            kept = f"{n_kept(plans, store)} of {n_trials} are kept in {store.path}"
            kept += "" if "ok" in rerun else "; the same command continues"
        interrupt.add_note(kept)
        raise
    return records, observer.n_kept


def _said(
    plans: Sequence[Plan], store: Store, records: Sequence[Record], n_earlier: int, labels: Collection[str]
) -> Iterator[str]:
    """Yield remarks for users: unused seeds, changed results, what is kept, and logs of failures."""
    for contender in {trial.contender.label: trial.contender for plan in plans for trial in plan.trials}.values():
        if "seed" in contender.description.defaults and not contender.traits.stochastic:
            yield f"{contender.label}: has a seed, but its traits do not declare stochastic=True, so it runs once"
    now, keys = {record.trial for record in records}, ["dataset", "rules", "detector"]
    older = [one for one in store.records() if one.label in labels and one.trial not in now]
    if older:  # because of changed code or data
        both = (Leaderboard.from_records(some).frame.drop_duplicates(keys) for some in (older, records))
        before, after = (frame.set_index(keys)["auprc_mean"] for frame in both)
        for (_, _, label), value, was in after.to_frame().join(before.rename("was"), how="inner").dropna().itertuples():
            yield f"{label}: AUPRC {number(value)} (was {number(was)})"
    earlier = f", {n_earlier} of them from an earlier run" if n_earlier else ""
    yield f"{counted(len(records), 'trial')} {'is' if len(records) == 1 else 'are'} kept in {store.path}{earlier}"
    for one in [record for record in records if record.status != "ok"][:5]:
        yield f"log of {one.label}, seed {one.seed}: tsadbench runs show {store.path} {one.trial[:12]}"
