"""A process that holds a detector's code: what is asked of it, its log, its limits, and its end whatever happens."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from tsadbench.sandbox.launch import Launcher, default_launcher, import_path
from tsadbench.sandbox.limits import BoxFailure, Limits
from tsadbench.sandbox.wire import Array, BrokenFrameError, Header, receive, send
from tsadbench.utils.arrays import FloatArray
from tsadbench.utils.progress import Listener

_POLL_SECONDS = 0.1
# A log longer than twice this is cut: its beginning and its end are kept.
_KEPT_LOG_BYTES = 2**19


@dataclass(slots=True)
class Costs:
    """What a detector has used so far: seconds of its own work, and the box's largest resident size.

    Seconds are wall-clock time; CPU seconds are those of all threads of the process together. ``rows_scored`` are the
    training and test rows that were scored in ``score_seconds``.
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
    """A process behind a socket that answers one request after the other; `Box` and `Interview` ask it.

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
        launcher: Launcher | None = None,
    ) -> None:
        self.costs = Costs()
        self._name = name
        self._listener = listener
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the box
        self._directory = tempfile.TemporaryDirectory(prefix="tsadbench-box-", ignore_cleanup_errors=True)
        self._process = (launcher or default_launcher()).start(self._log.fileno())
        self._process.sock.settimeout(_POLL_SECONDS)
        self._watch = (limits or Limits()).watch(self._process.pid, self._log)
        # Sent with the first request.
        self._surroundings: Header = {
            "threads": threads,
            "path": import_path(),
            "directory": self._subfolder("empty"),
            "temporary": self._subfolder("temporary"),
            "forbidden": [str(folder.resolve()) for folder in forbidden],
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def log(self) -> str:
        """Return what the detector wrote to standard output and error, without the middle if it is long."""
        size = self._log.seek(0, 2)
        self._log.seek(0)
        if size <= 2 * _KEPT_LOG_BYTES:
            return self._log.read().decode(errors="replace")
        head = self._log.read(_KEPT_LOG_BYTES)
        self._log.seek(-_KEPT_LOG_BYTES, 2)
        left_out = f"\n... {size - 2 * _KEPT_LOG_BYTES} bytes left out ...\n"
        return head.decode(errors="replace") + left_out + self._log.read().decode(errors="replace")

    def close(self) -> None:
        """End the process and all its descendants, and remove its working directory."""
        if self._process.sock.fileno() >= 0:
            self._process.kill()
            self._process.end()
        self._log.close()
        self._directory.cleanup()

    def _subfolder(self, name: str) -> str:
        folder = Path(self._directory.name) / name
        folder.mkdir()
        return str(folder)

    def _ask(
        self, header: Header, arrays: Sequence[Array] = (), *, max_values: int = 0
    ) -> tuple[Header, list[FloatArray]]:
        reply, results = self._exchange(header, arrays, max_bytes=8 * max_values)
        return reply, [array.astype(np.float64, copy=False) for array in results]

    def _exchange(
        self, header: Header, arrays: Sequence[Array], *, max_bytes: int | None
    ) -> tuple[Header, list[Array]]:
        try:
            send(self._process.sock, header, arrays, self._watch)
            while True:
                reply, results = receive(self._process.sock, max_bytes=max_bytes, tick=self._watch)
                if reply.get("kind") != "progress":
                    break
                if self._listener is not None:
                    self._listener(int(reply["done"]), int(reply["total"]), str(reply["note"]))
        except BrokenFrameError as error:
            raise BoxFailure("invalid", f"{self._name} wrote into the box's channel: {error}") from error
        except (OSError, EOFError) as error:
            raise self._death() from error
        finally:
            self.costs.peak_memory_mib = max(self.costs.peak_memory_mib, self._watch.peak_memory_mib)
        if reply.get("kind") == "failure":
            raise BoxFailure(reply["status"], reply["reason"], reply["traceback"])
        self.costs.peak_memory_mib = max(self.costs.peak_memory_mib, float(reply["peak_memory_mib"]))
        return reply, results

    def _death(self) -> BoxFailure:
        """Return the failure of a process that ended without being asked to."""
        code = self._process.end()
        if code < 0:
            return BoxFailure("killed", f"its process was ended by {signal.Signals(-code).name}")
        return BoxFailure("error", f"its process ended itself with exit code {code}")
