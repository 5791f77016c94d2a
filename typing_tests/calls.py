"""The Python API: what it takes, and what a report gives."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_type

import gradestack
from gradestack import (
    JSON,
    BadRecord,
    ConfigError,
    DataError,
    Grade,
    GradestackError,
    PluginError,
    Progress,
    Report,
    Row,
    Sample,
    grade,
    grade_files,
    is_run,
    load_report,
    load_suite,
    run,
    stream,
)


def look(progress: Progress) -> None:
    """Look at how far it is."""


def graded() -> Iterator[Report]:
    """Yield reports of all origins."""
    yield run(
        "suite.yaml",
        output=Path("out"),
        overrides=["max_samples=3"],
        allow_code=True,
        progress=look,
    )
    yield run({"name": "x"}, engine="processes", workers=2, resume=True, rows=False, strict=True)
    yield grade_files(
        ["results.json", Path("more.json")],
        reader="tau_bench",
        profile="upstream",
        dataset="gold.json",
    )
    yield grade(
        [Sample(id="a"), {"id": "b"}], graders=["tau_partial"], gate={"op": "gte", "value": 0.5}
    )
    yield grade(
        [],
        graders={"calls": {"kind": "tau_partial"}},
        metrics={"m": {"kind": "mean", "of": "calls"}},
    )
    yield load_report("out")


with next(graded()) as report:
    assert_type(report, Report)
    assert_type(report.passed, bool | None)
    assert_type(report.exit_code, int)
    assert_type(report.aggregates["calls"]["mean"]["mean"], JSON)
    assert_type(report.states, Mapping[str, Mapping[str, int]])
    assert_type(report.rows(), Iterator[Row])
    assert_type(is_run(Path("out")), bool)
    assert_type(gradestack.__version__, str)

try:
    load_suite("suite.yaml", cached="recorded")
except (ConfigError, DataError, PluginError) as error:
    known: GradestackError = error
    assert_type(known.exit_code, int)


def told(bad: BadRecord) -> None:
    """Take note of a bad record."""


for sample, grades in stream("results.json", ["tau_partial"], bad=told):
    assert_type(sample, Sample)
    assert_type(grades, Mapping[str, Grade])

grade_files(["results.json"], profile="newest")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
run("suite.yaml", outputs="out")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
grade([1], graders=["tau_partial"])
