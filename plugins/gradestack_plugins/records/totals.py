"""Verdicts of runs that have none, by the totals of their document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gradestack import Sample, compile_later, replace
from gradestack.jsonio import is_number

_FAILURES: Final = compile_later(
    r"(n_|num_|total_)?(unresolved|unsolved|failed|failures|incorrect|not_passed)(_ids|_count)?"
)
"""Names of how many runs did not pass, or of the list of these."""
_SHARES: Final = compile_later(
    r"accuracy|score|mean_reward|(pass|success|resolution|resolved|solve)_?(rate|share)"
)
"""Names of the share of runs that passed."""
_DEEP: Final = 3
_CLOSE: Final = 1e-6


def totals_beside(document: Any, records: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a document outside its records, a list or an object of them."""
    if not isinstance(document, dict) or depth > _DEEP:
        return
    for name, value in document.items():
        if value is records:
            continue
        if isinstance(value, dict):
            yield from totals_beside(value, records, depth + 1)
        else:
            yield name, value


def are_nulls_failed(values: Sequence[Any], totals: Sequence[tuple[str, Any]]) -> bool:
    """Return whether totals count the runs without a verdict among those that did not pass."""
    verdicts = [value for value in values if isinstance(value, bool) or is_number(value)]
    passed = verdicts.count(1)
    failed = verdicts.count(0)
    unknown = sum(value is None for value in values)
    if not unknown or passed + failed + unknown < len(values):
        return False
    share = passed / len(values)
    for name, value in totals:
        number = len(value) if isinstance(value, list) else value
        if not is_number(number):
            continue
        match = _FAILURES.fullmatch(name.lower())
        if match and number == failed + unknown:
            return True
        if _SHARES.fullmatch(name.lower()) and passed and abs(number - share) < _CLOSE:
            return True
    return False


def with_lost_verdicts(sample: Sample, fields: frozenset[str]) -> Sample:
    """Return a sample with false for every verdict that the document counts as failed."""
    names = [name for field in sorted(fields) if (name := field.partition(".")[2])]
    missing_names = [name for name in names if sample.recorded.get(name) is None]
    if not missing_names:
        return sample
    recorded = {**sample.recorded, **dict.fromkeys(missing_names, False)}
    remarks = {**sample.remarks, "no_verdict_and_failed_by_the_totals_of_the_file": 1}
    return replace(sample, recorded=recorded, remarks=remarks)
