"""Conformance kit for plugin authors: plain functions for any test runner, each raising AssertionError that says why.

    from gradestack import testing

    def test_my_grader_keeps_the_contract():
        testing.check_grader(MyGrader())

Run them over every component you publish; gradestack runs them over its own. Tables of inputs and what is expected of
them are best written as data, in YAML files that :func:`check_cases` runs.
"""

from gradestack.testing.case_files import Case, cases, check_case, check_cases
from gradestack.testing.checks import (
    check_aggregator,
    check_component,
    check_grader,
    check_hash_seeds,
    check_reader,
    check_reporter,
    installed_components,
)
from gradestack.testing.samples import masked, nasty_samples, random_grades

__all__ = [
    "Case",
    "cases",
    "check_aggregator",
    "check_case",
    "check_cases",
    "check_component",
    "check_grader",
    "check_hash_seeds",
    "check_reader",
    "check_reporter",
    "installed_components",
    "masked",
    "nasty_samples",
    "random_grades",
]
