"""The check of panels.

Written on a page, once as they come and once with hostile texts in the run, seen by axe.
"""

from __future__ import annotations

import html
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection, Mapping
from html.parser import HTMLParser
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from gradestack import Report
from gradestack.jsonio import dumps
from gradestack_plugins.pages.blocks import Panel
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.panel import PAGE, Panels, Placed, Sheets, folders

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--virtual-time-budget=20000",
)
_SECONDS = 120
_RESULT = re.compile(r'<pre id="axe-result">(.*?)</pre>', re.DOTALL)
_SCRIPT = """
addEventListener("load", () => setTimeout(async () => {
  const panels = [...document.querySelectorAll(".panel")].filter(each => each.getClientRects().length).slice(0, 3);
  const result = document.createElement("pre"), told = [];
  for (const scheme of panels.length ? ["light", "dark"] : []) {
    document.documentElement.dataset.theme = scheme;
    for (const {id, impact, help, nodes} of (await axe.run({include: panels})).violations) {
      told.push(`${scheme}: ${id} (${impact}): ${help}, at ${nodes[0].html.slice(0, 160)}`);
    }
  }
  result.id = "axe-result";
  result.textContent = JSON.stringify(told);
  document.body.append(result);
}, 300));
"""


def accessible(page: Path) -> str | None:
    """Check the panels of a page with axe-core, in both colour schemes.

    Return why it was not looked at.
    """
    browser = os.environ.get("GRADESTACK_CHROMIUM") or next(
        filter(None, map(shutil.which, _BROWSERS)), None
    )
    if browser is None:
        return "no Chromium on the path, and none in GRADESTACK_CHROMIUM"
    package = find_spec("axe_playwright_python")
    beside = Path(str(package.origin)).with_name("axe.min.js") if package else ""
    axe = Path(os.environ.get("GRADESTACK_AXE") or beside)
    if not axe.is_file():
        return "no axe.min.js: neither the package axe-playwright-python nor GRADESTACK_AXE"
    text = page.read_text(encoding="utf-8").replace(
        'http-equiv="Content-Security-Policy"', 'name="policy"'
    )
    scripts = f"<script>{axe.read_text(encoding='utf-8')}</script><script>{_SCRIPT}</script>"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(text.replace("</body>", f"{scripts}</body>"), encoding="utf-8")
        command = [
            browser,
            *_OPTIONS,
            f"--user-data-dir={folder}/profile",
            "--dump-dom",
            copy.as_uri(),
        ]
        done = subprocess.run(  # noqa: S603 - a browser on our own page
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_SECONDS
        )
    result = _RESULT.search(done.stdout.decode("utf-8", "replace"))
    assert result, f"axe-core gave no result; Chromium ended with {done.returncode}"
    found = json.loads(html.unescape(result[1]))
    assert not found, f"{page.name}: axe-core says {'; '.join(found)}"
    return None


_HOSTILE = "\"'><x-hostile onclick=x>"
"""Behind every text of a run; where it is not escaped the page has such an element."""
_FIXED = {
    "state",
    "outcome",
    "status",
    "role",
    "code",
    "category",
    "pointer",
    "type",
    "tool_call_id",
    "source",
}
"""Keys of rows whose texts are words of the program."""
_NAMES = {"id", "model_name", "label", "gold", "subject", "name"}
"""Keys of rows whose texts may stand in the summary, too."""
_ROWS = 20
_Mark = Callable[[str, str], str]
"""Gives a text and the key it stands at, ``KEY:`` for a key below KEY, what stands in its place."""


def check_panel(
    panel: Panel, report: Report, scratch: Path, *, comparison: Mapping[str, Any] | None = None
) -> str | None:
    """Check a panel on the page of a run.

    It shows something, the same twice, escaped, with headings and names.

    It is shown again with markup in every text of the run. It must change neither run nor
    comparison, and nothing in it may need what the page's content security policy forbids.

    Args:
        panel: The panel.
        report: A finished run it has something to show of.
        scratch: An empty directory.
        comparison: Content of comparison.json, for a panel of comparisons.

    Returns:
        Why axe-core did not look at the page, too; None when it did. It does where Chromium is
        found, on the path or by ``GRADESTACK_CHROMIUM``, and axe.min.js, in the package
        axe-playwright-python or by ``GRADESTACK_AXE``.
    """
    known_as, compared = f"panel {type(panel).__name__!r}", panel.place == "compare"
    assert comparison is not None or not compared, (
        f"{known_as} is one of comparisons: hand over the content of one"
    )
    found = []
    for name, mark in (("plain", ""), ("hostile", _HOSTILE)):
        marked, data = _marked_run(report, comparison, mark)
        pages = _pages(panel, marked, data, scratch / name / "one")
        again = _pages(panel, marked, data, scratch / name / "two")
        same = [page.read_bytes() for page in pages] == [page.read_bytes() for page in again]
        assert same, f"{known_as}: the same run gave different bytes"
        found += pages
        for page in pages:
            look = _Look()
            look.feed(page.read_text(encoding="utf-8"))
            assert look.panels or mark, f"{known_as} shows nothing of this run"
            assert not look.problems, f"{page.name}: {'; '.join(look.problems)}"
    return accessible(found[0])


def _marked(value: Any, mark: _Mark, fixed: Collection[str] = (), key: str = "") -> Any:
    if isinstance(value, Mapping):
        held = {
            name: each if name in fixed else _marked(each, mark, fixed, name)
            for name, each in value.items()
        }
        return {mark(name, f"{key}:"): each for name, each in held.items()}
    if isinstance(value, list | tuple):
        return [_marked(each, mark, fixed, key) for each in value]
    return mark(value, key) if isinstance(value, str) else value


