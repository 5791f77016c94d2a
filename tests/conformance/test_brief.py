"""Short forms: grades without reasons and runs without rows have the same figures as the long ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradestack
from gradestack import Expectation, Fault, Sample, Status, ToolCall, ToolSpec, discover, grade_to_json, testing
from gradestack.grading.graders import Graders
from gradestack.jsonio import dumps
from gradestack.suites.strict import Problems, structure

EXAMPLES = Path(__file__).parents[2] / "examples"
SUITES = sorted(EXAMPLES.glob("*/suite.yaml"))
REGISTRY = discover(limit="")


def _graders():
    """Return every built-in grader that can be made without options, by name and profile."""
    made = {}
    for name in REGISTRY.names("grader"):
        for options in ({}, {"profile": "upstream"}):
            try:
                made[name, *options] = structure(options, REGISTRY.load("grader", name))
            except Problems:
                continue
    return made


GRADERS = _graders()


def _text(grade, sample):
    try:
        return dumps(grade_to_json(testing.unexplained(grade(sample))))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # as the kernel would see it
        return repr(error)


def _compared(samples):
    compared = 0
    for key, grader in GRADERS.items():
        for sample in samples:
            if sample.status in grader.handles:
                long = _text(grader.grade, sample)
                assert _text(grader.brief, sample) == long, key
                assert _text(grader.grade, sample) == long, key
                compared += 1
    return compared


@pytest.fixture
def judged(monkeypatch):
    """Return a list that fills with the samples runs grade."""
    found, columns = [], Graders.columns

    def look(self, samples):
        found.extend(samples)
        return columns(self, samples)

    monkeypatch.setattr(Graders, "columns", look)
    return found


def test_there_are_graders_of_every_family():
    """So that the comparisons below are about something."""
    assert {name for name, *_ in GRADERS} >= {"tau_partial", "tau_reward", "deepfabric"}
    assert len(GRADERS) > 20


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_brief_grades_of_an_examples_samples_differ_in_reasons_only(suite, tmp_path, judged):
    """Every grader of every family, its own samples and the others'."""
    gradestack.run(suite, output=tmp_path / "out", overrides=["reports=[]", "engine=serial"])
    assert judged
    assert _compared(judged) > 10 * len(judged)


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.parent.name)
def test_an_example_without_rows_has_the_same_figures(suite, tmp_path):
    """summary.json and native files, byte for byte; with and without exporters, which want reasons."""
    try:
        gradestack.run(suite, output=tmp_path / "short", overrides=["reports=[]"], rows=False)
    except gradestack.ConfigError as error:
        assert "rows" in str(error)  # noqa: PT017
        pytest.skip("its figures are computed from rows")
    gradestack.run(suite, output=tmp_path / "long", overrides=["reports=[]"])
    trees = {
        name: {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in sorted((tmp_path / name).rglob("*"))
            if path.is_file() and path.name not in ("header.json", "results.jsonl")
        }
        for name in ("short", "long")
    }
    assert trees["short"] == trees["long"]
    assert Path("summary.json") in trees["short"]


# samples nobody recorded

NAMES = st.sampled_from(["search", "book", ""])
LEAVES = st.sampled_from([None, True, 0, 1, 1.0, "1", "x", "", float("nan"), 10**30, "\ud800"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner), max_leaves=4
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "q"]), VALUES, max_size=3)
CALLS = st.lists(
    st.builds(ToolCall, name=NAMES, arguments=ARGUMENTS)
    | st.builds(
        ToolCall, name=NAMES, arguments=st.none(), raw_arguments=st.sampled_from([None, "{", "[1]", '{"a": 1}', "NaN"])
    ),
    max_size=3,
).map(tuple)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(
            st.sampled_from(["a", "b", "q"]),
            st.builds(dict, type=st.sampled_from(["string", "integer", "number", "object", ["null", "string"], "?", 3]))
            | LEAVES,
        )
        | LEAVES,
        "required": st.lists(st.sampled_from(["a", "c"]), max_size=2) | LEAVES,
    },
)
TOOLS = st.lists(st.builds(ToolSpec, name=NAMES, parameters=st.none() | SCHEMAS), max_size=3).map(tuple)
WORDS = st.sampled_from([None, "tool_call", "direct", "request_for_info", "x", ""])


@st.composite
def samples(draw):
    """Return a sample whose calls are often nearly the expected ones."""
    expected, tools = draw(st.none() | CALLS), draw(st.none() | TOOLS)
    calls = draw(st.none() | CALLS | st.just(expected))
    if expected and calls and draw(st.booleans()):
        calls = (*expected[:-1], *calls)
    failed = draw(st.sampled_from([None, None, None, Fault(category="target", code="x", message="boom")]))
    return Sample(
        id=draw(NAMES),
        calls=calls,
        tools=tools,
        label=draw(WORDS),
        text=draw(WORDS),
        expected=Expectation(calls=expected, label=draw(WORDS), text=draw(WORDS)),
        recorded=draw(st.dictionaries(st.sampled_from(["reward", "score"]), LEAVES, max_size=2)),
        status=Status.OK if failed is None else Status.FAILED,
        error=failed,
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(samples(), min_size=1, max_size=3))
def test_brief_grades_of_any_samples_differ_in_reasons_only(found):
    """Whatever was graded before, in the long form or the short one."""
    _compared([*found, *reversed(found)])
