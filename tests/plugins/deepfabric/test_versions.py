"""What 4.13 and 4.3 make of one record and one reply, row by row."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import DataError, Outcome
from gradestack_plugins.deepfabric import evaluate
from gradestack_plugins.deepfabric.exporter import prediction
from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.conftest import examples

VERSIONS = ("4.13", "4.3")
FINE, ERROR, STOPS = "fine", "processing_error", "run_stops"
SYSTEM, NULL = {"role": "system", "content": "s"}, {"role": "assistant", "content": None}
ASKED = {"role": "user", "content": "q"}


def executions(df, *arguments):
    return {"executions": [df.execution(f"f{n or ''}", text) for n, text in enumerate(arguments)]}


def metadata(**words):
    return {"metadata": words}


def agent(**context):
    return {"agent_context": context}


# (what is in the record beside a user message and one execution of f, what 4.13 says, what 4.3 says)
RECORDS = [
    (metadata(conversation_type="basic"), FINE, FINE),
    (metadata(conversation_type="cot"), FINE, ERROR),
    (metadata(conversation_type="chain_of_thought"), FINE, FINE),
    (metadata(other=1), FINE, FINE),
    (metadata(conversation_type=None), ERROR, ERROR),
    (metadata(conversation_type=""), ERROR, ERROR),
    (metadata(conversation_type="COT"), ERROR, ERROR),
    (metadata(conversation_type=5), ERROR, ERROR),
    (metadata(conversation_type="structured"), ERROR, ERROR),
    (metadata(conversation_type=[]), STOPS, ERROR),
    (metadata(conversation_type={}), STOPS, ERROR),
    (metadata(reasoning_style="hybrid"), FINE, FINE),
    (metadata(reasoning_style=None), FINE, FINE),
    (metadata(reasoning_style="loud"), ERROR, ERROR),
    (metadata(agent_mode="single_turn"), FINE, FINE),
    (metadata(agent_mode=None), FINE, FINE),
    (metadata(agent_mode="multi_turn"), ERROR, FINE),
    (agent(mode="single_turn"), FINE, FINE),
    (agent(mode="multi_turn"), ERROR, FINE),
    (agent(), FINE, ERROR),
    (agent(mode=None), ERROR, ERROR),
    ({"reasoning": {"style": "freetext", "content": "x"}}, FINE, FINE),
    ({"reasoning": {"style": "hybrid", "content": "x"}}, ERROR, ERROR),
    ({"question": None}, ERROR, ERROR),
    ({"final_answer": None}, ERROR, ERROR),
    ({"messages": [{**ASKED, "name": "n"}]}, ERROR, ERROR),
    ({"messages": [SYSTEM]}, STOPS, ERROR),
    ({"messages": [SYSTEM], "question": "q"}, FINE, FINE),
    ({"messages": [SYSTEM], **metadata(agent_mode="multi_turn")}, STOPS, ERROR),
    ({"messages": [SYSTEM], **agent(mode="multi_turn")}, ERROR, ERROR),
    ({"messages": [{"role": "user", "content": None}]}, ERROR, ERROR),
    ({"messages": [{"role": "system", "content": None}, ASKED]}, ERROR, ERROR),
    ({"messages": [{"role": "system"}, ASKED]}, ERROR, ERROR),
    ({"messages": [ASKED, NULL]}, STOPS, ERROR),
    ({"messages": [ASKED, NULL], "final_answer": "a"}, FINE, FINE),
    ({"messages": [ASKED, NULL, {"role": "assistant", "content": "Use print (x) now"}]}, STOPS, ERROR),
    ({"messages": [ASKED, NULL, {"role": "assistant", "content": "done"}]}, FINE, FINE),
]
CONTEXTS = [
    (['{"a": 1}', "[1]"], FINE, ERROR, FINE),
    (['{"a": 1}', "\u00a0{}"], FINE, STOPS, FINE),
    (['{"a": 1}', "55"], FINE, ERROR, FINE),
    (["[1]"], FINE, ERROR, ERROR),
    (["\u00a0{}"], FINE, STOPS, ERROR),
    (['{"a": ' + "[" * 5000 + "]" * 5000 + "}"], FINE, STOPS, ERROR),
    (['{"a": {"b": null}, "c": NaN}'], FINE, FINE, FINE),
    (['{"a": null}'], FINE, ERROR, ERROR),
]
TYPED = {"type": ["string", "null"]}
# (parameters of the tool, what 4.13 says, what 4.3 says)
SCHEMAS = [
    ({"properties": None, "required": None}, FINE, ERROR),
    ({"properties": {}, "required": False}, FINE, ERROR),
    ({"properties": {"a": None}}, FINE, FINE),
    ({"properties": {"a": {"type": "integer"}}, "required": "a"}, FINE, FINE),
    ({"properties": {"a": TYPED}}, STOPS, ERROR),
    ({"properties": {"a": {"type": {}}}}, STOPS, ERROR),
    ({"properties": {"a": {}}, "required": True}, STOPS, ERROR),
    ({"properties": {"a": {}}, "required": 5}, STOPS, ERROR),
    ({"properties": {"a": {}}, "required": [["a"]]}, STOPS, ERROR),
    ({"properties": {"a": "x"}}, ERROR, ERROR),
    ({"properties": {"a": True}}, ERROR, ERROR),
    ([], ERROR, ERROR),
    (None, ERROR, ERROR),
]


def said(df, record, version, reply=None, **options):
    """Return what a version says of a record with the right reply to it: fine, or the code of its fault."""
    grade = df.grade(record, reply or df.reply(("f", {"a": 1})), version, **options)
    assert (grade.outcome is Outcome.FAILED) is (grade.fault is not None)
    return grade.fault.code if grade.fault is not None else FINE


@pytest.mark.parametrize(("fields", "new", "old"), RECORDS, ids=lambda value: repr(value)[:60])
def test_words_and_messages_of_records(df, fields, new, old):
    """Each version takes the words of its own format, and 4.13 ends on what it cannot read a second time."""
    record = df.record(("f", {"a": 1}), **fields)
    assert [said(df, record, version) for version in VERSIONS] == [new, old]


@pytest.mark.parametrize(("texts", "documented", "new", "old"), CONTEXTS, ids=lambda value: repr(value)[:40])
def test_arguments_of_executions(df, texts, documented, new, old):
    """4.13 reads the arguments of every execution, 4.3 only those of the first."""
    record = df.record(tool_context=executions(df, *texts))
    assert [said(df, record, version) for version in VERSIONS] == [new, old]
    tools = [df.tool("f", a="integer")]
    if documented == FINE == old:
        assert said(df, {**record, "tools": tools}, "documented") == FINE


@pytest.mark.parametrize("offered", [None, [], [{"name": "f"}]], ids=json.dumps)
def test_deprecated_lists_of_tools(df, offered):
    """4.13 accepts tool_context.available_tools and never looks at them; 4.3 refuses the key."""
    record = df.record(("f", {"a": 1}))
    record["tool_context"]["available_tools"] = offered
    assert [said(df, record, version) for version in VERSIONS] == [FINE, ERROR]
    wrong = df.grade(record, df.reply(("f", {"a": 2})), "4.13")
    assert df.verdict(wrong) == (1, 0, 0)  # by value: there are no tools
    record["tool_context"]["available_tools"] = [1]
    assert [said(df, record, version) for version in VERSIONS] == [ERROR, ERROR]


@pytest.mark.parametrize(("parameters", "new", "old"), SCHEMAS, ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize("expected", [("f", {"a": 1}), None], ids=["a call", "no call"])
def test_odd_schemas(df, parameters, new, old, expected):
    """Null properties are none since 4.5; what has no hash ends the newest program, a call being due or not."""
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}}
    record = df.record(expected, [tool])
    assert [said(df, record, version) for version in VERSIONS] == [new, old]


WRAPPED = [
    # argument text in OpenAI's form, verdicts by 4.13 (None: processing error); expected is f {}
    ("{}", (1, 1, 1)),
    ('{"a": 1}', (1, 1, 1)),
    ('{"a": "x"}', (1, 0, 0)),
    ("{bad", (1, 1, 1)),
    ("", (1, 1, 1)),
    ("null", None),
    ("[1]", None),
    ('"x"', None),
    (None, None),
    ([], None),
    ({"a": 1}, (1, 1, 1)),
]


@pytest.mark.parametrize(("text", "new"), WRAPPED, ids=lambda value: repr(value)[:40])
def test_argument_text_in_openai_form(df, text, new):
    """4.13 decodes it, text that is no JSON being no argument; 4.3 refuses it."""
    record = df.record(("f", {}), [df.tool("f", a="integer")])
    reply = {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": text}}]}
    found = df.grade(record, reply, "4.13")
    assert (df.verdict(found) if found.fault is None else None) == new
    old = df.grade(record, reply, "4.3")
    assert (old.fault is None) is isinstance(text, dict)
    flat = {"content": None, "tool_calls": [{"name": "f", "arguments": text}]}
    assert (said(df, record, "4.13", flat) == FINE) is isinstance(text, dict)


def test_tools_are_named_in_the_result_file(df):
    """4.13 writes the names of the tools, nameless ones too, and of failed records where they can be read."""
    own = {"name": "f", "description": "d", "parameters": [], "returns": ""}
    lines = [
        df.record(("f", {}), [df.tool("f"), own]),
        df.record(("f", {}), [df.tool("f")], metadata={"agent_mode": "multi_turn"}),
        df.record(("f", {}), [df.tool("f")], agent_context={"mode": "multi_turn"}),
        df.record(),
    ]
    replies = [df.reply(("f", {}))] * 4
    new = evaluate(lines, replies, profile="upstream").predictions
    assert [record.available_tools for record in new] == [("f", ""), ("f",), (), ()]
    assert [(record.query, record.expected_tool) for record in new[:3]] == [("the query", "f"), ("", None), ("", None)]
    old = evaluate(lines, replies, profile="upstream", upstream_version="4.3").predictions
    assert [record.available_tools for record in old] == [None] * 4
    assert [record.error for record in old] == [None] * 4


def test_one_reading_serves_graders_of_both_versions(df):
    """The reader leaves the ruling to the grader: a sample is failed only where no version can use it."""
    tool = [df.tool("f")]
    for fields, fine in (({"conversation_type": "cot"}, "4.13"), ({"agent_mode": "multi_turn"}, "4.3")):
        sample = df.sample(df.record(("f", {}), tool, metadata=fields), df.reply(("f", {})), "upstream")
        assert sample.status == "ok"
        for version in VERSIONS:
            grade = DeepFabric(profile="upstream", upstream_version=version).grade(sample)
            assert (grade.outcome is Outcome.GRADED) is (version == fine)
            assert (prediction(sample, grade).error is None) is (version == fine)
    broken = df.sample(df.record(("f", {}), tool, metadata={"agent_mode": 1}), df.reply(), "upstream")
    assert broken.status == "failed"


@pytest.mark.parametrize("version", ["4.3", 4.3])
def test_a_version_may_be_a_number(version):
    """YAML reads 4.3 without quotes as a number; it names the version all the same."""
    assert DeepFabric(upstream_version=version) == DeepFabric(upstream_version="4.3")
    assert DeepFabric(upstream_version=4.13) == DeepFabric()


@pytest.mark.parametrize("options", [{"upstream_version": "4.5"}, {"upstream_version": 4}, {"max_turns": 0}])
def test_options_that_mean_nothing_are_refused(options):
    """Versions nobody knows and no turns at all are refused with the option's name."""
    with pytest.raises(ValueError, match=next(iter(options))):
        DeepFabric(**options)


