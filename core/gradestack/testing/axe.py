"""axe-core in a headless Chromium, where both are found: what it has to say of a page."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

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
    """Check the panels of a page with axe-core, in both colour schemes.

    Args:
        page: The page.

    Returns:
        Why it was not looked at; None when it was.
    """
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
