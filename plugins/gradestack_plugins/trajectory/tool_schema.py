"""Grader ``tool_schema``, calls against the JSON Schema of the run's own tools, and aggregator
``call_validity``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    Figure,
    Grade,
    Grader,
    Item,
    Ratio,
    Reason,
    Sample,
    ToolCall,
    ToolSpec,
    preset_version,
    replace,
    skipped,
)
from gradestack_plugins.trajectory.calls import (
    ASSISTANT,
    CallShares,
    Count,
    add_counts,
    judged_calls,
    refuse,
    share_item,
    state_of,
)
from gradestack_plugins.trajectory.schema_cost import Unusable
from gradestack_plugins.trajectory.schemas import violations

PRESETS: Final = {"mcp_bench/tool_accuracy": "01ae3b4"}
_COUNTS: Final = ("calls", "valid", "violating", "unknown_tool", "undecodable", "unchecked")
_KINDS: Final = {
    "unknown_tool": "unknown_tool",
    "undecodable_arguments": "undecodable",
    **dict.fromkeys(("schema_unusable", "schema_too_large", "not_expressible"), "unchecked"),
}
_MOST_REASONS: Final = 20  # of one call; counts have all
_LONGEST: Final = 300


def _with_version(preset: str | None) -> str | None:
    return preset_version(preset, PRESETS)


@attrs.frozen(kw_only=True)
class ToolSchema(Grader):
    """Share of the calls that are valid against this run's own tools, in [0, 1].

        score = valid / (valid + violating + unknown_tool + undecodable)

    A call is valid when the run had a tool of its name and the arguments keep the tool's JSON
    Schema; a tool without a schema takes anything. ``violating`` calls break a keyword of it,
    ``unknown_tool`` ones name a tool the run did not have, ``undecodable`` ones have arguments that
    are no object. Some calls are ``unchecked`` and in neither number. Their tool's schema is no
    JSON Schema, takes too much time or memory, or asks for what is not done here: other documents,
    patterns that look around. Of several tools of one name any may take the call.

    Dialects are told by ``$schema``, 2020-12 by default. Nothing is fetched or opened, patterns
    take linear time. ``counts`` also has ``violation:KEYWORD`` for each keyword, ``items`` the same
    by tool; reasons are the keywords, with a pointer into the arguments. Skipped without recorded
    calls or tools, without any call, and where all are unchecked.

    With the preset ``mcp_bench/tool_accuracy`` the score is the share of calls of known
    tools that fit their schema, 0 where no tool is known; ``parts`` are that benchmark's four
    rates.

    Attributes:
        strict_integers: 1.0 is no integer; by the standard it is one.
        count: All calls that were made, or those that were executed.
        requestor: Whose calls; null for everybody's.
        preset: The rule of another tool.
    """

    needs = frozenset({"calls", "tools"})
    compares = frozenset[str]()
    metrics = ("call_validity", "mean")
    verdict_labels = ("without invalid calls", "with invalid calls")

    strict_integers: bool = False
    count: Count = "attempted"
    requestor: str | None = ASSISTANT
    preset: str | None = attrs.field(default=None, converter=_with_version)

    def __attrs_post_init__(self) -> None:
        if self.preset is not None:
            refuse(self, self.preset, ())

    @property
    @override
    def tool_schemas(self) -> bool:
        return True

    @override
    def grade(self, sample: Sample) -> Grade:
        grade = self._grade(sample)
        if self.preset is None:
            return grade
        metadata = {**grade.metadata, "preset": self.preset}
        return replace(grade, metadata=metadata)

    def _grade(self, sample: Sample) -> Grade:
        """Grade a sample by the share of calls whose arguments satisfy their tool's schema."""
        calls = judged_calls(sample, self.count, self.requestor)
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
            of_call = self._reasons(call, tools.get(call.name, []))
            counts = by_tool.setdefault(call.name, dict.fromkeys(_COUNTS, 0))
            for name in ("calls", *_count_names(of_call)):
                counts[name] = counts.get(name, 0) + 1
            reasons += of_call[:_MOST_REASONS]
        items = tuple([_item(name, counts) for name, counts in by_tool.items()])
        total = add_counts(items)
        if self.preset is not None:
            return _mcp_bench(total, calls, items, tuple(reasons))
        checked = total["calls"] - total["unchecked"]
        if checked:
            score = total["valid"] / checked
            grade = Grade(score=score)
        else:
            grade = _NOTHING_CHECKED
        reasons = [*grade.reasons, *reasons]
        return replace(grade, counts=total, items=items, reasons=tuple(reasons))

    def _reasons(self, call: ToolCall, tools: Sequence[ToolSpec]) -> list[Reason]:
        """List the reasons why no tool of its name takes a call; none if one does.

        They are those of the first tool whose schema can be checked.
        """
        if not tools:
            message = "the run had no tool of this name"
            return [Reason(code="unknown_tool", subject=call.name, message=message)]
        if self.preset is not None and not tools[-1].parameters:
            return []
        if call.arguments is None:
            text = (call.raw_arguments or "")[:_LONGEST]
            return [Reason(code="undecodable_arguments", subject=call.name, message=text)]
        first_reasons: list[Reason] = []
        for tool in tools if self.preset is None else tools[-1:]:
            reasons = self._violations(call.name, call.arguments, tool)
            if not reasons:
                return []
            if not first_reasons or _kind_of(first_reasons) == "unchecked":
                first_reasons = reasons
        return first_reasons

    def _violations(self, name: str, arguments: Mapping[str, JSON], tool: ToolSpec) -> list[Reason]:
        """List how arguments violate a tool's schema, or that the schema cannot be used."""
        schema = tool.parameters
        if schema is None:
            return []
        mapped = self.preset is None
        strict = self.strict_integers
        try:
            reasons = violations(schema, arguments, strict_integers=strict, mapped=mapped)
        except Unusable as problem:
            is_unusable = problem.code == "not_expressible" and mapped
            code = "schema_unusable" if is_unusable else problem.code
            return [Reason(code=code, subject=name, message=str(problem))]
        return [replace(reason, subject=name) for reason in reasons]


