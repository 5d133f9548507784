"""A folder with files of the score bank, read like a run store that nothing is written to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from tsadbench.errors import BrokenTrialError, UsageError
from tsadbench.execution.record import Record
from tsadbench.execution.stored_files import Shapes, open_regular
from tsadbench.results.bank.bank_file import BankFile
from tsadbench.results.bank.index import INDEX, BankEntry, BankIndex, index_for
from tsadbench.results.bank.parquet_form import read_bank_file
from tsadbench.utils.arrays import Float32Array, FloatArray
from tsadbench.utils.digests import digest


class BankFolder:
    """What `tsadbench bank fetch` or `build` has written: an index (`index_for`), and those of its files that are here.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    UsageError
        If it has no index, or none of the index's files is here.
    StoreError
        If the index is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = BankIndex.read(index_for(path) or path / INDEX)
        self._last: tuple[str, BankFile] | None = None
        if not self.entries:
            raise UsageError(
                f"{path}: it has an index of the score bank, and none of the {len(self.index.entries)} files that this "
                "lists; `tsadbench bank fetch --out FOLDER` gets them, and `tsadbench judge FOLDER` takes that folder"
            )

    @cached_property
    def entries(self) -> Mapping[str, BankEntry]:
        """The index's entries whose files are here, by the trials' names, in the index's order."""
        return {one.trial: one for one in self.index.entries if (self.path / one.file).exists()}

    def trials(self) -> list[str]:
        """Return the names of the trials whose files are here."""
        return [*self.entries]

    def record(self, trial: str) -> Record:
        """Return a trial's record; errors as for `scores`."""
        return self._content(trial).record

    def has_scores(self, trial: str) -> bool:
        """Whether a trial's file is here."""
        return trial in self.entries

    def scores(self, trial: str, shapes: Shapes | None = None) -> dict[str, FloatArray]:
        """Return a trial's scores by ``<role>/<episode>/<recording>``, float64 of float32's precision.

        Raises
        ------
        BrokenTrialError
            If the file is not the one of the index, or not what that says of it.
        """
        found = self._content(trial).scores
        return {name: found[name] for name in (found if shapes is None else shapes) if name in found}

    def contributions(self, trial: str, shapes: Shapes | None = None) -> dict[str, Float32Array]:  # noqa: ARG002
        """Return nothing: the bank has no contributions."""
        return {}

    def _content(self, trial: str) -> BankFile:
        """Return what a trial's file holds; the last one is kept, as record and scores are read one after the other."""
        if self._last is None or self._last[0] != trial:
            self._last = trial, self._read(self.entries[trial])
        return self._last[1]

    def _read(self, entry: BankEntry) -> BankFile:
        file = self.path / entry.file
        try:
            with open_regular(file, entry.size) as stream:
                content = stream.read()
        except OSError as error:
            raise BrokenTrialError(f"{file}: cannot be read ({error.strerror or error}); fetch it again") from error
        if digest(content) != entry.sha256:
            raise BrokenTrialError(f"{file}: its SHA-256 is another than that of the index; fetch it again")
        found = read_bank_file(content, str(file))
        if faults := "; ".join(entry.faults(found)):
            raise BrokenTrialError(f"{file}: it is not what the index says: {faults}")
        return found
