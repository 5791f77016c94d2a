"""The check of panels: written on a page, once as they come and once with hostile texts in the run, seen by axe."""

from __future__ import annotations

import html
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from gradestack import Report
from gradestack.jsonio import dumps
from gradestack_plugins.pages.blocks import Panel
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.panel import PAGE, Panels, Placed, Sheets, folders, panels

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_RESULT = re.compile(r'<pre id="axe-result">(.*?)</pre>', re.DOTALL)
_SCRIPT = """
addEventListener("load", () => setTimeout(async () => {
  const panels = [...document.querySelectorAll(".panel")].filter(each => each.getClientRects().length).slice(0, 3);
  const found = panels.length ? (await axe.run({include: panels})).violations : [];
  const result = document.createElement("pre");
  result.id = "axe-result";
  result.textContent = JSON.stringify(found.map(each => [each.id, each.impact, each.help, each.nodes[0].html]));
  document.body.append(result);
}, 300));
"""
_SECONDS = 120


def accessible(page: Path) -> str | None:
    """Check the panels of a page with axe-core, in both colour schemes; return why it was not looked at."""
    browser = os.environ.get("GRADESTACK_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return "no Chromium on the path, and none in GRADESTACK_CHROMIUM"
    script = _axe()
    if script is None:
        return "no axe.min.js: neither the package axe-playwright-python nor GRADESTACK_AXE"
    for scheme in ("light", "dark"):
        text = page.read_text(encoding="utf-8").replace('http-equiv="Content-Security-Policy"', 'name="policy"')
        text = text.replace("<html ", f'<html data-theme="{scheme}" ', 1)
        scripts = f"<script>{script.read_text(encoding='utf-8')}</script><script>{_SCRIPT}</script>"
        found = _violations(browser, text.replace("</body>", f"{scripts}</body>"))
        told = "; ".join(f"{rule} ({impact}): {about}, at {where[:160]}" for rule, impact, about, where in found)
        assert not found, f"{page.name}, {scheme}: axe-core says {told}"
    return None


def _axe() -> Path | None:
    if named := os.environ.get("GRADESTACK_AXE"):
        return Path(named)
    package = importlib.util.find_spec("axe_playwright_python")
    file = None if package is None or package.origin is None else Path(package.origin).parent / "axe.min.js"
    return file if file is not None and file.is_file() else None


def _violations(browser: str, text: str) -> list[tuple[str, str, str, str]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(text, encoding="utf-8")
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=20000")
        done = subprocess.run(  # noqa: S603 - a browser on our own page
            [browser, *options, f"--user-data-dir={folder}/profile", "--dump-dom", copy.as_uri()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    result = _RESULT.search(done.stdout.decode("utf-8", "replace"))
    assert result, f"axe-core gave no result; Chromium ended with {done.returncode}"
    found: list[tuple[str, str, str, str]] = json.loads(html.unescape(result[1]))
    return found


_HOSTILE = "\"'><x-hostile onclick=x>"
"""Behind every text of a run; where it is not escaped the page has such an element."""
_FIXED = {"state", "outcome", "status", "role", "code", "category", "pointer", "type", "tool_call_id", "source"}
"""Keys of rows whose texts are words of the program."""
_NAMES = {"id", "model_name", "label", "gold", "subject", "name"}
"""Keys of rows whose texts may stand in the summary, too."""
_ROWS = 20
_LOADING = {"src", "srcset", "action", "formaction", "background", "poster", "data"}
_HEADING = re.compile(r"h([1-6])")


def check_panel(
    panel: Panel, report: Report, scratch: Path, *, comparison: Mapping[str, Any] | None = None
) -> str | None:
    """Check a panel on the page of a run: it shows something, the same twice, escaped, with headings and names.

    It is shown again with markup in every text of the run. It must change neither run nor comparison, and nothing in
    it may need what the page's content security policy forbids.

    Args:
        panel: The panel.
        report: A finished run it has something to show of.
        scratch: An empty directory.
        comparison: Content of comparison.json, for a panel of comparisons.

    Returns:
        Why axe-core did not look at the page, too; None when it did. It does where Chromium is found, on the path or by
        ``GRADESTACK_CHROMIUM``, and axe.min.js, in the package axe-playwright-python or by ``GRADESTACK_AXE``.
    """
    rows = list(islice(report.rows(), _ROWS)) if report.has_rows else []
    plain, hostile = _Marked(rows, report, ""), _Marked(rows, report, _HOSTILE)
    pages = [_twice(panel, made, comparison, scratch / name) for name, made in (("plain", plain), ("hostile", hostile))]
    for page in (page for found in pages for page in found):
        look = _Look()
        look.feed(page.read_text(encoding="utf-8"))
        assert look.panels or page not in pages[0], f"panel {type(panel).__name__!r} shows nothing of this run"
        assert not look.problems, f"{page.name}: {'; '.join(look.problems)}"
    return accessible(pages[0][0])


class _Marked:
    """A run with something behind every text."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], report: Report, mark: str) -> None:
        self._report, self.mark = report, mark
        metrics = report.metrics
        graders = {str(key) for part in ("by_metric", "aggregates") for key in metrics.get(part) or {}}
        aggregates = {str(name) for held in (metrics.get("aggregates") or {}).values() for name in held}
        self._kept, self._names = graders | aggregates, set[str]()
        self.rows = [self._row(row) for row in rows]

    def report(self) -> Report:
        """Return it as a report of its own."""
        held = io.BytesIO("".join(f"{dumps(row)}\n" for row in self.rows).encode("utf-8", "replace"))
        summary = self.data(self._report.summary)
        return Report(path=None, header=self._report.header, summary=summary, held=held)

    def data(self, value: Any) -> Any:
        """Return data with the mark behind the names that rows have."""
        if isinstance(value, Mapping):
            return {self._named(key): self.data(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(each) for each in value]
        return self._named(value) if isinstance(value, str) else value

    def _named(self, text: Any) -> Any:
        return f"{text}{self.mark}" if text in self._names else text

    def _row(self, value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            mark = self.mark if key == "arguments" else ""
            return {f"{name}{mark}": each if name in _FIXED else self._row(each, name) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._row(each, key) for each in value]
        if not isinstance(value, str) or value in self._kept:
            return value
        if key in _NAMES:
            self._names.add(value)
        return f"{value}{self.mark}"


def _twice(panel: Panel, made: _Marked, comparison: Mapping[str, Any] | None, out: Path) -> list[Path]:
    """Write a panel's pages twice and return them."""
    write = _comparing(panel, made, comparison) if panel.place == "compare" else _reporting(panel, made)
    found = []
    for name in ("one", "two"):
        (out / name).mkdir(parents=True)
        found.append(write(out / name))
    assert [page.read_bytes() for page in found[0]] == [page.read_bytes() for page in found[1]], (
        f"panel {type(panel).__name__!r}: the same run gave different bytes"
    )
    return found[0]


def _check_unchanged(panel: Panel, report: Report) -> None:
    own = report.apart()
    list(panel.show(own) or ())  # blocks may be made one by one
    same = dumps([own.summary, own.header]) == dumps([report.summary, report.header])
    assert same, f"panel {type(panel).__name__!r} changed the run"


def _reporting(panel: Panel, made: _Marked) -> Callable[[Path], list[Path]]:
    def write(out: Path) -> list[Path]:
        report = attrs.evolve(made.report(), shared={"panels": _alone(panel)})
        pages = list(HtmlReporter().write(report, out))
        assert not report.told, report.told[0]
        if panel.place == "sample":
            return _samples(panel, report, out)
        _check_unchanged(panel, report)
        return pages[-1:] if panel.place == "page" and len(pages) > 1 else pages[:1]

    return write


def _samples(panel: Panel, report: Report, out: Path) -> list[Path]:
    """Write a page of each sample the panel shows something of."""
    found, sheets = [], Sheets(environment(folders=folders(panels(report))), panels(report), rows=False)
    head = (out / PAGE).read_text(encoding="utf-8").partition("<main")[0]
    for number, row in enumerate(report.rows(), 1):
        if shown := "".join(sheets.of_sample(row)):
            found.append(out / f"sample-{number}.html")
            inside = f"<main><h1>Run</h1><h2>Samples</h2><h3>Row {number}</h3>{shown}</main></body></html>"
            found[-1].write_text(head + inside, encoding="utf-8")
    assert found, f"panel {type(panel).__name__!r} shows nothing of this run"
    return found


def _comparing(panel: Panel, made: _Marked, comparison: Mapping[str, Any] | None) -> Callable[[Path], list[Path]]:
    assert comparison is not None, f"panel {type(panel).__name__!r} is one of comparisons: hand over the content of one"
    data = made.data(comparison)

    def write(out: Path) -> list[Path]:
        before = dumps(data)
        pages = list(
            HtmlReporter().write_comparison(data, attrs.evolve(made.report(), shared={"panels": _alone(panel)}), out)
        )
        assert dumps(data) == before, f"panel {type(panel).__name__!r} changed the comparison"
        return pages

    return write


def _alone(panel: Panel) -> Panels:
    return Panels((Placed("panel", "tested", panel),))


class _Look(HTMLParser):
    """What is wrong in the panels of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.panels = 0
        self._open: list[str] = []
        self._level = self._drawing = 0
        self._ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element, closely where it is in a panel."""
        held = {name: value or "" for name, value in attrs}
        if tag == "x-hostile":
            self.problems.append("a text of the run became markup: it is not escaped")
        if not self._open and "panel" in held.get("class", "").split():
            self.panels += 1
            self._open.append(tag)
            self._level = 0
            return
        if self._open:
            self._inside(tag, held)
            if tag == self._open[0]:
                self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave a panel where its element ends."""
        if self._open and tag == "svg":
            self._drawing -= 1
        if self._open and tag == self._open[0]:
            self._open.pop()

    def _inside(self, tag: str, held: Mapping[str, str]) -> None:
        for name, value in held.items():
            address = value.strip().lower()
            if name.startswith("on") or name == "style":
                self.problems.append(f"<{tag}> has {name}, which the page's content security policy forbids")
            if (name in _LOADING and not address.startswith("data:image/")) or address.startswith("javascript:"):
                self.problems.append(f"<{tag}> has {name}={value[:60]!r}, which the page's policy forbids")
        if tag in {"script", "style", "link", "meta", "base", "iframe", "object", "embed", "form"}:
            self.problems.append(f"<{tag}> has no place in a panel")
        if (place := held.get("id")) and place in self._ids:
            self.problems.append(f"two elements have the id {place!r}")
        self._ids.add(held.get("id", ""))
        if tag == "img" and "alt" not in held:
            self.problems.append("<img> has no alt")
        named = held.get("aria-label") or held.get("aria-labelledby") or held.get("aria-hidden") == "true"
        if tag == "svg":
            if not self._drawing and not named:
                self.problems.append("<svg> has neither aria-label nor aria-hidden")
            self._drawing += 1
        if tag == "th" and "scope" not in held:
            self.problems.append("<th> has no scope")
        if heading := _HEADING.fullmatch(tag):
            level = int(heading[1])
            if self._level and level > self._level + 1:
                self.problems.append(f"<{tag}> follows <h{self._level}>: a level is left out")
            elif self._level and level < 3:
                self.problems.append(f"<{tag}> inside a panel, whose own heading that is")
            self._level = level