_NOTHING_CHECKED: Final = skipped(
    "schema_unusable", "no call is of a tool whose schema can be used"
)


def _kind_of(reasons: Sequence[Reason]) -> str:
    if reasons:
        return _KINDS.get(reasons[0].code, "violating")
    return "valid"


def _count_names(reasons: Sequence[Reason]) -> list[str]:
    """Return the names of the counts that a call adds to."""
    kind = _kind_of(reasons)
    keywords = [f"violation:{reason.code}" for reason in reasons]
    return [kind, *keywords] if kind == "violating" else [kind]


def _item(name: str, counts: dict[str, int]) -> Item:
    valid = counts["valid"]
    calls = counts["calls"]
    return share_item(name, counts, valid, calls - counts["unchecked"])


_UNCHECKABLE: Final = {
    "not_expressible": "the schema uses an unsupported keyword",
    "schema_too_large": "the schema is too large to be checked",
}
"""Code of a schema that MCP-Bench's rates cannot be made with -> why."""


def _mcp_bench(
    total: Mapping[str, int],
    calls: Sequence[ToolCall],
    items: tuple[Item, ...],
    reasons: tuple[Reason, ...],
) -> Grade:
    """Return the grade of MCP-Bench: rates over all calls, and over those of known tools.

    Calls that failed are not known where the recording says of no call how it ended.
    """
    for reason in reasons:
        if reason.code in _UNCHECKABLE:
            grade = skipped(reason.code, _UNCHECKABLE[reason.code])
            return replace(grade, counts=total, reasons=(*grade.reasons, *reasons))
    n_calls = total["calls"]
    n_known = n_calls - total["unknown_tool"]
    strangers = {reason.subject for reason in reasons if reason.code == "unknown_tool"}
    states = [state_of(call) for call in calls]
    of_known = [state_of(call) for call in calls if call.name not in strangers]
    failures = len(of_known) - of_known.count("ok")
    is_executed = set(states) != {"unknown"}
    compliance = total["valid"] / n_known if n_known else 0.0
    failure_rate = failures / n_known if n_known else 0.0
    execution_success_rate = None
    if is_executed:
        execution_success_rate = states.count("ok") / n_calls
    valid_tool_name_rate = n_known / n_calls
    valid_call_failure_rate = failure_rate if is_executed else None
    parts = {
        "valid_tool_name_rate": valid_tool_name_rate,
        "input_schema_compliance": compliance,
        "execution_success_rate": execution_success_rate,
        "valid_call_failure_rate": valid_call_failure_rate,
    }
    return Grade(score=compliance, counts=total, parts=parts, items=items, reasons=reasons)


_SHARE: Final = "valid / (calls - unchecked)"


class CallValidity(CallShares):
    """Valid calls over all runs and by tool, and how often each keyword of a schema is violated.

    ``valid_share`` = valid / (calls - unchecked), over calls, not over runs; None where none was
    checked. Its interval and that of each tool leave out one task at a time.
    """

    figures = (
        Ratio("valid_share", "Schema-valid calls", about=_SHARE, right="valid", of="checked"),
        Figure(
            "tools.{tool}.valid_share",
            "Schema-valid calls of a tool",
            about=_SHARE,
            divisor="checked",
        ),
    )
    share, above, below, undefined = "valid_share", "valid", "checked", "no call was checked"
    summands = ("valid", "violating", "unknown_tool", "undecodable")

    @override
    def shown(self, counts: Mapping[str, int]) -> dict[str, JSON]:
        numbers = {name: counts[name] for name in counts if ":" not in name}
        numbers.pop("checked", None)
        names = [name for name in sorted(counts) if name.startswith("violation:")]
        keywords = {name.partition(":")[2]: counts[name] for name in names}
        return {**numbers, "violations": {**keywords}}
