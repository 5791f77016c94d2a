"""What is at which address below the root of a served run."""

from __future__ import annotations

import html
import re
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.outcome.trajectories import with_trajectories
from gradestack.plugin_errors import guarded
from gradestack.registry import Registry
from gradestack.report import Report
from gradestack.reporter import panels_of
from gradestack.rows.parts import VERDICTS, RowPlaces

REPORT = "report.html"
_MOST, _FARTHEST = 50, 20_000
"""Samples on a page of the list, and rows looked at for it: a second or so."""
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_NOTHING = "default-src 'none'"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".json": "application/json"}


@attrs.frozen
class Answer:
    """One page or file.

    Attributes:
        body: Its bytes.
        kind: Its media type.
        policy: What it may do: nothing, but for a page what the page itself says.
    """

    body: bytes
    kind: str
    policy: str = _NOTHING

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

    Args:
        report: The run.
        registry: Where the reporter comes from.

    Raises:
        DataError: Its rows are not the samples its summary is of.
    """

    def __init__(self, report: Report, registry: Registry) -> None:
        complete = with_trajectories(report, registry, lambda _: None)  # a page says what is gone
        self._report = attrs.evolve(complete, panels=panels_of(registry))
        self._reporter: Any = registry.load("reporter", "html")()
        self._one, self._whole = threading.Lock(), threading.Lock()
        self._written: dict[str, Path] = {}
        self.rows = report.places() if report.has_rows else None
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def close(self) -> None:
        """Remove what was written."""
        self._folder.cleanup()

    def answer(self, path: str, query: Mapping[str, str]) -> Answer | None:
        """Return what is at an address, None where there is nothing.

        Args:
            path: The address below the root, without a slash at its beginning.
            query: The query, each name once.
        """
        if path == "" and self.rows is not None:
            return self._list(self.rows, query)
        if found := re.fullmatch(r"(samples/(\d{1,12})|rows/(\d{1,12})\.json)", path, re.ASCII):
            position = int(found[2] or found[3]) - 1
            if self.rows is None or not 0 <= position < len(self.rows):
                return None
            return self._sample(self.rows, position) if found[2] else self._row(self.rows, position)
        return self._file(path or REPORT)

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
            return Answer.of(self._reporter.samples(self._report, part))

    def _sample(self, rows: RowPlaces, position: int) -> Answer | None:
        with self._one, guarded("reporter html"):
            for entry, row in self._report.samples_at([(position, rows.place(position))]):
                return Answer.of(self._reporter.sample(self._report, entry, row))
        return None

    def _row(self, rows: RowPlaces, position: int) -> Answer:
        return Answer(rows.line(position), "application/json")

    def _file(self, path: str) -> Answer | None:
        """Return one of the files of the report, which is made when the first of them is asked for."""
        if path != REPORT and path not in self._written:
            return None
        with self._whole:
            if not self._written:
                folder = Path(self._folder.name)
                with guarded("reporter html"):
                    list(self._reporter.write(self._report, folder))
                files = (each for each in folder.rglob("*") if each.is_file())
                self._written = {each.relative_to(folder).as_posix(): each for each in files}
        body = self._written[path].read_bytes()
        if path == REPORT:
            return Answer.of(body.decode("utf-8", "replace"))
        return Answer(body, _TYPES.get(Path(path).suffix, "application/octet-stream"))
