"""The result file."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradestack
from gradestack import BadRecord, Source
from gradestack_plugins.deepfabric.exporter import DeepFabricExporter, render
from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.core.outcomes import data
from tests.golden.pages import check_golden_file
from tests.plugins.deepfabric.conftest import evaluate, native_text, run_program

DATA = data(__file__, "exporter.yaml")


@pytest.fixture
def lines(df):
    """Awkward values, no query, and replies that are missing, failed, nameless or ungraded."""
    arguments = '{"n": NaN, "s": 1e-7, "d": {}, "l": [], "m": [1, {"x": 1e-05}]}'
    messages = [{"role": "user", "content": 'q\x01é/"\\'}]
    record = df.record(("f", {"a": 1}), final_answer="fa")
    large = df.record(("f", {"a": 10**400}))
    nameless = {"content": "c", "tool_call": {"name": None, "arguments": {"a": 1}}}
    tool = df.tool("f")
    pairs = [
        (df.record(("f", arguments), [tool], messages=messages), df.reply(("f", {}))),
        ({"messages": [{"role": "system", "content": "s"}]}, df.reply()),
        (record, None),
        (record, {"kind": "exception", "message": ""}),
        (record, df.reply(("f", {"a": 2}))),
        (record, nameless),
        (large, df.reply(("f", {"a": 1}))),
    ]
    return [{"sample": sample, "recorded": reply} for sample, reply in pairs]


def test_golden_file_of_results(lines):
    """Keys, order, indentation, escapes, numbers and the missing final newline are the original's;
    the options are in the configuration.
    """
    weights = {"tool_selection": 2}
    results = evaluate(lines, metric_weights=weights, normalize=True)
    check_golden_file("deepfabric_documented.json", results.text)


def test_golden_file_of_the_program(lines):
    program = run_program(lines)
    page = program.files["deepfabric.json"]
    check_golden_file("deepfabric_upstream.json", page)


NUMBERS = DATA["numbers"]


@pytest.mark.parametrize(("value", "text"), NUMBERS)
def test_numbers(value, text):
    """Floats are written as the original writes them."""
    assert render(value) == text


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=15,
)


def _ending(line):
    """Return the end of a line: a bracket or comma, or a value, whose spelling may differ."""
    last = line.rstrip()[-1:]
    return last if last in "[]{}," else "value"


@given(json_values, st.integers(0, 3))
def test_rendering_keeps_values_and_layout(value, level):
    """Rendered values read back equal, and are laid out like json.dumps with indent 2."""
    text = render(value, level)
    document = json.loads(text)
    assert document == value
    plain = json.dumps(value, indent=2, ensure_ascii=False)
    endings = [_ending(line) for line in text.splitlines()]
    expected = [_ending(line) for line in plain.splitlines()]
    assert endings == expected
    text.encode("utf-8", "strict")


def test_lone_surrogates_are_escaped():
    """Text UTF-8 cannot carry is escaped, the rest of it kept."""
    assert render("é\ud800x\U0001f600") == '"é\\ud800x\U0001f600"'


def test_the_config_names_the_dataset_and_the_limit(tmp_path):
    """Not the file of replies; and how many samples were asked for."""
    file_path = Path(__file__)
    example = file_path.parents[3] / "examples/deepfabric"
    for limit in (None, 2):
        if limit:
            overrides = [f"max_samples={limit}"]
        else:
            overrides = []
        output = tmp_path / f"run-{limit}"
        replies_path = example / "replies.jsonl"
        dataset = example / "dataset.jsonl"
        report = gradestack.grade_files(
            [replies_path],
            dataset=dataset,
            output=output,
            overrides=overrides,
        )
        deepfabric_path = report.path / "native/deepfabric.json"
        text = deepfabric_path.read_bytes()
        document = json.loads(text)
        config = document["config"]
        assert config["dataset_path"] == "dataset.jsonl"
        assert config["max_samples"] == limit


def test_a_file_without_predictions():
    """Nothing to predict still gives a file; a bad record has no prediction."""
    text = native_text(DeepFabric(), [])
    document = json.loads(text)
    assert document["predictions"] == []
    overall_score = document["metrics"]["overall_score"]
    assert overall_score is None
    source = Source(file="x")
    bad = BadRecord(source=source, reason="r")
    row = list(DeepFabricExporter().row(bad, {}, None))
    assert row == []


def test_parameters_too_deep_to_write_are_left_out(df):
    """Hostile nesting costs its own parameters, not the file."""
    deep = []
    for _ in range(900):
        deep = [deep]
    tool = df.tool("f")
    sample = df.sample(df.record(("f", {"a": 1}), [tool]), df.reply(("f", {"a": deep})))
    grade = DeepFabric().grade(sample)

    def low(frames):
        if frames:
            return low(frames - 1)
        return list(DeepFabricExporter().row(sample, {"deepfabric": grade}, None))

    ((_, text),) = low(300)
    record = json.loads(text)
    assert record["predicted_parameters"] == {}
    assert record["error"] == "the parameters are nested too deeply to be written"
