"""Lines of results.jsonl: what was recorded of a sample, and what graders say of it.

What was recorded is written before graders see the sample, so that a row shows it whatever they do
to it. Usually msgspec writes a row. It writes NaN as null without a word, sets, bytes and dates in
forms of its own, and refuses lone surrogates: what it cannot write faithfully goes through
``gradestack.jsonio.values.dumps``, which sorts the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from math import isfinite
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import astuple

from gradestack.errors import PluginError
from gradestack.grading.plan import Plan, Success
from gradestack.grading.recording import GradeColumns, JudgedTexts
from gradestack.jsonio.values import dumps, json_data
from gradestack.model import (
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Message,
    Reason,
    Rule,
    Sample,
    Status,
    ToolCall,
    ToolSpec,
    Usage,
    explained,
    failed,
    replace,
)
from gradestack.rows.read import GradeRow

UNWRITABLE = (AttributeError, RecursionError, TypeError, ValueError)
"""What writing raises; a text among reasons has no code."""
TOO_DEEP = Fault(category="data", code="too_deep", message="nested too deeply to be written")
_LONG = 1 << 20
"""Bytes of a row of which no copy is made."""


def _form(name: str, required: str, optional: str = "") -> Any:
    """Return a struct for a part of a row.

    Names of fields that are always written, and of those that may be None.
    """
    fields: list[Any] = [(field, Any) for field in required.split()]
    fields += [(field, Any, None) for field in optional.split()]
    return msgspec.defstruct(name, fields, gc=False, omit_defaults=True)


_Call = _form(
    "Call",
    "name arguments",
    "raw_arguments error turn step author server kind status error_type started seconds requestor "
    "exit_code result",
)
_Content = _form("Content", "calls label plan text", "state alternatives forbidden")
_Message = _form("Message", "content role", "name reasoning tool_call_id tool_calls")
_Recorded = _form(
    "Recorded",
    "agent_id agent_usage error expected facets model_name predicted recorded run sample source "
    "status tools",
    "trajectory usage cluster ended trace children remarks native",
)
_Grade = _form(
    "Grade", "metadata rationale score state", "counts fault gold items label parts passed reasons"
)
_Place = _form("Place", "file ordinal line")
_Question = _form("Question", "ground_truth id input", "metadata")
_Verdict = _form("Verdict", "passed state submission submissions")

_write = msgspec.json.Encoder().encode
_PLAIN = frozenset({str, int, bool, type(None), msgspec.UnsetType})
"""Classes whose values need no look."""
_name_of = attrgetter("name")


class _Free(msgspec.Struct, gc=False):
    """What may be anything in the forms of a block; it is looked at once it is written."""

    values: list[Any] = msgspec.field(default_factory=list)
    objects: list[Any] = msgspec.field(default_factory=list)
    """Dicts, also of a class of their own, whose values may be anything."""


def _check(free: _Free) -> None:
    """Refuse values that JSON lacks, also those that msgspec would write (sets, bytes, dates, ...).

    Call it after msgspec has written the values: then no value holds itself.
    """
    values = [*free.values, *chain.from_iterable(map(dict.values, free.objects))]
    while values:
        members: list[Any] = []
        for value in values:
            kind = type(value)
            if kind in _PLAIN:
                continue
            if kind is dict:
                members += value.values()
            elif kind is float:
                if not isfinite(value):
                    raise ValueError("NaN")
            elif kind is list or kind is tuple:
                members += value
            elif kind is Rule or kind is Usage:
                members += astuple(value)
            else:
                raise TypeError(f"Object of type {kind.__name__} is not JSON serializable")
        values = members


def _encode(form: Any, free: _Free) -> bytes:
    """Return a form as bytes, given what in it may be anything."""
    try:
        data = _write(form)
        _check(free)
    # NaN, lone surrogates, types msgspec does not know: the standard library decides
    except (TypeError, ValueError):
        return dumps(json_data(form)).encode()
    return data


def _encode_all(forms: Sequence[Any], free: _Free) -> list[bytes]:
    """Return forms as bytes, given what in all of them may be anything.

    Raises:
        UNWRITABLE: One of them has to be encoded alone.
    """
    encoded = list(map(_write, forms))
    _check(free)
    return encoded


def encode(value: Any) -> bytes:
    """Return JSON data as bytes, in the form of a row."""
    return _encode(value, _Free([value]))


def _call(call: ToolCall, free: _Free, result: Any) -> Any:
    """Return a call that was made.

    Without its id, and without the text of arguments that are decoded.
    """
    arguments = call.arguments
    if call.seconds is not None or result is not None:
        free.values += (call.seconds, result)
    if isinstance(arguments, dict):
        free.objects.append(arguments)
    else:
        free.values.append(arguments)
    return _Call(
        call.name,
        arguments,
        call.raw_arguments if arguments is None else None,
        call.error,
        call.turn,
        call.step,
        call.author,
        call.server,
        call.kind,
        call.status,
        call.error_type,
        call.started,
        call.seconds,
        None if call.requestor == "assistant" else call.requestor,
        call.exit_code,
        result,
    )


def _expected_call(call: ExpectedCall, free: _Free) -> Any:
    """Turn an expected call into its JSON form; add its arguments and rules to ``free``."""
    arguments = call.arguments
    if isinstance(arguments, dict):
        free.objects.append(arguments)
    else:
        free.values.append(arguments)
    if call.rules is not None:
        free.values.append(call.rules)
    if arguments and call.name:
        return call
    # also where there is nothing
    return {"name": call.name, "arguments": arguments, **json_data(call)}


def _expected_calls(calls: Sequence[ExpectedCall], free: _Free) -> list[Any]:
    forms = []  # comprehensions cost more than loops where there are few
    for call in calls:
        forms.append(_expected_call(call, free))
    return forms


def _expected(expected: Expectation, free: _Free) -> Any:
    """Turn an expectation into its JSON form; add what may be anything to ``free``."""
    calls = alternatives = None
    if expected.calls is not None:
        calls = _expected_calls(expected.calls, free)
    if expected.alternatives:
        alternatives = [_expected_calls(calls, free) for calls in expected.alternatives]
    plan, state = expected.plan, expected.state
    if plan is not None or state is not None:
        free.values += (plan, state)
    return _Content(
        calls,
        expected.label,
        plan,
        expected.text,
        state,
        alternatives,
        expected.forbidden or None,
    )


def _chat_call(call: ToolCall, free: _Free) -> Any:
    free.values += (call.arguments, call.seconds)
    arguments = call.raw_arguments if call.raw_arguments is not None else call.arguments
    function = {"arguments": arguments, "name": call.name}
    return {"function": function, "id": call.id, "type": "function"}


def _trajectory(sample: Sample, free: _Free) -> Any:
    """Return a sample's turns as they stand in its row; add what may be anything to ``free``."""
    return [[_message(message, free) for message in turn] for turn in sample.turns]


