"""Gate lines: the value with enough digits, and what it leaves out."""

import pytest

from gradestack import distinguishing_decimals
from gradestack.gates.lines import gate_line
from tests.core.outcomes import data


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


@pytest.mark.parametrize(("line", "gate"), data(__file__, "lines.yaml").items())
def test_the_line(line, gate):
    assert gate_line({"outcome": "failed"} | gate) == line


def test_the_threshold_is_shown_whole(run_lines, record):
    report = run_lines([record("a", 0.12345678)], gate={"op": "lt", "value": 0.12345678})
    assert gate_line(report.gates[0]) == "Gate (quality < 0.12345678): FAILED (actual: 0.12345678)"
