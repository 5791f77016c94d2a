"""A reporter: pages from the report of a finished run."""

from collections.abc import Iterable
from pathlib import Path

import attrs

from gradestack import Report, Reporter


@attrs.frozen(kw_only=True)
class Line(Reporter):
    """One line of text."""

    file: str = "line.txt"

    def write(self, report: Report, out: Path) -> Iterable[Path]:
        """Write it."""
        page = out / self.file
        page.write_text(f"{report.name}: {report.metrics['total']}\n", encoding="utf-8")
        return [page]


Line(file=Path("line.txt"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
