"""Every row of the extractor table: which text of a conversation is the submission."""

import pytest

from gradestack import Message, Sample, ToolCall, testing
from gradestack.suites.options import Problems, structure
from gradestack_plugins.extractors.extractors import (
    AfterMarker,
    AllAssistant,
    FirstAssistant,
    LastAssistant,
    LastTurn,
    MemoryBlock,
    Pattern,
    ToolArguments,
    ToolOutput,
)
from gradestack_plugins.text_graders.texts import AsciiPrintableOnly
from tests.core.outcomes import data
from tests.core.workers import grade_sample, grader_stage

DATA = data(__file__, "extractors.yaml")
ALL = [
    LastAssistant(),
    FirstAssistant(),
    AllAssistant(),
    LastTurn(),
    Pattern(pattern="x"),
    AfterMarker(marker="x"),
    ToolArguments(tool_name="search"),
    ToolOutput(tool_name="search"),
]


def spoken(text):
    return Message(role="assistant", content=text)


def called(name, arguments=None, identifier=None, raw=None, **fields):
    call = ToolCall(name=name, arguments=arguments, id=identifier, raw_arguments=raw, **fields)
    return Message(role="assistant", content=None, tool_calls=(call,))


def answered(content, identifier=None, name=None):
    return Message(role="tool", content=content, tool_call_id=identifier, name=name)


def talk(*turns, **fields):
    return Sample(id="t", turns=tuple(tuple(turn) for turn in turns), **fields)


@pytest.mark.parametrize("extractor", ALL, ids=lambda extractor: type(extractor).__name__)
def test_extractors_never_raise_and_change_nothing(extractor):
    testing.check_extractor(extractor)


@pytest.mark.parametrize(("options", "message"), DATA["pattern_refuses_what_cannot_work"])
def test_pattern_refuses_what_cannot_work(options, message):
    """A bad pattern or group is refused when the suite is loaded."""
    with pytest.raises(ValueError, match=message):
        Pattern(**options)


def test_after_marker_needs_a_marker():
    with pytest.raises(ValueError, match="marker is empty"):
        AfterMarker(marker="")


def test_calls_outside_the_messages_are_used_when_messages_have_none():
    """The sample's own list of calls stands in where no message carries a call."""
    listed = (ToolCall(name="f", arguments={"x": 1}, result="seven"),)
    tool_arguments = ToolArguments(tool_name="f")
    sample = Sample(id="t", calls=listed)
    assert tool_arguments.extract(sample) == '{"x": 1}'
    tool_output = ToolOutput(tool_name="f")
    assert tool_output.extract(talk([spoken("Action: f")], calls=listed)) == "seven"
    assert ToolArguments(tool_name="f").extract(talk([called("g", {})], calls=listed)) == "{}"


def test_tool_output_without_ids():
    """Without ids the next return counts, unless it names another tool.

    A noted result or error comes first.
    """
    extract = ToolOutput(tool_name="f").extract
    sample = talk([called("f", {}), answered("no", name="g"), answered("yes", name="f")])
    assert extract(sample) == "yes"
    assert extract(talk([answered("before"), called("f", {})])) == ""
    assert extract(talk([called("f", {}, result="noted"), answered("later")])) == "noted"
    assert extract(talk([called("f", {}, error="broke")])) == "broke"
    assert (
        extract(
            talk(
                [
                    called("f", {}, "1"),
                    answered([{"type": "text", "text": "a"}, {"text": "b"}], "1"),
                ]
            )
        )
        == "a b"
    )
    assert extract(talk([called("f", {}, "1"), answered(None, "1")])) == ""


def test_memory_block_without_agent_state_is_a_failed_extraction():
    slot = grader_stage(
        key="g",
        component="ascii_printable_only",
        grader=AsciiPrintableOnly(),
        extractor=MemoryBlock(block_label="human"),
    )
    sample = talk([spoken("hello")])
    grade, _ = grade_sample(slot, sample)
    assert grade.outcome == "failed"
    assert grade.fault.category == "extraction"
    assert "memory block 'human' needs the agent's state" in grade.fault.message


def test_required_options_are_asked_for():
    """An extractor that cannot work without an option says which is missing."""
    for target, name in ((Pattern, "pattern"), (AfterMarker, "marker"), (ToolOutput, "tool_name")):
        with pytest.raises(Problems) as refused:
            structure({}, target)
        assert refused.value.listed == [((name,), "missing")]
