"""Calls in text, as the five parsers of version 4.13 find them."""

import json
import time

import pytest

from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.options import Reading
from gradestack_plugins.deepfabric.replies import ReplyProblem, heard, text_calls

F = '{"name": "f", "arguments": {"a": 1}}'
G = '{"name": "g", "arguments": {}}'
P = '{"name": "p", "parameters": {"a": 1}}'
ROWS = [
    # text; names found by generic, qwen (hermes the same), llama, mistral; name found by 4.3
    (f"<tool_call>\n{F}\n</tool_call>", "f", "f", "", "", "f"),
    (f"<tool_call>{F}</tool_call> and <tool_call>{G}</tool_call>", "fg", "fg", "", "", "f"),
    (f"<tool_call>bad</tool_call><tool_call>{F}</tool_call>", "f", "f", "", "", "f"),
    (f"<tool_call>[{F}]</tool_call>", "f", "", "", "f", "f"),
    (f"[TOOL_CALLS] [{F}]", "f", "", "", "f", "f"),
    (f"[TOOL_CALLS] [{F}, {G}]", "fg", "", "", "fg", "f"),
    ('[TOOL_CALLS] [{"name": "f", "arguments": {"a": [1]}}]', "f", "", "", "f", "f"),
    (f"[{G}] or [{F}]", "gf", "", "", "gf", "g"),
    (P, "p", "", "p", "", ""),
    ('{ "name" : "p" , "parameters" : {} }', "p", "", "p", "", ""),
    ('{"parameters": {}, "name": "p"}', "p", "", "", "", ""),
    ('{"name": "p", "parameters": {"a": {"b": 1}}}', "p", "", "", "", ""),
    ('{"type": "function", "function": {"name": "k"}}', "k", "", "k", "", ""),
    ('{"type": "function", "function": {"name": "k", "arguments": {}}}', "", "", "", "", ""),
    (F, "f", "", "", "", "f"),
    (f'{{"x": 1}} {F}', "f", "", "", "", ""),
    (f"{F} {G}", "fg", "", "", "", "f"),
    ('{"name": "f", "arguments": "{\\"a\\": 1}"}', "f", "", "", "", "f"),
    ('{"name": "f", "arguments": {"a": "}"}}', "", "", "", "", "f"),
    (f"}} {F}", "", "", "", "", "f"),
    (f"<think>{{</think> {F}", "", "", "", "", ""),
    ('{"name": 5, "arguments": {}}', "", "", "", "", ""),
    ('{"name": "f", "arguments": [1]}', "", "", "", "", ""),
    ('{"name": "f", "arguments": "[1]"}', "", "", "", "", ""),
    ("f(a=1)", "", "", "", "", ""),
    ("plain words", "", "", "", "", ""),
]


@pytest.mark.parametrize(
    ("text", "generic", "qwen", "llama", "mistral", "old"), ROWS, ids=[row[0][:50] for row in ROWS]
)
def test_calls_found(text, generic, qwen, llama, mistral, old):
    """Each parser finds every call in the form of its models, and generic tries one after the other."""
    wanted = {"generic": generic, "qwen": qwen, "hermes": qwen, "llama": llama, "mistral": mistral}
    assert {parser: "".join(call.name for call in text_calls(text, parser)) for parser in wanted} == wanted
    call = heard(text, Reading("4.3"), with_tools=True)[0].call
    assert (call.name if call is not None else "") == old


def test_the_grader_chooses_the_parser(df):
    """``tool_call_parser`` decides which calls of a text reply count, and the result file follows."""
    record = df.record(("p", {"a": 1}), [df.tool("p", a="integer")])
    for parser, right in (("generic", 1), ("llama", 1), ("qwen", 0), ("mistral", 0)):
        grade = df.grade(record, {"text": P}, "upstream", tool_call_parser=parser)
        assert df.verdict(grade) == (right,) * 3
    assert df.verdict(df.grade(record, {"text": P}, "4.3")) == (0, 0, 0)
    without = df.record(("p", {"a": 1}))
    assert df.verdict(df.grade(without, {"text": P}, "upstream")) == (0, 0, 0)


@pytest.mark.parametrize("text", ["<tool_call>" + "[" * 100_000 + "</tool_call>", f"[TOOL_CALLS] [{'9' * 5000}]"])
def test_text_the_program_fails_on(df, text):
    """JSON that is nested too deeply, or a number with too many digits, fails the inference."""
    parser = "qwen" if text.startswith("<") else "mistral"
    with pytest.raises(ReplyProblem):
        text_calls(text, parser)
    record = df.record(("f", {}), [df.tool("f")])
    grade = DeepFabric(profile="upstream", tool_call_parser=parser).grade(df.sample(record, {"text": text}, "upstream"))
    assert grade.fault.code == "processing_error"


HOSTILE = [
    "<tool_call>",
    "[{",
    '{"name":"a","parameters":{',
    "{",
    "[TOOL_CALLS] [",
    "}",
    '{"type":"function","function":{',
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("ending", ["", "}", "}]", "</tool_call>"])
def test_repeated_beginnings_take_time_in_proportion(piece, ending):
    """A text of nothing but beginnings is read in a few passes: 20,000 of them within seconds."""
    text = piece * 20_000 + ending
    started = time.perf_counter()
    for parser in ("qwen", "mistral", "llama"):
        try:
            text_calls(text, parser)
        except ReplyProblem:
            continue
    assert time.perf_counter() - started < 5


def test_calls_of_documented_text(df):
    """The document's reading keeps further blocks for graders that look at all calls; the first still decides."""
    text = f"<tool_call>{F}</tool_call><tool_call>bad</tool_call><tool_call>{G}</tool_call>"
    sample = df.sample(df.record(("f", {"a": 1}), [df.tool("f", a="integer"), df.tool("g")]), {"text": text})
    assert [call.name for call in sample.calls] == ["f", "g"]
    assert DeepFabric().grade(sample).score == 1.0
    assert json.loads(F)["name"] == DeepFabric().grade(sample).label
