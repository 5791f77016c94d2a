"""Every row of the extractor table: which text of a conversation is the submission."""

from __future__ import annotations

import pickle

import pytest

from gradestack import Message, Sample, ToolCall, testing
from gradestack.grading.turns import grade_sample
from gradestack.suites.strict import Problems, structure
from gradestack_plugins import extractors
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
from tests.core.workers import grader_stage

DATA = data(__file__, "extractors.yaml")

COMPONENTS = extractors.gradestack_components()
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


def user(text):
    return Message(role="user", content=text)


def said(text):
    return Message(role="assistant", content=text)


def called(name, arguments=None, identifier=None, raw=None, **fields):
    call = ToolCall(name=name, arguments=arguments, id=identifier, raw_arguments=raw, **fields)
    return Message(role="assistant", content=None, tool_calls=(call,))


def answered(content, identifier=None, name=None):
    return Message(role="tool", content=content, tool_call_id=identifier, name=name)


def talk(*turns, **fields):
    return Sample(id="t", turns=tuple(tuple(turn) for turn in turns), **fields)


TWO_TURNS = talk(
    [user("hello"), said("first"), called("f", {}), answered("7"), said("second")],
    [user("more"), said("third"), said("fourth")],
)


def test_all_of_the_table_is_there():
    """The plugin offers the nine extractors of the table."""
    assert {component.name for component in COMPONENTS} == {
        "last_assistant",
        "first_assistant",
        "all_assistant",
        "last_turn",
        "pattern",
        "after_marker",
        "tool_arguments",
        "tool_output",
        "memory_block",
    }


@pytest.mark.parametrize("extractor", ALL, ids=lambda extractor: type(extractor).__name__)
def test_extractors_never_raise_and_change_nothing(extractor):
    """Odd samples give a text; extractors survive pickling and leave the sample as it was."""
    again = pickle.loads(pickle.dumps(extractor))  # noqa: S301
    assert again == extractor
    for sample in testing.nasty_samples():
        before = repr(sample.turns), repr(sample.calls)
        found = extractor.extract(sample)
        assert isinstance(found, str)
        assert again.extract(sample) == found
        assert (repr(sample.turns), repr(sample.calls)) == before


@pytest.mark.parametrize(
    ("extractor", "expected"),
    [
        (LastAssistant(), "fourth"),
        (FirstAssistant(), "first"),
        (AllAssistant(), "first\nsecond\nthird\nfourth"),
        (AllAssistant(separator=" | "), "first | second | third | fourth"),
        (LastTurn(), "third\nfourth"),
        (LastTurn(separator=""), "thirdfourth"),
    ],
)
def test_assistant_messages(extractor, expected):
    """First, last, all and last-turn extraction see assistant messages only, calls and returns aside."""
    assert extractor.extract(TWO_TURNS) == expected


@pytest.mark.parametrize("extractor", [LastAssistant(), FirstAssistant(), AllAssistant(), LastTurn()])
def test_no_assistant_message_is_empty(extractor):
    """A conversation in which the assistant says nothing gives an empty text, whatever the answer field says."""
    assert extractor.extract(talk([user("hello"), called("f", {})], text="unrelated")) == ""
    assert extractor.extract(Sample(id="t")) == ""


@pytest.mark.parametrize(
    "extractor", [LastAssistant(), FirstAssistant(), AllAssistant(), LastTurn(), Pattern(pattern="an.*")]
)
@pytest.mark.parametrize("turns", [(), ((),)])
def test_without_messages_the_answer_text_is_used(extractor, turns):
    assert extractor.extract(Sample(id="t", turns=turns, text="answer 42")) == "answer 42"


def test_last_turn_without_speech_is_empty():
    assert LastTurn().extract(talk([said("first")], [])) == ""
    assert LastAssistant().extract(talk([said("first")], [])) == "first"


def test_parts_are_joined_with_spaces():
    """Content given as parts is joined with spaces; parts without text are left out."""
    parts = [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}, "three"]
    assert LastAssistant().extract(talk([said(parts)])) == "one two three"


def test_a_message_with_calls_only_is_no_speech():
    """An assistant message that only carries calls is passed over; an empty one without calls counts as said."""
    assert LastAssistant().extract(talk([said("before"), called("f", {})])) == "before"
    empty = Message(role="assistant", content="", tool_calls=(ToolCall(name="f"),))
    assert LastAssistant().extract(talk([said("before"), empty])) == "before"
    both = Message(role="assistant", content="looking", tool_calls=(ToolCall(name="f"),))
    assert LastAssistant().extract(talk([said("before"), both])) == "looking"
    assert LastAssistant().extract(talk([said("before"), said("")])) == ""


NUMBERS = talk([said("a=1 b=2"), said("c=3 d=4"), said("nothing here")])


@pytest.mark.parametrize(("options", "expected"), DATA["pattern"])
def test_pattern(options, expected):
    """The newest matching message gives its first match's group, or all its matches joined by a space."""
    assert Pattern(**options).extract(NUMBERS) == expected


