"""Grader ``tool_schema``, calls against the JSON Schema of the run's own tools, and aggregator ``call_validity``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grader,
    Item,
    Outcome,
    Reason,
    Sample,
    ToolCall,
    ToolSpec,
    preset_version,
    ratio,
    replace,
    skipped,
)
from gradestack_plugins.trajectory.calls import (
    ASSISTANT,
    CallShare,
    Count,
    added_up,
    judged,
    refuse,
    state_of,
)
from gradestack_plugins.trajectory.schemas import Unusable, violations

PRESETS: Final = {"mcp_bench/tool_accuracy": "01ae3b4"}
_COUNTS: Final = ("calls", "valid", "violating", "unknown_tool", "undecodable", "unchecked")
_KINDS: Final = {
    "unknown_tool": "unknown_tool",
    "undecodable_arguments": "undecodable",
    **dict.fromkeys(("schema_unusable", "schema_too_large", "not_expressible"), "unchecked"),
}
_MOST_REASONS: Final = 20
"""Of one call; counts have all."""
_SHOWN: Final = 300


def _named(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class ToolSchema(Grader):
    """Share of the calls that are valid against this run's own tools, in [0, 1].

        score = valid / (valid + violating + unknown_tool + undecodable)

    A call is valid when the run had a tool of its name and the arguments keep the tool's JSON Schema; a tool without a
    schema takes anything. ``violating`` calls break a keyword of it, ``unknown_tool`` ones name a tool the run did not
    have, ``undecodable`` ones have arguments that are no object. Calls of a tool whose schema is no JSON Schema, or
    asks for what is not done here (other documents, patterns that look around), or takes too much time or memory to
    check by, are ``unchecked`` and in neither number. Of several tools of one name any may take the call.

    Dialects are told by ``$schema``, 2020-12 by default. Nothing is fetched or opened, patterns take linear time.
    ``counts`` also has ``violation:KEYWORD`` for each keyword, ``items`` the same by tool; reasons are the keywords,
    with a pointer into the arguments. Skipped without recorded calls or tools, without any call, and where all are
    unchecked.

    With the preset ``mcp_bench/tool_accuracy`` the score is the share of known tools' calls that keep their schema, 0
    where no tool is known; ``parts`` are that benchmark's four rates. Both profiles are the same.

    Attributes:
        strict_integers: 1.0 is no integer; by the standard it is one.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
        preset: The rule of another tool.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset({"calls", "tools"})
    requires: ClassVar[frozenset[str]] = frozenset({"calls", "tools"})
    aggregators: ClassVar[tuple[str, ...]] = ("call_validity", "mean")
    words: ClassVar[tuple[str, str]] = ("without invalid calls", "with invalid calls")

    strict_integers: bool = False
    count: Count = "attempted"
    requestor: str | None = ASSISTANT
    preset: str | None = attrs.field(default=None, converter=_named)

    def __attrs_post_init__(self) -> None:
        if self.preset is not None:
            refuse(self.preset, {"strict_integers": self.strict_integers})

    @property
    @override
    def tool_schemas(self) -> bool:
        return True

    @override
    def grade(self, sample: Sample) -> Grade:
        grade = self._grade(sample)
        return grade if self.preset is None else replace(grade, metadata={**grade.metadata, "preset": self.preset})

    def _grade(self, sample: Sample) -> Grade:
        calls = judged(sample, self.count, self.requestor)
        if isinstance(calls, Grade):
            return calls
        if sample.tools is None:
            return skipped("tools_not_recorded", "no tool definitions recorded")
        if not calls:
            return skipped("no_calls", "the run made no call")
        tools: dict[str, list[ToolSpec]] = {}
        for tool in sample.tools:
            tools.setdefault(tool.name, []).append(tool)
        by_tool: dict[str, dict[str, int]] = {}
        reasons: list[Reason] = []
        for call in calls:
            found = list(self._reasons(call, tools.get(call.name, ())))
            counts = by_tool.setdefault(call.name, dict.fromkeys(_COUNTS, 0))
            kind = _kind(found)
            counts["calls"] += 1
            counts[kind] += 1
            if kind == "violating":
                for each in found:
                    counts[f"violation:{each.code}"] = counts.get(f"violation:{each.code}", 0) + 1
            reasons += found[:_MOST_REASONS]
        items = tuple(_item(name, counts) for name, counts in by_tool.items())
        total = added_up(items)
        if self.preset is not None:
            return _mcp_bench(total, calls, items, tuple(reasons))
        checked = total["calls"] - total["unchecked"]
        if not checked:
            grade = skipped("schema_unusable", "no call is of a tool whose schema can be used")
            return replace(grade, counts=total, items=items, reasons=(*grade.reasons, *reasons))
        return Grade(score=total["valid"] / checked, counts=total, items=items, reasons=tuple(reasons))

    def _reasons(self, call: ToolCall, tools: Sequence[ToolSpec]) -> Iterator[Reason]:
        """Yield why a call is not valid, or not checked; nothing of one that is valid."""
        if not tools:
            yield Reason(code="unknown_tool", subject=call.name, message="the run had no tool of this name")
            return
        arguments = call.arguments
        if self.preset is not None and not tools[-1].parameters:
            return
        if arguments is None:
            yield Reason(code="undecodable_arguments", subject=call.name, message=(call.raw_arguments or "")[:_SHOWN])
            return
        first: list[Reason] | None = None
        for tool in tools if self.preset is None else tools[-1:]:
            found = list(self._violations(call.name, arguments, tool))
            if not found:
                return
            first = found if first is None or _kind(first) == "unchecked" else first
        yield from first or ()

    def _violations(self, name: str, arguments: Mapping[str, JSON], tool: ToolSpec) -> Iterator[Reason]:
        if tool.parameters is None:
            return
        mapped, strict = self.preset is None, self.strict_integers
        try:
            for each in violations(tool.parameters, arguments, strict_integers=strict, mapped=mapped):
                yield replace(each, subject=name)
        except Unusable as problem:
            beyond = problem.code == "not_expressible" and self.preset is None
            yield Reason(code="schema_unusable" if beyond else problem.code, subject=name, message=str(problem))


