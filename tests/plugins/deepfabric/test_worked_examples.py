"""The worked examples of the newest program's page, each in 4.13 and, where it has them, in 4.3."""

import pytest

from gradestack_plugins.deepfabric import evaluate

READ, ADD = ("read_file", {"file_path": "a.txt"}), ("add", {"a": 1})
LIST_FORM = {
    "name": "read_file",
    "description": "d",
    "parameters": [{"name": "file_path", "type": "str", "description": "", "required": True}],
    "returns": "",
}


@pytest.fixture
def tools(df):
    return [
        df.tool("read_file", ["file_path"], file_path="string"),
        df.tool("list_files"),
        df.tool("add", ["a"], a="integer", b="number", f="boolean"),
    ]


def record_of(df, *calls, **fields):
    record = df.record(**fields)
    record["tool_context"] = {"executions": [df.execution(*call) for call in calls]}
    return record


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def once(*calls, content=""):
    return {"content": content, "tool_call": calls[0] if calls else None, "tool_calls": list(calls)}


def turns(*calls, end="end"):
    first = [{"content": "", "tool_calls": list(calls)}] if calls else []
    return {"turns": [*first, {"content": end}]}


COT = {"metadata": {"conversation_type": "cot"}}
AGENT = {"metadata": {"agent_mode": "multi_turn"}}
ROWS = [
    # number, expected calls, fields, reply, several turns?, 4.13's verdicts, response_score, overall; 4.3's
    ("1", [READ], COT, once(call("read_file", file_path="b")), False, (1, 1, 1, 0.0, 1.0), (0, 0, 0, 0.0, 0.0)),
    ("2", [("list_files", {})], {}, once(content="hi"), False, (0, 0, 0, 0.0, 0.0), (0, 1, 0, 0.0, 0.35)),
    (
        "3a",
        [READ],
        {"tools": [LIST_FORM]},
        once(call("read_file", file_path="b")),
        False,
        (1, 0, 0, 0.0, 0.40),
        (1, 0, 0, 0.0, 0.40),
    ),
    (
        "3b",
        [READ],
        {"tools": [LIST_FORM]},
        once(call("read_file", file_path=" A.TXT")),
        False,
        (1, 1, 1, 0.0, 1.0),
        (1, 1, 1, 0.0, 1.0),
    ),
    (
        "4",
        [READ, ADD],
        {},
        once(call("add", a=1), call("read_file", file_path="x")),
        False,
        (0, 1, 0, 0.0, 0.35),
        (0, 1, 0, 0.0, 0.35),
    ),
    ("5", [READ, ADD], {}, turns(call("add", a="x"), call("read_file", file_path=7)), True, (1, 1, 1, 1.0, 1.0), None),
    ("6", [READ, ADD], {}, turns(call("read_file", file_path="b")), True, (0, 1, 1, 0.5, 0.6), None),
    ("7a", [READ, ADD], {}, turns(), True, (0, 1, 1, 0.0, 0.6), None),
    ("7b", [READ, ADD], {}, turns(end=""), True, (0, 1, 0, 0.0, 0.35), None),
    ("8", [READ, ADD], {}, turns(call("read_file"), call("add", a=1)), True, (1, 0, 1, 1.0, 0.65), None),
    ("9a", [], {}, once(content="no"), False, (0, 0, 0, 0.0, 0.0), (0, 0, 0, 0.0, 0.0)),
    ("9b", [], {}, once(content="no"), True, (1, 1, 1, 1.0, 1.0), None),
    ("9c", [], {}, turns(call("read_file", file_path="b")), True, (0, 1, 1, 0.0, 0.6), None),
    ("10", [READ], AGENT, once(call("read_file", file_path="b")), False, (0, 0, 0, 0.0, 0.0), (1, 1, 1, 0.0, 1.0)),
]


def figures(results):
    (record,) = results.predictions
    verdicts = (record.tool_selection_correct, record.parameters_correct, record.execution_valid)
    return (*map(int, verdicts), record.response_score, results.metrics.overall_score)


@pytest.mark.parametrize(
    ("calls", "fields", "reply", "several", "new", "old"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_one_record(df, tools, calls, fields, reply, several, new, old):
    """Verdicts, response_score and overall score of each example are those the program computes."""
    fields = {"tools": tools, **fields}
    line = {"sample": record_of(df, *calls, **fields), "recorded": reply}
    found = figures(evaluate([line], profile="upstream", multi_turn=several))
    assert found == (*new[:4], pytest.approx(new[4], abs=1e-15))
    if old is not None:
        found = figures(evaluate([line], profile="upstream", upstream_version="4.3"))
        assert found == (*old[:4], pytest.approx(old[4], abs=1e-15))


def test_what_is_known_of_a_failed_record(df, tools):
    """Of a record whose words are refused nothing is shown but its tools."""
    line = {"sample": record_of(df, READ, tools=tools, **AGENT), "recorded": once()}
    (record,) = evaluate([line], profile="upstream").predictions
    assert (record.query, record.expected_tool, record.predicted_tool) == ("", None, None)
    assert record.available_tools == ("read_file", "list_files", "add")


@pytest.fixture
def four(df, tools):
    records = [
        record_of(df, READ, tools=tools),
        record_of(df, ("list_files", {}), tools=tools),
        record_of(df, tools=tools),
        record_of(df, READ, tools=tools, **AGENT),
    ]
    first = {"turns": [once(call("read_file", file_path="b")), once(content="end")]}
    return records, [first, once(content="hi"), once(content="no"), once()]


def test_a_whole_file(four):
    single = evaluate(*four, profile="upstream").metrics
    rates = (single.tool_selection_accuracy, single.parameter_accuracy, single.execution_success_rate)
    assert (*rates, single.response_quality, single.overall_score) == (0.25, 0.25, 0.25, 0.0, 0.25)
    assert (single.samples_evaluated, single.samples_processed, single.processing_errors) == (4, 3, 1)
    several = evaluate(*four, profile="upstream", multi_turn=True)
    rates = (several.metrics.tool_selection_accuracy, several.metrics.parameter_accuracy)
    assert (*rates, several.metrics.execution_success_rate) == (0.5, 0.75, 0.75)
    assert several.metrics.response_quality == 0.5
    assert '"overall_score": 0.6499999999999999,' in several.to_json()
    weights = {"response_quality": 1}
    assert evaluate(*four, profile="upstream", multi_turn=True, metric_weights=weights).metrics.overall_score == 0.5
