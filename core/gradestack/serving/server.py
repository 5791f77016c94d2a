"""An HTTP server for one person: this machine only, behind an address nobody can guess, and nothing but reading."""

from __future__ import annotations

import hmac
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from typing_extensions import override

from gradestack.errors import GradestackError
from gradestack.serving.pages import Answer, ServedRun

ADDRESS = "127.0.0.1"
_IDLE = 30.0
"""Seconds a browser may keep a connection open without asking for anything."""
_SAFETY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Serves one run.

    Args:
        run: Its pages.
        port: Where to listen; 0 for any port that is free.

    Attributes:
        token: First part of every address.
    """

    daemon_threads = True

    def __init__(self, run: ServedRun, port: int = 0) -> None:
        self.run, self.token = run, secrets.token_urlsafe(24)
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line what went wrong with an answer; a browser that went away is nothing wrong."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"error: unexpected {type(error).__name__}\n")


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _IDLE
    server_version, sys_version = "gradestack", ""

    def do_GET(self) -> None:
        """Answer a request of a browser that was given the address."""
        port = self.server.server_port
        if self.headers.get_all("Host") not in ([f"{ADDRESS}:{port}"], [f"localhost:{port}"]):
            self._send(403, _text("another host"))  # a name of somebody else's that leads here
            return
        parts = urlsplit(self.path)
        token, slash, path = parts.path.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(404, _text("nothing is here; the address has a part that cannot be guessed"))
            return
        try:
            found = self.server.run.answer(unquote(path), dict(parse_qsl(parts.query)))
        except (GradestackError, OSError) as error:
            self._send(500, _text(str(error)))
            return
        self._send(*((404, _text("there is no such page")) if found is None else (200, found)))

    def _send(self, code: int, answer: Answer) -> None:
        self.send_response(code)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Content-Security-Policy", f"{answer.policy}; frame-ancestors 'none'")
        for name, value in _SAFETY.items():
            self.send_header(name, value)
        if code == 405:
            self.send_header("Allow", "GET")
        self.end_headers()
        self.wfile.write(answer.body)

    @override
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request to read."""
        code = 405 if code == 501 else code
        self.close_connection = True
        self._send(code, _text("only reading is possible here" if code == 405 else "not a request"))

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: addresses are nobody else's business."""


def _text(text: str) -> Answer:
    return Answer(f"{text}\n".encode("utf-8", "replace"), "text/plain")
