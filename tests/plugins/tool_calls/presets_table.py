"""The table of docs/tool-calls.md: what every preset says of fourteen small runs.

Made when the site is built.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gradestack import Expectation, ExpectedCall, Grade, Outcome, Sample, ToolCall, ToolSpec
from gradestack_plugins.tool_calls.grader import ToolCalls
from gradestack_plugins.tool_calls.presets import DOCUMENTED, PRESETS

Calls = Sequence[tuple[str, Mapping[str, Any]]]
_F: Calls = (("f", {"x": 1}),)
_FG: Calls = (("f", {"x": 1}), ("g", {"y": 2}))
CASES: Mapping[str, tuple[Calls, Calls]] = {
    "same two calls": (_FG, _FG),
    "other order": (_FG, _FG[::-1]),
    "one extra call": (_FG, (*_FG, ("f", {"x": 9}))),
    "one call missing": (_FG, _F),
    "expected twice, made once": ((*_F, *_F), _F),
    "f, f, g made for f, g, g": (
        (("f", {}), ("g", {}), ("g", {})),
        (("f", {}), ("f", {}), ("g", {})),
    ),
    "true where 1 is expected": (_F, (("f", {"x": True}),)),
    '"1" where 1 is expected': (_F, (("f", {"x": "1"}),)),
    "one of two arguments left out": ((("f", {"x": 1, "y": 2}),), _F),
    "one argument added": (_F, (("f", {"x": 1, "y": 2}),)),
    "no arguments at all": (_F, (("f", {}),)),
    "list-valued argument, the same": ((("f", {"x": [1, 2]}),), (("f", {"x": [1, 2]}),)),
    "nothing expected, nothing made": ((), ()),
    "nothing expected, one made": ((), _F),
}
"""Name -> calls expected, and calls made."""
_WORDS = {int: "integer", list: "array"}


def sample_of(expected: Calls, made: Calls) -> Sample:
    """Return a sample with these calls, and with tools that take their arguments."""
    named: dict[str, dict[str, Any]] = {}
    for name, arguments in (*made, *expected):
        properties = named.setdefault(name, {})
        for key, value in arguments.items():
            properties[key] = {
                "type": _WORDS.get(type(value), "string"),
                "items": {"type": "integer"},
            }
    tools = [
        ToolSpec(name=name, parameters={"type": "dict", "properties": properties, "required": []})
        for name, properties in sorted(named.items())
    ]
    expected_calls = [
        ExpectedCall(name=name, arguments=call_arguments) for name, call_arguments in expected
    ]
    made_calls = [ToolCall(name=name, arguments=call_arguments) for name, call_arguments in made]
    expectation = Expectation(calls=tuple(expected_calls))
    return Sample(
        id="case",
        tools=tuple(tools),
        expected=expectation,
        calls=tuple(made_calls),
    )


def shown(grade: Grade) -> str:
    """Return a grade as the table has it."""
    if grade.outcome is Outcome.FAILED:
        return "raises"
    if grade.outcome is Outcome.SKIPPED or grade.score is None:
        return "–"
    return f"{grade.score:.2f}".rstrip("0").rstrip(".")


def lines() -> Iterator[str]:
    """Yield the lines of the list of cases and of the table in Markdown.

    The table has a row for presets that say the same, and a column for each case.
    """
    for number, name in enumerate(CASES, 1):
        yield f"{number}. {name}"
    yield ""
    yield f"| preset | {' | '.join(map(str, range(1, len(CASES) + 1)))} |"
    yield f"| --- |{' --- |' * len(CASES)}"
    cases = CASES.values()
    samples = [sample_of(*case) for case in cases]
    rows: dict[str, list[str]] = {}
    for name in (DOCUMENTED, *(preset for preset in PRESETS if preset != DOCUMENTED)):
        grader = ToolCalls(preset=name)
        rows.setdefault(" | ".join(shown(grader.grade(sample)) for sample in samples), []).append(
            f"`{name}`"
        )
    for cells, names in rows.items():
        yield f"| {', '.join(names)} | {cells} |"
