"""A leaderboard with its run store: `tsadbench.run` returns it, `tsadbench.load_board` reads it again."""

from __future__ import annotations

import os
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
from tsadbench.leaderboard.table import DIAGNOSTICS
from tsadbench.results.judging import judge_outdated
from tsadbench.utils.files import LEADERBOARDS, require_writable
from tsadbench.utils.parameters import require_known

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tsadbench.analysis.significance.compare import Comparison


class Board(Leaderboard):
    """A leaderboard that can access its scores to compare, draw and report them.

    ``store`` is its run store, ``load`` returns a data set by name. For runs, ``said`` are remarks for users,
    ``own`` are labels of rows to mark among stored rows, and ``ran`` are the records of its trials.
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
        super().__init__(board.trials, board.more, board.frame)
        self.store, self.said, self.own, self.ran = store, said, own, ran
        self._load = load

    def compare(
        self, *detectors: str, dataset: str | None = None, protocol: str | None = None, **options: Any
    ) -> Comparison:
        """Compare detectors of the board over sessions. Runs no detector.

        ``detectors`` are two or more labels; ``dataset`` and ``protocol`` are required if the board has several. Other
        options, result and errors are as for `tsadbench.compare`.
        """
        protocol = self._one("protocol", protocol)
        return api.compare(self.store, detectors, dataset=self._data(dataset), protocol=protocol, **options)

    def plot(self, kind: str, out: str | Path | None = None, *, dataset: str | None = None, **options: Any) -> Figure:
        """Draw a figure of the trials, as ``tsadbench plot`` does; parameters as for `tsadbench.api.plotting.plot`."""
        return api.plot(kind, self.store, out, dataset=self._data(dataset), **options)

    def report(
        self, path: str | Path = "report", *, detectors: str | Sequence[str] = (), best: int | None = None
    ) -> Path:
        """Write the store's trials on the board's data sets as one HTML page, ``path``/index.html.

        Curves and recordings cover ``detectors``, by default the ``best`` by AUPRC (12; 0: all) and the best floor.
        Raises a MissingExtraError if plotly is not installed.
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
            raise UsageError(f"expected one of {', '.join(names)}, found {name}", field=argument)
        return name or names[0]


def load_board(
    runs: str | Path,
    *,
    dataset: DatasetSpec | Sequence[DatasetSpec] = (),
    protocol: str | Sequence[str] = (),
    splits: str | Sequence[str] = (),
    data: str | Path | None = None,
    diagnostics: Sequence[str] = (),
) -> Board:
    """Read a run store as a leaderboard, like ``tsadbench leaderboard``. Runs no detector.

    Outdated trials are judged again if their data and scores are available.

    Parameters
    ----------
    runs, data
        The run store, a folder written by `tsadbench.run` or ``tsadbench run``; the folder with the data sets' folders.
    dataset, protocol, splits
        Names to show (default: all), as in tables. Your own data sets, which diagnostics and the board's methods need,
        are given by the paths of their cards, or as objects (`tsadbench.dataset_from_frames`).
    diagnostics
        Groups of diagnostics to add: ``operational``, ``vus``, ``affiliation``, ``root-cause`` or ``all``.

    Raises
    ------
    UsageError, StoreError
        If there is no run store, it cannot be read, or it holds no trial of a data set, protocol or split.
    """
    diagnostics = one_or_several(diagnostics)
    require_known(diagnostics, [*DIAGNOSTICS, "all"], "there is no group", "diagnostics")
    groups = [*DIAGNOSTICS] if "all" in diagnostics else [*diagnostics]
    with about("runs"):
        store = Store.open(Path(os.path.expanduser(runs)))
        records = all_records(store)
    names, load = loader(one_or_several(dataset), None if data is None else Path(os.path.expanduser(data)))
    for argument, chosen in (("dataset", names), ("protocol", one_or_several(protocol))):
        held = tuple(dict.fromkeys(str(getattr(record, argument)) for record in records))
        require_known(chosen, held, f"{runs} has no trial of", argument)
        records = tuple(record for record in records if not chosen or getattr(record, argument) in chosen)
    judged, n_left = judge_outdated(records, store, load)
    if n_left:
        why = f"to see why, run: tsadbench judge {store.path}"
        warnings.warn(f"shown under outdated rules: {n_left} of {len(records)} trials; {why}", stacklevel=2)
    with about("splits"):
        board = Leaderboard.of_store(store, judged, one_or_several(splits))
    if groups:
        board = api.with_diagnostics(board, store, load, groups)
    return Board(board, store=store, load=load)


def shown_against(folders: Sequence[Path]) -> list[Path | Store]:
    """Return run stores and folders of tables, and the shipped tables shown with the stores."""
    stores = [Store.open(folder) for folder in folders if not any(folder.glob(f"*/*/{RECORDS}"))]
    tables = dict.fromkeys(table for store in stores for table in store.about().against.items())
    return [*folders, *(Committed(LEADERBOARDS / dataset / protocol) for dataset, protocol in tables)]
