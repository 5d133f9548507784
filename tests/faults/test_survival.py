"""What a run survives, with nothing lost: each fault happens to real processes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.helpers.plant import Plant, table, trials, wait_until
from tsadbench.execution.store import Store

pytestmark = pytest.mark.processes


PLAN = [f"Steady[power={power}]" for power in (1.0, 2.0, 3.0, 4.0)]


def test_many_trials_killed_in_the_middle_and_resumed_give_the_same_table(small: Plant):
    """SIGKILL, between trials or during them, loses at most the trials in flight."""
    plan, seeds = PLAN, 2
    n_trials = 4 * seeds
    first = small.start(*plan, seeds=seeds, more=("--jobs", "2"))
    wait_until(lambda: small.runs.is_dir() and len(trials(small.runs)) >= n_trials // 4)
    first.kill()
    first.communicate()
    kept = trials(small.runs)
    assert n_trials // 4 <= len(kept) < n_trials
    before = {name: (small.runs / "records" / f"{name}.json").read_bytes() for name in kept}
    assert len(Store.open(small.runs).records()) == len(kept)  # none is incomplete
    resumed = small.run(*plan, seeds=seeds, more=("--jobs", "2"))
    assert resumed.returncode == 0, resumed.stderr
    assert re.search(rf"^{n_trials} .* {small.runs}, {len(kept)} ", resumed.stderr, re.M)
    assert all((small.runs / "records" / f"{name}.json").read_bytes() == text for name, text in before.items())
    assert not list(small.runs.rglob(".unfinished-*"))
    shutil.rmtree(small.runs)
    undisturbed = small.run(*plan, seeds=seeds)
    assert undisturbed.returncode == 0, undisturbed.stderr
    assert table(resumed.stdout) == table(undisturbed.stdout)
    assert {row["seeds"] for row in table(resumed.stdout)} == {str(seeds)}


@pytest.mark.long
def test_a_run_killed_twenty_times_at_random_moments_resumes_to_the_same_table(small: Plant):
    moments = np.random.default_rng().uniform(0.0, 10.0, size=20)
    for moment in moments:
        run = small.start(*PLAN, seeds=30, more=("--jobs", "2"))
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(moment)
        run.kill()
        run.communicate()
        if (small.runs / "store.json").is_file():
            store = Store.open(small.runs)
            assert all(store.scores(record) for record in store.records()), moments  # a broken trial would warn
    kept = len(trials(small.runs))
    assert kept
    resumed = small.run(*PLAN, seeds=30)
    assert resumed.returncode == 0, resumed.stderr
    assert re.search(rf"^120 .* {small.runs}, {kept} ", resumed.stderr, re.M)
    assert not list(small.runs.rglob(".unfinished-*"))
    shutil.rmtree(small.runs)
    assert table(resumed.stdout) == table(small.run(*PLAN, seeds=30).stdout)


@pytest.mark.long
def test_two_runs_into_one_store_at_once(small: Plant, tsadbench):
    """Both complete their plan, whichever is faster; every trial is stored once, and complete."""
    both = [small.start("Steady", "Steady[power=2.0]", seeds=8, more=("--jobs", "2")) for _ in range(2)]
    told = [run.communicate(timeout=300) for run in both]
    assert [run.returncode for run in both] == [0, 0], told
    assert len(trials(small.runs)) == 16
    assert table(told[0][0]) == table(told[1][0])
    verified = tsadbench("verify", small.runs, "--dataset", small.folder / "plant/card.toml")
    assert verified.code == 0, verified.out
    assert re.search(r"^16 \D*16 \D*0 ", verified.out, re.M)


def test_a_full_disk_ends_the_run_with_a_message_and_a_store_that_goes_on(small: Plant, tsadbench):
    """A limit on the size of files stands in for a full disk: filling a real one would harm other processes."""
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "limited", *small.command("Steady", seeds=3)]
    # Python does not notice a truncated .pyc file: do not let it leave one in our own packages.
    quiet = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=120, env=quiet)
    assert run.returncode == 2, run.stderr
    assert "File too large" in run.stderr
    assert "Traceback" not in run.stderr
    assert trials(small.runs) == set()
    assert tsadbench(*small.arguments("Steady", seeds=3)).code == 0
