"""What the reporters need of a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import attrs

from gradestack.jsonio import dumps, loads


class ReportLike(Protocol):
    """The part of :class:`gradestack.report.Report` that pages are made from."""

    @property
    def name(self) -> str:
        """Name of the suite."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The content of summary.json."""

    @property
    def header(self) -> Mapping[str, Any]:
        """The content of header.json."""

    @property
    def passed(self) -> bool | None:
        """Verdict of the gates; None without a gate."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of results.jsonl, from the start each time."""


@attrs.frozen
class _Settled:
    """A report whose header and summary are as they read back from their files; one without rows has none."""

    name: str
    summary: Mapping[str, Any]
    header: Mapping[str, Any]
    passed: bool | None
    _rows: Callable[[], Iterator[dict[str, Any]]]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows."""
        return self._rows() if kept_rows(self) else iter(())


def settled(report: ReportLike) -> ReportLike:
    """Return a report in the form that pages are made from: key order and numbers as in summary.json and header.json.

    A page written right after a run and one written later from the run directory are then the same.
    """
    summary, header = (loads(dumps(dict(content))) for content in (report.summary, report.header))
    return _Settled(report.name, summary, header, report.passed, report.rows)


def kept_rows(report: ReportLike) -> bool:
    """Return whether the run kept its rows; without them a page shows the figures alone."""
    return report.header.get("rows") is not False


def check_limits(options: Any) -> None:
    """Refuse negative limits among a reporter's options.

    Raises:
        ValueError: A limit is negative.
    """
    for name, value in attrs.asdict(options).items():
        if value < 0:
            msg = f"{name} must not be negative, got {value}"
            raise ValueError(msg)
