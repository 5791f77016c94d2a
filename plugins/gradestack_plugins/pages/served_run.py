"""One run in the browser: its page without rows, and its samples one by one."""

from __future__ import annotations

import re
import tempfile
import threading
from pathlib import Path

import attrs

from gradestack import Registry, Report, compile_later, guarded
from gradestack.jsonio import read_regular
from gradestack_plugins.pages.chunks import served_sample
from gradestack_plugins.pages.environment import environment
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.panel import PAGE, Sheets, panels
from gradestack_plugins.pages.rows import rows_at

Page = tuple[bytes, str]
"""Content, and the ending of its kind."""
_SAMPLE = compile_later(r"report_data/chunk-s(\d{1,12})\.js|rows/(\d{1,12})\.json", re.ASCII)


class ServedRun:
    """The page of one run, made anew by the reporter that is installed, and its samples one by one.

    Nothing is written into the run: a ``report.html`` that lies there is anybody's.
    """

    def __init__(self, report: Report, registry: Registry) -> None:
        self._report = attrs.evolve(report, registry=registry)
        index = index_of(self._report)
        self._index, offered = index, panels(self._report)
        self._sheets = Sheets(environment(), offered, rows=False)
        self._one, self._folder = (
            threading.Lock(),
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True),
        )
        folder = Path(self._folder.name)
        try:
            with guarded("reporter html"):
                list(HtmlReporter().write_served(self._report, folder))
        except BaseException:
            self.close()
            raise
        paths = folder.rglob("*")
        self._files = {
            file.relative_to(folder).as_posix(): file for file in paths if file.is_file()
        }

    def close(self) -> None:
        """Remove what was written."""
        self._folder.cleanup()

    def respond(self, path: str) -> Page | None:
        """Return the content at an address with the ending of its kind; None without one."""
        if match := _SAMPLE.fullmatch(path):
            number = int(match[1] or match[2])
            position = number - 1
            if not 0 <= position < len(self._index.entries):
                return None
            return (self._sample(position), ".js") if match[1] else (self._row(position), ".json")
        file = self._files.get(path or PAGE)
        return None if file is None else (read_regular(file), file.suffix)

    def _sample(self, position: int) -> bytes:
        with self._one, guarded("reporter html"):
            (row,) = rows_at(self._report, [position])
            sample = self._sheets.of_sample(row)
            return served_sample(row, map(str, sample)).encode()

    def _row(self, position: int) -> bytes:
        first_byte = self._index.first_byte(position)
        ((number, _, line),) = self._report.lines([(position, first_byte)])
        self._report.row(number, line)  # of a file that changed it is none
        return line
