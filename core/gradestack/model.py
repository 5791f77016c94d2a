"""Recorded runs as graders see them, and the grades that graders give.

Everything here is plain frozen data. Readers build ``Sample`` objects from result files, graders
turn each into a ``Grade``, aggregators see only ``Key`` and ``Grade``.
"""

from __future__ import annotations

import enum
from collections.abc import Coroutine, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

JSON = Any
"""A value as ``json.loads`` returns it."""


class Outcome(enum.StrEnum):
    """State of one grade. Only ``GRADED`` has a score; the others are not zeros."""

    GRADED = "graded"
    SKIPPED = "skipped"
    """The grader does not apply: no reference, no tools, not its kind of sample."""
    FAILED = "failed"
    """The sample or the grader is broken; ``Grade.fault`` says how."""
    MISSING = "missing"
    """A dataset row that no recorded run answers."""


class Status(enum.StrEnum):
    """State of one recorded run."""

    OK = "ok"
    FAILED = "failed"
    """The recorded run itself ended in an error; ``Sample.error`` says which."""
    MISSING = "missing"
    """Expected by the dataset, absent from the recording."""


ABSENT = msgspec.UNSET
"""Marks "there is no value here" where ``None`` would mean a JSON null."""


class _Nothing(dict[str, Any]):
    """An empty mapping that many samples and grades share: it cannot be filled."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("samples and grades are not changed in place; use gradestack.replace")

    __setitem__ = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> str:
        return "NOTHING"


NOTHING: Final[dict[str, Any]] = _Nothing()
"""The empty mapping of samples and grades that have nothing to say there."""

Part = TypeVar("Part", bound=msgspec.Struct)


def replace(part: Part, **changes: Any) -> Part:
    """Return a copy of a sample, a grade or a part of one with other values in some fields.

    Raises:
        TypeError: It has no such field.
    """
    return msgspec.structs.replace(part, **changes)


class _Record(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A record whose ``native``, which may be anything, takes no part in equality and repr."""

    def _shown(self) -> dict[str, Any]:
        kind = (
            Sample if isinstance(self, Sample) else BadRecord
        )  # whatever else a reader's own class holds
        return {name: getattr(self, name) for name in kind.__struct_fields__ if name != "native"}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Record) and other._shown() == self._shown()

    __hash__ = None  # type: ignore[assignment]  # holds mappings

    def __repr__(self) -> str:
        shown = self._shown().items()
        members = [f"{name}={value!r}" for name, value in shown]
        return f"{type(self).__name__}({', '.join(members)})"


class Source(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a record was read."""

    file: str
    """Path as it was given on the command line or in the suite."""
    ordinal: int = 0
    """Zero-based position of the record in its file."""
    line: int | None = None
    """One-based line the record starts at, where the format has lines."""
    id: int | None = None
    """The sample's id, where it was recorded as a whole number; ``Sample.id`` is its text."""

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}"
            if self.line is not None
            else f"{self.file} record {self.ordinal}"
        )


