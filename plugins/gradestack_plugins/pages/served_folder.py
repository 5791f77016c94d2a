"""A folder of runs in the browser: its index, the page of each run, and any two compared."""

from __future__ import annotations

import re
import tempfile
import threading
from pathlib import Path

import gradestack
from gradestack import Registry, compile_later, load_report
from gradestack.jsonio import read_regular
from gradestack_plugins.pages.runs import COMPARISON_PAGE, Folder, add_changes, runs_page
from gradestack_plugins.pages.served_run import Page, ServedRun

_COMPARED = compile_later(r"compared/(\d{1,6})-(\d{1,6})/([\w./-]{1,80})", re.ASCII)
_MOST_OPEN = 4
"""Runs whose pages are held at once; the one opened first goes first."""


class ServedFolder:
    """The index of a folder, from which runs are opened, and two that are ticked are compared.

    Nothing is written into the folder, and no page that lies there is served: pages are made anew.
    """

    def __init__(self, folder: Folder, root: Path, registry: Registry) -> None:
        self._root, self._registry, self._lock = root, registry, threading.Lock()
        self._runs = [run.path for run in folder.runs]
        self._opened: dict[str, ServedRun] = {}
        add_changes(folder, root)
        self._index = runs_page(folder, served=True).encode()
        self._made = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def close(self) -> None:
        """Remove the pages that were made."""
        for run in self._opened.values():
            run.close()
        self._made.cleanup()

    def respond(self, path: str) -> Page | None:
        """Return the content at an address with the ending of its kind; None without one."""
        if not path:
            return self._index, ".html"
        compared = _COMPARED.fullmatch(path)
        if compared is not None:
            before = int(compared[1])
            number = int(compared[2])
            return self._compared(before, number, compared[3])
        for name in self._runs:
            if path.startswith(f"{name}/"):
                return self._run(name).respond(path.removeprefix(f"{name}/"))
        return None

    def _run(self, name: str) -> ServedRun:
        """Return a run of the folder, opened when it is first asked for."""
        with self._lock:
            if name not in self._opened:
                report = load_report(self._root / name)
                self._opened[name] = ServedRun(report, self._registry)
                if len(self._opened) > _MOST_OPEN:
                    oldest = next(iter(self._opened))
                    self._opened.pop(oldest).close()
            return self._opened[name]

    def _compared(self, before: int, after: int, page: str) -> Page | None:
        """Return a page of the comparison of two runs, made when it is first asked for."""
        if before == after or max(before, after) >= len(self._runs):
            return None
        name_path = Path(self._made.name)
        output = name_path / f"{before}-{after}"
        with self._lock:
            if not (output / COMPARISON_PAGE).exists():
                runs = [self._root / self._runs[number] for number in (before, after)]
                gradestack.compare(*runs, output=output, registry=self._registry)
        paths = output.rglob("*")
        files = {file.relative_to(output).as_posix(): file for file in paths}
        file = files.get(page)
        if file is None or not file.is_file():
            return None
        return read_regular(file), file.suffix
