"""A leaderboard with the run store behind it: `tsadbench.run` returns it, `tsadbench.load_board` reads it again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tsadbench.analysis.significance import PRIMARY, ROPE
from tsadbench.analysis.stored import Committed, all_records
from tsadbench.api.request import naming_arguments, one_or_several
from tsadbench.base.dataset import DataOptions, LabelledDataset
from tsadbench.datasets.loading import CARD_ENDING, load_dataset, loader
from tsadbench.errors import UsageError
from tsadbench.execution.record import RECORDS, Record, committed_records
from tsadbench.execution.request import DatasetSpec
from tsadbench.execution.store import Store
from tsadbench.leaderboard.board import Leaderboard
from tsadbench.registry import entries
from tsadbench.results.judging import judge_outdated
from tsadbench.utils.files import LEADERBOARDS
from tsadbench.utils.parameters import nearest
from tsadbench.utils.toml import found_text

if TYPE_CHECKING:
    from tsadbench.analysis.significance.compare import Comparison


class Board(Leaderboard):
    """A leaderboard that knows where its scores are, and can compare and report them.

    Parameters
    ----------
    board
        Its tables.
    store
        The run store with the scores; None if none are kept.
    load
        Returns the data set of a name.
    data
        Data sets in memory, by name.
    directory
        Folder with the data sets' folders, if one was named.
    """

    def __init__(
        self,
        board: Leaderboard,
        *,
        store: Store | None,
        load: Callable[[str], LabelledDataset],
        data: Mapping[str, LabelledDataset],
        directory: Path | None = None,
    ) -> None:
        super().__init__(board.trials, board.notes, board.frame, board.sessions)
        self.store = store
        self._load = load
        self._data = dict(data)
        self._directory = directory

    def compare(
        self,
        *detectors: str,
        metric: str = PRIMARY,
        dataset: str | None = None,
        protocol: str | None = None,
        split: str | None = None,
        rope: float = ROPE,
        independent: bool = False,
    ) -> Comparison:
        """Compare detectors of the board over sessions, as `tsadbench.compare` does; no detector runs.

        Parameters
        ----------
        *detectors
            Labels of two or more, as the tables show them.
        dataset, protocol
            Needed if the board has several.
        metric, split, rope, independent
            As for `tsadbench.compare`.

        Returns
        -------
        Comparison
            With ``to_frame``, ``to_json``, ``to_csv``, ``to_markdown``, ``to_latex``; ``print`` shows its tables.

        Raises
        ------
        UsageError
            If a name is wrong or missing, or no scores are kept.
        DataError, StoreError, MissingExtraError
            As for `tsadbench.compare`.
        """
        # Slow to import, and most runs compare nothing.
        from tsadbench.analysis.significance.compare import compare

        store = self._scores("compare")
        name = self._one("dataset", dataset)
        self._check_data(name)
        return compare(
            store.path,
            detectors,
            metric=metric,
            dataset=self._data.get(name, name),
            protocol=self._one("protocol", protocol),
            split=split,
            rope=rope,
            independent=independent,
            data=self._directory,
        )

    def report(
        self,
        path: str | Path = "report",
        *,
        detectors: Sequence[str] = (),
        best: int | None = None,
    ) -> Path:
        """Write the run store of the board as one HTML page: tables, curves, recordings, thresholds.

        Parameters
        ----------
        path
            The folder to write ``index.html`` into.
        detectors
            Labels of those whose curves and recordings the page has (default: the best by AUPRC and the best floor).
        best
            How many detectors that are, 12 by default; 0: all.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        UsageError
            If no scores are kept, a label is wrong, or the folder cannot be written to.
        MissingExtraError
            If plotly is not installed.
        """
        if not isinstance(path, str | Path) or str(path) == "":
            raise UsageError(f"path: expected a folder, in which index.html is written, found {path!r}")
        if Path(path).suffix.lower() in (".html", ".htm") or Path(path).is_file():
            raise UsageError(f"path: expected a folder, in which index.html is written, found {str(path)!r}")
        from tsadbench.reporting.report import write_report

        return write_report(
            self._scores("report"),
            self._load,
            Path(path),
            labels=_texts("detectors", detectors),
            best=best,
        )

    def _scores(self, method: str) -> Store:
        if self.store is None:
            raise UsageError(
                f"{method}: expected the scores of the trials, but this board was run without a run store: "
                "run again with out=FOLDER"
            )
        return self.store

    def _check_data(self, name: str) -> None:
        """Raise a UsageError if data are needed that no name leads to, and that the caller has not given."""
        if name not in self._data and name not in {entry.name for entry in entries("datasets")}:
            raise UsageError(
                f"dataset: {name!r} are data of your own, which no name leads to: give them, or their card, to "
                f"load_board(..., dataset=...)"
            )

    def _one(self, argument: str, name: str | None) -> str:
        """Return the data set or protocol of this name, or the only one."""
        names = tuple(dict.fromkeys(self.frame[argument]))
        if name is not None and name not in names:
            raise UsageError(f"{argument}: the board has no {name!r}{nearest(name, names)}")
        if name is None and len(names) != 1:
            raise UsageError(f"{argument}: the board has several, {', '.join(names)}: name one")
        return names[0] if name is None else name


def load_board(
    runs: str | Path,
    *,
    dataset: DatasetSpec | Sequence[DatasetSpec] = (),
    protocol: str | Sequence[str] = (),
    splits: str | Sequence[str] = (),
    data: str | Path | None = None,
) -> Board:
    """Read a run store as a leaderboard, as ``tsadbench leaderboard`` shows it; no detector runs.

    Trials that other rules than today's have judged are judged again, if their data and scores are available.

    Parameters
    ----------
    runs
        The run store: a folder that `tsadbench.run` or ``tsadbench run`` has written.
    dataset
        Data sets to show (default: all): names, as tables show them, paths of cards, or the data themselves
        (`tsadbench.dataset_from_frames`). Diagnostics, `Board.compare` and `Board.report` find data sets of your own by
        them.
    protocol
        Protocols to show, as tables show them (default: all).
    splits
        Splits to show, in order (default: all).
    data
        Folder with the data sets' folders; None searches as the documentation says.

    Returns
    -------
    Board
        Of several records of the same trial the newest counts.

    Raises
    ------
    UsageError
        If there is no run store, or it holds no trial of a data set, protocol or split.
    StoreError
        If it cannot be read.

    Examples
    --------
    >>> board = tsadbench.load_board("runs", protocol="strict")  # doctest: +SKIP
    >>> board.compare("dprgm", "t2-q").to_frame()  # doctest: +SKIP
    """
    with naming_arguments("runs"):
        if not isinstance(runs, str | Path):
            raise UsageError(f"expected the path of a run store, found {runs!r}")
        store = Store.open(Path(runs).expanduser())
        records = all_records(store)
    if data is not None and not isinstance(data, str | Path):
        raise UsageError(f"data: expected a folder, found {data!r}")
    if data is not None and not Path(data).expanduser().is_dir():
        raise UsageError(f"data: expected a folder that exists, found {str(data)!r}")
    directory = None if data is None else Path(data).expanduser()
    named, own = _datasets(dataset)
    load = loader((), directory, own)
    records = _chosen(records, "dataset", named, store)
    records = _chosen(records, "protocol", _texts("protocol", protocol), store)
    judged, n_left = judge_outdated(records, store, load)
    with naming_arguments("splits"):
        board = Leaderboard.of_store(store, judged, _texts("splits", splits))
    if n_left:
        warnings.warn(
            f"{n_left} trials were judged by other rules than today's and are shown as recorded: `tsadbench judge "
            f"{store.path}` says why",
            stacklevel=2,
        )
    return Board(board, store=store, load=load, data=own, directory=directory)


class _ShownAgainst(Committed):
    """The shipped tables that a run store was shown against, of the data sets that it has trials of."""

    def __init__(self, store: Store) -> None:
        super().__init__(LEADERBOARDS)
        against = store.about().against
        known = {record.dataset for record in store.records()} if against else set()
        self._tables = [table for table in against.items() if table[0] in known]

    def records(self) -> tuple[Record, ...]:
        return tuple(one for table in self._tables for one in committed_records(LEADERBOARDS, *table))


def shown_against(folders: Sequence[Path]) -> list[Path | Store]:
    """Return run stores and folders of tables, and the shipped tables that the stores were shown against."""
    stores = [Store.open(folder) for folder in folders if not any(folder.glob(f"*/*/{RECORDS}"))]
    beside = [_ShownAgainst(store) for store in stores]
    return [*folders, *(one for one in beside if one.records())]


def _datasets(dataset: object) -> tuple[tuple[str, ...], dict[str, LabelledDataset]]:
    """Return the names of data sets, and those of them that are no registered ones."""
    names, own = [], dict[str, LabelledDataset]()
    for one in one_or_several(dataset):
        if isinstance(one, Path) or (isinstance(one, str) and one.endswith(CARD_ENDING)):
            with naming_arguments("dataset"):
                one = load_dataset(str(one))(DataOptions())
        if isinstance(one, LabelledDataset):
            own[one.dataset.name] = one
            names.append(one.dataset.name)
        elif isinstance(one, str):
            names.append(one)
        else:
            raise UsageError(
                f"dataset: expected a name, the path of a card or the data themselves, found {found_text(one)}"
            )
    return tuple(names), own


def _texts(argument: str, value: object) -> tuple[str, ...]:
    found = one_or_several(value)
    texts = tuple(one for one in found if isinstance(one, str))
    if len(texts) < len(found):
        raise UsageError(f"{argument}: expected a name, or several, found {value!r}")
    return texts


def _chosen(records: Sequence[Record], argument: str, chosen: Sequence[str], store: Store) -> tuple[Record, ...]:
    """Return the records of these data sets or protocols; all if none is chosen."""
    held = tuple(dict.fromkeys(str(getattr(record, argument)) for record in records))
    for name in chosen:
        if name not in held:
            raise UsageError(f"{argument}: {store.path} holds no trial of {name!r}{nearest(name, held)}")
    return tuple(record for record in records if not chosen or getattr(record, argument) in chosen)
