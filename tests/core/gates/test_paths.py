"""Gates on any figure of an aggregator, by path, and their lines."""

import pytest

from gradestack.gates.paths import NoFigure, number_at, split_path
from gradestack.gates.texts import gate_lines
from gradestack.output import distinguishing_decimals
from tests.core.outcomes import data

DATA = data(__file__, "paths.yaml")


def number(path, component):
    grader, metric, rest = split_path(path, DATA["aggregates"])
    aggregate = DATA["aggregates"][grader]
    return number_at(aggregate[metric], rest, (metric, component), f"{grader}.{metric}").value


@pytest.mark.parametrize(("path", "component", "value"), DATA["leads"])
def test_where_a_path_leads(path, component, value):
    """A figure named as its metric may be left out; keys may hold dots."""
    assert number(path if isinstance(path, str) else ".".join(path), component) == value


@pytest.mark.parametrize(("path", "text"), DATA["ends"])
def test_where_a_path_ends(path, text):
    with pytest.raises(NoFigure) as caught:
        number(path, "pass_hat_k")
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("number", "threshold", "text"),
    [*DATA["digits_show_the_side"], (1 / 3, 1 / 3, "0.3333333333333333")],
)
def test_digits_show_the_side(number, threshold, text):
    """Two decimals, or as many as compare to the threshold as the number does."""
    assert distinguishing_decimals(number, threshold) == text


@pytest.mark.parametrize(("line", "gate"), data(__file__, "lines.yaml").items())
def test_the_line(line, gate):
    first_gate_line = gate_lines({"outcome": "failed", "passed": False} | gate)[0]
    assert first_gate_line == line


def test_the_threshold_is_shown_whole(run_lines, record):
    report = run_lines([record("a", 0.12345678)], gate={"op": "lt", "value": 0.12345678})
    first_gate = report.gates[0]
    first_gate_line = gate_lines(first_gate)[0]
    assert first_gate_line == "Gate (quality < 0.12345678): FAILED (actual: 0.12345678)"
