"""A run or a folder of runs in the browser, however large: the command ``view``."""

from __future__ import annotations

import hmac
import html
import secrets
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
from typing_extensions import override

from gradestack import (
    ConfigError,
    GradestackError,
    compile_later,
    discover,
    forward_termination,
    is_run,
    load_report,
)
from gradestack_plugins.pages.runs import folder_of
from gradestack_plugins.pages.served_folder import ServedFolder
from gradestack_plugins.pages.served_run import ServedRun

ADDRESS = "127.0.0.1"
_IDLE = 30.0
"""Seconds a browser may keep a connection open without asking for anything."""
_POLICY = compile_later(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".txt": "text/plain",
}
_SAFETY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Server(ThreadingHTTPServer):
    """Serves a run or a folder of them, at addresses that begin with its token."""

    daemon_threads = True
    timeout = 0.1
    """Seconds after which it looks whether it was ended.

    An exception would close connections under their threads.
    """

    def __init__(self, run: ServedRun | ServedFolder, port: int = 0) -> None:
        token_urlsafe = secrets.token_urlsafe(24)
        self.run, self.token, self.ended = run, token_urlsafe, threading.Event()
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error of an answer in one line.

        A browser that went away is nothing wrong.
        """
        error = sys.exception()
        if not self.ended.is_set() and not isinstance(error, ConnectionError | TimeoutError):
            sys.stderr.write(f"error: unexpected {type(error).__name__}\n")


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _IDLE
    server_version, sys_version = "gradestack", ""

    def do_GET(self) -> None:
        """Answer a request of a browser that was given the address."""
        hosts = [[f"{name}:{self.server.server_port}"] for name in (ADDRESS, "localhost")]
        token, slash, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        if self.headers.get_all("Host") not in hosts:
            self._send_text(403, "another host")  # a name of somebody else's that leads here
        elif not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send_text(404, "nothing is here; the address has a part that cannot be guessed")
        else:
            try:
                page = self.server.run.respond(unquote(path, errors="surrogateescape"))
            except (GradestackError, OSError) as error:
                self._send_text(500, str(error))
            else:
                self._send(200, *page) if page else self._send_text(404, "there is no such page")

    def _send_text(self, code: int, text: str) -> None:
        self._send(code, f"{text}\n".encode("utf-8", "replace"), ".txt")

    def _send(self, code: int, body: bytes, ending: str) -> None:
        """Send an answer, which may do nothing, but for a page what that itself says."""
        policy = None
        if ending == ".html":
            policy = _POLICY.search(body[:20_000])
        allowed = "default-src 'none'"
        if policy:
            allowed = html.unescape(policy[1].decode(errors="replace"))
        self.send_response(code)
        self.send_header(
            "Content-Type", f"{_TYPES.get(ending, 'application/octet-stream')}; charset=utf-8"
        )
        body_count = str(len(body))
        self.send_header("Content-Length", body_count)
        self.send_header("Content-Security-Policy", f"{allowed}; frame-ancestors 'none'")
        for name, value in (_SAFETY | ({"Allow": "GET"} if code == 405 else {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    @override
    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self.close_connection = True
        self._send_text(
            *((405, "only reading is possible here") if code == 501 else (code, "not a request"))
        )

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: addresses are nobody else's business."""


@click.command(epilog="Example: gradestack view out")
@click.argument("run_dir")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port [default: any free port].",
)
@click.option("--open", "browser", is_flag=True, help="Open the page in the browser.")
def view(run_dir: str, *, port: int, browser: bool) -> None:
    """Serve the report of RUN_DIR, or of every run in that folder, to a browser on this machine.

    Use it for large evaluations: the page reads runs from disk one by one. On the page over a
    folder you tick two evaluations and compare them.

    The server is read-only, and the URL holds a secret. Ctrl-C ends it.
    """
    with forward_termination():  # the page is in a temporary directory
        run = _served(Path(run_dir))
    try:
        with Server(run, port) as server:
            _serve(server, browser=browser)
    except OSError as error:
        msg = f"--port {port}: {ADDRESS}:{port} cannot be listened on: {error.strerror or error}"
        raise ConfigError(msg) from error
    finally:
        run.close()


def _served(path: Path) -> ServedRun | ServedFolder:
    """Return a run, or the runs of a folder; of a folder without runs the error of a run."""
    if path.is_dir() and not is_run(path):
        folder = folder_of(path)
        if folder.runs:
            return ServedFolder(folder, path, discover())
    return ServedRun(load_report(path), discover())


def _serve(server: Server, *, browser: bool) -> None:
    """Serve until Ctrl-C, SIGTERM or SIGHUP, so that the temporary directory goes.

    What was ignored stays so.
    """
    numbers = [
        getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
    ]
    numbers = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: server.ended.set()) for number in numbers}
    try:
        click.echo(f"View: {server.url} (Ctrl-C ends it)")
        if browser:
            import webbrowser  # noqa: PLC0415 - only here

            webbrowser.open(server.url)
        while not server.ended.is_set():
            server.handle_request()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
