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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import attrs
import click
import msgspec
from markupsafe import Markup
from typing_extensions import override

from gradestack import (
    ConfigError,
    Declarations,
    GradestackError,
    Registry,
    Report,
    discover,
    forward_termination,
    guarded,
    load_report,
    with_trajectories,
)
from gradestack.jsonio import as_count, as_map
from gradestack_plugins.pages.chunks import packed_rows
from gradestack_plugins.pages.environment import asset, environment, policy
from gradestack_plugins.pages.figures import rows_of, words_of
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import Entry, RowEntry
from gradestack_plugins.pages.panel import PAGE, Sheets, folders, panels
from gradestack_plugins.pages.rows import VERDICTS, RowPlaces, SamplePart, samples_at
from gradestack_plugins.pages.sample import gist
from gradestack_plugins.pages.tasks import Reliability
from gradestack_plugins.pages.text import brief

_STYLES = ("report.css", "view.css")


def sample_page(report: Report, entry: RowEntry, row: Mapping[str, Any], limit: int) -> str:
    """Return the page of one sample."""
    env = environment(folders=folders(panels(report)))
    script = Markup().join(asset(env, f"{name}.js") for name in ("packed", "values", "sample", "rows"))
    return env.get_template("view_sample.html").render(
        **_frame(env, report, script),
        entry=Entry.of(entry),
        gist=gist(row),
        words=words_of(report.summary),
        panels=list(Sheets(env, panels(report), rows=False).of_sample(row)),
        rows=packed_rows([row]),
        longest=limit,
        script=script,
        task=f'"{entry.id}"',
        total=as_count(as_map(report.summary.get("metrics")).get("total")),
    )


def list_page(report: Report, part: SamplePart) -> str:
    """Return the page that lists a part of the samples."""
    summary, words = report.summary, words_of(report.summary)
    asked = {name: value for name, value in (("q", part.query), ("verdict", part.verdict)) if value}
    env = environment()
    return env.get_template("view_list.html").render(
        **_frame(env, report),
        words=words,
        figures=rows_of(summary, Declarations(report.header), Reliability(0, None, {})),
        lines=[(Entry.of(entry), gist(row)) for entry, row in part.shown],
        part=part,
        models=any(entry.model for entry, _ in part.shown),
        following=f"?{urlencode({**asked, 'from': part.stop + 1})}" if part.stop < part.total else "",
        choices=(("passed", words["passed"]), ("failed", words["lost"]), ("ungraded", "not graded")),
    )


def _frame(env: Any, report: Report, *scripts: str) -> dict[str, Any]:
    """Return what every page has: name, styles and a policy that allows them, and a form that asks for a part."""
    styles, early = [asset(env, name) for name in _STYLES], asset(env, "theme.js")
    allowed = policy(styles, [early, *scripts]).replace("form-action 'none'", "form-action 'self'")
    return {"name": brief(report.name, 200), "styles": styles, "early": early, "policy": allowed}


_MOST, _FARTHEST = 50, 20_000
"""Samples on a page of the list, and rows looked at for it: a second or so."""
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
    def of(cls, text: str) -> Answer:
        """Return a page as an answer, its content security policy as the header's."""
        found = _POLICY.search(text[:20_000])
        policy = html.unescape(found[1]) if found else _NOTHING
        return cls(text.encode("utf-8", "replace"), "text/html", policy)


class ServedRun:
    """The pages of one run: parts of its list, single samples and their rows by first byte, and the whole report.

    Nothing is written into the run. The report is made anew by the reporter that is installed, into a temporary
    directory, when it is asked for: a ``report.html`` that lies there is anybody's.
    """

    def __init__(self, report: Report, registry: Registry) -> None:
        complete = with_trajectories(report, registry, lambda _: None)  # a page says what is gone
        self._report = attrs.evolve(complete, registry=registry)
        self._one, self._whole = threading.Lock(), threading.Lock()
        self._written: dict[str, Path] = {}
        self.rows = RowPlaces(report) if report.has_rows else None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def close(self) -> None:
        """Remove what was written."""
        self._folder.cleanup()

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """Return what is at an address, None where there is nothing."""
        if path == "" and self.rows is not None:
            return self._list(self.rows, query)
        if found := re.fullmatch(r"(samples/(\d{1,12})|rows/(\d{1,12})\.json)", path, re.ASCII):
            position = int(found[2] or found[3]) - 1
            if self.rows is None or not 0 <= position < len(self.rows):
                return None
            return self._sample(self.rows, position) if found[2] else self._row(self.rows, position)
        return self._file(path or PAGE)

    def _list(self, rows: RowPlaces, query: Mapping[str, str]) -> Answer:
        start, verdict = query.get("from", ""), query.get("verdict", "")
        part = rows.part(
            int(start) - 1 if re.fullmatch(r"\d{1,12}", start, re.ASCII) else 0,
            _MOST,
            _FARTHEST,
            query.get("q", "").strip()[:200],
            verdict if verdict in VERDICTS else "",
        )
        with self._one, guarded("reporter html"):
            return Answer.of(list_page(self._report, part))

    def _sample(self, rows: RowPlaces, position: int) -> Answer | None:
        with self._one, guarded("reporter html"):
            for entry, row in samples_at(self._report, [(position, rows.place(position))]):
                return Answer.of(sample_page(self._report, entry, row, HtmlReporter().max_text))
        return None

    def _row(self, rows: RowPlaces, position: int) -> Answer:
        return Answer(rows.line(position), "application/json")

    def _file(self, path: str) -> Answer | None:
        """Return one of the files of the report, which is made when the first of them is asked for."""
        if path != PAGE and path not in self._written:
            return None
        with self._whole:
            if not self._written:
                folder = Path(self._folder.name)
                with guarded("reporter html"):
                    list(HtmlReporter().write(self._report, folder))
                files = (each for each in folder.rglob("*") if each.is_file())
                self._written = {each.relative_to(folder).as_posix(): each for each in files}
        body = self._written[path].read_bytes()
        if path == PAGE:
            return Answer.of(body.decode("utf-8", "replace"))
        return Answer(body, _TYPES.get(Path(path).suffix, "application/octet-stream"))


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
        address, _, query = self.path.partition("?")
        token, slash, path = address.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(404, _text("nothing is here; the address has a part that cannot be guessed"))
            return
        try:
            found = self.server.run.answer(unquote(path), dict(parse_qsl(query)))
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
    """Serve RUN_DIR to this machine's browser: its samples as a list, one by one, and the whole report.

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
