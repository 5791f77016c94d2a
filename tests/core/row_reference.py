"""Rows spelled out key by key, slowly and apart from the code under test, and ways to
compare them.
"""

import enum
import json
import math
import types

import attrs
import msgspec

from gradestack import ABSENT, Grade, Outcome
from gradestack.grading.graders import unhandled
from gradestack.rows.write import RowEncoder


def pure(value):
    """Return a value as data.

    Objects become mappings without absent fields, NaN and infinities texts.
    """
    if isinstance(value, enum.Enum):
        return pure(value.value)
    if isinstance(value, msgspec.Struct) or attrs.has(type(value)):
        names = getattr(value, "__struct_fields__", None) or attrs.fields_dict(type(value))
        pairs = [(name, getattr(value, name)) for name in names]
        return {name: pure(item) for name, item in pairs if item is not ABSENT}
    if isinstance(value, dict | types.MappingProxyType):
        return {str(key): pure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [pure(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(float(value))]
    return value


def only(mapping):
    """Return a mapping without what says nothing."""
    return {
        key: value
        for key, value in mapping.items()
        if value not in (None, "", {}, []) or value is False
    }


def reason_of(reason):
    """Return a reason of a grade as data."""
    written_reason = {
        "code": reason.code,
        **only({name: getattr(reason, name) for name in ("pointer", "subject", "message")}),
    }
    values = {name: getattr(reason, name) for name in ("expected", "actual")}
    return written_reason | {
        name: pure(value) for name, value in values.items() if value is not ABSENT
    }


def shared_of(graded):
    """Return the fields that grades and items have in common, as data."""
    fields = only({name: pure(getattr(graded, name)) for name in ("counts", "parts")})
    fields |= {
        name: getattr(graded, name)
        for name in ("label", "gold")
        if getattr(graded, name) is not None
    }
    if graded.reasons:
        fields["reasons"] = [reason_of(reason) for reason in graded.reasons]
    if graded.fault is not None:
        fields["fault"] = pure(graded.fault)
    return fields


def item_of(item):
    shared = shared_of(item)
    fields = {"id": item.id, **shared}
    fields |= {"outcome": item.outcome.value} if item.outcome is not Outcome.GRADED else {}
    fields |= {"score": pure(item.score)} if item.score is not None else {}
    return fields | ({"metadata": pure(item.metadata)} if item.metadata else {})


def grade_of(grade):
    """Return a grade as data, its fault named in the metadata."""
    fault = grade.fault
    if fault is None:
        named = {}
    else:
        error_type = fault.type or fault.code
        named = {"error": fault.message, "error_type": error_type}
    shared = shared_of(grade)
    if grade.score is None:
        score = 0.0
    else:
        score = grade.score
    metadata = named | pure(grade.metadata)
    state = grade.outcome.value
    fields = {
        **shared,
        "score": score,
        "state": state,
        "rationale": grade.rationale,
        "metadata": metadata,
    }
    fields |= {} if grade.passed is None else {"passed": grade.passed}
    return fields | ({"items": [item_of(item) for item in grade.items]} if grade.items else {})


def chat_call(call):
    if call.raw_arguments is not None:
        arguments = call.raw_arguments
    else:
        arguments = pure(call.arguments)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def message_of(message):
    fields = {"role": message.role, "content": pure(message.content)}
    if message.tool_calls:
        fields["tool_calls"] = [chat_call(call) for call in message.tool_calls]
    names = ("name", "tool_call_id")
    return fields | {
        name: getattr(message, name) for name in names if getattr(message, name) is not None
    }


def made_calls_of(sample):
    talk = any(message.tool_calls for turn in sample.turns for message in turn)
    call_rows = calls_of(sample.calls)
    for row, call in zip(call_rows or (), sample.calls or (), strict=True):
        row.update({} if call.requestor == "assistant" else {"requestor": call.requestor})
        row.update({} if talk or call.result is None else {"result": pure(call.result)})
    return call_rows


def calls_of(calls):
    """Return tool calls as data; None where there are none to compare."""
    call_rows = None if calls is None else []
    for call in calls or ():
        arguments = pure(call.arguments)
        row = {"name": call.name, "arguments": arguments}
        row |= (
            {"raw_arguments": call.raw_arguments}
            if call.arguments is None and call.raw_arguments is not None
            else {}
        )
        error = getattr(call, "error", None)  # expected ones have none
        call_rows.append(row | ({} if error is None else {"error": error}))
    return call_rows


def reference(sample, grades, headline, passed, submissions):
    """Return the row of a sample and its grades as data, spelled out key by key."""
    expected = sample.expected
    submission_texts = [submissions.get(headline), sample.text, sample.label, ""]
    written = {key: grade_of(grade) for key, grade in grades.items()}
    if expected.text is not None:
        truth = expected.text
    else:
        truth = expected.label
    source = pure(sample.source)
    if source is None:
        number = None
    else:
        number = source.pop("id")
    return {
        "sample": {
            "id": sample.id if number is None else number,
            "input": pure(sample.input),
            "ground_truth": pure(truth),
        },
        "submission": next(text for text in submission_texts if text is not None),
        "submissions": dict(submissions) or None,
        "trajectory": [[message_of(message) for message in turn] for turn in sample.turns],
        "agent_id": sample.agent_id,
        "agent_usage": pure(sample.agent_usage),
        "model_name": sample.model,
        "grade": written[headline],
        "grades": written,
        "state": grades[headline].outcome.value,
        "passed": passed,
        "run": sample.run,
        "status": sample.status.value,
        "error": pure(sample.error),
        "facets": pure(sample.facets),
        "source": source,
        "recorded": pure(sample.recorded),
        "tools": None if sample.tools is None else [tool.name for tool in sample.tools],
        "expected": {
            "calls": calls_of(expected.calls),
            "label": expected.label,
            "text": pure(expected.text),
            "plan": pure(expected.plan),
        },
        "predicted": {
            "calls": made_calls_of(sample),
            "label": sample.label,
            "plan": pure(sample.plan),
            "text": sample.text,
        },
    }


class Colour(enum.Enum):
    """A value of a grader's own."""

    RED = "red"


class Size(enum.IntEnum):
    """A number of a grader's own."""

    BIG = 3


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


@attrs.frozen
class Note:
    """An object of a grader's own, its fields not in the order of their names."""

    z: object = ABSENT
    b: object = None
    a: object = 1


SCORED = Grade(score=0.5)


def ordered(pairs):
    """Check that no key of an object is repeated."""
    keys = [key for key, _ in pairs]
    key_count = len(set(keys))
    assert len(keys) == key_count
    return dict(pairs)


def parsed(line):
    """Return the data of a line, checked for its form.

    One line of UTF-8, keys sorted at every level.
    """
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1

    def refuse(word):
        raise AssertionError(word)

    text = line.decode("utf-8")
    return json.loads(text, object_pairs_hook=ordered, parse_constant=refuse)


def row_bytes(sample, grades, main, *, passed=None, submissions=None):
    """Encode the row of a sample; raise the fault of a grade that could not be written."""
    if passed is None:
        success = None
    else:
        success = Always(main, passed)
    line, _, kept_grades = line_and_kept(
        sample, grades, main, success=success, submissions=submissions
    )
    for key, grade in grades.items():
        if kept_grades[key] is not grade:
            fault = kept_grades[key].fault
            message = kept_grades[key].fault.message
            raise (RecursionError if fault.code == "too_deep" else TypeError)(message)
    return line


@attrs.frozen
class Always:
    """A verdict, whatever the grade."""

    grader: str
    verdict: bool

    def passed(self, grade):
        return self.verdict


def line_and_kept(
    sample, grades, main, *, success=None, submissions=None, signatures=None, strict=False
):
    """Encode one sample.

    Return its line, the sample that was written, and the grades that were kept in the row.
    """
    encoder = RowEncoder(
        main=main,
        success=success,
        signatures=signatures or dict.fromkeys(grades, "toy 1"),
        strict=strict,
    )
    data, (written,) = encoder.encode_samples([sample])
    if written is not sample:  # what graders would say of it
        grades = dict.fromkeys(grades, unhandled(written))
        submissions = None
    columns = {key: [grade] for key, grade in grades.items()}
    texts = {key: [text] for key, text in (submissions or {}).items()}
    pieces, kept_grades = encoder.encode_rows([written], data, columns, texts)
    return b"".join(pieces), written, {key: kept_grades[key][0] for key in grades}


def written(sample, grades=None, headline="quality", passed=None, submissions=None):
    grades = {"quality": SCORED} if grades is None else grades
    return parsed(row_bytes(sample, grades, headline, passed=passed, submissions=submissions))


def same(left, right):
    """Compare data with the types of its numbers; a mapping's order does not count."""
    form = {"sort_keys": True, "ensure_ascii": True}
    text = json.dumps(left, **form)
    expected = json.dumps(right, **form)
    assert text == expected
