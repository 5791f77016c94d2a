"""What a folder of runs holds."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from gradestack.model import JSON


@attrs.frozen(kw_only=True)
class FoundRun:
    """A finished run in a folder.

    Attributes:
        path: Its directory, from the folder, with slashes; ``.`` for the folder itself.
        header: Content of its header.json.
        summary: Content of its summary.json.
        page: Whether it has a ``report.html``.
    """

    path: str
    header: Mapping[str, JSON]
    summary: Mapping[str, JSON]
    page: bool

    @property
    def incomplete(self) -> str:
        """Why not all of it was graded; "" for a complete run."""
        return str(self.summary.get("incomplete") or "")

    @property
    def begun(self) -> str:
        """When it was graded, as it stands in its header."""
        return str(self.header.get("timestamp") or "")

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.summary["suite"])


@attrs.frozen(kw_only=True)
class FoundComparison:
    """A comparison in a folder.

    Attributes:
        path: Its directory, from the folder.
        runs: What the runs are called in it, the baseline first.
        sentence: What it comes to.
        page: Whether it has a ``comparison.html``.
    """

    path: str
    runs: tuple[str, ...]
    sentence: str
    page: bool


@attrs.frozen(kw_only=True)
class Folder:
    """The runs in a folder.

    Attributes:
        runs: Finished runs, the oldest first.
        unfinished: Where runs were begun and not finished.
        unreadable: Directories that look like a run and cannot be read, each with the reason.
        comparisons: Comparisons, by path.
    """

    runs: tuple[FoundRun, ...]
    unfinished: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    comparisons: tuple[FoundComparison, ...] = ()
