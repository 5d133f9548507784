"""The detector's side of the box: constructs the detector and answers the parent's requests.

Started by `tsadbench.sandbox.server` in a closed process; standard output and error go to the trial's log. Labels
never enter, and test recordings enter only after the fit.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
from pydantic_core import to_json

from tsadbench.base.detector import Detector
from tsadbench.base.recording import Recording
from tsadbench.base.serialization import from_parts, to_parts
from tsadbench.errors import ContractError, TsadbenchError
from tsadbench.sandbox.construction import Construction
from tsadbench.sandbox.seal.closing import SealStatus
from tsadbench.sandbox.seal.guard import forbid
from tsadbench.sandbox.seal.walls import Walls
from tsadbench.sandbox.wire import LONGEST_REASON, LONGEST_TRACEBACK, Array, Header, receive, send
from tsadbench.utils.error_place import own_place, place_of
from tsadbench.utils.numerics import limit_threads
from tsadbench.utils.parameters import parameters_of
from tsadbench.utils.progress import listening
from tsadbench.utils.text import one_line, printable

T = TypeVar("T")
Answer: TypeAlias = tuple[Header, Sequence[Array]]

# Request -> the author's method that it calls.
_HOOKS = {"fit": "_fit", "score": "_score", "training_scores": "_score", "contributions": "_contributions"}
# For libraries loaded later; libraries that are already loaded need `limit_threads`.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class _Inside:
    """Answers the parent's requests until the socket closes. The method ``on_KIND`` handles requests of that kind."""

    _detector: Detector

    def __init__(self, sock: socket.socket, walls: Walls, threads: int) -> None:
        self._sock = sock
        self._walls = walls
        self._threads = threads
        self._lock = threading.Lock()
        self._train: tuple[Recording, ...] = ()

    def serve_one(self) -> None:
        """Handle one request in its own frame, so its arrays are freed before the next one."""
        header, arrays = receive(self._sock)
        kind, results = header["kind"], []
        done = {"kind": "done", "request": header["request"]}
        try:
            for array in arrays:
                array.flags.writeable = False
            # Written by the parent. Answers of a box are never unpickled.
            arguments = pickle.loads(arrays[0], buffers=arrays[1:])  # type: ignore[arg-type]
            found, values = getattr(self, f"on_{kind}")(*arguments)
            reply, results = {**done, **found}, [np.ascontiguousarray(one) for one in values]
        except BaseException as error:  # a detector may raise anything, even SystemExit
            if isinstance(error, TsadbenchError) and kind in ("question", "learned"):
                known = next(each for each in type(error).__mro__ if each.__module__ == TsadbenchError.__module__)
                text = printable(str(error), lines=True)[:LONGEST_REASON]
                reply = {**done, "refused": known.__name__, "text": text}
            else:
                reply = _failure(error, kind, getattr(self, "_detector", None))
        _flush()
        self._send(reply, results)

    def on_question(self, question: Callable[..., object], arguments: tuple[object, ...]) -> Answer:
        answer = question(*arguments)
        return {"answer": to_json(answer, inf_nan_mode="constants").decode()}, []

    def on_parts(self, question: Callable[..., dict[str, bytes]], arguments: tuple[object, ...]) -> Answer:
        parts = question(*arguments)
        return {"parts": list(parts)}, [np.frombuffer(content, dtype=np.uint8) for content in parts.values()]

    def on_construct(self, construction: Construction) -> Answer:
        # Import first: the detector's module may be in a folder that becomes forbidden here.
        cls = construction.source.load()
        forbid(self._walls.hidden, self._violated, self._walls.readable)
        limit_threads(self._threads)
        self._detector = cls(**construction.values(cls))
        own_rule = cls._training_scores is not Detector._training_scores
        return {"offers_contributions": cls.offers_contributions(), "scores_training_itself": own_rule}, []

    def on_set_parameters(self, construction: Construction, names: Sequence[str]) -> Answer:
        cls = type(self._detector)
        values = construction.values(cls)
        defaults = {parameter.name: parameter.default for parameter in parameters_of(cls)}
        self._detector.set_params(**{name: values.get(name, defaults[name]) for name in names})
        return {}, []

    def on_fit(self, *recordings: Recording) -> Answer:
        self._train = recordings
        self._working(lambda: self._detector.fit(self._train))
        return {"training_facts": self._detector.training_facts()}, []

    def on_training_scores(self) -> Answer:
        return {}, self._working(lambda: self._detector.training_scores(self._train))

    def on_score(self, recording: Recording) -> Answer:
        return {}, [self._working(lambda: self._detector.score(recording))]

    def on_contributions(self, recording: Recording) -> Answer:
        return {}, [self._working(lambda: self._detector.contributions(recording))]

    def on_held_out_loss(self, recordings: Sequence[Recording], first: int) -> Answer:
        limit_threads(self._threads)
        return {"loss": self._detector.held_out_loss(recordings, first)}, []

    def on_learned(self, estimators: bool) -> Answer:
        return self.on_parts(partial(to_parts, self._detector, estimators=estimators), ())

    def on_restore(self, parts: Mapping[str, bytes], kept: Sequence[str], threads: int | None) -> Answer:
        limit_threads(threads or self._threads)
        values = {name: getattr(self._detector, name) for name in kept}
        self._detector = from_parts(type(self._detector), parts, values)
        traits = self._detector.declared_traits()
        return {name: getattr(traits, name) for name in ("look_ahead", "memory", "adaptive", "leaky")}, []

    def on_fork(self) -> Answer:
        """Fork this process. The copy serves the socket that follows the request; both processes answer it."""
        (fd,) = socket.recv_fds(self._sock, 1, 1)[1]
        box = os.getpid()
        with warnings.catch_warnings():
            # If the detector starts no threads, the only other thread waits for the parent's end.
            warnings.simplefilter("ignore", DeprecationWarning)
            forked = os.fork()
        if forked:
            os.close(fd)
        else:
            self._sock.close()
            self._sock, self._lock = socket.socket(fileno=fd), threading.Lock()
            threading.Thread(target=_end_with, args=(box,), daemon=True).start()
        return {"pid": forked}, []

    def _working(self, work: Callable[[], T]) -> T:
        limit_threads(self._threads)
        with listening(self._report):
            return work()

    def _report(self, done: int, total: int, note: str) -> None:
        self._send({"kind": "progress", "done": int(done), "total": int(total), "note": one_line(str(note), 200)})

    def _violated(self, what: str) -> None:
        """Report to the parent and end at once, so that no `except` of the detector can hide it."""
        header = {"kind": "failure", "status": "invalid", "reason": one_line(what), "traceback": "", "forbidden": True}
        self._send(header)
        os._exit(1)

    def _send(self, header: Header, arrays: Sequence[Array] = ()) -> None:
        with self._lock:
            send(self._sock, header, arrays)


