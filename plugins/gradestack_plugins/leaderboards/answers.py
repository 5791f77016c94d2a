"""Logs of benchmarks that hold what models answered: HammerBench and StableToolBench."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Expectation, ExpectedCall, Input, replace
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.leaderboards.verdicts import SURE
from gradestack_plugins.readers.chat.names import call_of, calls_in_text, decoded
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_LEFT_OUT: Final = ("", "\\")
"""Values that stand for an argument which is not given."""


@attrs.frozen(kw_only=True)
class HammerBench(RunReader):
    """Reads logs of HammerBench: ``predict``, the text of an answer, beside ``label``, a call.

    Calls of an answer are JSON, also in fenced blocks and tags. Arguments that are empty, or a
    backslash, are not given, in answers and labels alike, as the benchmark has it. The model is
    the folder below ``logs``.
    """

    version = "1"
    records_are_runs = True

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        row = as_map(record)
        is_label = isinstance(row.get("label"), dict | list)
        is_row = "id" in row and isinstance(row.get("predict"), str)
        return SURE if is_row and is_label else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        parts = file.path.parts
        model = parts[parts.index("logs") + 1] if "logs" in parts[:-2] else None
        for value, source in records:
            if not self.looks_like(value):
                raise ValueError("expected id, predict as text, and label as a call")
            asked = as_text(value.get("input"))
            messages = [{"role": "user", "content": asked}] if asked else []
            yield Run(
                id=str(value["id"]),
                entries=[*messages, _answer(value["predict"])],
                executed=False,
                source=source,
                first=value,
                model=model,
                expected=_due(value["label"]),
            )


def _answer(text: str) -> dict[str, Any]:
    """Return the message of an answer: its calls, or its text where it makes none."""
    entries = calls_in_text(text)
    if entries is None:
        return {"role": "assistant", "content": text}
    calls = [call_of(entry)[0] for entry in entries]
    made = [
        {"id": f"call-{number}", "name": call["name"], "arguments": _given(call.get("arguments"))}
        for number, call in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _due(label: Any) -> Expectation:
    """Return what a label, or a list of them, expects; of one without a name that nothing is
    called.
    """
    calls = []
    for each in map(as_map, label if isinstance(label, list) else [label]):
        arguments = _given(each.get("arguments", each.get("parameters")))
        if name := as_text(each.get("name")):
            calls.append(ExpectedCall(name=name, arguments=arguments))
    return Expectation(calls=tuple(calls))


def _given(arguments: Any) -> dict[str, Any]:
    """Return the arguments that are given."""
    found = as_map(decoded(arguments))
    return {name: value for name, value in found.items() if value not in _LEFT_OUT}


_FINISH: Final = "Finish"
_SOLVED: Final = {"Solved": 1.0, "Unsure": 0.5}


@attrs.frozen(kw_only=True)
class StableToolBench(RunReader):
    """Reads StableToolBench: converted answers, and the pass rates of its evaluator, by query.

    Of a converted answer the steps below each other are the run; where one has several behind it,
    the last goes on. ``Finish`` is the answer, no call. Of pass rates the verdict is ``passed``:
    as many judgements that it passed as that it failed, or more, are a pass; ``solved`` is the mean
    of the judgements (``Unsure`` is a half).
    """

    version = "1"
    stack = "scores"
    records_are_runs = True
    marks = (("available_tools", "answer_details"), ("answer_steps", "is_solved"))

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict) or not record:
            return 0.0
        first = as_map(next(iter(record.values())))
        is_answer = "answer_details" in as_map(first.get("answer"))
        is_rate = {"is_solved", "answer_steps"} <= first.keys()
        return SURE if is_answer or is_rate else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            for place, (name, told) in enumerate(as_map(value).items()):
                about = as_map(told)
                run = _of_rates(name, about) if "is_solved" in about else _of_answer(name, about)
                run.source, run.first = replace(source, ordinal=place), value
                yield run


def _of_rates(name: str, about: Mapping[str, Any]) -> Run:
    passed, failed = count_of(about.get("passed")), count_of(about.get("failed"))
    solved = about.get("is_solved")
    states = list(as_map(solved).values()) if isinstance(solved, dict) else [solved]
    scores = [_SOLVED.get(state.rpartition(".")[2], 0.0) for state in map(as_text, states) if state]
    return Run(
        id=name,
        entries=[{"role": "user", "content": as_text(about.get("query"))}],
        recorded=({"solved": sum(scores) / len(scores)} if scores else {})
        | ({} if passed is None or failed is None else {"passed": failed <= passed}),
    )


def _of_answer(name: str, about: Mapping[str, Any]) -> Run:
    answer = as_map(about.get("answer"))
    entries: list[dict[str, Any]] = []
    for number, node in enumerate(_chain(answer.get("answer_details"))):
        message = node.get("message")
        called = as_map(message)
        if node.get("role") == "tool" and called.get("name") != _FINISH:
            identifier = f"step-{number}"
            call = {"id": identifier, "name": called.get("name")}
            call["arguments"] = called.get("arguments")
            entries.append({"role": "assistant", "content": None, "tool_calls": [call]})
            result = {"role": "tool", "tool_call_id": identifier, "name": called.get("name")}
            entries.append({**result, "content": called.get("response")})
        elif isinstance(message, str) and node.get("role") != "system":
            entries.append({"role": node.get("role"), "content": message})
    final = decoded(answer.get("final_answer"))
    said = as_map(final).get("final_answer", final)
    if isinstance(said, str) and said:
        entries.append({"role": "assistant", "content": said})
    tools = about.get("available_tools")
    return Run(
        id=name,
        entries=entries,
        tools=list(tools) if isinstance(tools, list) else None,
        facets={"method": answer["method"]} if isinstance(answer.get("method"), str) else {},
    )


def _chain(nodes: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the steps that stand below each other; of several the last goes on."""
    while listed := as_list(nodes):
        node = as_map(listed[-1])
        yield node
        nodes = node.get("next")
