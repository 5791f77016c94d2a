"""The public modules beside the import root: the conformance kit, JSON of others."""

from pathlib import Path
from typing import assert_type

from gradestack import Aggregator, Component, Grade, Grader, Key, Reader, Sample
from gradestack.jsonio import dumps, iter_list, list_ranges, loads
from gradestack.testing import (
    Check,
    check_aggregator,
    check_component,
    check_grader,
    check_reader,
    checks,
    fresh,
    nasty_samples,
    random_grades,
)


def graders_and_aggregators(grader: Grader, aggregator: Aggregator) -> None:
    """Check one of each."""
    check_grader(grader, [fresh(sample)[0] for sample in nasty_samples()])
    check_aggregator(aggregator, random_grades(seed=3), seed=1)
    check_grader(aggregator)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def readers(reader: Reader) -> None:
    """Check one of each, and the records of all."""
    check_reader(reader, Path("runs.jsonl"), scratch=Path("scratch"))
    for check in checks(
        "gradestack-acme", reads={"acme": Path("runs.jsonl")}, known={"grader x: laws": "why"}
    ):
        assert_type(check, Check)
        assert_type(check(), None)
    check_component(Component("grader", "x", "acme:X", "X"))


assert_type(nasty_samples(), list[Sample])
assert_type(random_grades(), list[tuple[Key, Grade]])

assert_type(dumps(loads(b"{}")), str)
for found in list_ranges(Path("results.json")):
    list(iter_list(Path("results.json"), found))
