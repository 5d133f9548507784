"""The Python that boxes run in, this program's or a detector's own: how it is started, what it can import and read."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from tsadbench.sandbox.interpreter.environment import (
    Environment,
    lent_places,
    own_folder,
    places_of,
    start_arguments,
)
from tsadbench.sandbox.walls import Walls, plan_walls

# Start the server that boxes are forked from, or one box.
Order: TypeAlias = Literal["serve", "box"]

# Only what a program needs to start and to compute: no TSADBENCH_* variable, key or token reaches a detector.
_PASSED_ON = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "VIRTUAL_ENV",
        # Which kernels OpenBLAS uses: set where it chooses wrong ones for the processor. Without them, scores from the
        # box would differ from those outside in the last bits.
        "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_HOME",
        "CUBLAS_WORKSPACE_CONFIG",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
    }
)
_SERVER = """
import sys
from tsadbench.utils.linux.namespaces import keepers_or_reason
keepers = keepers_or_reason(wanted=sys.argv[2] == "sealed")
from tsadbench.sandbox.server import main
main(int(sys.argv[1]), keepers)
"""
_PROGRAMS: dict[Order, tuple[str, str]] = {"serve": ("-c", _SERVER), "box": ("-m", "tsadbench.sandbox.child")}


class Interpreter:
    """The Python that boxes run in.

    Parameters
    ----------
    environment
        A detector's own; None: the one that runs this program.
    """

    def __init__(self, environment: Environment | None = None) -> None:
        self.environment = environment

    @property
    def executable(self) -> str:
        """Its path."""
        return sys.executable if self.environment is None else self.environment.executable

    def path(self) -> list[str]:
        """Return the import path of boxes, absolute: the caller's, or the other interpreter's own."""
        return import_path() if self.environment is None else list(self.environment.search_path)

    def lent(self, modules: Iterable[str]) -> dict[str, str]:
        """Return where the packages of a detector's modules lie, for an interpreter that may lack them."""
        if self.environment is None:
            return {}
        return places_of({name.partition(".")[0] for name in modules if not name.endswith(".py")})

    def walls(
        self,
        *,
        forbidden: Sequence[Path] = (),
        modules: Sequence[str] = (),
        gpu: bool = False,
        memory_mib: float | None = None,
    ) -> Walls:
        """Return what a box may reach; parameters as for `plan_walls`."""
        libraries: tuple[str, ...] | None = None
        if self.environment is not None:
            libraries = (*self.environment.libraries, own_folder(), *lent_places().values())
        return plan_walls(
            self.path(), libraries=libraries, forbidden=forbidden, modules=modules, gpu=gpu, memory_mib=memory_mib
        )

    def start(self, order: Order, theirs: socket.socket, output: int, more: str) -> subprocess.Popen[bytes]:
        """Start it with one end of a socket, its output led to a file descriptor; ``more`` is an argument."""
        if self.environment is None:
            # -P: the working directory is on the import path only if it is on ours.
            command = [self.executable, "-P", *_PROGRAMS[order], str(theirs.fileno()), more]
        else:
            command = start_arguments(self.executable, order, str(theirs.fileno()), more)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(theirs.fileno(),),
            env=self._variables(),
            start_new_session=True,  # Ctrl-C reaches the parent alone, which decides what ends
        )

    def _variables(self) -> dict[str, str]:
        passed_on = {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}
        if self.environment is None:
            passed_on["PYTHONPATH"] = os.pathsep.join(import_path())
        else:
            passed_on.pop("VIRTUAL_ENV", None)  # the caller's
        return {
            **passed_on,
            # One BLAS thread while importing: a fork copies no other thread, and a lock that one held would never be
            # released. The box sets its own number of threads later.
            "OPENBLAS_NUM_THREADS": "1",
            # Threads that spin while they wait slow each other down when several boxes share the cores.
            "OMP_WAIT_POLICY": "PASSIVE",
        }


def import_path() -> list[str]:
    """Return the caller's import path, absolute."""
    return list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path))
