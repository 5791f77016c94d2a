"""Scenario YAML files: the gold conversations themselves, without any prediction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    DataError,
    Expectation,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    replace,
    yaml_data,
)
from gradestack.jsonio import as_map
from gradestack_plugins.orchestrationbench.decisions import gold_steps, gold_turn
from gradestack_plugins.orchestrationbench.plans import gold_plans, parse_plan
from gradestack_plugins.orchestrationbench.reader import (
    expectation,
    in_order,
    place_of,
    step_expectation,
    user_turns,
    whole_file,
)
from gradestack_plugins.orchestrationbench.trial import PLAN_MARK

Label = dict[str, dict[str, JSON]]


def label_of(steps: Any) -> Label:
    """Return the ``label`` of scenario steps, as scenario output files carry it.

    ``workflow_id: system`` is the system message; a text starting with ``workflow_`` a gold plan; other steps of
    ``main`` and ``user`` are their turns; all the rest are sub-agent turns ``N``. One whose text mentions ``tool`` is
    read as YAML for the call ``N-1`` (``tool`` with ``arguments`` or ``parameters``, or a list ``tool_call``) and its
    result ``N-2``; when that fails, ``N-1`` has no ``tool_calls``.
    """
    label: Label = {}
    for position, step in enumerate(steps if isinstance(steps, list) else [steps], start=1):
        content, number = as_map(as_map(step).get("data")).get("content"), as_map(step).get("step_id")
        if not isinstance(content, str) or isinstance(number, bool) or not isinstance(number, int | str):
            raise ValueError(f"step {position}: expected an object with a step_id and a text in data.content")  # noqa: TRY004 - a file of the wrong shape, not a wrong argument
        label.update(_turns(str(number), step, content))
    return label


def _turns(number: str, step: Mapping[str, Any], content: str) -> Label:
    kind, agent = step.get("agent_type"), step.get("agent")
    if step.get("workflow_id") == "system":
        return {number: {"role": "system", "content": content}}
    if content.startswith(PLAN_MARK):
        return {number: {"role": "assistant", "content": content}}
    if kind in ("main", "user"):
        role = {"main": "assistant", "user": "user"}.get(str(agent))
        return {number: {"role": role, "content": content}} if role else {}
    turn: Label = {number: {"role": "assistant", "content": content, "agent_id": agent}}
    return turn | _call_turns(number, agent, content) if "tool" in content else turn


def _call_turns(number: str, agent: JSON, content: str) -> Label:
    try:
        read = yaml_data(content.strip())
        calls = [
            (call.get("tool", read.get("tool", "tool_name")), call.get("arguments", {}))
            for call in read.get("tool_call") or []
        ]
        if not calls:
            arguments = read["arguments"] if "arguments" in read else read.get("parameters", {})
            calls = [(read.get("tool", "tool_name"), arguments or {})]
        listed = [_call(f"call_{number}_{place}", *call) for place, call in enumerate(calls, start=1)]
    except Exception:  # noqa: BLE001 - whatever the text is, the converter then keeps it without calls
        return {f"{number}-1": {"role": "assistant", "agent_id": agent, "content": content}}
    first = listed[0]
    return {
        f"{number}-1": {"role": "assistant", "agent_id": agent, "content": "", "tool_calls": listed},
        f"{number}-2": {
            "role": "tool",
            "agent_id": agent,
            "tool_call_id": first["id"],
            "content": read.get("tool_call_result", ""),
            "name": first["function"]["name"],
        },
    }


def _call(identifier: str, name: JSON, arguments: JSON) -> dict[str, JSON]:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function", "id": identifier, "function": {"name": name, "arguments": text}}


def unreadable_steps(label: Label) -> list[str]:
    """Return the steps of a label whose gold call or gold plan cannot be read."""
    calls = [step for step in in_order(gold_steps(label)) if gold_turn(label, step)[3] is not None]
    plans = [
        str(step)
        for step, text in gold_plans(label).items()
        if text.startswith(PLAN_MARK) and not parse_plan(text, "documented").workflows
    ]
    return in_order([*calls, *plans])


@attrs.frozen(kw_only=True)
class ScenarioReader(RecordReader):
    """Gold calls and plans of scenario YAML files, as a dataset for whatever recorded the runs.

    One sample per scenario (id = file stem), or with ``unit: step`` one per sub-agent step and plan
    (``scenario/step``). ``recorded.unreadable_steps`` lists the steps whose gold text does not parse; they carry no
    expectation.
    """

    version: ClassVar[str] = "1"
    provides: ClassVar[frozenset[str]] = frozenset({"input", "expected", "recorded", "facets", "source"})

    pattern: str = "*.yaml"
    """File names looked for in a directory."""
    unit: Literal["scenario", "step"] = "scenario"
    """What one sample is."""

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        return None

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            first = next(iter(sorted(path.glob("*.yaml"))), None)
            if first is None or not first.is_file():
                return 0.0
            with first.open("rb") as file:
                return 0.85 if _looks_right(file.read(65_536)) else 0.0
        return 0.85 if path.suffix in (".yaml", ".yml") and _looks_right(head) else 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for entry in inputs.data:
            names = sorted(path.name for path in entry.path.glob(self.pattern)) if entry.path.is_dir() else [""]
            if not names:
                raise DataError(f"{entry.shown}: no file named {self.pattern} in this directory")
            yield from (whole_file(entry, name) for name in names)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        path, shown = place_of(shard)
        source = Source(file=shown)
        try:
            data = yaml_data(path.read_text(encoding="utf-8"))
            label = label_of(data["steps"] if isinstance(data, Mapping) else None)
        except Exception as error:  # noqa: BLE001 - odd YAML raises odd things (dates that do not exist, deep nesting)
            yield BadRecord(source=source, reason=f"not a scenario: {type(error).__name__}: {error}")
            return
        whole = Sample(
            id=path.stem,
            input=user_turns(label),
            expected=expectation(label),
            recorded={"unreadable_steps": unreadable_steps(label)},
            facets={"file": source.file},
            source=source,
        )
        for each in self.identified((whole,), data):
            yield from [each] if self.unit == "scenario" or isinstance(each, BadRecord) else _steps(each, label)


def _steps(whole: Sample, label: Label) -> Iterator[Sample]:
    expectations: dict[str, Expectation] = {}
    for step in in_order(gold_steps(label)):
        if gold_turn(label, step)[3] is None:
            expectations[step] = step_expectation(label, step)
    for number, text in gold_plans(label).items():
        if parse_plan(text, "documented").workflows:
            expectations[str(number)] = Expectation(plan=text)
    for ordinal, step in enumerate(in_order(list(expectations))):
        yield replace(
            whole,
            id=f"{whole.id}/{step}",
            expected=expectations[step],
            facets={**whole.facets, "step": step},
            source=replace(whole.source, ordinal=ordinal) if whole.source is not None else None,
        )


def _looks_right(head: bytes) -> bool:
    return all(key in head for key in (b"steps:", b"workflow_id:", b"agent_type:"))
