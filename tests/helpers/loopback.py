"""A small made-up SKAB, and an HTTP server on this machine that serves it well or badly."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TIME_AND_SENSORS = (
    "datetime;Accelerometer1RMS;Accelerometer2RMS;Current;Pressure;Temperature;Thermocouple;Voltage;Volume Flow RateRMS"
)
FILES = (
    "anomaly-free/anomaly-free.csv",
    *(f"valve1/{i}.csv" for i in range(16)),
    *(f"valve2/{i}.csv" for i in range(4)),
    *(f"other/{i}.csv" for i in range(1, 15)),
)


def write_skab(above: Path) -> Path:
    """Write 35 files of SKAB's form, three rows each, to ``above/skab``; every second one has CRLF line ends."""
    for number, file in enumerate(FILES):
        labelled = not file.startswith("anomaly-free")
        lines = [TIME_AND_SENSORS + (";anomaly;changepoint" if labelled else "")]
        for second in range(3):
            cells = [f"2020-03-09 10:14:{second:02}", *(f"{number}.{second}{sensor}" for sensor in range(8))]
            lines.append(";".join(cells + (["1.0" if second == 2 else "0.0", "0.0"] if labelled else [])))
        path = above / "skab" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(("\r\n" if number % 2 else "\n").join([*lines, ""]).encode())
    return above / "skab"


def write_catalogue(
    catalogue: Path,
    folder: Path,
    url: str = "http://127.0.0.1:1/nowhere",
    *,
    files: Iterable[str] = FILES,
    paths: Mapping[str, str] | None = None,
) -> None:
    """Write the source file of a data set that is named after the folder of its files; `paths` as in `Source`."""
    content = {file: (folder / file).read_bytes() for file in files}
    source = {
        "url": url,
        "licence": "GPL-3.0",
        "n_bytes": sum(map(len, content.values())),
        "paths": paths or {},
        "sha256": {file: hashlib.sha256(one).hexdigest() for file, one in content.items()},
    }
    catalogue.mkdir(exist_ok=True)
    (catalogue / f"{folder.name}.source.json").write_text(json.dumps(source), encoding="utf-8")


@dataclass
class Server:
    """Serves a folder; `faults` says which paths it serves badly, `fetched` which it was asked for."""

    folder: Path
    url: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, request: BaseHTTPRequestHandler, file: str, *, body: bool) -> None:
        """Answer one request."""
        fault = self.faults.get(file, "") if (self.folder / file).is_file() else "404"
        if fault.isdecimal():
            request.send_error(int(fault))
            return
        if fault.startswith("redirects to "):
            request.send_response(302)
            request.send_header("Location", fault.removeprefix("redirects to "))
            request.end_headers()
            return
        content = (self.folder / file).read_bytes()
        sent = content[: len(content) // 2] if fault in ("breaks off", "too short") else content
        if fault == "other content":
            sent = b"<html>Sign in to the hotel's network</html>"
        request.send_response(200)
        if fault not in ("too short", "never ends"):
            request.send_header("Content-Length", str(len(content if fault == "breaks off" else sent)))
        request.end_headers()
        if body and fault == "stalls":
            request.wfile.write(sent[: len(sent) // 2])
            self.released.wait()
        elif body and fault == "drips":
            for byte in sent:
                request.wfile.write(bytes([byte]))
        elif body and fault == "never ends":
            with contextlib.suppress(OSError):  # until the client hangs up
                while not self.released.is_set():
                    request.wfile.write(bytes(65_536))
        elif body:
            request.wfile.write(sent)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve a folder under a free port of 127.0.0.1 while the block runs."""
    server = Server(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            file = self.path.removeprefix("/")
            server.fetched.append(file)
            server.answer(self, file, body=True)

        def do_HEAD(self) -> None:
            server.answer(self, self.path.removeprefix("/"), body=False)

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            http.shutdown()
            thread.join()