def test_4_3_has_no_several_turns():
    """Several turns came later: asking 4.3 for them is refused, the document's own rules have them anyway."""
    with pytest.raises(ValueError, match=r"multi_turn came with version 4.4"):
        DeepFabric(profile="upstream", upstream_version="4.3", multi_turn=True)
    assert DeepFabric(upstream_version="4.3", multi_turn=True).multi_turn


def test_a_record_that_ends_the_program_can_end_the_run(df):
    """``on_stop: stop`` raises with the record's place; by default it is an error among others."""
    lines = [df.record(("f", {})), {"messages": [SYSTEM]}]
    assert evaluate(lines, [df.reply(), df.reply()], profile="upstream").metrics.processing_errors == 1
    with pytest.raises(DataError, match=r"<records> record 1: DeepFabric 4.13 ends on this record: No user query"):
        evaluate(lines, [df.reply(), df.reply()], profile="upstream", on_stop="stop")
    old = DeepFabric(profile="upstream", on_stop="stop", upstream_version="4.3")
    assert evaluate(lines, [df.reply(), df.reply()], grader=old).metrics.processing_errors == 1


NAMES, KEYS = ["f", "g"], ["a", "b", "c"]
WORDS = ["string", "integer", "number", "boolean", "array", "object"]
VALUES = st.sampled_from(["x", "X ", 0, 1, 2.5, 1.0, True, [], [1], {}, {"k": None}])
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES)


