"""The contract of what writes pages of finished runs."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from gradestack.api import Contract
from gradestack.hooks import Kind
from gradestack.model import JSON
from gradestack.report import Report


class Reporter(Contract):
    """Writes pages or files from the report of a finished run. Same report, same bytes.

    Attributes:
        beside: Patterns (``report_data/chunk-*.js``) of files that a page may have in a folder of its own; those that
            an earlier page has left there are removed.
    """

    contract: ClassVar[Kind] = "reporter"
    beside: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write into ``out``, an empty directory, and return the files written; they are moved to where they belong."""

    def comparison(self, data: Mapping[str, JSON], registry: Any = None) -> Mapping[str, str]:
        """Return the page of a comparison: file name -> text; none where it has no such page.

        Args:
            data: Content of comparison.json; and ``flipped``, the first tasks that changed with a row of each side.
            registry: Where what plugins show on pages comes from.
        """
        return {}
