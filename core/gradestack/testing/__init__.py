"""Conformance kit for plugin authors.

Plain functions for any test runner, each raising AssertionError that says why.

    from gradestack import testing

    @pytest.mark.parametrize("check", testing.checks("gradestack-acme", reads={"acme": FILE}),
    ids=str) def test_it_keeps_the_contract(check):
        check()

``checks`` checks everything a distribution offers, and ``gradestack plugins check`` runs it; the
functions it is made of check one component each. Tables of inputs and what is expected of
them are best written as data, in YAML files of ``cases``, each for ``check_case``.
"""

from gradestack.testing.case_files import Case, cases, check_case
from gradestack.testing.components import (
    check_aggregator,
    check_component,
    check_extractor,
    check_grader,
    check_hash_seeds,
    check_reader,
    explained_grade,
    fresh,
)
from gradestack.testing.packages import Check, NeedsExample, checks
from gradestack.testing.samples import nasty_samples, random_grades
from gradestack.testing.upgrade import upgrade

__all__ = [
    "Case",
    "Check",
    "NeedsExample",
    "cases",
    "check_aggregator",
    "check_case",
    "check_component",
    "check_extractor",
    "check_grader",
    "check_hash_seeds",
    "check_reader",
    "checks",
    "explained_grade",
    "fresh",
    "nasty_samples",
    "random_grades",
    "upgrade",
]
