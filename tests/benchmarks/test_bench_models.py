"""How fast a fitted DPR-GM answers: whole files, rows in a pipe, and one row at a time; one thread."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.noise import PRIOR, SENSORS, noise
from tsadbench.base.dataset import Dataset, LabelledDataset, Labels
from tsadbench.base.recording import Recording
from tsadbench.serving import Model, Stream, fit_model, score_rows
from tsadbench.utils.numerics import limit_threads
from tsadbench_detectors.dprgm import DPRGM

N_ROWS = 20_000


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    test = Recording("test", noise(100).values, SENSORS)
    splits = {"overall": ("test",)}
    data = LabelledDataset(
        Dataset("noise", (noise(1_000),), (test,), splits),
        Labels({"test": noise(100).values[:, 0] > 3}, splits),
    )
    fitted = fit_model(
        DPRGM(prior=PRIOR, epochs=1, min_steps=1), data, tmp_path_factory.mktemp("model") / "dprgm.model"
    )
    limit_threads(1)
    return fitted


@pytest.fixture(scope="module")
def rows() -> list[str]:
    return [",".join(map(repr, row)) for row in noise(N_ROWS).values.tolist()]


def told(benchmark, n_rows: int, cpu_seconds: float) -> None:
    benchmark.extra_info["rows_per_cpu_second"] = round(n_rows / cpu_seconds)


def test_a_whole_file(benchmark, model, rows, tmp_path):
    file: Path = tmp_path / "rows.csv"
    file.write_text("\n".join([",".join(SENSORS), *rows]))
    start = time.process_time()
    benchmark.pedantic(lambda: list(score_rows(model, file, model.card.layout)), rounds=1, iterations=1)
    told(benchmark, N_ROWS, time.process_time() - start)


def test_the_detector_alone(benchmark, model):
    start = time.process_time()
    benchmark.pedantic(model.detector.score, args=(noise(N_ROWS),), rounds=1, iterations=1)
    told(benchmark, N_ROWS, time.process_time() - start)


def piped(rows: list[str], rate: float | None) -> tuple[int, threading.Thread]:
    """Return a pipe into which another thread writes the rows, so many a second or as fast as they are taken."""
    reads, writes = os.pipe()

    def write() -> None:
        began = time.perf_counter()
        with os.fdopen(writes, "w", buffering=1) as stream:
            print(",".join(SENSORS), file=stream)
            for number, row in enumerate(rows):
                if rate is not None:
                    time.sleep(max(0.0, began + number / rate - time.perf_counter()))
                print(row, file=stream)

    thread = threading.Thread(target=write)
    thread.start()
    return reads, thread


@pytest.mark.parametrize("rate", [None, 2_000.0], ids=["as-fast-as-they-are-taken", "2000-a-second"])
def test_rows_in_a_pipe(benchmark, model, rows, rate):
    sent = rows if rate is None else rows[:10_000]

    def run() -> None:
        reads, thread = piped(sent, rate)
        counts = [len(answers) for answers in score_rows(model, reads, model.card.layout)]
        thread.join()
        os.close(reads)
        assert sum(counts) == len(sent)
        benchmark.extra_info["answered_at_once"] = round(sum(counts) / max(1, sum(map(bool, counts))), 1)

    start = time.process_time()
    benchmark.pedantic(run, rounds=1, iterations=1)
    told(benchmark, len(sent), time.process_time() - start)


def test_one_row_at_a_time(benchmark, model):
    values = noise(300).values
    stream = Stream(model)
    stream.push(values[:50])
    rest: Iterator[int] = itertools.cycle(range(50, 299))

    def push() -> None:
        row = next(rest)
        assert len(stream.push(values[row : row + 1])) == 1

    benchmark.pedantic(push, rounds=200)
