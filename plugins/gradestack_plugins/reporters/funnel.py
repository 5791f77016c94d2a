"""What became of expected calls: by tool from expected over called to right, and by argument."""

from __future__ import annotations

import attrs

from gradestack import RowIndex
from gradestack_plugins.reporters.index import name_of
from gradestack_plugins.reporters.text import number

_MOST = 7
_NUMBERS = ("never right", "right once", "right twice")


@attrs.frozen
class ToolLine:
    """One tool."""

    name: str
    expected: int
    right: int
    wrong: int
    """Called, not quite right."""
    absent: int
    """Not called."""
    right_width: float
    """Percent of the bar, like the other two."""
    wrong_width: float
    absent_width: float


@attrs.frozen
class ArgumentLine:
    """One argument of one tool, and the samples in which it was not as expected."""

    tool: str
    name: str
    samples: int
    width: float


@attrs.frozen
class Funnel:
    """Both tables.

    Attributes:
        grader: Key of the grader that said which call answers which.
        tools: Tools with most expected calls lost.
        tools_left_out: Other tools.
        arguments: Arguments most often wrong.
        worst: A sentence about the tool that is worst, without its name; "" when nothing is lost.
    """

    grader: str
    tools: tuple[ToolLine, ...]
    tools_left_out: int
    arguments: tuple[ArgumentLine, ...]
    arguments_left_out: int
    worst_tool: str
    worst: str


def funnel_of(index: RowIndex) -> Funnel | None:
    """Return the funnel of a run; None where no grader pairs calls."""
    tally = index.calls
    if not tally.tools:
        return None
    ranked = sorted(tally.tools.items(), key=lambda each: (each[1].right - each[1].expected, each[0]))
    tools = []
    for name, counts in ranked[:_MOST]:
        wrong, absent = counts.called - counts.right, counts.expected - counts.called
        widths = (round(100 * part / counts.expected, 2) for part in (counts.right, wrong, absent))
        tools.append(ToolLine(name_of(name), counts.expected, counts.right, wrong, absent, *widths))
    places = sorted(tally.arguments.items(), key=lambda each: (-each[1], each[0]))
    top = places[0][1] if places else 1
    arguments = tuple(
        ArgumentLine(name_of(tool), name_of(name), samples, round(100 * samples / top, 2))
        for (tool, name), samples in places[:_MOST]
    )
    worst_tool, worst = _worst(tools)
    left_out = max(0, len(ranked) - _MOST), max(0, len(places) - _MOST)
    return Funnel(name_of(tally.grader), tuple(tools), left_out[0], arguments, left_out[1], worst_tool, worst)


def _worst(tools: list[ToolLine]) -> tuple[str, str]:
    """Return the shown tool that loses many calls and many of its own, and how often it is right."""
    losing = [tool for tool in tools if tool.right < tool.expected and tool.expected > 1]
    if not losing:
        return "", ""
    tool = max(losing, key=lambda each: (each.expected - each.right) ** 2 / each.expected)
    right = _NUMBERS[tool.right] if tool.right < len(_NUMBERS) else f"right {number(tool.right)} times"
    made = tool.right + tool.wrong
    if made == tool.expected:
        return tool.name, f"is made all {number(tool.expected)} times and is {right}."
    return tool.name, f"is made {number(made)} of {number(tool.expected)} times and is {right}."
