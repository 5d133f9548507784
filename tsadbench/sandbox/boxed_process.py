"""A process that holds a detector's code: what is asked of it, its log, its limits, and its end whatever happens."""

from __future__ import annotations

import platform
import secrets
import signal
import socket
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from tsadbench.base.status import Seal
from tsadbench.sandbox.launch import Launcher, default_launcher, import_path
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.meter import Meter
from tsadbench.sandbox.replies import MAX_REPLY_BYTES, Failure, Progress, Reply, read_reply
from tsadbench.sandbox.walls import plan_walls
from tsadbench.sandbox.wire import Array, BrokenFrameError, Header, receive_arrays, receive_header, send
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.progress import Listener
from tsadbench.utils.text import one_line, printable

_POLL_SECONDS = 0.1
_REPORT_SECONDS = 0.05
# A log longer than twice this is cut: its beginning and its end are kept.
_KEPT_LOG_BYTES = 2**19


@dataclass(slots=True)
class Costs:
    """What a detector has used so far: seconds of its own work, and the box's largest resident size.

    All of it is measured from outside. Seconds are wall-clock time, from when a request has crossed until its answer
    is there; CPU seconds are those of all threads of the process and of what it has started, together. ``rows_scored``
    are the training and test rows that were scored in ``score_seconds``.
    """

    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    fit_cpu_seconds: float = 0.0
    score_cpu_seconds: float = 0.0
    peak_memory_mib: float = 0.0
    rows_scored: int = 0

    def add(self, other: Costs) -> None:
        """Add the costs of another box of the same trial."""
        self.fit_seconds += other.fit_seconds
        self.score_seconds += other.score_seconds
        self.fit_cpu_seconds += other.fit_cpu_seconds
        self.score_cpu_seconds += other.score_cpu_seconds
        self.peak_memory_mib = max(self.peak_memory_mib, other.peak_memory_mib)
        self.rows_scored += other.rows_scored