def _kind(reasons: Sequence[Reason]) -> str:
    """Return the count a call belongs to, by why it is not valid."""
    return _KINDS.get(reasons[0].code, "violating") if reasons else "valid"


def _item(name: str, counts: dict[str, int]) -> Item:
    checked = counts["calls"] - counts["unchecked"]
    if not checked:
        return Item(id=name, outcome=Outcome.SKIPPED, counts=counts)
    return Item(id=name, score=counts["valid"] / checked, counts=counts)


def _mcp_bench(
    total: Mapping[str, int], calls: Sequence[ToolCall], items: tuple[Item, ...], reasons: tuple[Reason, ...]
) -> Grade:
    """Return the grade of MCP-Bench: rates over all calls, and over those of known tools.

    What failed is not known where the recording says of no call how it ended.
    """
    beyond = next((each.code for each in reasons if each.code in {"not_expressible", "schema_too_large"}), None)
    if beyond is not None:
        grade = skipped(beyond, "the schema uses an unsupported keyword")
        return replace(grade, counts=total, reasons=(*grade.reasons, *reasons))
    known = total["calls"] - total["unknown_tool"]
    strangers = {each.subject for each in reasons if each.code == "unknown_tool"}
    states = [state_of(call) for call in calls]
    executed = set(states) != {"unknown"}
    failures = sum(state != "ok" and call.name not in strangers for call, state in zip(calls, states, strict=True))
    compliance = total["valid"] / known if known else 0.0
    parts = {
        "valid_tool_name_rate": known / total["calls"],
        "input_schema_compliance": compliance,
        "execution_success_rate": states.count("ok") / total["calls"] if executed else None,
        "valid_call_failure_rate": (failures / known if known else 0.0) if executed else None,
    }
    return Grade(score=compliance, counts=total, parts=parts, items=items, reasons=reasons)


_SHARE, _UNCHECKED = "valid / (calls - unchecked)", "no call was checked"


@attrs.frozen(kw_only=True)
class CallValidity(CallShare):
    """Valid calls over all runs and by tool, and how often each keyword of a schema is violated.

    ``valid_share`` = valid / (calls - unchecked), over calls, not over runs; None where none was checked. Its interval
    and that of each tool leave out one task at a time.
    """

    version: ClassVar[str] = "1"
    figures: ClassVar = (
        Figure("valid_share", "Schema-valid calls", about=_SHARE, divisor="checked"),
        Figure("tools.{tool}.valid_share", "Schema-valid calls of a tool", about=_SHARE, divisor="checked"),
    )
    share, count, divisor, undefined = "valid_share", "valid", "checked", _UNCHECKED
    divisors = ("valid", "violating", "unknown_tool", "undecodable")

    @override
    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        own = {name: number for name, number in counts.items() if ":" not in name and name != "checked"}
        keywords = {name.partition(":")[2]: counts[name] for name in sorted(counts) if name.startswith("violation:")}
        return {**own, "violations": keywords}

    @override
    def estimate(self, valid: float, checked: float) -> Mapping[str, float | None]:
        return {"valid_share": ratio(valid, checked)}
