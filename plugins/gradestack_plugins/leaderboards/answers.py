"""Logs of benchmarks with the answers of models: HammerBench and StableToolBench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from typing_extensions import override

from gradestack import Expectation, ExpectedCall, Input, replace
from gradestack.jsonio import as_list, as_map, as_text
from gradestack_plugins.leaderboards.verdicts import SURE
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.chat.calls import call_of, calls_in_text, decoded
from gradestack_plugins.readers.chat.usage import count_of
from gradestack_plugins.readers.runs import Record, Run, RunReader

_LEFT_OUT: Final = ("", "\\")
"""Values that stand for an argument which is not given."""


class HammerBench(RunReader):
    """Reads logs of HammerBench: ``predict``, the text of an answer, beside ``label``, a call.

    Calls of an answer are JSON, also in fenced blocks and tags. Arguments that are empty, or a
    backslash, are not given, in answers and labels alike, as in the benchmark. The model is the
    folder below ``logs``.
    """

    version = "1"
    records_are_runs = True

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        row = as_map(record)
        label = row.get("label")
        is_label = isinstance(label, dict | list)
        is_row = "id" in row and isinstance(row.get("predict"), str)
        return SURE if is_row and is_label else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        parts = file.path.parts
        model = None
        if "logs" in parts[:-2]:
            model = parts[parts.index("logs") + 1]
        for value, source in records:
            if not self.looks_like(value):
                raise ValueError("expected id, predict as text, and label as a call")
            run = Run(id=str(value["id"]), entries=[], executed=False, model=model)
            run.source, run.first = source, value
            question = as_text(value.get("input"))
            if question:
                run.entries.append({"role": "user", "content": question})
            predicted_message = _predicted_message(value["predict"])
            run.entries.append(predicted_message)
            run.expected = _expectation_of(value["label"])
            yield run


def _predicted_message(text: str) -> dict[str, Any]:
    """Return the message of an answer: its calls, or its text where it makes none."""
    entries = calls_in_text(text)
    if entries is None:
        return {"role": "assistant", "content": text}
    calls = []
    for number, entry in enumerate(entries):
        call, _ = call_of(entry)
        arguments = _given_arguments(call.get("arguments"))
        calls.append({"id": f"call-{number}", "name": call["name"], "arguments": arguments})
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _expectation_of(label: Any) -> Expectation:
    """Return the calls that labels expect; a label without a name is left out."""
    calls = []
    for entry in map(as_map, label if isinstance(label, list) else [label]):
        parameters = entry.get("parameters")
        arguments = _given_arguments(entry.get("arguments", parameters))
        name = as_text(entry.get("name"))
        if name:
            expected_call = ExpectedCall(name=name, arguments=arguments)
            calls.append(expected_call)
    return Expectation(calls=tuple(calls))


def _given_arguments(arguments: Any) -> dict[str, Any]:
    """Return the arguments that are given."""
    named = as_map(decoded(arguments))
    return {name: value for name, value in named.items() if value not in _LEFT_OUT}


_FINISH: Final = "Finish"
_SOLVED: Final = {"Solved": 1.0, "Unsure": 0.5}


class StableToolBench(RunReader):
    """Reads StableToolBench: converted answers, and the pass rates of its evaluator, by query.

    Of a converted answer the steps below each other are the run; of several steps behind one the
    last is taken. ``Finish`` is the answer, no call. Of pass rates the verdict is ``passed``: a
    pass has at least as many judgements that it passed as that it failed. ``solved`` is the mean of
    the judgements (``Unsure`` is a half).
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
            for number, (name, recorded) in enumerate(as_map(value).items()):
                about = dict(as_map(recorded))
                read = _run_of_rates if "is_solved" in about else _run_of_answer
                run = read(name, about)
                run.source = replace(source, ordinal=number)
                run.first = value
                yield run


def _run_of_rates(name: str, about: dict[str, Any]) -> Run:
    """Build the run of a query in ToolBench's pass rates: solved or not, passed or not."""
    entries = [{"role": "user", "content": word(about, "query")}]
    run = Run(id=name, entries=entries)
    solved = about.get("is_solved")
    if isinstance(solved, dict):
        states = list(solved.values())
    else:
        states = [solved]
    texts = [state for state in states if isinstance(state, str) and state]
    if texts:
        scores = [_SOLVED.get(state.rpartition(".")[2], 0.0) for state in texts]
        run.recorded["solved"] = sum(scores) / len(scores)
    passed = count_of(about.get("passed"))
    failed = count_of(about.get("failed"))
    if passed is not None and failed is not None:
        run.recorded["passed"] = failed <= passed
    return run


def _run_of_answer(name: str, about: dict[str, Any]) -> Run:
    """Build the run of a ToolBench answer: calls of its steps, final answer, tools."""
    run = Run(id=name, entries=[])
    recorded_answer = dict(as_map(about.get("answer")))
    answer_details = recorded_answer.get("answer_details")
    for number, step in enumerate(_steps_of(answer_details)):
        run.entries += _entries_of(step, f"step-{number}")
    final = decoded(recorded_answer.get("final_answer"))
    text = as_map(final).get("final_answer", final)
    if isinstance(text, str) and text:
        run.entries.append({"role": "assistant", "content": text})
    tools = about.get("available_tools")
    run.tools = tools if isinstance(tools, list) else None
    method = word(recorded_answer, "method")
    if method:
        run.facets = {"method": method}
    return run


def _entries_of(step: dict[str, Any], identifier: str) -> Iterator[dict[str, Any]]:
    """Yield the call of a step and its result, or its message."""
    message = step.get("message")
    role = step.get("role")
    called = as_map(message)
    name = called.get("name")
    if role == "tool" and name != _FINISH:
        arguments = called.get("arguments")
        call = {"id": identifier, "name": name, "arguments": arguments}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        result = {"role": "tool", "tool_call_id": identifier, "name": name}
        yield {**result, "content": called.get("response")}
    elif isinstance(message, str) and role != "system":
        yield {"role": role, "content": message}


def _steps_of(nodes: Any) -> Iterator[dict[str, Any]]:
    """Yield the steps that stand below each other; of several the last is taken."""
    while listed := as_list(nodes):
        step = dict(as_map(listed[-1]))
        yield step
        nodes = step.get("next")
