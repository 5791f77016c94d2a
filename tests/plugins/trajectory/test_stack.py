"""The stack of what needs no reference.

What it has for which format, and what it sums a run up by.
"""

import sys

import pytest

import gradestack
from gradestack import Sample, ToolCall, ToolSpec
from gradestack.cli import results as console
from gradestack_plugins.readers.stacks import trajectory
from tests.core.outcomes import data

DATA = data(__file__, "stack.yaml")

ALL = ["tool_success", "tool_schema", "tool_policy", "repeats", "usage"]
FIGURES = DATA["figures"]
SPECS = (ToolSpec(name="f", parameters={"required": ["x"]}),)


def samples():
    made = ToolCall(name="f", arguments={"x": 1}, status="ok")
    failed = ToolCall(name="f", arguments={}, status="error")
    calls = (made,) * 4
    sample = Sample(id="a", calls=calls, tools=SPECS)
    return [
        sample,
        Sample(id="b", calls=(made, failed), tools=SPECS),
    ]


def test_samples_in_python_get_the_stack_with_its_headline():
    """By hand: five of six calls succeed and keep their schema.

    One of two runs keeps the policy and is in no loop.
    """
    report = gradestack.grade(samples())
    aggregates = list(report.aggregates)
    assert aggregates == sorted(ALL)
    outcome = report.summary["outcome"]
    assert outcome["grader"] == "tool_success"
    words = report.summary["outcome"]["words"]
    assert words == {
        "passed": "without failed calls",
        "failed": "with failed calls",
    }
    headline = report.summary["headline"]
    figures = headline["figures"]
    labels = [figure["label"] for figure in figures]
    assert labels == FIGURES
    expected = [5 / 6, 5 / 6, 0.5, 0.5, None]
    assert [figure["value"] for figure in figures] == expected
    assert all("interval" in figure for figure in figures[:4])
    results = console.results(report)
    assert "  Without failed calls: 1 of 2 (50.0%; 95% interval 0.0 to 100.0%)" in results


@pytest.mark.parametrize(
    ("provides", "graders", "outcome"),
    [
        (None, ALL, "tool_success"),
        ({"calls", "tools"}, ALL, "tool_success"),
        ({"calls"}, [name for name in ALL if name != "tool_schema"], "tool_success"),
        ({"tools", "text"}, ["usage"], "none"),
    ],
)
def test_graders_whose_fields_a_format_lacks_are_left_out(provides, graders, outcome):
    """A format that records no tools gets no grader that checks schemas."""
    stack = trajectory(provides)
    assert list(stack["graders"]) == graders
    assert stack["outcome"] == outcome


def test_the_stack_holds_no_run_that_it_has_looked_at():
    """Else a folder of long sessions would be in memory as a whole before it is graded."""
    first = Sample(id="first", calls=())
    counts = []

    def samples():
        counts.append(sys.getrefcount(first))
        yield first
        yield Sample(id="second", calls=())
        counts.append(sys.getrefcount(first))

    trajectory({"calls", "tools"}, samples)
    assert counts[1] == counts[0]
