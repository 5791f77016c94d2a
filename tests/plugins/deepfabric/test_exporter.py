"""The result file."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradestack
from gradestack import BadRecord, Source
from gradestack_plugins.deepfabric.exporter import DeepFabricExporter, prediction, render
from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.core.outcomes import data
from tests.plugins.deepfabric.conftest import evaluate, native_text

DATA = data(__file__, "exporter.yaml")

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])

WHOLE = Path(__file__).with_name("whole.json").read_text(encoding="utf-8")


@pytest.fixture
def lines(df):
    """A graded sample with awkward values, and a record without a query."""
    arguments = '{"n": NaN, "s": 1e-7, "d": {}, "l": [], "m": [1, {"x": 1e-05}]}'
    record = df.record(
        ("f", arguments), [df.tool("f")], messages=[{"role": "user", "content": 'q\x01é/"\\'}]
    )
    silent = {"messages": [{"role": "system", "content": "s"}]}
    return [
        {"sample": record, "recorded": df.reply(("f", {}))},
        {"sample": silent, "recorded": df.reply()},
    ]


def test_the_whole_file(lines):
    """Keys, order, indentation, escapes, numbers and the missing final newline are the
    original's.
    """
    assert evaluate(lines, profile="upstream").text == WHOLE


def test_the_older_version_has_its_own_keys(lines):
    """4.3 knows neither available_tools nor several turns, and calls the model by another name."""
    text = evaluate(lines, profile="upstream", upstream_version="4.3").text
    old, new = json.loads(text), json.loads(WHOLE)
    for record in new["predictions"]:
        del record["available_tools"]
    assert old["predictions"] == new["predictions"]
    assert [list(record) for record in old["predictions"]] == [
        list(record) for record in new["predictions"]
    ]
    names = ["model_path" if name == "model" else name for name in new["config"]]
    assert list(old["config"]) == names[:-2]


def test_documented_adds_its_options_to_the_config(lines):
    """The documented profile says in the configuration what the original's cannot say."""
    config = json.loads(evaluate(lines, weights={"tool_selection": 2}, normalize=True).text)[
        "config"
    ]
    assert list(config)[:13] == list(json.loads(WHOLE)["config"])
    assert config["profile"] == "documented"
    assert config["metric_weights"] == {"tool_selection": 2}
    assert config["weights_in_effect"]["tool_selection"] == 1.0


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
    """Return what a line ends with: a bracket or comma, or a value, whose spelling may differ."""
    last = line.rstrip()[-1:]
    return last if last in "[]{}," else "value"


@given(json_values, st.integers(0, 3))
def test_rendering_keeps_values_and_layout(value, level):
    """What is rendered reads back equal, and is laid out like json.dumps with indent 2."""
    text = render(value, level)
    assert json.loads(text) == value
    plain = json.dumps(value, indent=2, ensure_ascii=False)
    assert [_ending(line) for line in text.splitlines()] == [
        _ending(line) for line in plain.splitlines()
    ]
    text.encode("utf-8", "strict")


def test_lone_surrogates_are_escaped():
    """Text UTF-8 cannot carry is escaped, the rest of it kept."""
    assert render("é\ud800x\U0001f600") == '"é\\ud800x\U0001f600"'
    assert render((1, b"x")) == "[\n  1,\n  \"b'x'\"\n]"


def test_the_config_names_the_dataset_and_the_limit(tmp_path):
    """Not the file of replies; and how many samples were asked for."""
    example = Path(__file__).parents[3] / "examples/deepfabric"
    for limit in (None, 2):
        report = gradestack.grade_files(
            [example / "replies.jsonl"],
            dataset=example / "dataset.jsonl",
            output=tmp_path / f"run-{limit}",
            overrides=[f"max_samples={limit}"] if limit else [],
        )
        config = json.loads((report.path / "native/deepfabric.json").read_bytes())["config"]
        assert (config["dataset_path"], config["max_samples"]) == ("dataset.jsonl", limit)


def test_a_file_without_predictions():
    """Nothing to predict still gives a file; a bad record has no prediction."""
    grader = DeepFabric(profile="upstream")
    found = json.loads(native_text(grader, []))
    assert found["predictions"] == []
    assert found["metrics"]["overall_score"] == 0.0
    bad = BadRecord(source=Source(file="x"), reason="r")
    assert list(DeepFabricExporter().row(bad, {}, None)) == []


def test_records_of_ungraded_samples(df):
    """A missing reply is an error of known words; a skipped sample has no verdicts.

    A failed grade has its fault.
    """
    record = df.record(("f", {"a": 1}))
    sample = df.sample(record, df.reply(("f", {"a": 2})))
    skipped = prediction(sample, DeepFabric().grade(sample))
    assert (
        skipped["tool_selection_correct"],
        skipped["parameters_correct"],
        skipped["execution_valid"],
    ) == (
        None,
        None,
        None,
    )
    assert (skipped["predicted_tool"], skipped["error"]) == ("f", None)
    missing = prediction(df.sample(record, None), None)
    assert (missing["error"], missing["tool_selection_correct"], missing["predicted_answer"]) == (
        "no recorded reply",
        False,
        None,
    )
    assert (missing["query"], missing["expected_parameters"]) == ("the query", {"a": 1})


def test_records_of_errors(df):
    """An error record predicts nothing, and keeps the ground truth where it is known."""
    record = df.record(("f", {"a": 1}), final_answer="fa")
    sample = df.sample(record, {"kind": "exception", "message": ""}, "upstream")
    found = prediction(sample, DeepFabric(profile="upstream").grade(sample))
    assert found["error"] == ""
    assert (found["query"], found["expected_tool"], found["expected_answer"]) == (
        "the query",
        "f",
        "fa",
    )
    assert (found["predicted_tool"], found["predicted_parameters"], found["predicted_answer"]) == (
        None,
        {},
        None,
    )
    large = df.sample(df.record(("f", {"a": 10**400})), df.reply(("f", {"a": 1})), "upstream")
    found = prediction(large, DeepFabric(profile="upstream").grade(large))
    assert (found["error"], found["predicted_tool"]) == ("int too large to convert to float", None)


def test_nameless_calls_and_kept_answers(df):
    """A call without a name predicts no tool, but its arguments.

    Weights without a score are no error.
    """
    reply = {"content": "c", "tool_call": {"name": None, "arguments": {"a": 1}}}
    sample = df.sample(df.record(("f", {"a": 1})), reply, "upstream")
    grade = DeepFabric(profile="upstream", weights={"tool_selection": math.nan}).grade(sample)
    found = prediction(sample, grade)
    assert (found["predicted_tool"], found["predicted_parameters"]) == (None, {"a": 1})
    assert (found["parameters_correct"], found["error"]) == (False, None)
    old = DeepFabric(
        profile="upstream", weights={"tool_selection": math.nan}, upstream_version="4.3"
    ).grade(sample)
    assert prediction(sample, old)["parameters_correct"] is True


def test_parameters_too_deep_to_write_are_left_out(df):
    """Hostile nesting costs its own parameters, not the file."""
    deep = []
    for _ in range(900):
        deep = [deep]
    sample = df.sample(df.record(("f", {"a": 1}), [df.tool("f")]), df.reply(("f", {"a": deep})))
    grade = DeepFabric().grade(sample)

    def low(frames):
        return (
            low(frames - 1)
            if frames
            else list(DeepFabricExporter().row(sample, {"deepfabric": grade}, None))
        )

    ((_, text),) = low(300)
    record = json.loads(text)
    assert record["predicted_parameters"] == {}
    assert record["error"] == "the parameters are nested too deeply to be written"
