"""A command `tsadbench` whose processes are forked from one that has imported the libraries: a second less for each.

For tests in which many commands run in a shell and none of them is about how a process starts. Each command still is
a process of its own, with the shell's streams, folder and environment, and imports tsadbench itself afresh.
``python -m tests.helpers.warm ADDRESS`` is the process that they are forked from; it ends when its input does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LIBRARIES = ("numpy", "pandas", "scipy.stats", "sklearn.base", "pydantic", "rich.progress", "typer", "psutil")
ROOT = Path(__file__).parents[2]
# Hands its streams, folder, environment and arguments to the warm process, and ends as what that forks does.
_COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as warm:
    warm.connect({address!r})
    told = json.dumps([os.getcwd(), dict(os.environ), sys.argv[1:]]).encode()
    socket.send_fds(warm, [len(told).to_bytes(4, "big")], [0, 1, 2])
    warm.sendall(told)
    code = int.from_bytes(warm.recv(4), "big", signed=True)
sys.exit(code if code >= 0 else 128 - code)
"""


@contextlib.contextmanager
def warm_command(folder: Path) -> Iterator[Path]:
    """Put the command into a folder and return that folder; it works until the context ends."""
    address = folder / "warm"
    command = folder / "tsadbench"
    command.write_text(_COMMAND.format(python=sys.executable, address=str(address)), encoding="utf-8")
    command.chmod(0o755)
    start = [sys.executable, "-m", "tests.helpers.warm", str(address)]
    with subprocess.Popen(start, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield folder
        process.communicate(timeout=60)
    assert process.returncode == 0


def _forked(connection: socket.socket) -> bool:
    """Take an order; return True in the process that is to carry it out, False in the warm one."""
    size, streams, *_ = socket.recv_fds(connection, 4, 3)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += connection.recv(2**16)
    if os.fork():
        for stream in streams:
            os.close(stream)
        return False
    if command := os.fork():
        _, status = os.waitpid(command, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        os._exit(0)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, closefd=False) for fd, mode in enumerate("rww"))  # noqa: SIM115
    where, environment, arguments = json.loads(text)
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["tsadbench", *arguments]
    sys.path = [str(Path(sys.executable).parent), *(path for path in sys.path if path != str(ROOT))]
    return True


def _serve(address: str) -> bool:
    """Fork a process for each order until the input ends, and reap them; return whether this is such a process."""
    for library in LIBRARIES:
        importlib.import_module(library)
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as ready:
        listener.bind(address)
        listener.listen()
        ready.register(listener, selectors.EVENT_READ)
        ready.register(0, selectors.EVENT_READ)
        print("ready", flush=True)
        while not any(key.fd == 0 for key, _ in ready.select()):
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            connection, _ = listener.accept()
            with connection:
                if _forked(connection):
                    return True
    return False


if __name__ == "__main__" and _serve(sys.argv[1]):
    from tsadbench.cli import main

    main()
