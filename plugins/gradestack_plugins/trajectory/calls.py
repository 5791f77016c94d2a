"""Calls as the graders of the family see them: which count, how they ended, which are equal."""

from __future__ import annotations

import abc
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    JSON,
    Grade,
    Grades,
    Item,
    Numbers,
    Outcome,
    Sample,
    ToolCall,
    ratio,
    ratio_interval,
    skipped,
)
from gradestack_plugins.readers.chat.unread import calls_unknown
from gradestack_plugins.statistics.mean import IntervalAggregator

State = Literal["ok", "error", "denied", "not_run", "unknown"]
Count = Literal["attempted", "executed"]
ASSISTANT: Final = "assistant"
"""Whose calls are judged unless somebody else is named: tools and policies are the agent's."""
SUB_AGENT: Final = "sub_agent"
"""Why a run is in no rate of runs: it is a part of another."""


def sub_agent_grade(sample: Sample) -> Grade | None:
    """Return the grade of a run that a sub-agent made for another; None of any other run.

    Readers say whose sub-agent it was in the facet ``subagent_of``.
    """
    parent = sample.facets.get("subagent_of")
    if parent is None:
        return None
    return skipped(SUB_AGENT, f"a sub-agent of {parent}: in no rate of runs")


def is_of_sub_agent(grade: Grade) -> bool:
    """Return whether a grade is of a sub-agent's run, whose counts count."""
    return any(reason.code == SUB_AGENT for reason in grade.reasons)


def state_of(call: ToolCall) -> State:
    """Return the state in which a call ended.

    Where its format has no word for it, a result or an error says that it was executed.
    """
    if call.status is not None:
        return call.status
    if call.error is not None:
        return "error"
    return "unknown" if call.result is None else "ok"


def judged_calls(
    sample: Sample, count: Count = "attempted", requestor: str | None = ASSISTANT
) -> list[ToolCall] | Grade:
    """Return the calls that count, of one requestor or of all, or the grade of a sample of which
    they are not known.
    """
    if sample.calls is None:
        return calls_unknown(sample)
    calls = [call for call in sample.calls if requestor is None or call.requestor == requestor]
    if count == "attempted":
        return calls
    if any(state_of(call) == "unknown" for call in calls):
        return skipped("execution_not_recorded", "not every call's execution is recorded")
    return [call for call in calls if state_of(call) in {"ok", "error"}]


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() else value


_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_sorted: Final = json.JSONEncoder(sort_keys=True, default=dict).encode
_plain: Final = json.JSONDecoder(parse_float=_number, parse_constant=str).decode
_FLOAT: Final = re.compile(rb"\d[.e]")
_NOT_ENCODED: Final = (TypeError, ValueError, OverflowError)
"""Errors of texts with half a character, and of huge integers."""


def identity_of(call: ToolCall) -> str | bytes | None:
    """Return a text that calls of one name with the same arguments share.

    None where they are too deep to compare.

    The order of keys does not matter, nor whether a whole number is written 1 or 1.0; true is not
    1.
    """
    content = [call.name, call.raw_arguments if call.arguments is None else call.arguments]
    with suppress(RecursionError, *_NOT_ENCODED):
        with suppress(*_NOT_ENCODED):
            text = _encode(content)
            if b"null" not in text and not _FLOAT.search(text):  # null may be no number
                return text
        plain = _plain(_sorted(content))
        with suppress(*_NOT_ENCODED):
            return _encode(plain)
        return _sorted(plain)
    return None


def refuse(grader: Any, preset: str, takes: Collection[str]) -> None:
    """Refuse options that a preset of another tool does not take."""
    default = type(grader)()
    free = {"preset", "count", "requestor", *takes}
    names = [field.name for field in attrs.fields(type(grader)) if field.name not in free]
    stated = [name for name in names if getattr(grader, name) != getattr(default, name)]
    if stated:
        problem = f"the preset {preset} leaves no choice for {', '.join(stated)}"
        raise ValueError(f"{problem}; leave out either")


def pattern_problem(text: str) -> str | None:
    """Return why a text is no regular expression, None of one that is."""
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{text!r} is no regular expression: {error}"
    return None


