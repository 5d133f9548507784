"""A leaderboard with the run store behind it: `tsadbench.run` returns it, `tsadbench.load_board` reads it again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsadbench import api
from tsadbench.analysis.stored import Committed, all_records
from tsadbench.api.loading import one_or_several
from tsadbench.base.dataset import LabelledDataset
from tsadbench.datasets.loading import loader
from tsadbench.errors import UsageError, about
from tsadbench.execution.record import RECORDS, Record
from tsadbench.execution.request import DatasetSpec
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.leaderboard.columns import groups_of
from tsadbench.results.judging import judge_outdated, judge_smoothed
from tsadbench.utils.files import LEADERBOARDS, require_writable
from tsadbench.utils.parameters import nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tsadbench.analysis.significance.compare import Comparison


class Board(Leaderboard):
    """A leaderboard that knows where its scores are, and can compare, draw and report them.

    ``store`` is its run store, ``load`` returns the data set of a name. Of a run: ``said`` is what users should know
    besides, ``own`` are labels of rows to mark if others stand beside them, ``ran`` are the records of its trials.
    """

    def __init__(
        self,
        board: Leaderboard,
        *,
        store: Store,
        load: Callable[[str], LabelledDataset],
        said: Sequence[str] = (),
        own: Collection[str] = (),
        ran: Sequence[Record] = (),
    ) -> None:
        super().__init__(board.trials, board.notes, board.frame, board.sessions)
        self.store, self.said, self.own, self.ran = store, said, own, ran
        self._load = load

    def compare(
        self, *detectors: str, dataset: str | None = None, protocol: str | None = None, **options: Any
    ) -> Comparison:
        """Compare detectors of the board over sessions; no detector runs.

        ``detectors`` are labels of two or more; ``dataset`` and ``protocol`` are needed if the board has several. The
        options ``metric``, ``split``, ``rope`` and ``independent``, result and errors are those of `tsadbench.compare`.
        """
        protocol = self._one("protocol", protocol)
        return api.compare(self.store, detectors, dataset=self._data(dataset), protocol=protocol, **options)

    def plot(self, kind: str, out: str | Path | None = None, *, dataset: str | None = None, **options: Any) -> Figure:
        """Draw a figure of the trials, as ``tsadbench plot`` does; parameters as for `tsadbench.api.plotting.plot`."""
        return api.plot(kind, self.store, out, dataset=self._data(dataset), **options)

    def report(
        self, path: str | Path = "report", *, detectors: str | Sequence[str] = (), best: int | None = None
    ) -> Path:
        """Write the trials of the board as one HTML page, ``path``/index.html: tables, curves, recordings, thresholds.

        Curves and recordings are those of ``detectors``, by default of the ``best`` by AUPRC (12; 0: all), and of the
        best floor. A MissingExtraError if plotly is not installed.
        """
        with about("path"):
            require_writable(Path(path) / "index.html")
        labels, names = one_or_several(detectors), {*self.frame["dataset"]}
        return api.write_report(self.store, self._load, Path(path), labels=labels, best=best, datasets=names)

    def _data(self, name: str | None) -> LabelledDataset:
        with about("dataset"):
            return self._load(self._one("dataset", name))

    def _one(self, argument: str, name: str | None) -> str:
        """Return the data set or protocol of this name, or the only one."""
        names = list(dict.fromkeys(self.frame[argument]))
        if name not in names and (name is not None or len(names) != 1):
            raise UsageError(f"expected one of those of the board, {', '.join(names)}, found {name}", field=argument)
        return name or names[0]


def load_board(
    runs: str | Path,
    *,
    dataset: DatasetSpec | Sequence[DatasetSpec] = (),
    protocol: str | Sequence[str] = (),
    splits: str | Sequence[str] = (),
    data: str | Path | None = None,
    smoothing: int = 1,
    diagnostics: Sequence[str] = (),
) -> Board:
    """Read a run store as a leaderboard, as ``tsadbench leaderboard`` shows it; no detector runs.

    Trials that other rules than today's have judged are judged again, if their data and scores are available.

    Parameters
    ----------
    runs, data
        The run store: a folder that `tsadbench.run` or ``tsadbench run`` has written; the folder with the data sets'
        folders.
    dataset, protocol, splits
        Those to show (default: all), as tables name them. Data sets of your own, which diagnostics and the board's
        methods need, are given by the paths of their cards, or as they are (`tsadbench.dataset_from_frames`).
    smoothing
        Rows of a moving average that smooths all scores before they are judged.
    diagnostics
        Groups of diagnostics to add: ``operational``, ``vus``, ``affiliation``, ``root-cause`` or ``all``.

    Raises
    ------
    UsageError, StoreError
        If there is no run store, it cannot be read, or it holds no trial of a data set, protocol or split.
    """
    groups = groups_of(diagnostics)
    with about("runs"):
        store = Store.open(Path(runs).expanduser())
        records = all_records(store)
    names, load = loader(one_or_several(dataset), None if data is None else Path(data).expanduser())
    for argument, chosen in (("dataset", names), ("protocol", one_or_several(protocol))):
        held = tuple(dict.fromkeys(str(getattr(record, argument)) for record in records))
        if unknown := [name for name in chosen if name not in held]:
            raise UsageError(f"{runs} has no trial of {unknown[0]!r}{nearest(unknown[0], held)}", field=argument)
        records = tuple(record for record in records if not chosen or getattr(record, argument) in chosen)
    if smoothing == 1:
        judged, n_left = judge_outdated(records, store, load)
        if n_left:
            why = f"`tsadbench judge {store.path}` says why"
            warnings.warn(f"{n_left} trials are shown as other rules than today's judged them: {why}", stacklevel=2)
    else:
        judged, left_out = judge_smoothed(records, store, load, smoothing)
        for row, reason in left_out.items():
            warnings.warn(f"{row} is left out, because it cannot be judged again: {reason}", stacklevel=2)
        if not judged:
            raise UsageError(f"no trial of {store.path} can be judged again", field="smoothing")
    with about("splits"):
        board = Leaderboard.of_store(store, judged, one_or_several(splits))
    if groups:
        board = api.with_diagnostics(board, store, load, groups)
    return Board(board, store=store, load=load)


def shown_against(folders: Sequence[Path]) -> list[Path | Store]:
    """Return run stores and folders of tables, and the shipped tables that the stores were shown against."""
    stores = [Store.open(folder) for folder in folders if not any(folder.glob(f"*/*/{RECORDS}"))]
    tables = dict.fromkeys(table for store in stores for table in store.about().against.items())
    return [*folders, *(Committed(LEADERBOARDS / dataset / protocol) for dataset, protocol in tables)]