def _message(message: Message, free: _Free) -> Any:
    free.values.append(message.content)
    calls = [_chat_call(call, free) for call in message.tool_calls] or None
    return _Message(
        message.content, message.role, message.name, message.reasoning, message.tool_call_id, calls
    )


def _calls(sample: Sample, free: _Free) -> Any:
    """Return the calls a sample made; their results only where no message of it holds the calls."""
    turns, forms = sample.turns, []
    is_told = turns and [message for turn in turns for message in turn if message.tool_calls]
    for call in sample.calls or ():
        forms.append(_call(call, free, None if is_told else call.result))
    return forms


def _tools_with_schemas(tools: Sequence[ToolSpec], free: _Free) -> Any:
    """Return tools as they stand in the rows of graders that read schemas."""
    free.values += [tool.parameters for tool in tools]
    # the fields of a tool, whatever else a reader's own class holds
    fields = ToolSpec.__struct_fields__
    return [{name: getattr(tool, name) for name in fields} for tool in tools]


def _native(sample: Sample, free: _Free, kinds: tuple[type[Any], ...]) -> Any:
    """Return the native form of a sample, if it is one that graders read."""
    # a dict where a row is graded again
    if not isinstance(sample.native, (dict, *kinds)):
        return None
    native = msgspec.to_builtins(sample.native)
    free.values.append(native)
    return native


