"""Several processes write the same trials of one store while another reads it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.helpers.records import record
from tsadbench import StoreError
from tsadbench.execution.judging import arrays_hash
from tsadbench.execution.store import Store
from tsadbench.execution.trial import Outcome

pytestmark = pytest.mark.processes

TRIALS = [f"{number:024d}" for number in range(4)]
SECONDS = 1.5


def outcome(trial: str, writer: int) -> Outcome:
    """Return a trial whose record says which process wrote it; its scores are the same from all."""
    scores = {"test/all/a": np.arange(50.0)}
    made = replace(record("t2"), trial=trial, scoring=trial, notes=(str(writer),))
    return Outcome(replace(made, manifest={"scores_hash": arrays_hash(scores)}), scores, log="log")


def write(folder: str, writer: int) -> None:
    """Write all trials again and again, in a separate process; print how many were written."""
    store, written, end = Store(Path(folder)), 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        for trial in TRIALS:
            store.add(outcome(trial, writer))
            written += 1
    print(written)


@contextmanager
def writing(folder: Path, writer: int) -> Iterator[subprocess.Popen[str]]:
    code = f"from tests.execution.test_concurrent_writers import write; write({str(folder)!r}, {writer})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=-1, stderr=-1, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def disturbed_reads(folder: Path) -> tuple[list[str], int]:
    """Return what a reader missed while two processes wrote, and how often it read all trials."""
    store = Store.create(folder)
    for trial in TRIALS:
        store.add(outcome(trial, 0))
    missed, rounds = list[str](), 0
    with ExitStack() as stack:
        writers = [stack.enter_context(writing(folder, number)) for number in (1, 2)]
        while any(writer.poll() is None for writer in writers):
            rounds += 1
            missed += [f"listed {name}" for name in set(TRIALS) ^ set(store.trials())]
            for trial in TRIALS:
                try:
                    read = (one := store.record(trial)), store.scores(one)["test/all/a"]
                except StoreError as error:
                    missed.append(str(error))
                else:
                    assert read[0].notes in (("0",), ("1",), ("2",))
                    assert_array_equal(read[1], np.arange(50.0))
                if store.find(trial) is None or store.log(trial) != "log":
                    missed.append(f"absent {trial}")
        for writer in writers:
            printed, errors = writer.communicate()
            assert writer.returncode == 0, errors
            assert int(printed) >= len(TRIALS)
    assert sorted(os.listdir(folder / "records")) == [f"{trial}.json" for trial in TRIALS]
    assert not list(folder.rglob(".unfinished*"))
    return missed, rounds


def test_a_reader_always_sees_every_trial_whole_and_no_write_fails(tmp_path: Path):
    missed, rounds = disturbed_reads(tmp_path / "runs")
    assert missed == []
    assert rounds > 10
