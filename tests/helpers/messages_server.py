"""A real HTTP server on loopback that speaks the Messages API, and misbehaves on demand."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = [
    {
        "source": "Voltage",
        "source_quantity": "supply voltage",
        "target": "Current",
        "target_quantity": "motor current",
        "mechanism": "Voltage drives current through the windings.",
    },
    {
        "source": "Current",
        "source_quantity": "motor current",
        "target": "Flow",
        "target_quantity": "volume flow",
        "mechanism": "Current makes torque, which turns the pump.",
    },
]


@dataclass
class Messages:
    """What the server does, and what it was asked.

    The script has one entry per request; the last one is repeated. An entry is the text of an answer, an HTTP
    status, "drop", "hang", or a whole reply.
    """

    script: list[Any] = field(default_factory=lambda: [json.dumps(GOOD)])
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def next(self) -> Any:
        return self.script[min(len(self.requests) - 1, len(self.script) - 1)]


def reply(text: str, stop_reason: str = "end_turn") -> dict[str, Any]:
    """Return a reply as the Messages API writes it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 200},
    }


@contextmanager
def serving(messages: Messages) -> Iterator[Messages]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            messages.requests.append(body)
            messages.headers.append({name.lower(): value for name, value in self.headers.items()})
            what = messages.next()
            if what == "drop":
                self.close_connection = True
                self.connection.close()
            elif what == "hang":
                time.sleep(3)
            elif isinstance(what, int):
                kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
                key = self.headers["authorization"]
                self._error(what, kind.get(what, "api_error"), f"no luck with {key}")
            elif isinstance(what, dict):
                self._send(200, what)
            else:
                self._send(200, reply(what))

        def _error(self, status: int, kind: str, message: str) -> None:
            self._send(status, {"type": "error", "error": {"type": kind, "message": message}})

        def _send(self, status: int, content: dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            if status in (429, 529):
                self.send_header("retry-after-ms", "10")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *client: Any) -> None:
            if not isinstance(sys.exception(), ConnectionError):  # a client may disconnect at any time
                super().handle_error(*client)

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    messages.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield messages
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
