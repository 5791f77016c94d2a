"""Identities that hold for every sample and every set of samples."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Expectation, Sample, ToolCall, figures
from gradestack_plugins.deepfabric.exporter import VERDICTS
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.program import result_of
from gradestack_plugins.deepfabric.samples import Entry
from gradestack_plugins.deepfabric.schemas import convert

pytestmark = pytest.mark.proof
NAMES = ["f", "g", "h"]
ARGUMENTS = ["a", "b", "c"]
WORDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}

values = st.sampled_from(["x", "X ", "", 0, 1, 2.5, 1.0, True, False, None, [], [1], {}, {"k": 1}])
arguments = st.dictionaries(st.sampled_from(ARGUMENTS), values, max_size=3)
calls = st.none() | st.tuples(st.sampled_from([*NAMES, "zz", ""]), arguments)


@st.composite
def snapshots(draw):
    tools = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=3)):
        properties = {}
        for key, word in draw(
            st.dictionaries(st.sampled_from(ARGUMENTS), st.sampled_from(list(WORDS)))
        ).items():
            properties[key] = {"type": word}
        if properties:
            required = draw(st.lists(st.sampled_from(list(properties)), max_size=2))
        else:
            required = []
        schema = {"type": "object", "properties": properties, "required": required}
        tools.append(
            {
                "type": "function",
                "function": {"name": name, "description": "", "parameters": schema},
            }
        )
    return tools


def of_type(value, word):
    """Independent type test: by class, bools apart."""
    if isinstance(value, bool):
        return word == "boolean"
    return isinstance(value, WORDS[word]) and word != "boolean"


def independent(expected, made, tools, *, program=False):
    """Return the three verdicts, written from the rules without a look at the grader or the
    program.
    """
    by_name = {}
    for tool in tools:
        parameters = tool["function"]["parameters"]
        by_name.setdefault(tool["function"]["name"], parameters)
    if expected is None:
        right = made is None and not program
        return (right,) * 3
    name, given_arguments = made if made is not None else (None, {})
    schema = by_name.get(name)
    if made is None:
        fine = False
    elif program and not expected[1] and not given_arguments:
        fine = True
    elif schema is not None:
        required = schema["required"]
        is_complete = all(key in given_arguments for key in required)
        properties = schema["properties"].items()
        types = {key: declared["type"] for key, declared in properties}
        fine = is_complete and all(
            of_type(value, types[key]) for key, value in given_arguments.items() if key in types
        )
    elif not program:
        fine = False
    else:
        fine = sorted(expected[1]) == sorted(given_arguments) and all(
            close(value, given_arguments[key]) for key, value in expected[1].items()
        )
    selected = name == expected[0]
    return selected, fine, selected and fine


def close(left, right):
    if isinstance(left, str) and isinstance(right, str):
        return left.strip().casefold() == right.strip().casefold()
    if isinstance(left, int | float) and isinstance(right, int | float):
        return math.isclose(left, right, rel_tol=0, abs_tol=1e-6)
    return left == right


def sample_of(expected, made, tools):
    def call(pair):
        if pair is None:
            return ()
        return (ToolCall(name=pair[0], arguments=pair[1]),)

    return Sample(
        id="s", calls=call(made), expected=Expectation(calls=call(expected)), tools=convert(tools)
    )


@given(expected=calls, made=calls, tools=snapshots())
@settings(max_examples=400)
def test_verdicts_of_the_program_match_an_independent_reading(df, expected, made, tools):
    """Expected arguments are none that its format refuses."""
    comparable = expected and (
        expected[0] or "f",
        {k: v for k, v in expected[1].items() if v or v == 0},
    )
    record = df.record(comparable, tools)
    reply = df.reply(made)
    entry = Entry(record, reply)
    result = result_of(0, entry, DeepFabric())
    assert result.error is None
    verdict = tuple(getattr(result, name) for name in VERDICTS)
    assert verdict == independent(comparable, made, tools, program=True)


@given(expected=calls, made=calls, tools=snapshots())
@settings(max_examples=400)
def test_verdicts_match_an_independent_reading_of_the_rules(expected, made, tools):
    """For any expected call, call made and tools, the grader and a second implementation agree."""
    grade = DeepFabric().grade(sample_of(expected, made, tools))
    verdict = tuple(
        grade.parts[name] == 1.0
        for name in ("tool_selection", "parameter_accuracy", "execution_success")
    )
    assert verdict == independent(expected, made, tools)
    assert verdict[2] == (verdict[0] and verdict[1])
    assert 0.0 <= grade.score <= 1.0
    selected, right, ran = verdict
    assert grade.score == 0.4 * selected + 0.35 * right + 0.25 * ran
    assert bool(grade.reasons) is not all(verdict)


@given(pairs=st.lists(st.tuples(calls, calls, snapshots()), max_size=12), data=st.data())
@settings(max_examples=100)
def test_figures_are_consistent(pairs, data):
    """Rates lie within [0, 1], execution is at most the lesser of the others, order is of no
    importance.
    """
    grades = []
    for pair in pairs:
        grades.append(DeepFabric().grade(sample_of(*pair)))
    orders = st.permutations(grades)
    shuffled = data.draw(orders)
    both_figures = []
    for order in (grades, shuffled):
        deepfabric = figures({"deepfabric": {}}, [("s", None, None, grade) for grade in order])[
            "deepfabric"
        ]
        both_figures.append(deepfabric)
    assert both_figures[0] == both_figures[1]
    metrics = both_figures[0]
    assert metrics["samples_evaluated"] == len(pairs)
    samples_processed = metrics["samples_processed"]
    assert samples_processed + metrics["processing_errors"] == metrics["samples_evaluated"]
    if not pairs:
        return
    selection, parameters, execution = (
        metrics[name]
        for name in ("tool_selection_accuracy", "parameter_accuracy", "execution_success_rate")
    )
    assert 0.0 <= execution <= min(selection, parameters) <= 1.0
    fraction = Fraction(40, 100)
    weighted = fraction * Fraction(selection) + Fraction(35, 100) * Fraction(parameters)
    overall_score = metrics["overall_score"]
    assert math.isclose(
        overall_score, weighted + Fraction(25, 100) * Fraction(execution), abs_tol=1e-12
    )


@given(expected=calls.filter(lambda call: call is not None), made=calls, tools=snapshots())
def test_strict_options_never_gain(expected, made, tools):
    sample = sample_of(expected, made, tools)
    plain = DeepFabric().grade(sample)
    deep_fabric = DeepFabric(unknown_arguments="wrong", check_enums=True, nested=True)
    strict = deep_fabric.grade(sample)
    assert strict.score <= plain.score
    tool_selection = strict.parts["tool_selection"]
    assert tool_selection == plain.parts["tool_selection"]
