"""The limit on samples that failed or are missing: what ``max_failed`` of a suite says, and its verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from gradestack.gates.rules import compared
from gradestack.grading.counts import Count
from gradestack.model import JSON, Outcome

Limit = int | float
"""A number of samples, or as a float a share of them, 0 to 1."""
SHARE = "failed_share"
PERCENT_TEXT = r"([0-9]{1,3}(\.[0-9]{1,15})?) ?%"
"""A share as a percentage, as a pattern."""


def as_limit(written: float | str) -> Limit:
    """Return what ``max_failed`` says: whole numbers are samples, ``5%`` and 0.05 a share of them."""
    found: Limit | None = None
    if isinstance(written, str):
        percent = re.fullmatch(PERCENT_TEXT, written)
        found = float(Fraction(percent[1]) / 100) if percent else None
    else:
        found = written
    if found is None or found < 0 or (isinstance(found, float) and found > 1):
        msg = f"expected a number of samples, such as 3, or a share of them, such as 5% or 0.05; got {written!r}"
        raise ValueError(msg)
    return found


def limit_verdict(limit: Limit, counts: Mapping[str, Count]) -> dict[str, JSON]:
    """Return the verdict of the limit, in the form of a gate's.

    The grader decides that has lost most: failed and missing samples, or their share of all it applies to.
    """
    share = isinstance(limit, float)
    lost = {key: (count.lost, count.graded + count.lost) for key, count in counts.items()}
    key = max(lost, key=lambda key: Fraction(lost[key][0], lost[key][1] or 1) if share else lost[key][0])
    number, of = lost[key]
    actual: float | None = number if not share else number / of if of else None
    passed = actual is None or actual <= limit  # where no grader applies nothing has failed
    return {
        "kind": "max_failed",
        "metric": SHARE if share else "failed_samples",
        "op": "lte",
        "value": limit,
        "text": compared("failed or missing", "lte", as_percent(limit) if share else limit, "%" * share),
        "grader": key,
        "failed": counts[key].states[Outcome.FAILED],
        "missing": counts[key].states[Outcome.MISSING],
        "of": of,
        "actual": actual,
        "passed": passed,
        "outcome": "passed" if passed else "failed",
    }


def as_percent(share: float) -> float:
    """Return a share as a percentage, with the digits people write it with: 0.29 is 29, not 28.999999999999996."""
    return float(Fraction(repr(share)) * 100)