@st.composite
def valid_lines(draw):
    call = {"name": draw(st.sampled_from([*NAMES, "zz"])), "arguments": draw(ARGUMENTS | st.just({"a": None}))}
    tools = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1)):
        types = draw(st.dictionaries(st.sampled_from(KEYS), st.fixed_dictionaries({"type": st.sampled_from(WORDS)})))
        schema = {"type": "object", "properties": types, "required": draw(st.lists(st.sampled_from(KEYS), max_size=2))}
        tools.append({"type": "function", "function": {"name": name, "description": "d", "parameters": schema}})
    arguments = json.dumps(draw(ARGUMENTS))
    execution = {"function_name": draw(st.sampled_from(NAMES)), "arguments": arguments, "reasoning": "r", "result": "x"}
    reply = draw(
        st.sampled_from(
            [
                {"content": "", "tool_call": call},
                {"content": "", "tool_calls": [call]},
                {"content": "", "tool_calls": [{"function": call}]},
                {"text": f"so <tool_call>{json.dumps(call)}</tool_call>"},
            ]
        )
    )
    record = {"messages": [ASKED], "tools": tools, "tool_context": {"executions": [execution]}}
    return {"sample": record, "recorded": reply}


@given(valid_lines())
@settings(max_examples=examples(150), deadline=None)
def test_the_versions_agree_where_a_tool_is_named(line):
    """On valid records whose reply names a tool, 4.3 and 4.13 give the same verdicts, score and reasons."""
    found = evaluate([line], profile="upstream")
    old = evaluate([line], profile="upstream", upstream_version="4.3")
    assert found.metrics == old.metrics
    assert [msgspec.structs.replace(record, available_tools=None) for record in found.predictions] == list(
        old.predictions
    )
    assert found.predictions[0].error is None
    assert found.predictions[0].predicted_tool is not None