@pytest.mark.parametrize(("options", "message"), DATA["pattern_refuses_what_cannot_work"])
def test_pattern_refuses_what_cannot_work(options, message):
    """A bad pattern or group is refused when the suite is loaded."""
    with pytest.raises(ValueError, match=message):
        Pattern(**options)


MARKED = talk([said("Answer: old"), said("Thinking. Answer:  new, Answer: twice \n"), said("bye")])


@pytest.mark.parametrize(("options", "expected"), DATA["after_marker"])
def test_after_marker(options, expected):
    """The text behind the first marker of the newest message that holds it, stripped."""
    assert AfterMarker(**options).extract(MARKED) == expected


def test_after_marker_needs_a_marker():
    with pytest.raises(ValueError, match="marker is empty"):
        AfterMarker(marker="")


CALLS = talk(
    [called("find", {"b": 1, "a": "ü"}, "1", raw='{"b":1,  "a":"ü"}'), answered("found", "1"), said("ok")],
    [called("find", {"b": 2}, "2"), called("other", {}, "3"), answered({"x": [1]}, "3"), answered("again", "2")],
)


@pytest.mark.parametrize(("tool", "expected"), DATA["tool_arguments"])
def test_tool_arguments(tool, expected):
    """The first call's argument text over the whole conversation, "{}" when there is none."""
    assert ToolArguments(tool_name=tool).extract(CALLS) == expected


def test_tool_arguments_without_recorded_text():
    """An object is written in its own key order; arguments that could not be kept are empty."""
    extract = ToolArguments(tool_name="f").extract
    assert extract(talk([called("f", {"z": "ü", "a": [1]})])) == '{"z": "ü", "a": [1]}'
    assert extract(talk([called("f", None, raw="{not json")])) == "{not json"
    assert extract(talk([called("f", None)])) == ""


def test_calls_outside_the_messages_are_used_when_messages_have_none():
    """The sample's own list of calls stands in where no message carries a call."""
    listed = (ToolCall(name="f", arguments={"x": 1}, result="seven"),)
    assert ToolArguments(tool_name="f").extract(Sample(id="t", calls=listed)) == '{"x": 1}'
    assert ToolOutput(tool_name="f").extract(talk([said("Action: f")], calls=listed)) == "seven"
    assert ToolArguments(tool_name="f").extract(talk([called("g", {})], calls=listed)) == "{}"


@pytest.mark.parametrize(("tool", "expected"), [("find", "found"), ("other", '{"x": [1]}'), ("unknown", "")])
def test_tool_output(tool, expected):
    """The return of the first such call, matched by the call's id."""
    assert ToolOutput(tool_name=tool).extract(CALLS) == expected


def test_tool_output_of_the_first_call_only():
    """When the first call has no return, a later call's return is not taken for it."""
    sample = talk([called("f", {}, "1"), called("f", {}, "2"), answered("second", "2")])
    assert ToolOutput(tool_name="f").extract(sample) == ""


def test_tool_output_without_ids():
    """Without ids the next return counts, unless it names another tool; a noted result or error comes first."""
    extract = ToolOutput(tool_name="f").extract
    assert extract(talk([called("f", {}), answered("no", name="g"), answered("yes", name="f")])) == "yes"
    assert extract(talk([answered("before"), called("f", {})])) == ""
    assert extract(talk([called("f", {}, result="noted"), answered("later")])) == "noted"
    assert extract(talk([called("f", {}, error="broke")])) == "broke"
    assert extract(talk([called("f", {}, "1"), answered([{"type": "text", "text": "a"}, {"text": "b"}], "1")])) == "a b"
    assert extract(talk([called("f", {}, "1"), answered(None, "1")])) == ""


@pytest.mark.parametrize("recorded", DATA["memory_block_of_a_recording_that_has_it"])
def test_memory_block_of_a_recording_that_has_it(recorded):
    sample = Sample(id="t", recorded=recorded)
    assert MemoryBlock(block_label="human").extract(sample) == "Ada"
    assert MemoryBlock(block_label="none").extract(sample) == ""


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_memory_block_without_agent_state_is_a_failed_extraction(profile):
    slot = grader_stage(
        key="g",
        component="ascii_printable_only",
        grader=AsciiPrintableOnly(),
        extractor=MemoryBlock(block_label="human"),
        profile=profile,
    )
    grade, _ = grade_sample(slot, talk([said("hello")]))
    assert grade.outcome == "failed"
    assert grade.fault.category == "extraction"
    assert "memory block 'human' needs the agent's state" in grade.fault.message


def test_required_options_are_asked_for():
    """An extractor that cannot work without an option says which is missing."""
    for target, name in ((Pattern, "pattern"), (AfterMarker, "marker"), (ToolOutput, "tool_name")):
        with pytest.raises(Problems) as refused:
            structure({}, target)
        assert refused.value.found == [((name,), "missing")]