def _recorded(sample: Sample, free: _Free, encoder: RowEncoder) -> Any:
    """Build a sample's part of its row; add what may be anything to ``free``."""
    expected, source, recorded = sample.expected, sample.source, sample.recorded
    place = number = metadata = None
    if source is not None:
        place = _Place(source.file, source.ordinal, source.line)
        number = source.id
    if sample.plan is not None or sample.state is not None:
        free.values += (sample.plan, sample.state)
    if sample.agent_usage is not None or sample.usage is not None:
        free.values += (sample.agent_usage, sample.usage)
    if sample.facets:
        free.values.append(sample.facets)
    if sample.remarks:
        free.values.append(sample.remarks)
    if recorded:
        free.values.append(recorded)
        metadata = recorded.get("metadata")
        if not isinstance(metadata, Mapping):  # which is slow
            metadata = None
    question = _Question(
        expected.text if expected.text is not None else expected.label,
        sample.id if number is None else number,
        sample.input,
        metadata,
    )
    calls = None if sample.calls is None else _calls(sample, free)
    tools: Any = sample.tools
    if tools is not None:
        tools = _tools_with_schemas(tools, free) if encoder.schemas else list(map(_name_of, tools))
    return _Recorded(  # by position: with so many keywords, CPython builds a dict first
        sample.agent_id,
        sample.agent_usage,
        sample.error,
        _expected(expected, free),
        sample.facets,
        sample.model,
        _Content(calls, sample.label, sample.plan, sample.text, sample.state),
        recorded,
        sample.run,
        question,
        place,
        sample.status,
        tools,
        _trajectory(sample, free) if sample.turns else (),
        sample.usage,
        sample.cluster,
        sample.ended,
        sample.trace or None,
        sample.children or None,
        sample.remarks or None,
        _native(sample, free, encoder.natives) if encoder.natives else None,
    )


def _bare(sample: Sample, fault: Fault) -> Sample:
    """Return a sample that failed with a fault, without anything recorded that may not be JSON."""
    return replace(
        sample,
        turns=(),
        calls=None,
        native=None,
        plan=None,
        expected=replace(sample.expected, calls=None, alternatives=(), plan=None, state=None),
        recorded={},
        state=None,
        agent_usage=None,
        facets={},
        status=Status.FAILED,
        error=fault,
    )


def _grade(grade: Grade, free: _Free, rule: Success | None = None) -> Any:
    """Return a grade that was checked, score, counts and parts, as it stands in its row.

    It is explained. Without a verdict of its own it has that of the rule.
    """
    values, passed = free.values, grade.passed
    if passed is None and rule is not None:
        passed = rule.passed(grade)
    metadata, fault, reasons = grade.metadata, grade.fault, grade.reasons
    if fault is not None:
        metadata = {"error": fault.message, "error_type": fault.type or fault.code, **metadata}
    if metadata:
        values.append(metadata)
    for item in grade.items:
        values += (item.metadata or None, item.score, *item.parts.values())
        if item.counts:
            values += item.counts.values()
        if item.reasons:
            reasons += item.reasons
    for reason in reasons:
        if type(reason) is not Reason:
            raise TypeError(f"reasons must be of gradestack.Reason(code=...), got {reason!r:.80}")
        values += (reason.expected, reason.actual)
    return _Grade(
        metadata,
        grade.rationale,
        0.0 if grade.score is None else grade.score,
        grade.outcome,
        grade.counts or None,
        fault,
        grade.gold,
        grade.items or None,
        grade.label,
        grade.parts or None,
        passed,
        grade.reasons or None,
    )