def _marked_run(report: Report, comparison: Any, mark: str) -> tuple[Report, Any]:
    """Return the first rows of a run and a comparison with something behind every text."""
    graders = {
        key for part in ("by_metric", "aggregates") for key in report.metrics.get(part) or {}
    }
    kept = graders.union(*(report.metrics.get("aggregates") or {}).values())
    names = set[str]()

    def of_rows(text: str, key: str) -> str:
        if text in kept or (key.endswith(":") and key != "arguments:"):
            return text
        if key in _NAMES:
            names.add(text)
        return f"{text}{mark}"

    def of_figures(text: str, _: str) -> str:
        return f"{text}{mark}" if text in names else text

    rows = [
        _marked(row, of_rows, _FIXED)
        for row in islice(report.rows() if report.has_rows else (), _ROWS)
    ]
    held = io.BytesIO("".join(f"{dumps(row)}\n" for row in rows).encode("utf-8", "replace"))
    summary, data = (_marked(each, of_figures) for each in (report.summary, comparison))
    return Report(path=None, header=report.header, summary=summary, held=held), data


def _pages(panel: Panel, run: Report, comparison: Any, out: Path) -> list[Path]:
    """Write a page with the panel, of a panel of samples one for each sample it shows
    something of.
    """
    out.mkdir(parents=True)
    alone, reporter = Panels((Placed("panel", "tested", panel),)), HtmlReporter()
    report = attrs.evolve(run, shared={"panels": alone})
    compared = panel.place == "compare"
    pages = list(
        reporter.write_comparison(comparison, report, out)
        if compared
        else reporter.write(report, out)
    )
    assert not report.told, report.told[0]
    if panel.place == "sample":
        return _samples(
            panel, report, Sheets(environment(folders=folders(alone)), alone, rows=False), out
        )
    own = report.apart()
    before = dumps([own.summary, own.header, comparison])
    list(panel.show(comparison if compared else own) or ())  # blocks may be made one by one
    same = dumps([own.summary, own.header, comparison]) == before
    assert same, f"panel {type(panel).__name__!r} changed the {'comparison' if compared else 'run'}"
    return pages[-1:] if panel.place == "page" and len(pages) > 1 else pages[:1]


def _samples(panel: Panel, report: Report, sheets: Sheets, out: Path) -> list[Path]:
    found, head = [], (out / PAGE).read_text(encoding="utf-8").partition("<main")[0]
    for number, row in enumerate(report.rows(), 1):
        if shown := "".join(sheets.of_sample(row)):
            found.append(out / f"sample-{number}.html")
            inside = (
                "<main><h1>Run</h1><h2>Samples</h2><h3>Row "
                f"{number}</h3>{shown}</main></body></html>"
            )
            found[-1].write_text(head + inside, encoding="utf-8")
    assert found, f"panel {type(panel).__name__!r} shows nothing of this run"
    return found


_LOADING = {"src", "srcset", "action", "formaction", "background", "poster", "data"}
_ACTIVE = {"script", "style", "link", "meta", "base", "iframe", "object", "embed", "form"}
_NEEDED = {
    "img": ({"alt"}, "no alt"),
    "th": ({"scope"}, "no scope"),
    "svg": ({"aria-label", "aria-labelledby", "aria-hidden"}, "neither aria-label nor aria-hidden"),
}
"""Element -> attributes of which it has one, and what is said where it has none."""


class _Look(HTMLParser):
    """What is wrong in the panels of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.panels = 0
        self._open: list[str] = []
        """Elements of the panel's own tag, and drawings, which are named as a whole."""
        self._level = 0
        self._ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element, closely where it is in a panel."""
        held = {name: value or "" for name, value in attrs}
        if tag == "x-hostile":
            self.problems.append("a text of the run became markup: it is not escaped")
        if not self._open and "panel" in held.get("class", "").split():
            self.panels, self._open, self._level = self.panels + 1, [tag], 0
        elif self._open:
            self._inside(tag, held)
            if tag in {self._open[0], "svg"}:
                self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave a panel where its element ends."""
        if self._open and tag == self._open[-1]:
            self._open.pop()

    def _inside(self, tag: str, held: Mapping[str, str]) -> None:
        told = []
        for name, value in held.items():
            address = value.strip().lower()
            if name.startswith("on") or name == "style":
                told.append(f"has {name}, which the page's content security policy forbids")
            if (name in _LOADING and not address.startswith("data:image/")) or address.startswith(
                "javascript:"
            ):
                told.append(f"has {name}={value[:60]!r}, which the page's policy forbids")
        if tag in _ACTIVE:
            told.append("has no place in a panel")
        if (place := held.get("id", "")) and place in self._ids:
            told.append(f"has the id {place!r} of another element")
        self._ids.add(place)
        wanted, missing = _NEEDED.get(tag, (held.keys(), ""))
        if missing and "svg" not in self._open and not wanted & held.keys():
            told.append(f"has {missing}")
        if re.fullmatch(r"h[1-6]", tag):
            level = int(tag[1])
            if 0 < self._level < level - 1:
                told.append(f"follows <h{self._level}>: a level is left out")
            elif self._level and level < 3:
                told.append("inside a panel, whose own heading that is")
            self._level = level
        self.problems += [f"<{tag}> {each}" for each in told]
