"""DeepFabric's own evaluation: what it computes, its file, and what it prints."""

import json
import time

import pytest

from gradestack_plugins.deepfabric.exporter import VERDICTS
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.program import parse_calls, result_of
from gradestack_plugins.deepfabric.samples import Entry, split_entry
from tests.core.outcomes import data
from tests.plugins.deepfabric.conftest import run_program

CASES = data(__file__, "program.yaml")
REPLIES = data(__file__, "replies.yaml")


def briefly(result):
    if result.error is not None:
        return "error"
    verdicts = [int(getattr(result, name)) for name in VERDICTS]
    return [result.predicted_tool, *verdicts, result.response_score]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"][:60])
def test_results(case):
    options = case.get("options", {})
    grader = DeepFabric(**options)
    results = []
    for row, line in enumerate(case["lines"]):
        results.append(result_of(row, split_entry(line), grader))
    wanted = case.get("results") or [case["each"]] * len(results)
    assert [briefly(result) for result in results] == wanted


@pytest.mark.parametrize("row", REPLIES["parsers"], ids=lambda row: row["text"][:50])
def test_calls_in_text(row):
    calls = parse_calls(row["text"])
    expected = row.get("calls", "")
    assert "".join(call.name for call in calls) == expected


@pytest.mark.parametrize("row", REPLIES["heard"], ids=lambda row: json.dumps(row["reply"])[:40])
def test_replies(df, row):
    tool = df.tool("f")
    record = df.record(("f", {"b": 1}), [tool])
    wanted = row.get("program", row["heard"])
    entry = Entry(record, row["reply"])
    result = result_of(0, entry, DeepFabric())
    assert (result.error is not None) is isinstance(wanted, str)
    if isinstance(wanted, list):
        assert [result.predicted_tool, result.predicted_parameters] == wanted


@pytest.mark.parametrize(
    "text", ["<tool_call>" + "[" * 100_000 + "</tool_call>", f"[TOOL_CALLS] [{'9' * 5000}]"]
)
def test_text_it_fails_on(df, text):
    """JSON that is nested too deeply, or a number with too many digits, is an error."""
    tool = df.tool("f")
    record = df.record(("f", {}), [tool])
    entry = Entry(record, {"text": text})
    result = result_of(0, entry, DeepFabric())
    assert briefly(result) == "error"


@pytest.mark.parametrize("piece", data(__file__, "schemas.yaml")["hostile"])
@pytest.mark.parametrize("ending", ["", "}", "}]", "</tool_call>"])
def test_repeated_beginnings_take_time_in_proportion(piece, ending):
    """A text of nothing but beginnings is read in a few passes: 20,000 of them within seconds."""
    started = time.process_time()
    parse_calls(piece * 20_000 + ending)
    assert time.process_time() - started < 5


READ = ("read_file", {"file_path": "a.txt"})


def once(*calls, content=""):
    calls = [{"name": name, "arguments": arguments} for name, arguments in calls]
    tool_call = calls[0] if calls else None
    return {"content": content, "tool_call": tool_call, "tool_calls": calls}


@pytest.fixture
def four(df):
    """The page's file of four records, the last of which is refused, and the replies to them."""
    tool = df.tool("read_file", ["file_path"], file_path="string")
    tools = [
        tool,
        df.tool("list_files"),
        df.tool("add", ["a"], a="integer", b="number", f="boolean"),
    ]
    refused = {"metadata": {"agent_mode": "multi_turn"}}
    record = df.record(READ, tools)
    records = [
        record,
        df.record(("list_files", {}), tools),
        df.record(None, tools),
        df.record(READ, tools, **refused),
    ]
    turns = [once(("read_file", {"file_path": "b"})), once(content="end")]
    first = {"turns": turns}
    return [first, once(content="hi"), once(content="no"), once()], records


SINGLE = [0.25, 0.25, 0.25, 0.0, 0.25, 4, 3, 1]
SEVERAL = [0.5, 0.75, 0.75, 0.5, 0.6499999999999999, 4, 3, 1]


@pytest.mark.parametrize(
    ("options", "figures"),
    [
        ({}, SINGLE),
        ({"multi_turn": True}, SEVERAL),
        (
            {"multi_turn": True, "metric_weights": {"response_quality": 1}},
            [*SEVERAL[:4], 0.5, *SEVERAL[5:]],
        ),
    ],
)
def test_a_whole_file(four, options, figures):
    run = run_program(*four, **options)
    text = run.files["deepfabric.json"]
    document = json.loads(text)
    metrics = list(document["metrics"].values())
    assert metrics == figures
    assert [figure.value for figure in run.figures] == figures
    sample_ids = [prediction["sample_id"] for prediction in document["predictions"]]
    assert sample_ids == [0, 1, 2, 3]
    multi_turn = document["config"]["multi_turn"]
    assert multi_turn is bool(options)
    assert run.exit_code is None


def test_what_it_prints_and_its_figures_beside_ours(four):
    run = run_program(*four)
    lines = run.console.splitlines()
    assert lines[:4] == [
        "Evaluation Summary",
        "Samples Evaluated: 4",
        "Processed Successfully: 3",
        "Processing Errors: 1",
    ]
    assert run.console.endswith("Response Quality: 0.00%\n\nOverall Score: 25.00%")
    first_figure = run.figures[0]
    assert first_figure.figure == "tools.deepfabric.tool_selection_accuracy"
    assert all(figure.why for figure in run.figures)


def test_nothing_to_evaluate():
    program = run_program([])
    text = program.files["deepfabric.json"]
    document = json.loads(text)
    assert document["predictions"] == []
    metrics = set(document["metrics"].values())
    assert metrics == {0}
