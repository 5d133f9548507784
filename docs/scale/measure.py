"""Measures what commands take on run stores of many trials: CPU seconds and peak memory, as a Markdown table.

``python docs/scale/measure.py FOLDER 1000 10000 100000`` makes the stores in FOLDER if they are not there (a minute),
and runs each command on them; ``--tree DIR`` measures another checkout's commands on the same stores. CPU seconds are
those of the command and its children.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
LARGEST_VERIFIED = 1000
COMMANDS = {
    "runs list, first": ["runs", "list", "{store}"],
    "runs list": ["runs", "list", "{store}"],
    "leaderboard": ["leaderboard", "{store}"],
    "leaderboard --format csv": ["leaderboard", "{store}", "--format", "csv"],
    "leaderboard --write": ["leaderboard", "{store}", "--write", "{out}"],
    "compare, 2 detectors": [
        *("compare", "{store}", "t2-q[smoothing=5]", "mset[memory_rows=6]", "--dataset", "pumploop"),
        *("--protocol", "strict"),
    ],
    "run, 1 new trial": [
        *("run", "--detector", "t2[smoothing={new}]", "--dataset", "pumploop", "--no-floors", "--no-contributions"),
        *("--out", "{store}"),
    ],
    "report": ["report", "{store}", "--out", "{out}"],
    "verify": ["verify", "{store}"],
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("trials", type=int, nargs="+")
    parser.add_argument("--tree", type=Path, default=HERE, help="the checkout whose commands are measured")
    parser.add_argument("--only", nargs="*", default=list(COMMANDS), help="the commands to measure")
    given = parser.parse_args()
    tree = given.tree.resolve()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (tree, tree / "detectors", tree / "protocols"))),
        "PYTHONSAFEPATH": "1",  # else the folder that this is started in would come first
        "OMP_NUM_THREADS": "1",
    }
    print("| command | " + " | ".join(f"{n:,} trials" for n in given.trials) + " |", flush=True)
    print("|---" * (1 + len(given.trials)) + "|", flush=True)
    stores = {n: made(given.folder / f"{n}", n) for n in given.trials}
    for name in given.only:
        cells = [name]
        for n, store in stores.items():
            skipped = name == "verify" and n > LARGEST_VERIFIED
            cells.append("" if skipped else measured(COMMANDS[name], store, environment))
        print(f"| {' | '.join(cells)} |", flush=True)


def made(store: Path, n_trials: int) -> Path:
    """Return a store of so many trials, made if it is not there."""
    if not store.is_dir():
        subprocess.run(
            [sys.executable, "-m", "tests.helpers.synthetic_store", store, f"{n_trials}"], cwd=HERE, check=True
        )
    return store


def measured(command: list[str], store: Path, environment: dict[str, str]) -> str:
    """Return CPU seconds and peak memory of a command, and the size of what it wrote."""
    with tempfile.TemporaryDirectory() as out:
        new = int.from_bytes(os.urandom(4), "big") % 10**6 + 10**5
        words = [word.format(store=store, out=out, new=new) for word in command]
        child = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "tsadbench", *words],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, f"{out}.log", os.O_WRONLY | os.O_CREAT, 0o600),
            ],
        )
        _, status, used = os.wait4(child, 0)
        log = Path(f"{out}.log")
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            sys.exit(f"tsadbench {' '.join(words)}: {log.read_text()}")
        log.unlink()
        size = sum(file.stat().st_size for file in Path(out).rglob("*") if file.is_file())
        wrote = f", {size / 1e6:.1f} MB" if size else ""
        shutil.rmtree(out, ignore_errors=True)
        Path(out).mkdir()
        return f"{used.ru_utime + used.ru_stime:.1f} s, {used.ru_maxrss / 1024:.0f} MiB{wrote}"


if __name__ == "__main__":
    main()