class BoxedProcess:
    """A process behind a socket that answers one request after the other.

    Used as a context manager; leaving it ends the process.

    Parameters
    ----------
    name
        What messages call the code inside.
    threads
        Number of threads that its libraries may use.
    limits
        What it may use.
    listener
        Receives its progress reports.
    forbidden
        Folders in which it may open nothing.
    modules
        Modules and files that hold the code inside: it may read their packages.
    gpu
        Whether it may use GPUs.
    launcher
        Starts the process; None: this system's default.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 1,
        limits: Limits | None = None,
        listener: Listener | None = None,
        forbidden: Sequence[Path] = (),
        modules: Sequence[str] = (),
        gpu: bool = False,
        launcher: Launcher | None = None,
    ) -> None:
        self.costs = Costs()
        self._name = name
        self._listener = listener
        self._next_report = 0.0
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the box
        launcher = launcher or default_launcher()
        walls = plan_walls(
            import_path(),
            forbidden=forbidden,
            modules=modules,
            gpu=gpu,
            memory_mib=None if limits is None else limits.memory_mib,
        )
        self._process = launcher.start(self._log.fileno(), walls)
        self._process.sock.settimeout(_POLL_SECONDS)
        limits = limits or Limits()
        if limits.sealed_only and self.seal != "sealed":
            self.close()
            reason = f"its box on {platform.node()} would be guarded, not sealed (--require-seal): {self.seal_reason}"
            raise BoxFailure("error", reason)
        self._limits = limits
        self._watch = limits.watch(self._process.pid, self._log, self._process.keeper)
        self._meter = Meter(self._process.pid, self._process.keeper)
        # What the last request took.
        self._seconds = self._cpu_seconds = 0.0
        # Sent with the first request.
        self._surroundings: Header = {
            "threads": threads,
            "path": import_path(),
            "forbidden": list(walls.hidden),
            "allowed": walls.needed_below_hidden(),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def seal(self) -> Seal:
        """Whether the kernel closes the process off ("sealed") or an audit hook guards it ("guarded")."""
        return self._process.box.seal

    @property
    def seal_reason(self) -> str:
        """Why it is guarded only, or how it is sealed without namespaces; empty otherwise."""
        return self._process.box.reason

    def log(self) -> str:
        """Return what the detector wrote to standard output and error, without the middle if it is long."""
        size = self._log.seek(0, 2)
        self._log.seek(0)
        content = self._log.read(_KEPT_LOG_BYTES)
        if size > 2 * _KEPT_LOG_BYTES:
            self._log.seek(-_KEPT_LOG_BYTES, 2)
            content += f"\n... {size - 2 * _KEPT_LOG_BYTES} bytes left out ...\n".encode()
        text = (content + self._log.read(_KEPT_LOG_BYTES)).decode(errors="replace")
        return printable(self._restored(text), lines=True)

    def close(self) -> None:
        """End the process and all its descendants, and remove its working directory."""
        if self._process.sock.fileno() >= 0:
            self._process.kill()
            self._process.end()
        self._log.close()

    def _restored(self, text: str) -> str:
        """Return a text from inside as people outside should read it."""
        return text

    def _ask(
        self,
        header: Header,
        arrays: Sequence[Array] = (),
        *,
        expected: type[Reply],
        shapes: Sequence[tuple[int, ...]] = (),
        passed: int | None = None,
    ) -> tuple[Reply, list[FloatArray]]:
        reply, results = self._exchange(header, arrays, expected, shapes, passed)
        return reply, [array.astype(np.float64, copy=False) for array in results]

    def _exchange(
        self,
        header: Header,
        arrays: Sequence[Array],
        expected: type[Reply],
        shapes: Sequence[tuple[int, ...]],
        passed: int | None = None,
    ) -> tuple[Reply, list[Array]]:
        """Send a request, and a file descriptor if one is to be passed; return the answer.

        Whatever else the box does is a `BoxFailure`.
        """
        mark = secrets.token_hex(8)
        # Work can begin before the last byte has arrived: CPU time counts from the first.
        cpu_start = self._meter.cpu_seconds()
        try:
            send(self._process.sock, {**header, "request": mark}, arrays, self._watch)
            if passed is not None:
                socket.send_fds(self._process.sock, [b"f"], [passed])
            start = time.perf_counter()
            reply, results = self._answer(expected, mark, shapes)
            # The whole answer counts: a header that is sent early saves nothing.
            self._seconds = time.perf_counter() - start
            self._cpu_seconds = self._meter.cpu_seconds() - cpu_start
        except BrokenFrameError as error:
            raise BoxFailure("error", f"{self._name} wrote into the box's channel: {error}") from error
        except (OSError, EOFError) as error:
            raise self._death() from error
        finally:
            peaks = (self.costs.peak_memory_mib, self._watch.peak_memory_mib, self._meter.peak_memory_mib())
            self.costs.peak_memory_mib = max(peaks)
        return reply, results

    def _answer(self, expected: type[Reply], mark: str, shapes: Sequence[tuple[int, ...]]) -> tuple[Reply, list[Array]]:
        """Receive the answer to a request; pass on the progress before it, no more often than somebody can read it."""
        unseen: Progress | None = None
        while True:
            header, kinds = receive_header(self._process.sock, self._watch, max_bytes=MAX_REPLY_BYTES)
            reply = read_reply(expected, mark, shapes, header, kinds)
            if isinstance(reply, Failure):
                raise BoxFailure(reply.status, self._restored(reply.reason), self._restored(reply.traceback))
            if not isinstance(reply, Progress):
                self._report(unseen)
                return reply, receive_arrays(self._process.sock, kinds, self._watch)
            unseen = reply
            if time.monotonic() >= self._next_report:
                self._report(reply)
                unseen = None

    def _report(self, progress: Progress | None) -> None:
        self._next_report = time.monotonic() + _REPORT_SECONDS
        if progress is not None and self._listener is not None:
            self._listener(progress.done, progress.total, one_line(self._restored(progress.note)))

    def _death(self) -> BoxFailure:
        """Return the failure of a process that ended without being asked to."""
        code = self._process.end()
        if code < 0:
            # Most of the real-time signals have no name.
            names = {one.value: one.name for one in signal.Signals}
            return BoxFailure("killed", f"its process was ended by {names.get(-code, f'signal {-code}')}")
        return BoxFailure("error", f"its process ended itself with exit code {code}")
