"""What 4.13 and 4.3 make of one record and one reply, row by row."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Outcome
from gradestack_plugins.deepfabric.exporter import prediction
from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.conftest import examples
from tests.plugins.deepfabric.conftest import evaluate

VERSIONS = ("4.13", "4.3")

ASKED = {"role": "user", "content": "q"}


def test_tools_are_named_in_the_result_file(df):
    """4.13 writes the names of the tools, nameless ones too, and of failed records where they can
    be read.
    """
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
    assert [(record.query, record.expected_tool) for record in new[:3]] == [
        ("the query", "f"),
        ("", None),
        ("", None),
    ]
    old = evaluate(lines, replies, profile="upstream", upstream_version="4.3").predictions
    assert not any(hasattr(record, "available_tools") for record in old)
    assert [record.error for record in old] == [None] * 4


def test_one_reading_serves_graders_of_both_versions(df):
    """The reader leaves the ruling to the grader.

    A sample is failed only where no version can use it.
    """
    tool = [df.tool("f")]
    for fields, fine in (
        ({"conversation_type": "cot"}, "4.13"),
        ({"agent_mode": "multi_turn"}, "4.3"),
    ):
        sample = df.sample(
            df.record(("f", {}), tool, metadata=fields), df.reply(("f", {})), "upstream"
        )
        assert sample.status == "ok"
        for version in VERSIONS:
            grade = DeepFabric(profile="upstream", upstream_version=version).grade(sample)
            assert (grade.outcome is Outcome.GRADED) is (version == fine)
            assert (prediction(sample, grade)["error"] is None) is (version == fine)
    broken = df.sample(
        df.record(("f", {}), tool, metadata={"agent_mode": 1}), df.reply(), "upstream"
    )
    assert broken.status == "failed"


@pytest.mark.parametrize("version", ["4.3", 4.3])
def test_a_version_may_be_a_number(version):
    """YAML reads 4.3 without quotes as a number; it names the version all the same."""
    assert DeepFabric(upstream_version=version) == DeepFabric(upstream_version="4.3")
    assert DeepFabric(upstream_version=4.13) == DeepFabric()


@pytest.mark.parametrize(
    "options", [{"upstream_version": "4.5"}, {"upstream_version": 4}, {"max_turns": 0}]
)
def test_options_that_mean_nothing_are_refused(options):
    """Versions nobody knows and no turns at all are refused with the option's name."""
    with pytest.raises(ValueError, match=next(iter(options))):
        DeepFabric(**options)


def test_4_3_has_no_several_turns():
    """Several turns came later.

    Asking 4.3 for them is refused, the document's own rules have them anyway.
    """
    with pytest.raises(ValueError, match=r"multi_turn came with version 4.4"):
        DeepFabric(profile="upstream", upstream_version="4.3", multi_turn=True)
    assert DeepFabric(upstream_version="4.3", multi_turn=True).multi_turn


NAMES, KEYS = ["f", "g"], ["a", "b", "c"]
WORDS = ["string", "integer", "number", "boolean", "array", "object"]
VALUES = st.sampled_from(["x", "X ", 0, 1, 2.5, 1.0, True, [], [1], {}, {"k": None}])
ARGUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES)


@st.composite
def valid_lines(draw):
    call = {
        "name": draw(st.sampled_from([*NAMES, "zz"])),
        "arguments": draw(ARGUMENTS | st.just({"a": None})),
    }
    tools = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1)):
        types = draw(
            st.dictionaries(
                st.sampled_from(KEYS), st.fixed_dictionaries({"type": st.sampled_from(WORDS)})
            )
        )
        schema = {
            "type": "object",
            "properties": types,
            "required": draw(st.lists(st.sampled_from(KEYS), max_size=2)),
        }
        tools.append(
            {
                "type": "function",
                "function": {"name": name, "description": "d", "parameters": schema},
            }
        )
    arguments = json.dumps(draw(ARGUMENTS))
    execution = {
        "function_name": draw(st.sampled_from(NAMES)),
        "arguments": arguments,
        "reasoning": "r",
        "result": "x",
    }
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
    """On valid records whose reply names a tool, 4.3 and 4.13 give the same verdicts, score and
    reasons.
    """
    found = evaluate([line], profile="upstream")
    old = evaluate([line], profile="upstream", upstream_version="4.3")
    assert found.metrics == old.metrics
    assert {**vars(found.predictions[0]), **vars(old.predictions[0])} == vars(found.predictions[0])
    assert found.predictions[0].error is None
    assert found.predictions[0].predicted_tool is not None