def value_at(value: Any, pointer: str, default: Any = None) -> Any:
    """Return the value at a JSON pointer, the default where there is nothing."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
            continue
        is_index = isinstance(value, list) and re.fullmatch("[0-9]{1,9}", key) is not None
        if not is_index or int(key) >= len(value):
            return default
        value = value[int(key)]
    return value


def add_counts(items: Iterable[Item]) -> dict[str, int]:
    """Return the sums of the counts of all items of a grade."""
    total = Counter[str]()
    for item in items:
        total.update(item.counts)
    return dict(total)


def share_item(name: str, counts: dict[str, int], above: int, below: int) -> Item:
    """Return the calls of one tool, with their share.

    Skipped where there is nothing to divide by.
    """
    if not below:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    return Item(id=name, score=above / below, counts=counts)


Counts = dict[str, int]
Members = dict[str, tuple[Counts, dict[str, JSON]]]
"""Member -> its sums, and its share with the interval."""


@attrs.frozen(kw_only=True)
class MemberShares(IntervalAggregator):
    """One count's share of another, over all graded runs and by tool, check or other item of a
    grade.
    """

    above: ClassVar[str]
    below: ClassVar[str]
    share: ClassVar[str]
    undefined: ClassVar[str]

    @abc.abstractmethod
    def counts(self, grade: Grade | Item) -> Mapping[str, int]:
        """Return the numbers of a grade or an item, ``above`` and ``below`` among them."""

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None and not is_of_sub_agent(grade):
            return None
        total = Counter(self.counts(grade))
        for item in grade.items:
            counts = self.counts(item)
            total.update({f"{name}\n{item.id}": number for name, number in counts.items()})
        return total

    def members(self, grades: Grades) -> tuple[Counts, Members]:
        """Return the sums of all graded runs, and the members of their grades."""
        runs: Counts = {}
        sums: dict[str, Counts] = {}
        for name, number in sorted(grades.totals.items()):
            count, is_of_member, member = name.partition("\n")
            counts = sums.setdefault(member, {}) if is_of_member else runs
            counts[count] = int(number)
        tasks: dict[str, Counter[tuple[float, ...]]] = {member: Counter() for member in sums}
        for numbers, times in grades.task_numbers()[0].items():
            of_task = dict(numbers)
            for name, divisor in numbers:
                count, is_of_member, member = name.partition("\n")
                if is_of_member and count == self.below:
                    dividend = of_task.get(f"{self.above}\n{member}", 0)
                    tasks[member][divisor, dividend] += times
        return runs, {member: self._member(sums[member], tasks[member]) for member in sorted(sums)}

    def _member(
        self, counts: Counts, tasks: Counter[tuple[float, ...]]
    ) -> tuple[Counts, dict[str, JSON]]:
        interval: JSON = {"reason": self.undefined}
        if tasks:
            interval = {**ratio_interval(tasks, confidence=self.confidence)}
        share = ratio(counts.get(self.above, 0), counts[self.below])
        return counts, {self.share: share, f"{self.share}_interval": interval}


class CallShares(MemberShares):
    """Calls over all graded runs and by tool; ``below`` is the sum of several counts."""

    summands: ClassVar[tuple[str, ...]]

    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        """Return counts as they are written."""
        return dict(counts)

    @override
    def counts(self, grade: Grade | Item) -> Mapping[str, int]:
        below = sum([grade.counts.get(name, 0) for name in self.summands])
        return {self.above: 0, **grade.counts, self.below: below}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, members = self.members(grades)
        figures = self.shown(runs)
        if not runs.get(self.below):
            figures[f"{self.share}_reason"] = self.undefined
        figures["tools"] = {
            tool: {**self.shown(counts), **share} for tool, (counts, share) in members.items()
        }
<<<<<<< HEAD
        return figures
=======


_SHOWN = 300  # characters of an error's text kept in a reason
_CODES: Final = {
    "error": "call_failed",
    "denied": "call_denied",
    "not_run": "call_not_run",
    "unknown": "no_result",
}


def _checked(_: object, field: attrs.Attribute[tuple[str, ...]], patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if problem := bad_pattern(pattern):
            raise ValueError(f"{field.name}: {problem}")


@attrs.frozen(kw_only=True)
class ToolSuccess(Grader):
    """Share of the executed calls that did not end in an error, in [0, 1].

        score = ok / (ok + error)

    Calls that were denied, did not run, or of which no result was recorded were not executed and
    count in neither. Skipped without recorded calls, without any call, and where no call has a
    recorded result. The run of a sub-agent is skipped, too; its calls count in ``tool_outcomes``.

    A call failed when its format says so (``status``, ``is_error``). Otherwise its result is read
    by the table ``errors@1``: JSON with ``success: false``, ``error``, ``status: failed`` or an
    HTTP status of 400 to 599, and text that begins as an error does. Each reason names the rule.
    ``not_errors`` and ``errors`` go before the table. Of shells the exit code decides where the
    format does not: 2 and above is an error, and 1 is unless the last command is one of grep,
    egrep, fgrep, zgrep, rg, ag, ack, diff, cmp, test, [, [[, find, pgrep, which, command, type
    and expr. It is read from ``exit_code`` or ``returncode`` of the result or of its ``metadata``,
    or from the first or last line ("Exit code: 1").

    ``counts`` has ``calls``, each state (``ok``, ``error``, ``denied``, ``not_run``, ``unknown``),
    ``retried`` (errors after which the same tool was called again) and ``recovered`` (errors after
    which it was called with success). ``items`` holds the same by tool. Where exit codes of shells
    are recorded, ``counts`` has ``commands`` and ``nonzero_commands``: commands that ended non-zero,
    of which not all are failed calls.

    Attributes:
        errors: Regular expressions; a result in which one occurs is an error.
        not_errors: Regular expressions; a result in which one occurs is none, whatever else
            applies.
    """

    version: ClassVar[str] = "2"
    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    metrics: ClassVar[tuple[str, ...]] = ("tool_outcomes", "mean")
    verdict_labels: ClassVar[tuple[str, str]] = ("without failed calls", "with failed calls")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    errors: tuple[str, ...] = attrs.field(default=(), validator=_checked)
    not_errors: tuple[str, ...] = attrs.field(default=(), validator=_checked)

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = judged(sample, requestor=None)
        if isinstance(calls, Grade):
            return calls
        if not calls:
            return skipped("no_calls", "the run made no call")
        by_tool: dict[str, list[State]] = {}
        reasons = []
        for call in calls:
            state, message = self._ended(call)
            by_tool.setdefault(call.name, []).append(state)
            if state != "ok":
                error = self._error_text(call) if state == "error" else ""
                reasons.append(
                    Reason(
                        code=_CODES[state],
                        subject=call.name,
                        message=message[:_SHOWN],
                        error=error[:_SHOWN],
                    )
                )
        items = tuple(_outcomes(name, states) for name, states in by_tool.items())
        counts = {**added_up(items), **_commands(calls)}
        executed = counts["ok"] + counts["error"]
        if not executed:
            grade = skipped("execution_not_recorded", "no call has a recorded result")
            return replace(grade, counts=counts, reasons=(*grade.reasons, *reasons))
        sub_agent = sub_agent_grade(sample)
        if sub_agent is not None:
            told = (*sub_agent.reasons, *reasons)
            return replace(sub_agent, counts=counts, items=items, reasons=told)
        return Grade(
            score=counts["ok"] / executed, counts=counts, items=items, reasons=tuple(reasons)
        )

    def _error_text(self, call: ToolCall) -> str:
        """Return the text of a call's error, without the rule that found it."""
        if call.error:
            return call.error
        form = error_form(call.result)
        if form is not None:
            return form.message
        return call.result if isinstance(call.result, str) else compact(call.result)

    def _ended(self, call: ToolCall) -> tuple[State, str]:
        """Return how a call ended; of an error its text, behind the rule that found it."""
        state, error, kind = state_of(call), call.error or "", call.error_type or ""
        by_table = kind.startswith(ERRORS)
        if state not in {"ok", "error"} or (state == "error" and not by_table):
            return state, error
        if self.errors or self.not_errors:
            text = call.result if isinstance(call.result, str) else compact(call.result)
            if any(re.search(pattern, text) for pattern in self.not_errors):
                return "ok", ""
            if pattern := next((each for each in self.errors if re.search(each, text)), None):
                return "error", f"errors {pattern}: {text}"
        if call.status is None and (form := error_form(call.result)) is not None:
            return "error", f"{form.type}: {form.message}"
        return state, f"{kind}: {error}" if by_table else ""


def _commands(calls: Iterable[ToolCall]) -> dict[str, int]:
    """Return how many commands of shells ended with a known exit code, and how many not with 0."""
    codes = [call.exit_code for call in calls if call.exit_code is not None]
    nonzero = sum(code != 0 for code in codes)
    return {"commands": len(codes), "nonzero_commands": nonzero} if codes else {}


def _outcomes(name: str, states: Sequence[State]) -> Item:
    counts = dict.fromkeys(
        ("calls", "ok", "error", "denied", "not_run", "unknown", "retried", "recovered"), 0
    )
    counts["calls"] = len(states)
    for state in reversed(states):
        if state == "error":
            counts["retried"] += any(
                counts[each] for each in ("ok", "error", "denied", "not_run", "unknown")
            )
            counts["recovered"] += counts["ok"] > 0
        counts[state] += 1
    return share_item(name, counts, counts["ok"], counts["ok"] + counts["error"])


_NONE, _RATE = "no call was executed", "ok / (ok + error)"


@attrs.frozen(kw_only=True)
class ToolOutcomes(CallShares):
    """Calls by outcome, over all runs and by tool.

    Every count of the graded runs' grades is added up, and for each tool those of its items.
    ``success_rate`` = ok / (ok + error), over calls, not over runs; None where no call was
    executed. Its interval leaves out one task at a time.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        Figure(
            "success_rate", "Successful calls", about=_RATE, divisor="executed", undefined=_NONE
        ),
        Figure(
            "tools.{tool}.success_rate",
            "Successful calls of a tool",
            about=_RATE,
            divisor="executed",
        ),
    )
    share, above, below, undefined = "success_rate", "ok", "executed", _NONE
    summands = ("ok", "error")

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        ok = totals["ok"]
        executed = totals["executed"]
        return {"success_rate": ratio(ok, executed)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs = sum(times for grade, times in grades.counted if grade.score is not None)
        return {"executed": 0, "runs": runs, **super().compute(grades)}


_NAMES: Final = 5


@attrs.frozen(kw_only=True)
class CallRepeats(Grader):
    """Share of the calls that are not identical to the call before them, in [0, 1].

    ``passed`` without a loop.

        score = (calls - repeats) / calls

    Calls are identical when tool and arguments are, whatever the order of keys. A *loop* is a block
    of up to ``period`` calls made at least ``loop`` times in a row: one call, or two in turns, and
    so on. ``counts`` has ``calls``, ``distinct``, ``repeats`` (identical to the call before),
    ``longest`` (the longest run of identical calls), and ``loops`` with ``looped``, the calls
    within one; reasons name each loop and how often it went round. Skipped without recorded calls,
    without any, and for the run of a sub-agent.

    Attributes:
        loop: How many rounds are a loop, at least 2.
        period: The most calls of a round.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"calls"})
    compares: ClassVar[frozenset[str] | None] = frozenset()
    metrics: ClassVar[tuple[str, ...]] = ("loops", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    loop: int = attrs.field(default=3, validator=attrs.validators.ge(2))
    period: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    count: Count = "attempted"
    requestor: str | None = None

    @override
    def grade(self, sample: Sample) -> Grade:
        calls = sub_agent_grade(sample) or judged(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls
        if not calls:
            return skipped("no_calls", "the run made no call")
        marks = [identity_of(call) or f"#{number}" for number, call in enumerate(calls)]
        repeats = sum(left == right for left, right in pairwise(marks))
        counts = {
            "calls": len(calls),
            "distinct": len(set(marks)),
            "repeats": repeats,
            "longest": max(len(list(group)) for _, group in groupby(marks)),
            "loops": 0,
            "looped": 0,
        }
        reasons = []
        for start, end, period in self._loops(marks):
            rounds = (end - start) // period
            names = ", ".join([call.name for call in calls[start : start + min(period, _NAMES)]])
            message = f"{names}: {rounds} times in a row, from call {start}"
            reasons.append(
                Reason(code="loop", subject=calls[start].name, actual=rounds, message=message)
            )
            counts["loops"] += 1
            counts["looped"] += end - start
        score = (len(calls) - repeats) / len(calls)
        return Grade(score=score, passed=not reasons, counts=counts, reasons=tuple(reasons))

    def _loops(self, marks: Sequence[str | bytes]) -> Iterator[tuple[int, int, int]]:
        """Yield the loops: first call, one past the last, calls of a round.

        Shorter rounds first tried.
        """
        start = 0
        while start < len(marks):
            for period in range(1, self.period + 1):
                end = start + period
                while end < len(marks) and marks[end] == marks[end - period]:
                    end += 1
                if end - start >= self.loop * period:
                    yield start, end, period
                    start = end
                    break
            else:
                start += 1


@attrs.frozen(kw_only=True)
class Loops(IntervalAggregator):
    """Runs with a loop, repeated calls, and the longest run of identical ones.

    ``loop_rate`` = runs with a loop / graded runs; ``repeat_share`` = repeats / calls over all
    runs. Intervals leave out one task at a time; None without any run.

    Attributes:
        confidence: Of the intervals, between 0 and 1.
    """

    figures: ClassVar = (
        Figure(
            "loop_rate", "Runs with a loop", better="lower", about="runs with a loop / graded runs"
        ),
        Figure("repeat_share", "Repeated calls", better="lower", about="repeats / calls"),
    )

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        calls, repeats, loops = (
            grade.counts.get(name, 0) for name in ("calls", "repeats", "loops")
        )
        return {"runs": 1, "looping": int(loops > 0), "calls": calls, "repeats": repeats}

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, float | None]:
        runs = totals["runs"]
        looping = totals["looping"]
        calls = totals["calls"]
        repeats = totals["repeats"]
        return {"loop_rate": ratio(looping, runs), "repeat_share": ratio(repeats, calls)}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        divisors = {"loop_rate": "runs", "repeat_share": "calls"}
        lacking = [name for name, divisor in divisors.items() if not grades.totals.get(divisor)]
        longest = [
            grade.counts.get("longest", 0) for grade, _ in grades.counted if grade.score is not None
        ]
        return {
            **{f"{name}_reason": "no run made a call" for name in lacking},
            "longest": max(longest, default=0),
        }


Taken = Literal[
    "steps", "calls", "turns", "requests", "input_tokens", "output_tokens", "seconds", "cost_usd"
]
_RECORDED: Final = Usage.__struct_fields__
_BY_TURN: Final = ("steps", "calls", "input_tokens", "output_tokens", "seconds")


@attrs.frozen(kw_only=True)
class RunUsage(Grader):
    """What a run took: a figure, not a verdict, so that more is neither better nor worse.

    ``parts`` has ``steps`` (answers of the model in the conversation), ``turns`` (of the user),
    ``calls`` that were made and ``executed_calls``, and what was recorded of ``requests``,
    ``input_tokens`` (cached ones included), ``cached_input_tokens``, ``cache_write_tokens``,
    ``output_tokens`` (reasoning included), ``reasoning_tokens``, ``cost_usd``, ``seconds`` and
    ``first_token_seconds``; ``NAME_per_turn`` of steps, calls, tokens and seconds, which is the
    mean over the turns; and ``step_ratio``, calls made / calls expected, optional ones left out,
    where any are.

    What was not recorded is None, never 0, and nothing is estimated. With ``prices`` the cost is
    worked out from the recorded tokens, whatever cost was recorded; no price is known without.

    Attributes:
        score: The figure that is the score; a run that does not record it is skipped.
        prices: YAML or JSON file of dollars for a million tokens:
            ``models: {NAME: {input, output, cached_input, cache_write}}``.
    """

    version: ClassVar[str] = "3"
    compares: ClassVar[frozenset[str] | None] = frozenset()
    """What is expected is no reference for it: it counts the steps that would do."""
    metrics: ClassVar[tuple[str, ...]] = ("usage_totals", "mean")
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)
    better = "neither"

    score: Taken = "steps"
    prices: Path | None = None
    by_model: Mapping[str, Price] = attrs.field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.prices is not None:
            object.__setattr__(self, "by_model", read_prices(self.prices))

    @property
    def label(self) -> str:  # type: ignore[override]
        """The label of the figure that is the score."""
        return self._meaning.label

    @property
    def score_unit(self) -> Any:  # type: ignore[override]
        """Its unit."""
        return self._meaning.unit

    @property
    def _meaning(self) -> Figure:
        return next(each for each in UsageTotals.figures if each.name == f"{self.score}.mean")

    @override
    def grade(self, sample: Sample) -> Grade:
        usage, turns, calls = sample.usage, sample.turns, sample.calls
        steps = (
            sum([message.role == "assistant" for turn in turns for message in turn])
            if turns
            else None
        )
        asked = (
            sum([message.role == "user" for message in turns[0]]) if len(turns) == 1 else 0
        )  # not cut into turns
        parts: dict[str, float | None] = {
            "steps": steps or None,
            "turns": max(len(turns), asked) if steps else None,
            "calls": None if calls is None else len(calls),
            "executed_calls": _executed(sample),
        }
        parts |= {
            name: None if usage is None else _sound(getattr(usage, name)) for name in _RECORDED
        }
        reasons: tuple[Reason, ...] = ()
        if self.prices is not None:
            price = self.by_model.get(sample.model or "")
            parts["cost_usd"] = (
                None if price is None or usage is None else _sound(price.cost(usage))
            )
            if price is None:
                message = "the price file does not name the model"
                reasons = (Reason(code="no_price", subject=sample.model or "", message=message),)
        number = parts["turns"]
        for name in _BY_TURN:
            total = parts[name]
            parts[f"{name}_per_turn"] = None if total is None or not number else total / number
        parts["step_ratio"] = _ratio(sample)
        found = parts[self.score]
        if found is None:
            told = skipped("usage_not_recorded", f"{self.score} not recorded")
            return Grade(
                outcome=told.outcome, reasons=(*told.reasons, *reasons), rationale=told.rationale
            )
        return Grade(score=float(found), parts=parts, reasons=reasons)


def _executed(sample: Sample) -> int | None:
    found = judged(sample, "executed", None)
    return None if isinstance(found, Grade) else len(found)


def _ratio(sample: Sample) -> float | None:
    wanted = [call for call in sample.expected.calls or () if not call.optional]
    return None if sample.calls is None or not wanted else len(sample.calls) / len(wanted)


def _sound(value: float | None) -> float | None:
    """Return a figure that a grade can hold, None for NaN and what is beyond all measure."""
    return value if value is not None and -LARGEST_SCORE < value < LARGEST_SCORE else None


Dollars = Annotated[float, msgspec.Meta(ge=0, le=LARGEST_SCORE)]
_MILLION: Final = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for a million tokens.

    Cached and written ones cost what other input costs where nothing else is said.
    """

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    cache_write: Dollars | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return what a run cost in dollars.

        None where its tokens are not recorded, or cannot be what was used.

            cost = sum of tokens * price, over cached, written and other input, and output

        Exact, rounded once. Cached and written tokens that are not recorded are taken for other
        input.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached, written = usage.cached_input_tokens or 0, usage.cache_write_tokens or 0
        others = usage.input_tokens - cached - written
        if min(others, cached, written, usage.output_tokens) < 0:
            return None
        total = others * Fraction(self.input) + usage.output_tokens * Fraction(self.output)
        total += cached * Fraction(self.input if self.cached_input is None else self.cached_input)
        total += written * Fraction(self.input if self.cache_write is None else self.cache_write)
        try:
            return float(total / _MILLION)
        except OverflowError:
            return None


def read_prices(path: Path) -> dict[str, Price]:
    """Return the prices of a YAML or JSON file, by model.

    A ValueError says where it is not of the form.
    """
    try:
        return msgspec.convert(read_yaml(path).data, _Prices).models
    except ConfigError as error:
        raise ValueError(error.line) from error
    except msgspec.ValidationError as error:
        form = "models: {NAME: {input: 2.5, output: 10}}"
        what = f"{path}: expected prices in dollars for a million tokens, as {form}"
        raise ValueError(f"{what}: {error}") from error


class _Prices(msgspec.Struct, forbid_unknown_fields=True):
    models: Annotated[dict[str, Price], msgspec.Meta(min_length=1)]


_RUNS, _SUM = "runs ", "sum "
_COUNTS: Final = frozenset({"steps", "turns", "calls", "executed_calls", "requests"})


def _whole_count(name: str, total: int | Fraction) -> float:
    """Return a total of calls, tokens and the like as the whole number it is."""
    is_count = name in _COUNTS or name.endswith("_tokens")
    return int(total) if is_count else float(total)


def _mean(name: str, label: str, unit: Any, better: Any = "neither") -> Figure:
    about, by = "total / runs that record it", f"{_RUNS}{name}"
    return Figure(
        f"{name}.mean",
        label,
        better=better,
        unit=unit,
        about=about,
        divisor=by,
        least=0.0,
        optional=True,
    )


@attrs.frozen(kw_only=True)
class UsageTotals(IntervalAggregator):
    """Of every part of a grade.

    ``total``, ``mean`` over the ``n`` runs that record it, ``min`` and ``max``.

    The mean's interval is that of an amount, clustered by task; of a part this family does not know
    the mean -+ t se.
    """

    version: ClassVar[str] = "2"
    figures: ClassVar = (
        _mean("steps", "Steps per run", "count"),
        _mean("turns", "Turns a run", "count"),
        _mean("calls", "Calls a run", "count"),
        _mean("executed_calls", "Executed calls a run", "count"),
        _mean("requests", "Requests a run", "count"),
        _mean("input_tokens", "Input tokens a run", "tokens", "lower"),
        _mean("cached_input_tokens", "Cached input tokens a run", "tokens"),
        _mean("cache_write_tokens", "Cache write tokens a run", "tokens"),
        _mean("output_tokens", "Output tokens a run", "tokens", "lower"),
        _mean("reasoning_tokens", "Reasoning tokens a run", "tokens"),
        _mean("cost_usd", "Cost of a run", "usd", "lower"),
        _mean("seconds", "Seconds a run", "seconds", "lower"),
        _mean("first_token_seconds", "Seconds to the first token", "seconds", "lower"),
        _mean("steps_per_turn", "Steps a turn", "count"),
        _mean("calls_per_turn", "Calls a turn", "count"),
        _mean("input_tokens_per_turn", "Input tokens a turn", "tokens"),
        _mean("output_tokens_per_turn", "Output tokens a turn", "tokens"),
        _mean("seconds_per_turn", "Seconds a turn", "seconds"),
        _mean("step_ratio", "Calls made for each expected one", "count"),
        Figure(
            "{part}.mean", "Mean of a part", better="neither", unit="score", divisor="runs {part}"
        ),
    )

    @override
    def contribution(self, grade: Grade) -> Numbers | None:
        if grade.score is None:
            return None
        known = {name: float(value) for name, value in grade.parts.items() if value is not None}
        return {f"{_RUNS}{name}": 1 for name in known} | {
            f"{_SUM}{name}": value for name, value in known.items()
        }

    @override
    def figures_of(self, totals: Mapping[str, float]) -> Mapping[str, Mapping[str, float | None]]:
        runs = {
            name.removeprefix(_RUNS): number
            for name, number in totals.items()
            if name.startswith(_RUNS) and number
        }
        return {name: {"mean": totals[f"{_SUM}{name}"] / number} for name, number in runs.items()}

    @override
    def compute(self, grades: Grades) -> Mapping[str, JSON]:
        runs, ends = 0, dict[str, tuple[float, float]]()
        for grade, times in grades.counted:
            if grade.score is None:
                continue
            runs += times
            for name, value in grade.parts.items():
                if value is not None:
                    low, high = ends.get(name, (value, value))
                    ends[name] = (min(low, value), max(high, value))
        found: dict[str, JSON] = {"runs": runs}
        for name, (low, high) in sorted(ends.items()):
            found[name] = {
                "total": _whole_count(name, grades.totals[f"{_SUM}{name}"]),
                "min": float(low),
                "max": float(high),
                **QUANTILES,
                "n": int(grades.totals[f"{_RUNS}{name}"]),
            }
        return found
>>>>>>> 34508526 (The console speaks of runs; gates near their threshold say which side is possible; checks of the kit in plain words)
