"""Gate lines: the value with enough digits, and what it leaves out."""

import pytest

from gradestack import distinguishing_decimals
from gradestack.gates.lines import gate_line


@pytest.mark.parametrize(
    ("number", "threshold", "text"),
    [
        (0.8999, 0.9, "0.8999"),
        (0.9001, 0.9, "0.9001"),
        (0.9, 0.9, "0.90"),
        (0.8333, 0.75, "0.83"),
        (0.99949, 0.9995, "0.999"),
        (1 / 3, 1 / 3, "0.3333333333333333"),
        (0.125, 0.125, "0.125"),
        (0.0, 0.0, "0.00"),
        (1e-9, 0.0, "0.000000001"),
        (-0.001, 0.0, "-0.001"),
        (5e-324, 0.0, "5e-324"),
        (31, 30.5, "31"),
        (31, 30, "31"),
    ],
)
def test_digits_show_the_side(number, threshold, text):
    """Two decimals, or as many as compare to the threshold as the number does."""
    assert distinguishing_decimals(number, threshold) == text


def line(**gate):
    passed = gate.pop("passed", False)
    return gate_line({"outcome": "passed" if passed else "failed", **gate})


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        ({"text": "q >= 0.9", "value": 0.9, "actual": 0.8999}, "Gate (q >= 0.9): FAILED (actual: 0.8999)"),
        (
            {"text": "q >= 0.9", "value": 0.9, "actual": 0.90004, "passed": True},
            "Gate (q >= 0.9): PASSED (actual: 0.90004)",
        ),
        (
            {"text": "q accuracy >= 90%", "metric": "accuracy", "value": 90.0, "actual": 89.999}
            | {"metric_key": "q", "counted": 20, "of": 20},
            "Gate (q accuracy >= 90%): FAILED (actual: 89.999%)",
        ),
        (
            {"text": "q >= 0.5", "value": 0.5, "actual": 0.75, "passed": True}
            | {"metric_key": "q", "counted": 10, "of": 20},
            "Gate (q >= 0.5): PASSED (actual: 0.75; 10 of 20 failed or missing)",
        ),
        (
            {"text": "average", "value": 0.5, "actual": 0.75, "passed": True}
            | {"counted": {"q": 4, "r": 2, "s": 4}, "of": {"q": 5, "r": 4, "s": 4}},
            "Gate (average): PASSED (actual: 0.75; 1 of 5 failed or missing for q; 2 of 4 failed or missing for r)",
        ),
        (
            {"text": "q or r", "operator": "or", "actual": None, "passed": True}
            | {
                "conditions": [
                    {"value": 0.5, "actual": 0.5, "metric_key": "q", "counted": 3, "of": 4},
                    {
                        "operator": "and",
                        "conditions": [{"value": 0.9, "actual": None}, {"value": 0.9, "actual": 0.8999}],
                    },
                ]
            },
            "Gate (q or r): PASSED (actual: 0.50 or (n/a and 0.8999); 1 of 4 failed or missing for q)",
        ),
        (
            {"text": "q per model", "value": 0.5, "actual": 0.75}
            | {
                "groups": {
                    "a": {"passed": True, "value": 0.5, "actual": 0.9},
                    **{f"b\n{n}": {"passed": False, "value": 0.5, "actual": 0.4999 if n else None} for n in range(4)},
                }
            },
            r"Gate (q per model): FAILED (actual: 0.75; not in b\n0 (n/a), b\n1 (0.4999), b\n2 (0.4999) and 1 more)",
        ),
        (
            {"text": "failed or missing <= 29%", "kind": "max_failed", "metric": "failed_share", "value": 0.29}
            | {"actual": 0.2901, "failed": 2000, "missing": 901, "of": 10000, "grader": "q"},
            "Gate (failed or missing <= 29%): FAILED (actual: 29.01%; 2901 of 10000 for q)",
        ),
        (
            {"text": "failed or missing <= 2", "kind": "max_failed", "metric": "failed_samples", "value": 2}
            | {"actual": 3, "failed": 3, "missing": 0, "of": 10, "grader": "q"},
            "Gate (failed or missing <= 2): FAILED (actual: 3; 3 of 10 for q)",
        ),
        (
            {
                "text": "q.m.7 >= 1",
                "value": 1.0,
                "actual": None,
                "outcome": "no_data",
                "reason": "no figure '7' in q.m",
            },
            "Gate (q.m.7 >= 1): NO DATA (actual: n/a; no figure '7' in q.m)",
        ),
    ],
)
def test_the_line(gate, text):
    assert line(**gate) == text


def test_the_threshold_is_shown_whole(run_lines, record):
    report = run_lines([record("a", 0.12345678)], gate={"op": "lt", "value": 0.12345678})
    assert gate_line(report.gates[0]) == "Gate (quality < 0.12345678): FAILED (actual: 0.12345678)"