def main(sock: socket.socket, status: SealStatus, walls: Walls, threads: int) -> None:
    """Report the seal to the parent and serve its requests; exit without running handlers or waiting for threads."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    code = 1
    try:
        send(sock, asdict(status))
        inside = _Inside(sock, walls, threads)
        with contextlib.suppress(EOFError):
            while True:
                inside.serve_one()
        code = 0
    except OSError:
        pass  # the parent is gone
    finally:
        _flush()
        os._exit(code)


def _flush() -> None:
    """Flush the detector's output to the log before anyone reads it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the detector may have closed or replaced it
            stream.flush()


def _failure(error: BaseException, kind: str, detector: Detector | None) -> Header:
    invalid = isinstance(error, ContractError)
    try:
        said = str(error)
    except Exception:  # a detector's own exception class may raise in any method
        said = "its message cannot be read"
    trace = printable("".join(traceback.format_exception(error)), lines=True)
    if len(trace) > LONGEST_TRACEBACK:
        trace = f"{trace[: LONGEST_TRACEBACK // 2]}\n...\n{trace[-LONGEST_TRACEBACK // 2 + 5 :]}"
    reason = one_line(said if invalid else f"{type(error).__name__}: {said}")
    return {
        "kind": "failure",
        "status": "invalid" if invalid else "error",
        "reason": f"{reason}{_where(error, kind, detector)}"[:LONGEST_REASON],
        "traceback": trace,
    }


def _where(error: BaseException, kind: str, detector: Detector | None) -> str:
    """Return " (phase, file:line)" for an error in the author's own code, or ""."""
    if isinstance(error, TsadbenchError) and not isinstance(error, ContractError):
        return ""  # about the data or the parameters
    place = own_place(error, "" if detector is None else type(detector).__module__)
    if isinstance(error, ContractError) and not place and kind in _HOOKS and detector is not None:
        place = place_of(getattr(type(detector), _HOOKS[kind]))
    phase = [] if kind == "question" else [kind.replace("_", " ")]
    return f" ({', '.join([*phase, os.path.basename(place)])})" if place else ""


def _end_with(parent: int) -> None:
    """End this process when its parent ends. On Linux the kernel does this, even during native code."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
