"""A run in the browser, on demand and however large: the command ``view``."""

from __future__ import annotations

import hmac
import html
import re
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs
import click
import msgspec
from typing_extensions import override

from gradestack import (
    ConfigError,
    GradestackError,
    Registry,
    Report,
    discover,
    forward_termination,
    guarded,
    load_report,
    with_trajectories,
)
from gradestack_plugins.pages.chunks import served_sample
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.panel import PAGE, Sheets, folders, panels
from gradestack_plugins.pages.rows import rows_at

_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_NOTHING = "default-src 'none'"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".json": "application/json"}


class Answer(msgspec.Struct, frozen=True):
    """One page or file."""

    body: bytes
    kind: str
    """Its media type."""
    policy: str = _NOTHING
    """What it may do: nothing, but for a page what the page itself says."""

    @classmethod
    def of(cls, body: bytes, kind: str) -> Answer:
        """Return a file as an answer, the content security policy of a page as the header's."""
        found = _POLICY.search(body[:20_000].decode(errors="replace")) if kind == "text/html" else None
        return cls(body, kind, html.unescape(found[1]) if found else _NOTHING)


class ServedRun:
    """The page of one run, made anew by the reporter that is installed, and its samples one by one.

    Nothing is written into the run: a ``report.html`` that lies there is anybody's.
    """

    def __init__(self, report: Report, registry: Registry) -> None:
        complete = with_trajectories(report, registry, lambda _: None)  # a page says what is gone
        self._report = attrs.evolve(complete, registry=registry)
        self._index = index_of(self._report)
        self._sheets = Sheets(environment(folders=folders(panels(self._report))), panels(self._report), rows=False)
        self._one, self._folder = threading.Lock(), tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        try:
            with guarded("reporter html"):
                list(HtmlReporter().write_served(self._report, folder))
        except BaseException:
            self.close()
            raise
        self._files = {each.relative_to(folder).as_posix(): each for each in folder.rglob("*") if each.is_file()}

    def close(self) -> None:
        """Remove what was written."""
        self._folder.cleanup()

    def answer(self, path: str) -> Answer | None:
        """Return what is at an address, None where there is nothing."""
        if found := re.fullmatch(r"report_data/chunk-s(\d{1,12})\.js|rows/(\d{1,12})\.json", path, re.ASCII):
            position = int(found[1] or found[2]) - 1
            if not 0 <= position < len(self._index.entries):
                return None
            return self._sample(position) if found[1] else self._row(position)
        file = self._files.get(path or PAGE)
        if file is None:
            return None
        return Answer.of(file.read_bytes(), _TYPES.get(file.suffix, "application/octet-stream"))

    def _sample(self, position: int) -> Answer:
        with self._one, guarded("reporter html"):
            (row,) = rows_at(self._report, [position])
            return Answer(served_sample(row, map(str, self._sheets.of_sample(row))).encode(), "text/javascript")

    def _row(self, position: int) -> Answer:
        ((number, _, line),) = self._report.lines([(position, self._index.place(position))])
        self._report.row(number, line)  # of a file that changed it is none
        return Answer(line, "application/json")


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
    """Serves one run, at addresses that begin with its token."""

    daemon_threads = True
    ended = False

    def __init__(self, run: ServedRun, port: int = 0) -> None:
        self.run, self.token = run, secrets.token_urlsafe(24)
        super().__init__((ADDRESS, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def end(self, *_: Any) -> None:
        """Have it end between two requests: an exception anywhere closes connections under their threads."""
        self.ended = True

    @override
    def service_actions(self) -> None:
        """End where that was asked for."""
        if self.ended:
            raise KeyboardInterrupt

    @override
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say in one line what went wrong with an answer; a browser that went away is nothing wrong."""
        error = sys.exception()
        if not self.ended and not isinstance(error, ConnectionError | TimeoutError):
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
        token, slash, path = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(404, _text("nothing is here; the address has a part that cannot be guessed"))
            return
        try:
            found = self.server.run.answer(unquote(path))
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
        code = 405 if code == 501 else code
        self.close_connection = True
        self._send(code, _text("only reading is possible here" if code == 405 else "not a request"))

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: addresses are nobody else's business."""


def _text(text: str) -> Answer:
    return Answer(f"{text}\n".encode("utf-8", "replace"), "text/plain")


_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def _ended_by_signals(handler: Any = signal.default_int_handler) -> Iterator[None]:
    """Let SIGTERM and SIGHUP do what Ctrl-C does, so that the temporary directory goes; what is ignored stays so."""
    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for number, each in before.items():
            signal.signal(number, each)


@click.command(epilog="Example: gradestack view out")
@click.argument("run_dir")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port [default: any free one].")
@click.option("--open", "browser", is_flag=True, help="Open it in the browser.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks.")
def view(run_dir: str, *, port: int, browser: bool) -> None:
    """Serve the report of RUN_DIR to this machine's browser: a page as for any run, whose samples are read one by one.

    Read-only; the URL holds a secret. Ctrl-C ends it.
    """
    with forward_termination():  # packed inputs of slim rows are unpacked
        run = ServedRun(load_report(run_dir), discover())
    with _ended_by_signals():
        try:
            with Server(run, port) as server:
                click.echo(f"View: {server.url} (Ctrl-C ends it)")
                if browser:
                    import webbrowser  # noqa: PLC0415 - only here

                    webbrowser.open(server.url)
                with _ended_by_signals(server.end):
                    server.serve_forever(0.1)
        except OSError as error:
            msg = f"--port {port}: {ADDRESS}:{port} cannot be listened on: {error.strerror or error}"
            raise ConfigError(msg) from error
        finally:
            run.close()
