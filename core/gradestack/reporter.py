"""What writes pages of finished runs: the contract, and what plugins show on them."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from gradestack.api import Contract, Kind
from gradestack.model import JSON
from gradestack.panel import Panel
from gradestack.registry import Registry
from gradestack.report import Report
from gradestack.rows.index import RowEntry
from gradestack.rows.parts import SamplePart
from gradestack.run_folder import Folder


def panels_of(registry: Registry) -> tuple[Panel, ...]:
    """Return what plugins show on pages; of files with the same name each later one is told apart by a number."""
    found: dict[tuple[str, str], Panel] = {}
    for panel in (panel for plugin in registry.plugins for panel in plugin.panels):
        known, number = panel.plugin, 1
        while (known, panel.name) in found:
            number += 1
            known = f"{panel.plugin}-{number}"
        found[known, panel.name] = attrs.evolve(panel, plugin=known)
    return tuple(found.values())


class Reporter(Contract):
    """Writes pages from the report of a finished run. Same report, same bytes.

    Attributes:
        beside: Patterns (``report_data/chunk-*.js``) of files that a page may have in a folder of its own; those that
            an earlier page has left there are removed.
    """

    contract: ClassVar[Kind] = "reporter"
    beside: ClassVar[tuple[str, ...]] = ()

    @abc.abstractmethod
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write into ``out``, an empty directory, and return the files written; they are moved to where they belong."""

    def comparison(self, data: Mapping[str, JSON], panels: Sequence[Panel] = ()) -> Mapping[str, str]:
        """Return the page of a comparison: file name -> text; none where it has no such page.

        Args:
            data: Content of comparison.json; and ``flipped``, the first tasks that changed with a row of each side.
            panels: What plugins show on pages.
        """
        return {}

    def sample(self, report: Report, entry: RowEntry, row: Mapping[str, JSON]) -> str:
        """Return one sample as a page or text of its own, which is asked for on demand; "" where there is no such view.

        Args:
            report: The run.
            entry: What the index says of it.
            row: Its row, with its ``trajectory``, or ``trajectory_gone`` where that is not to be had.
        """
        return ""

    def samples(self, report: Report, part: SamplePart) -> str:
        """Return a page that lists a part of a run's samples, on demand; "" where there is no such view.

        It is the root of the pages: a sample stands at ``samples/NUMBER``, its row at ``rows/NUMBER.json``, from 1 on,
        the whole report at ``report.html``. The queries ``from``, ``q`` and ``verdict`` ask for another part.

        Args:
            report: The run.
            part: The samples.
        """
        return ""

    def runs(self, folder: Folder) -> str:
        """Return a page over the runs of a folder, which stands in it; "" where there is no such page.

        Args:
            folder: The runs.
        """
        return ""