def grade_to_json(grade: Grade) -> GradeRow:
    """Return a grade in the form of a row.

    ``score`` is 0.0 for an ungraded one, as letta-evals writes it; read ``state``. Failures carry
    ``metadata.error`` and ``metadata.error_type``.
    """
    row: GradeRow = json_data(_grade(explained(grade), _Free()))
    return row


class RowEncoder(msgspec.Struct, frozen=True, kw_only=True):
    """Encodes the rows of blocks of samples."""

    main: str
    success: Success | None
    signatures: Mapping[str, str]
    rules: Mapping[str, Success] = {}
    """Grader key -> rule by which a sample passes; none of a grader whose score is no share."""
    strict: bool = False
    schemas: bool = False
    """Whether tools are written with their schemas, which a grader reads."""
    natives: tuple[type[Any], ...] = ()
    """Native forms that graders read, and which are written."""

    @classmethod
    def of(cls, plan: Plan, success: Success | None, *, strict: bool) -> RowEncoder:
        """Return the encoder of a plan's rows."""
        rules = {
            stage.key: Success(stage.key, better=stage.component.better)
            for stage in plan.graders
            if tuple(stage.component.bounds) == (0.0, 1.0)
        }
        if success is not None:
            rules[success.grader] = success
        graders = [stage.component for stage in plan.graders]
        natives = dict.fromkeys(grader.native for grader in graders if grader.native is not None)
        return cls(
            main=plan.main,
            success=success,
            signatures={stage.key: stage.signature for stage in plan.graders},
            rules=rules,
            strict=strict,
            schemas=any(grader.tool_schemas for grader in graders),
            natives=tuple(natives),
        )

    def encode_samples(self, samples: Sequence[Sample]) -> tuple[list[bytes], Sequence[Sample]]:
        """Encode the samples' parts of their rows.

        Returns:
            The parts, and the samples that are to be graded. A sample that cannot be written is a
            failed run, without what was recorded.
        """
        free = _Free()
        try:
            forms = [_recorded(sample, free, self) for sample in samples]
            return _encode_all(forms, free), samples
        except UNWRITABLE:  # a single one, usually
            return self._encode_one_by_one(samples)

    def _encode_one_by_one(self, samples: Sequence[Sample]) -> tuple[list[bytes], list[Sample]]:
        parts, graded = [], list(samples)
        for number, sample in enumerate(samples):
            try:
                part = self._encode_sample(sample)
            except UNWRITABLE as error:
                graded[number] = _bare(sample, _fault_of(error, "data", "not_json", "not JSON"))
                part = self._encode_sample(graded[number])
            parts.append(part)
        return parts, graded

    def _encode_sample(self, sample: Sample) -> bytes:
        free = _Free()
        form = _recorded(sample, free, self)
        return _encode(form, free)

    def encode_rows(
        self,
        samples: Sequence[Sample],
        encoded: Sequence[bytes],
        columns: GradeColumns,
        texts: JudgedTexts,
    ) -> tuple[list[bytes | memoryview], GradeColumns]:
        """Encode the rows of a block.

        Args:
            samples: The samples that were graded.
            encoded: Their parts, as ``encode_samples`` has encoded them.
            columns: Grader key -> its grades.
            texts: Key of a grader of texts -> the texts it judged.

        Returns:
            The lines, in pieces where they are long, and the grades as they stand in them: a
            failed one in place of each that cannot be written.
        """
        written: GradeColumns = {}
        grade_bytes: dict[str, list[bytes]] = {}
        for key, grades in columns.items():
            grade_bytes[key], written[key] = self._encode_column(key, grades, samples)
        verdicts = self._verdicts(samples, written, texts)
        try:
            encoded_verdicts = _encode_all(verdicts, _Free())
        except UNWRITABLE:  # a lone surrogate in a text
            encoded_verdicts = [_encode(verdict, _Free()) for verdict in verdicts]
        # one piece of each of these stands in each row
        pieces: list[Iterable[bytes | memoryview]] = [repeat(b'{"grade":'), grade_bytes[self.main]]
        before = b',"grades":{'
        for key, column in grade_bytes.items():
            pieces += (repeat(before + encode(key) + b":"), column)
            before = b","
        inner_verdicts, inner_parts = _inner(encoded_verdicts), _inner(encoded)
        pieces += (repeat(b"},"), inner_verdicts, repeat(b","), inner_parts, repeat(b"}\n"))
        lines = chain.from_iterable(zip(*pieces, strict=False))
        has_long = memoryview in map(type, chain(inner_verdicts, inner_parts))
        return list(lines) if has_long else [b"".join(lines)], written

    def _encode_column(
        self, key: str, column: list[Grade], samples: Sequence[Sample]
    ) -> tuple[list[bytes], list[Grade]]:
        """Encode a grader's grades; return (encoded grades, grades as written in the rows)."""
        free = _Free()
        rule = self.rules.get(key)
        try:
            forms = [_grade(grade, free, rule) for grade in column]
            return _encode_all(forms, free), column
        except UNWRITABLE:  # a single one, usually
            return self._encode_grades_one_by_one(key, column, samples)

    def _encode_grades_one_by_one(
        self, key: str, column: list[Grade], samples: Sequence[Sample]
    ) -> tuple[list[bytes], list[Grade]]:
        parts, written = [], column
        for number, grade in enumerate(column):
            try:
                part = self._encode_grade(key, grade)
            except UNWRITABLE as error:
                if written is column:
                    written = list(column)
                written[number] = self._unwritable_grade(key, samples[number], error)
                part = self._encode_grade(key, written[number])
            parts.append(part)
        return parts, written

    def _encode_grade(self, key: str, grade: Grade) -> bytes:
        free = _Free()
        form = _grade(grade, free, self.rules.get(key))
        return _encode(form, free)

    def _unwritable_grade(self, key: str, sample: Sample, error: Exception) -> Grade:
        """Return the failed grade that says why one cannot be written.

        Raises:
            PluginError: The run is strict.
        """
        fault = _fault_of(error, "grading", "bad_grade", "the grade is not JSON")
        if fault is TOO_DEEP:
            return failed(fault)
        signature = self.signatures[key]
        if self.strict:
            problem = (
                f"grader {key!r} ({signature}) broke its contract on {sample.source or sample.id}"
            )
            raise PluginError(problem, fault.message) from error
        return failed(replace(fault, type=type(error).__name__, component=signature))

    def _verdicts(
        self, samples: Sequence[Sample], columns: GradeColumns, texts: JudgedTexts
    ) -> list[Any]:
        """Return the verdict of each sample: passed, main outcome, submission and judged texts."""
        success, verdicts = self.success, []
        all_passed: Iterable[bool | None] = repeat(None)
        if success is not None:
            all_passed = map(success.passed, columns[success.grader])
        all_judged: Iterable[dict[str, str]] = repeat({})
        if texts:
            all_judged = [_judged_texts(texts, number) for number in range(len(samples))]
        main = columns[self.main]
        for sample, grade, passed, judged in zip(
            samples, main, all_passed, all_judged, strict=False
        ):
            submission = sample.label if sample.text is None else sample.text
            if judged:
                submission = judged.get(self.main, submission)
            verdicts.append(_Verdict(passed, grade.outcome, submission or "", judged or None))
        return verdicts


def _judged_texts(texts: JudgedTexts, number: int) -> dict[str, str]:
    """Return what graders of texts judged of a sample."""
    judged: dict[str, str] = {}
    for key, column in texts.items():
        text = column[number]
        if text is not None:
            judged[key] = text
    return judged


def _fault_of(error: Exception, category: str, code: str, problem: str) -> Fault:
    """Return why something cannot be written."""
    if isinstance(error, RecursionError):
        return TOO_DEEP
    return Fault(category=category, code=code, message=f"{problem}: {error}")


def _inner(objects: Sequence[bytes]) -> list[bytes | memoryview]:
    """Return JSON objects without their braces; of long ones without a copy."""
    return [data[1:-1] if len(data) < _LONG else memoryview(data)[1:-1] for data in objects]
