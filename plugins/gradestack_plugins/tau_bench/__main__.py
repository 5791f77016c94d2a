"""The partial scoring script.

``python -m gradestack_plugins.tau_bench RESULTS [-o OUT] [--no-stats]``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from gradestack import (
    BadRecord,
    DataError,
    Grade,
    Input,
    Inputs,
    Outcome,
    Profile,
    figures,
    replace,
    terminal_line,
)
from gradestack_plugins.tau_bench.exporter import TauBenchExporter, partial_name, statistics_block
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.tau_bench.reader import TauBench


def main(arguments: Sequence[str] | None = None) -> int:
    """Score a result file, print the statistics, write the records with their partial scores."""
    parser = argparse.ArgumentParser(
        prog="python -m gradestack_plugins.tau_bench",
        description="Add partial scores to a tau-bench result file and print statistics.",
    )
    parser.add_argument("results", metavar="RESULTS", help="tau-bench result file (a JSON list)")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="file to write (default: RESULTS with _partial added)"
    )
    parser.add_argument("--no-stats", action="store_true", help="do not print the statistics")
    parser.add_argument(
        "--profile",
        choices=("documented", "upstream"),
        default="documented",
        help="documented understands object arguments and act/react runs; upstream reads what the "
        "original reads",
    )
    options = parser.parse_args(arguments)
    out, source = sys.stdout, Path(options.results)
    out.write(f"{terminal_line(f'Processing: {options.results}')}\n")
    if options.output is None and ".json" not in source.name:
        problem = f"{options.results}: the name does not contain .json; say with -o where to write"
        out.write(f"{terminal_line(f'Error: {problem}')}\n")
        return 1
    target = (
        source.with_name(partial_name(source.name))
        if options.output is None
        else Path(options.output)
    )
    try:
        statistics, unscored = _score(source, target, options.profile)
    except (DataError, OSError) as error:
        out.write(f"{terminal_line(f'Error: {error}')}\n")
        return 1
    if unscored:
        sys.stderr.write(
            f"Warning: {unscored} records could not be scored; their partial_score is null or "
            "absent\n"
        )
    if not options.no_stats:
        out.write(statistics_block(statistics))
    out.write(f"\n{terminal_line(f'Enhanced results saved to: {target}')}\n")
    return 0


def _score(source: Path, target: Path, profile: Profile) -> tuple[dict[str, Any], int]:
    reader, grader, export = TauBench(), TauPartial(profile=profile), TauBenchExporter()
    inputs = Inputs(data=(Input(path=source, name=source.stem, shown=str(source)),))
    graded: list[tuple[str, None, None, Grade]] = []
    records = unscored = unusable = 0
    with _replacing(target) as file:
        for shard in reader.plan(inputs, None):
            for record in reader.read(shard, None):
                grades: dict[str, Grade] = {}
                if not isinstance(record, BadRecord):
                    grade = grades["tau_partial"] = grader.grade(record)
                    unscored += grade.outcome is not Outcome.GRADED
                    # without the run's name: every record counts, as in the original script
                    slim = replace(grade, reasons=(), rationale=None)
                    graded.append((record.id, None, None, slim))
                elif record.native is None:
                    raise DataError(f"{record.source}: {record.reason}")
                else:
                    unusable += 1
                for _, chunk in export.row(record, grades, shard):
                    file.write(("[\n" if records == 0 else export.separator) + chunk)
                records += 1
        if records == unusable:
            others = ", only values of other kinds" if unusable else ""
            raise DataError(f"{source}: the list holds no records{others}")
        file.write("\n]")
    return dict(
        figures({"partial_statistics": {}}, graded)["partial_statistics"]
    ), unscored + unusable


@contextmanager
def _replacing(target: Path) -> Iterator[TextIO]:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("x", encoding="ascii") as file:
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