class Fault(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a sample or a grade is broken."""

    category: str
    """``target`` (the recorded run), ``extraction``, ``grading`` or ``data``."""
    code: str
    """Short stable identifier, for counting."""
    message: str = ""
    type: str = ""
    """Exception class name, where there was one."""
    component: str = ""
    """``name version`` of the component that raised."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call of a tool that was made.

    What was not recorded is None; ``started`` is in ISO 8601.
    """

    name: str
    arguments: Mapping[str, JSON] | None = msgspec.field(default_factory=dict)
    """Decoded arguments.

    None when they could not be decoded to an object (see ``raw_arguments``).
    """
    raw_arguments: str | None = None
    """The argument text as recorded; None when the record held an object."""
    id: str | None = None
    result: JSON = None
    error: str | None = None
    requestor: str = "assistant"
    turn: int | None = None
    """User turn it belongs to, from 0."""
    step: int | None = None
    """Index of the model's answer it came from; parallel calls share it."""
    author: str | None = None
    """Agent that made it."""
    server: str | None = None
    """MCP server that offers the tool."""
    kind: Literal["function", "builtin", "mcp", "custom"] | None = None
    status: Literal["ok", "error", "denied", "not_run"] | None = None
    """How it ended; it was executed when ``ok`` or ``error``."""
    error_type: str | None = None
    started: str | None = None
    seconds: float | None = None
    exit_code: int | None = None
    """How a command ended that a shell tool ran, as its result says."""


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message of a conversation."""

    role: str
    content: JSON = None
    """Text, None, or whatever parts the record held."""
    tool_calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool the agent had: name, description, and its parameters as JSON Schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, JSON] | None = None


class Rule(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """The rule of an argument that is not simply compared.

    ``optional`` may be left out, ``ignore`` takes any value.
    """

    any_of: tuple[JSON, ...] = ()
    """Values of which one must be met, as ``compare`` says."""
    optional: bool = False
    ignore: bool = False
    compare: Literal["exact", "text", "number", "set", "schema", "regex"] = "exact"
    tolerance: float | None = None
    """Of numbers: the largest difference that is none."""


class ExpectedCall(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """One call a run should make."""

    name: str = ""
    arguments: Mapping[str, JSON] | None = msgspec.field(default_factory=dict)
    """What arguments should equal.

    None: they are not compared, or (see ``raw_arguments``) could not be decoded.
    """
    raw_arguments: str | None = None
    """The argument text, where it is no object."""
    names: tuple[str, ...] = ()
    """Tools, each of which is right, in place of ``name``."""
    rules: Mapping[str, Rule] | None = None
    """Arguments that are not simply compared; a rule alone decides its key."""
    optional: bool = False
    """It may be left out without loss."""
    turn: int | None = None
    """User turn it is due in, from 0."""
    group: int | None = None
    """Calls of one group come in any order, groups in theirs."""
    requestor: str | None = None

    @classmethod
    def of(cls, call: ToolCall) -> ExpectedCall:
        """Return an expected call with the name and arguments of a made call."""
        raw = call.raw_arguments if call.arguments is None else None
        return cls(name=call.name, arguments=call.arguments, raw_arguments=raw)

    @property
    def plain(self) -> bool:
        """Whether a name and arguments to compare are all that is said of it."""
        known = self.arguments is not None or self.raw_arguments is not None
        return known and not (self.rules or self.names or self.optional)


class Expectation(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """The reference of a sample. None everywhere means "no reference of that kind".

    ``calls=()`` is a reference too: calling nothing is right. Calls that were made may be given as
    expected ones.
    """

    calls: tuple[ExpectedCall, ...] | None = None
    alternatives: tuple[tuple[ExpectedCall, ...], ...] = ()
    """Other lists of calls that would be right too."""
    forbidden: tuple[str, ...] = ()
    """Patterns of tools that must not be called."""
    label: str | None = None
    text: str | tuple[str, ...] | None = None
    """Reference answer; a tuple holds one per turn."""
    plan: JSON = None
    state: JSON = None
    """The state a run should end in."""

    def __post_init__(self) -> None:
        made: tuple[Any, ...] = self.calls or ()
        if made and type(made[0]) is ToolCall:
            expected = [ExpectedCall.of(each) if type(each) is ToolCall else each for each in made]
            msgspec.structs.force_setattr(self, "calls", tuple(expected))


LARGEST_AMOUNT = 1e100
"""No run takes more of anything; sums of squares of this many stay finite."""


IMPOSSIBLE_AMOUNT = "impossible_amount"
"""Remark on a record: a recorded cost, time or count that cannot be one, and is not used."""


def is_amount(number: float) -> bool:
    """Return whether a number can be a cost, a time or a count: at least 0, and finite."""
    return 0 <= number <= LARGEST_AMOUNT


def impossible_amounts(recorded: Any) -> int:
    """Count the numbers of recorded costs, times and counts that cannot be any.

    Amounts are unusable if they are infinite or below 0. NaN means "not recorded", as None does.
    Lists and objects are looked through.
    """
    count, waiting = 0, [recorded]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            waiting += value.values()
        elif kind is list or kind is tuple:
            waiting += value
        elif kind is int or kind is float:
            count += value < 0 or value > LARGEST_AMOUNT
    return count


class Usage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """The usage of a run: input tokens with cached ones, output tokens with reasoning.

    None is "not recorded", never 0. An amount below 0, infinite or NaN is not recorded.
    """

    requests: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    first_token_seconds: float | None = None

    def __post_init__(self) -> None:
        """Drop what cannot be an amount; NaN is what some write where nothing is known."""
        for place, amount in enumerate(msgspec.structs.astuple(self)):
            if amount is not None and not is_amount(amount):
                msgspec.structs.force_setattr(self, self.__struct_fields__[place], None)


class Sample(_Record, frozen=True, kw_only=True, eq=False):
    """One recorded run of one task.

    The task's k runs share the ``id``, by which errors are clustered.
    """

    id: str
    cluster: str | None = None
    """What samples cut from one recording share, to be left out together by intervals.

    None: the id.
    """
    model: str | None = None
    run: int | str | None = None
    """Trial identifier as recorded; None when the format has none."""
    input: str | tuple[str, ...] | None = None
    """What the user asked; a tuple for several user turns."""
    turns: tuple[tuple[Message, ...], ...] = ()
    """The conversation: turns of messages. Formats without turns have one."""
    calls: tuple[ToolCall, ...] | None = None
    """Every call the agent made, in order; ``()`` is "made none", None is "not recorded"."""
    label: str | None = None
    """Predicted class, for classification families."""
    text: str | None = None
    """Final answer text."""
    plan: JSON = None
    tools: tuple[ToolSpec, ...] | None = None
    """The tools this very run had; None when the record does not say."""
    expected: Expectation = Expectation()
    recorded: Mapping[str, JSON] = NOTHING
    """Scores and verdicts found in the file, by name."""
    status: Status = Status.OK
    error: Fault | None = None
    state: JSON = None
    """The state the run ended in, as recorded."""
    ended: str | None = None
    """``completed``, ``error``, ``limit:WHICH`` or ``cancelled``, as recorded.

    Decides no status.
    """
    trace: Mapping[str, str] = NOTHING
    """``trace_id``, ``span_id``, ``session_id``, as far as there are any."""
    children: tuple[str, ...] = ()
    """Ids of the samples of its sub-agents."""
    agent_id: str | None = None
    usage: Usage | None = None
    agent_usage: JSON = None
    """Usage in whatever form it was recorded."""
    facets: Mapping[str, JSON] = NOTHING
    """Metadata one may group by (domain, category, ...)."""
    remarks: Mapping[str, int] = NOTHING
    """What its reader left out of the record, or found without its counterpart, by kind."""
    source: Source | None = None
    native: Any = None
    """The family's own view of the record, for its own grader and exporter.

    No part of equality or of result rows.
    """


NativeT = TypeVar("NativeT")


def native_of(sample: Sample, kind: type[NativeT]) -> NativeT | None:
    """Return a sample's native form of a class, also from a row that was read back.

    None where it has none.
    """
    native = sample.native
    if isinstance(native, dict):
        try:
            return msgspec.convert(native, kind)
        except ValueError:  # of msgspec's own kind, or a lone surrogate
            return None
    return native if isinstance(native, kind) else None


class BadRecord(_Record, frozen=True, kw_only=True, eq=False):
    """A record no sample could be made of.

    Counted and listed; ends the run only under ``--strict``.
    """

    source: Source
    reason: str
    """What is wrong and what was expected."""
    native: Any = None
    """The record as read, when it could be parsed, so that exporters lose nothing.

    No part of equality.
    """
    is_part: bool = False
    """Whether it is a part of a run that was read without it, such as a line of a session.

    It is counted and listed, and no run is lost with it.
    """


class Reason(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Why points were lost: a code, a place and the two values."""

    code: str
    pointer: str = ""
    """JSON pointer (RFC 6901) into the expected arguments, plan or value."""
    expected: JSON = ABSENT
    actual: JSON = ABSENT
    subject: str = ""
    """Tool, step or argument the pointer is relative to."""
    message: str = ""
    error: str = ""
    """Text of the error it is about, as recorded; reasons are told apart by its kind."""


class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One graded thing inside a sample: an expected call, a step of a scenario, a turn."""

    id: str
    outcome: Outcome = Outcome.GRADED
    score: float | None = None
    label: str | None = None
    gold: str | None = None
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    parts: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    fault: Fault | None = None
    metadata: Mapping[str, JSON] = msgspec.field(default_factory=dict)


if TYPE_CHECKING:
    Items = tuple[Item, ...] | Any
else:
    Items = tuple[Item, ...]  # as rows are read; a grader may also give a function


class Explanation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a grade is what it is: its items, reasons and rationale."""

    items: tuple[Item, ...] = ()
    reasons: tuple[Reason, ...] = ()
    rationale: str = ""


class Grade(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The judgement of one grader on one sample."""

    outcome: Outcome = Outcome.GRADED
    score: float | None = None
    """Finite when graded, None otherwise. Usually a fraction in [0, 1]."""
    passed: bool | None = None
    """The grader's own verdict, where it has one (a recorded reward within tolerance of 1, say)."""
    counts: Mapping[str, int] = NOTHING
    """Integer numerators and denominators, which merge exactly."""
    parts: Mapping[str, float | None] = NOTHING
    """Named sub-scores; None where a part is undefined for this sample."""
    label: str | None = None
    gold: str | None = None
    items: Items = ()
    """The graded things inside the sample.

    A grader with much to say gives a function of no argument in their place, which returns the
    items, or an ``Explanation`` with reasons and rationale too. It is called where a row, a figure
    or an exporter asks (``explained``).
    """
    fault: Fault | None = None
    reasons: tuple[Reason, ...] = ()
    rationale: str = ""
    metadata: Mapping[str, JSON] = NOTHING
    numbers: Mapping[str, float] | None = None
    """Sums over its items, where these are a function: a metric may read them in place of items.

    They follow from the items, and stand in no row.
    """


def explained(grade: Grade) -> Grade:
    """Return a grade with its items in place of the function that makes them.

    Raises:
        TypeError: The function returns neither items nor an ``Explanation``.
    """
    if not callable(grade.items):
        return grade
    returned: Any = grade.items()
    if isinstance(returned, Explanation):
        complete = msgspec.structs.replace(
            grade,
            items=returned.items,
            reasons=returned.reasons,
            rationale=returned.rationale,
        )
    else:
        complete = replace(grade, items=returned)
    flaw = _odd_list(complete)
    if flaw is not None:
        raise TypeError(flaw)
    return complete


class Key(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All an aggregator knows of a sample."""

    id: str
    cluster: str | None = None
    model: str | None = None
    run: int | str | None = None
    ordinal: int = 0
    """Grows in input order; neither dense nor starting at zero in every shard."""
    facets: Mapping[str, JSON] = NOTHING


_GRADED = Outcome.GRADED


def skipped(code: str, message: str) -> Grade:
    """Return a grade that says the grader does not apply here, and why."""
    reason = Reason(code=code, message=message)
    return Grade(outcome=Outcome.SKIPPED, reasons=(reason,), rationale=message)


def failed(fault: Fault) -> Grade:
    """Return a grade that says the sample (or the grader on it) is broken."""
    rationale = fault.message or fault.code
    return Grade(outcome=Outcome.FAILED, fault=fault, rationale=rationale)


VERDICT_NAMES: Final = (
    *("success", "passed", "pass", "resolved", "is_resolved", "solved"),
    *("is_correct", "correct", "valid", "reward"),
)
"""Names of recorded values that say whether a run was a success, the first that is there."""


def failed_verdict(recorded: Mapping[str, JSON]) -> str | None:
    """Return the name of the recorded value that says that a run was no success.

    It is false, or no number above 0; None where the first verdict on record is no such value.
    """
    for name in VERDICT_NAMES:
        value = recorded.get(name)
        if isinstance(value, bool | int | float):
            return None if value > 0 else name
    return None


LARGEST_SCORE = 1e100
"""Larger magnitudes than any metric has; sums of squares of this many stay finite."""


def check_grade(grade: Any) -> str | None:
    """Find what is wrong with the return value of a grader; None where it is a grade that obeys the
    contract.

    A graded outcome has a finite score of at most ``LARGEST_SCORE`` in magnitude, and a verdict or
    None; any other has no score. Parts are finite or None, counts finite, labels text or None.
    """
    if not isinstance(grade, Grade):
        if isinstance(grade, Coroutine):
            grade.close()  # else it is told that nobody awaited it
            return "returned a coroutine, which is not awaited: write `def` in place of `async def`"
        return (
            f"returned {grade!r:.60} ({type(grade).__name__}), expected a Grade, a number, or "
            "True or False"
        )
    score: Any = grade.score
    if type(grade.outcome) is not Outcome:
        return f"outcome must be one of Outcome, such as Outcome.SKIPPED, got {grade.outcome!r:.80}"
    if grade.outcome is not _GRADED:
        return (
            _odd_member(grade)
            if score is None
            else f"a {grade.outcome} outcome has no score, got {score!r}"
        )
    if type(score) is not float and (isinstance(score, bool) or not isinstance(score, int | float)):
        return f"a graded outcome needs a number as score, got {score!r}"
    if not -LARGEST_SCORE <= score <= LARGEST_SCORE:
        if isinstance(score, int):
            return "the score is too large"
        what = f"at most {LARGEST_SCORE:g} in magnitude" if isfinite(score) else "finite"
        return f"a score must be {what}, got {score!r}"
    passed: Any = grade.passed
    if passed is not None and not isinstance(passed, bool):
        return f"passed must be true, false or None, got {passed!r}"
    return _odd_member(grade)


def _odd_member(grade: Grade) -> str | None:
    """Find what is wrong with a grade's members beside its score and verdict."""
    for name, wanted in (("parts", "finite or None"), ("counts", "a finite number")):
        members: Any = getattr(grade, name)
        if type(members) is not dict and not isinstance(members, Mapping):  # which is slow
            return f"{name} must be a mapping of names to numbers, got {members!r:.80}"
        for key, number in members.items():
            sound = number is None if name == "parts" else isinstance(number, int)
            if not sound and not _is_finite(number):
                return f"{name[:-1]} {key!r} must be {wanted}, got {number!r:.80}"
    for name, of_kind, expected in (
        ("label", str, "text"),
        ("gold", str, "text"),
        ("fault", Fault, "a gradestack.Fault"),
    ):
        value: Any = getattr(grade, name)
        if value is not None and not isinstance(value, of_kind):
            return f"{name} must be {expected} or None, got {value!r:.80}"
    return _odd_list(grade)


_LISTS: Final = (tuple, list)  # `tuple | list` is made anew each time


def _odd_list(grade: Grade) -> str | None:
    """Find what is wrong with the items or reasons of a grade."""
    items: Any = () if callable(grade.items) else grade.items
    if not _are_all(items, Item):
        return f"items must be a tuple of gradestack.Item, got {items!r:.80}"
    if not _are_all(grade.reasons, Reason):
        return f"reasons must be a tuple of gradestack.Reason, got {grade.reasons!r:.80}"
    for item in items:
        if type(item.outcome) is not Outcome:
            return f"the outcome of an item must be one of Outcome, got {item.outcome!r:.80}"
    return None


def _are_all(members: Any, kind: type[Any]) -> bool:
    """Return whether something is a tuple or a list whose members are all of a class."""
    if not isinstance(members, _LISTS):
        return False
    for member in members:
        if type(member) is not kind and not isinstance(member, kind):
            return False
    return True


def _is_finite(number: Any) -> bool:
    try:
        return (type(number) is float or isinstance(number, int | float)) and isfinite(number)
    except OverflowError:  # a whole number beyond floats
        return False
