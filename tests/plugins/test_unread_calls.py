"""Calls in a form that nobody decodes are unknown, never none: in every reader and every grader."""

import json
import os
from pathlib import Path

import pytest

from gradestack import (
    DataError,
    Expectation,
    ExpectedCall,
    GradestackError,
    Message,
    Outcome,
    Sample,
    grade_files,
    stream,
)
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.orchestrationbench.graders import OrchestrationBench
from gradestack_plugins.readers.chat.unread import (
    names_a_call,
    unread_in,
    unread_part,
    unread_tags,
)
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.text_graders.texts import Label
from gradestack_plugins.tool_calls.bfcl_ast import BfclAst
from gradestack_plugins.tool_calls.grader import ToolCalls
from gradestack_plugins.trajectory.repeats import CallRepeats
from gradestack_plugins.trajectory.success import ToolSuccess
from gradestack_plugins.trajectory.tool_policy import ToolPolicy
from gradestack_plugins.trajectory.tool_schema import ToolSchema
from tests.core.outcomes import data

RUNS = data(__file__, "unread_calls.yaml")
REMARK = "calls not read: "


def read_all(path, **options):
    return [sample for sample, _ in stream([str(path)], {"any": lambda _: True}, **options)]


@pytest.mark.parametrize("name", RUNS)
def test_a_call_of_unknown_form_makes_the_calls_of_a_run_unknown(tmp_path, name):
    run = RUNS[name]
    file = run.get("file", "runs.jsonl" if "lines" in run else "runs.json")
    path = tmp_path / file
    document = run.get("document")
    lines = run.get("lines", [document])
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (sample,) = read_all(path, reader=run["reader"])
    assert sample.calls is None
    remark = sample.remarks[f"{REMARK}{run['what']}"]
    assert remark == 1


SAMPLE = Sample(
    id="a",
    text="x",
    turns=((Message(role="user", content="q"), Message(role="assistant", content="x")),),
    tools=(),
    expected=Expectation(calls=(ExpectedCall(name="f"),)),
    remarks={f"{REMARK}part `toolUse`": 4},
)
GRADERS = (
    *(ToolCalls, BfclAst, DeepFabric, TauPartial, Label, ToolSuccess),
    *(ToolSchema, ToolPolicy, CallRepeats, OrchestrationBench),
)


@pytest.mark.parametrize("grader", GRADERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("expects", [True, False])
def test_a_grader_of_calls_skips_a_run_whose_calls_were_not_read(grader, expects):
    calls = SAMPLE.expected.calls if expects else ()
    expectation = Expectation(calls=calls)
    sample = Sample(
        **{name: getattr(SAMPLE, name) for name in ("id", "text", "turns", "tools", "remarks")},
        expected=expectation,
    )
    grade = grader().grade(sample)
    assert grade.outcome is Outcome.SKIPPED
    assert grade.score is None
    assert "calls not read: part `toolUse`, 4 times" in grade.rationale


def test_a_file_in_which_no_call_can_be_read_is_refused_with_the_part(tmp_path):
    part = {"clientToolUse": {"id": "a", "name": "f", "input": {}}}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [part]}]
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(f"{json.dumps({'messages': messages})}\n" * 3)
    with pytest.raises(DataError, match="part `clientToolUse`, 3 times") as refused:
        grade_files([str(tmp_path / "log.jsonl")], output=tmp_path / "out")
    assert refused.value.exit_code == 3
    out_folder = tmp_path / "out"
    results_path = out_folder / "results.jsonl"
    assert not results_path.exists()


@pytest.mark.parametrize(
    "kind",
    [
        "toolUse",
        "tool_call",
        "ToolCallRequestEvent",
        "tool-call",
        "toolcall",
        "functionCall",
        "mcp_call",
        "server_tool_use",
        "toolInvocations",
        "TOOL_CALL",
        "builtin-tool-call",
    ],
)
def test_calls_are_named_in_any_spelling(kind):
    assert names_a_call(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "tool_result",
        "tool_use_result",
        "function_call_output",
        "mcp_list_tools",
        "tool_call_id",
        "tool_choice",
        "mcp_approval_request",
        "tool_user",
        "functional_use",
        "toolResults",
        "tools",
        "text",
    ],
)
def test_results_lists_and_ids_name_no_call(kind):
    assert not names_a_call(kind)


PARTS = data(__file__, "unread_parts.yaml")


@pytest.mark.parametrize("part", PARTS["calls"], ids=str)
def test_a_part_that_names_what_it_calls_is_a_call_in_any_form(tmp_path, part):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [part]}]
    log_path = tmp_path / "log.jsonl"
    text = json.dumps({"messages": messages, "expected": []})
    log_path.write_text(text)
    path = tmp_path / "log.jsonl"
    (sample,) = read_all(path)
    assert sample.calls is None
    assert any(kind.startswith(REMARK) for kind in sample.remarks)


@pytest.mark.parametrize("part", PARTS["no calls"], ids=str)
def test_what_is_in_the_closed_list_is_no_call(part):
    assert unread_part(part) is None


EMPTY = [
    {"invalid_tool_calls": []},
    {"turn_taking_action": None},
    {"toolCalls": [None, {}]},
    {"parallel_tool_calls": True},
    {"tool_use_id": "c"},
    {"metadata": {"name": "f", "arguments": {}}},
    {"tools": [{"name": "f", "parameters": {}}]},
]


@pytest.mark.parametrize("keys", EMPTY)
def test_keys_that_are_empty_or_say_something_else_hold_no_call(keys):
    unread = unread_in({"role": "assistant", "content": "x", **keys})
    assert unread == []


@pytest.mark.parametrize(
    "text",
    [
        "write `<tool_call>x</tool_call>`",
        "```\n<use_tool>f</use_tool>\n```",
        "<tool_call>f",
        "<use_tool></use_tool>",
        "<order_list><item>1</item></order_list>",
        "<thinking>use_tool</thinking>",
    ],
)
def test_tags_in_code_or_not_closed_are_no_calls(text):
    assert list(unread_tags(text)) == []


def test_tags_count_only_where_the_run_has_no_decoded_call(tmp_path):
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {}}]},
        {"role": "assistant", "content": "<use_tool>g</use_tool>"},
    ]
    log_path = tmp_path / "log.jsonl"
    text = json.dumps({"messages": messages})
    log_path.write_text(text)
    path = tmp_path / "log.jsonl"
    (sample,) = read_all(path)
    names = [call.name for call in sample.calls]
    assert names == ["f"]


REFERENCE = os.environ.get("GRADESTACK_REFERENCE_DATA")


@pytest.mark.slow
@pytest.mark.skipif(REFERENCE is None, reason="GRADESTACK_REFERENCE_DATA is not set")
def test_the_calls_of_every_file_of_the_reference_data_are_read():
    files_with_calls = set()
    reference_path = Path(REFERENCE)
    paths = reference_path.rglob("*")
    files = [path for path in paths if path.is_file()]
    for path in files:
        if path.suffix in {".md", ".py", ".sh", ".yaml"} or path.name == "expected.json":
            continue
        try:
            samples = read_all(path, bad=lambda _: None)
        except GradestackError:
            continue
        remarks = [kind for sample in samples for kind in sample.remarks]
        files_with_calls |= (
            {path.name} if any(kind.startswith(REMARK) for kind in remarks) else set()
        )
    assert files_with_calls == set()
