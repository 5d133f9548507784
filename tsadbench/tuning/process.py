"""The tuning process: a process of its own that is handed training recordings, and nothing else of a data set.

Whoever has loaded a data set calls `search`, which starts it as ``python -m tsadbench.tuning.process FD`` and speaks
with it over a socket. No test recording and no label crosses; inside, opening anything below the data's folder ends it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from tsadbench.errors import TsadbenchError, UsageError
from tsadbench.sandbox import Construction
from tsadbench.sandbox.child import end_with
from tsadbench.sandbox.framing import packed, unpacked
from tsadbench.sandbox.guard import forbid
from tsadbench.sandbox.launch import import_path
from tsadbench.sandbox.limits import family
from tsadbench.sandbox.wire import Array, Header, receive, send
from tsadbench.tuning.outcome import Outcome
from tsadbench.tuning.task import Task

_PATIENCE_SECONDS = 30.0
_Answer = TypeVar("_Answer")


class Observer(Protocol):
    """Who wants to know how far a search has come."""

    def step(self, number: int, done: int, of: int) -> None:
        """Hear that a point has so many of its numbers."""

    def ended(self, number: int, outcome: Outcome) -> None:
        """Hear that a point has ended, and what the study holds now."""


def search(task: Task, storage: str, observer: Observer) -> Outcome:
    """Let a process of its own search, and return what the study holds then.

    Parameters
    ----------
    task
        What is tuned.
    storage
        Where the study is kept (`tsadbench.tuning.storage.open_storage`).
    observer
        Hears of every step.

    Raises
    ------
    UsageError
        If the storage cannot be opened, or the tuning process reached for the data's folder.
    KeyboardInterrupt
        If the user interrupts: the process is ended, the points that had ended are kept.
    """
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = _start(theirs)
        try:
            _exchange(lambda: send(ours, *message(task, storage)), process)
            while True:
                told, _ = _exchange(lambda: receive(ours), process)
                if told["kind"] == "done":
                    return Outcome.from_json(told["outcome"])
                _hear(told, observer)
        finally:
            # All that it has found is kept: nothing is lost with it.
            for one in reversed(family(process.pid)):
                with contextlib.suppress(Exception):
                    one.kill()
            process.wait()


def _exchange(talk: Callable[[], _Answer], process: subprocess.Popen[bytes]) -> _Answer:
    try:
        return talk()
    except (OSError, EOFError) as error:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_PATIENCE_SECONDS)
        ended = f"the tuning process ended before it was done (exit code {process.returncode})"
        raise RuntimeError(ended) from error


def message(task: Task, storage: str) -> tuple[Header, Sequence[Array]]:
    """Return all that the tuning process is sent: header and arrays of one frame.

    The first array holds the detector's class and fixed arguments, the second the rest of the task, then come the
    training recordings.
    """
    header, recordings = packed("tune", task.train)
    nothing = Construction(object, {})  # type: ignore[arg-type]  # it crosses by itself
    rest = pickle.dumps(replace(task, train=(), construction=nothing))
    parts = [np.frombuffer(part, dtype=np.uint8) for part in (task.construction.dumps(), rest)]
    return {**header, "storage": storage, "path": import_path()}, [*parts, *recordings]


def _hear(told: Header, observer: Observer) -> None:
    if told["kind"] == "step":
        observer.step(told["number"], told["done"], told["of"])
    elif told["kind"] == "trial":
        observer.ended(told["number"], Outcome.from_json(told["outcome"]))
    elif told["kind"] == "refused":
        raise UsageError(told["reason"])
    else:
        raise RuntimeError(f"the tuning process failed:\n{told['traceback']}")


def _start(theirs: socket.socket) -> subprocess.Popen[bytes]:
    # A database's driver may need its own variables; what names the data stays here.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TSADBENCH_")}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tsadbench.tuning.process", str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(theirs.fileno(),),
        env={**environment, "PYTHONPATH": os.pathsep.join(import_path())},
        start_new_session=True,  # Ctrl-C is ours to answer
    )


def main(fd: int) -> None:
    """Receive a task, search, tell; end with the process that asked for it."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    sock = socket.socket(fileno=fd)
    lock = threading.Lock()

    def tell(told: Mapping[str, object]) -> None:
        with lock:
            send(sock, told)

    def violated(what: str) -> None:
        tell({"kind": "refused", "reason": what.replace("the detector", "the tuning process", 1)})
        os._exit(1)

    try:
        header, arrays = receive(sock)
        sys.path[:] = header["path"]
        task = _task(header, arrays)
        from tsadbench.tuning.study import run_study  # before the guard: it imports much

        forbid([str(folder) for folder in task.forbidden], violated)
        found = run_study(task, header["storage"], tell)
        tell({"kind": "done", "outcome": found.to_json()})
    except TsadbenchError as error:
        tell({"kind": "refused", "reason": str(error)})
    except BaseException as error:  # the other side says so; here nobody reads it
        tell({"kind": "failed", "traceback": "".join(traceback.format_exception(error))})


def _task(header: Header, arrays: Sequence[Array]) -> Task:
    construction, rest, *recordings = arrays
    task: Task = pickle.loads(rest.tobytes())  # the other side is the process that started this one
    return replace(task, train=unpacked(header, recordings), construction=Construction.loads(construction.tobytes()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
