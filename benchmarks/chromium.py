"""A headless Chromium spoken to over its DevTools pipe.

Nothing to install but the browser, no port, no network.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_LEFT = "Inspected target navigated or closed"
_PATIENCE = 60.0


class BrowserError(AssertionError):
    """The browser said no, or nothing."""


def _check(true: bool, otherwise: str) -> None:
    if not true:
        raise BrowserError(otherwise)


class Tab:
    """One page of the browser, with everything it said and asked for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer = b""
        self._sent = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._sent:
                _check("error" not in answer, f"{method}: {answer.get('error')}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            _check(bool(ready), "the browser did not answer")
            piece = os.read(self._in, 1 << 20)
            _check(bool(piece), "the browser ended")
            self._buffer += piece
        data, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(data)
        return answer

    def attach(self) -> None:
        """Open an empty page and listen to its console, its log and its network."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def wait(self, condition: str) -> None:
        """Wait until a script expression is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self._holds(condition):
            _check(time.monotonic() < deadline, f"never true: {condition}")
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        """Return whether a script expression is true.

        It is not yet where the page was left while it was asked.
        """
        try:
            return bool(self.run(condition))
        except BrowserError as error:
            if _LEFT not in str(error):
                raise
            return False

    def open(self, url: str) -> None:
        """Open a page and wait until it has loaded."""
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait(
            f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})"
        )

    def visit(self, url: str, **window: Any) -> None:
        """Open a page afresh in a window as ``emulate`` sets it."""
        self.emulate(**window)
        self.open("about:blank")
        self.open(url)

    def run(self, expression: str) -> Any:
        """Return the value of a script expression."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        _check("exceptionDetails" not in answer, f"{answer.get('exceptionDetails')}")
        return answer["result"].get("value")

    def key(self, name: str, code: int) -> None:
        """Press and release one key."""
        text = {"Enter": "\r", " ": " "}.get(name, "")
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code, **more
            )

    def emulate(
        self, *, width: int = 1280, height: int = 900, scheme: str = "light", scripts: bool = True
    ) -> None:
        """Set the window, the colour scheme and whether scripts run."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)

    def messages(self) -> list[dict[str, Any]]:
        """Return everything written to the console or the log, and every uncaught exception."""
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [event["params"] for event in self.events if event.get("method") in kinds]

    def requests(self) -> list[str]:
        """Return the address of every request made."""
        started = (
            event for event in self.events if event.get("method") == "Network.requestWillBeSent"
        )
        return [event["params"]["request"]["url"] for event in started]


def browser() -> str | None:
    """Return the browser's program, None where there is none.

    GRADESTACK_CHROMIUM names one elsewhere.
    """
    return os.environ.get("GRADESTACK_CHROMIUM") or next(
        filter(None, map(shutil.which, _NAMES)), None
    )


@contextlib.contextmanager
def chromium(program: str) -> Iterator[Tab]:
    """Give a page of a fresh browser, which ends with it."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        _started(program, profile) as tab,
    ):
        yield tab


@contextlib.contextmanager
def _started(browser: str, profile: str) -> Iterator[Tab]:
    into, out = os.pipe(), os.pipe()
    options = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--remote-debugging-pipe",
    )
    quiet = (
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
    )
    # The browser reads commands from descriptor 3 and writes answers to 4; the shell puts ours
    # there.
    script = f'exec "$@" 3<&{into[0]} 4>&{out[1]}'
    process = subprocess.Popen(  # noqa: S603 - the browser found above
        ["bash", "-c", script, "chromium", browser, *options, *quiet, f"--user-data-dir={profile}"],  # noqa: S607 - every shell is somewhere else
        pass_fds=(into[0], out[1]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(into[0])
    os.close(out[1])
    try:
        tab = Tab(into[1], out[0])
        tab.attach()
        yield tab
    finally:
        os.close(into[1])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        os.close(out[0])
