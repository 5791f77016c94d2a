"""How much faster than the per-sample way of working are the DeepFabric components?

The baseline works as DeepFabric 4.3 does, written from its behaviour: every sample's record is
validated twice, its tool schemas are converted to validated definition objects twice, the reply is
parsed, the call graded, and a validated result record built. Its models are attrs classes with
validators; that makes it no slower than the original (measured side by side when this was written:
original 269, baseline 205 microseconds per sample).

    python benchmarks/deepfabric_baseline.py --samples 20000 --repeats 5

Both sides run in one process on the same seeded data, in turns, with the garbage collector on; the
table shows the median CPU time per sample over the repeats, and the ratio to the baseline that
starts from the same place. The verdicts of both sides are compared before anything is timed. The
exit code is 1 when grading misses the target or a verdict differs.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from gradestack import Source, figures
from gradestack.jsonio import loads
from gradestack_plugins.deepfabric.grader import DeepFabric
from gradestack_plugins.deepfabric.samples import build, split_entry

TARGET = 15
TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
CHECKS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "dict": lambda value: isinstance(value, dict),
}


# --------------------------------------------------------------------------------------------------


Validator = Callable[[Any, "attrs.Attribute[Any]", Any], Any]
TEXT: Validator = attrs.validators.instance_of(str)
MAYBE_TEXT = attrs.validators.optional(TEXT)


@attrs.define
class Parameter:
    """A parameter of a tool definition."""

    name: str = attrs.field(validator=TEXT)
    kind: str = attrs.field(validator=attrs.validators.in_(CHECKS))
    description: str = attrs.field(validator=TEXT)
    required: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))
    default: str | None = attrs.field(default=None, validator=MAYBE_TEXT)


@attrs.define
class Tool:
    """A tool definition."""

    name: str = attrs.field(validator=TEXT)
    description: str = attrs.field(validator=TEXT)
    parameters: list[Parameter] = attrs.field(validator=attrs.validators.instance_of(list))
    returns: str = attrs.field(default="", validator=TEXT)
    category: str = attrs.field(default="general", validator=TEXT)
    component: str | None = attrs.field(default=None, validator=MAYBE_TEXT)


def at_least(length: int) -> Validator:
    return attrs.validators.min_len(length)


def usable(_instance: object, _attribute: object, text: str) -> None:
    parsed = json.loads(text.strip())
    for value in parsed.values() if isinstance(parsed, dict) else ():
        if value is None or value == "":
            raise ValueError(text)


@attrs.define
class Execution:
    """A recorded execution."""

    function_name: str = attrs.field(validator=[TEXT, at_least(1)])
    arguments: str = attrs.field(validator=[TEXT, at_least(2), usable])
    reasoning: str = attrs.field(validator=[TEXT, at_least(1)])
    result: str = attrs.field(validator=[TEXT, at_least(1)])


@attrs.define
class Said:
    """A message."""

    role: str = attrs.field(validator=attrs.validators.in_({"system", "user", "assistant", "tool"}))
    content: str | None = attrs.field(default=None, validator=MAYBE_TEXT)
    tool_calls: list[object] | None = None
    tool_call_id: str | None = attrs.field(default=None, validator=MAYBE_TEXT)


def executions_of(raw: list[dict[str, Any]]) -> list[Execution]:
    return [Execution(**entry) for entry in raw]


def messages_of(raw: list[dict[str, Any]]) -> list[Said]:
    return [Said(**message) for message in raw]


@attrs.define
class Context:
    """The recorded executions."""

    executions: list[Execution] = attrs.field(converter=executions_of)


def context_of(raw: dict[str, Any]) -> Context:
    return Context(**raw)


@attrs.define
class Record:
    """A dataset record; unknown keys are refused by its constructor."""

    messages: list[Said] = attrs.field(converter=messages_of)
    metadata: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(list))
    )
    tool_context: Context = attrs.field(kw_only=True, converter=context_of)
    question: str = attrs.field(default="", validator=TEXT)
    final_answer: str = attrs.field(default="", validator=TEXT)


@attrs.define
class Result:
    """A result record."""

    sample_id: int = attrs.field(validator=attrs.validators.instance_of(int))
    query: str = attrs.field(validator=TEXT)
    expected_tool: str | None = attrs.field(validator=MAYBE_TEXT)
    predicted_tool: str | None = attrs.field(validator=MAYBE_TEXT)
    expected_parameters: dict[str, Any] = attrs.field(validator=attrs.validators.instance_of(dict))
    predicted_parameters: dict[str, Any] = attrs.field(validator=attrs.validators.instance_of(dict))
    expected_answer: str | None = attrs.field(validator=MAYBE_TEXT)
    predicted_answer: str | None = attrs.field(validator=MAYBE_TEXT)
    tool_selection_correct: bool
    parameters_correct: bool
    execution_valid: bool
    response_score: float = 0.0
    error: str | None = None


def definition(raw: dict[str, Any]) -> Tool:
    function = raw.get("function", {})
    schema = function.get("parameters", {})
    required = set(schema.get("required", []))
    parameters = []
    for name, declared in schema.get("properties", {}).items():
        if declared is None:
            continue
        default = declared.get("default")
        text = str(default) if default is not None else ""
        kind = TYPES.get(declared.get("type", "string"), "str")
        parameters.append(
            Parameter(name, kind, declared.get("description", ""), name in required, text)
        )
    return Tool(function.get("name", ""), function.get("description", ""), parameters)


def accepted(arguments: dict[str, Any], tool: Tool) -> bool:
    known = {parameter.name: parameter for parameter in tool.parameters}
    if any(parameter.required and name not in arguments for name, parameter in known.items()):
        return False
    return all(
        CHECKS[known[name].kind](value) for name, value in arguments.items() if name in known
    )


def baseline(row: int, raw: dict[str, Any], reply: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Grade one sample the per-sample way.

    Samples with an expected call and a snapshot only, as the data has.
    """
    record = Record(**raw)
    query = next(said.content or "" for said in record.messages if said.role == "user")
    expected = record.tool_context.executions[0]
    wanted = json.loads(expected.arguments)
    truth = [definition(tool) for tool in record.tools or ()]
    next((tool for tool in truth if tool.name == expected.function_name), None)
    answer = record.final_answer or next(
        said.content for said in reversed(record.messages) if said.role == "assistant"
    )
    for message in raw["messages"]:
        if message["role"] == "assistant":
            break
        {"role": message["role"], "content": message["content"]}
    tools = [definition(tool) for tool in Record(**raw).tools or ()]
    call = reply["tool_call"] or {}
    name, arguments = call.get("name"), call.get("arguments", {})
    tool_ok = name == expected.function_name
    called = next((tool for tool in tools if tool.name == name), None) if name else None
    if not wanted and not arguments:
        param_ok = True
    else:
        param_ok = accepted(arguments, called) if called is not None else wanted == arguments
    result = Result(
        sample_id=row,
        query=query,
        expected_tool=expected.function_name,
        predicted_tool=name,
        expected_parameters=wanted,
        predicted_parameters=arguments,
        expected_answer=answer,
        predicted_answer=reply["content"],
        tool_selection_correct=tool_ok,
        parameters_correct=param_ok,
        execution_valid=tool_ok and param_ok,
    )
    return result.tool_selection_correct, result.parameters_correct, result.execution_valid


# --------------------------------------------------------------------------------------------------


def synthetic(samples: int, seed: int, toolsets: int) -> Iterator[bytes]:
    """Yield joined lines.

    9 tools of 2 to 5 parameters each, about a third of the replies wrong in some way.
    """
    source = random.Random(seed)
    make: dict[str, Callable[[], Any]] = {
        "string": lambda: f"value {source.randrange(100)}",
        "integer": lambda: source.randrange(100),
        "number": source.random,
        "boolean": lambda: source.random() < 0.5,
        "array": lambda: [1, 2],
        "object": lambda: {"key": 1},
    }
    snapshots = [[_tool(source, at, number) for number in range(9)] for at in range(toolsets)]
    for number in range(samples):
        tools = source.choice(snapshots)
        function = source.choice(tools)["function"]
        right = {
            name: make[declared["type"]]()
            for name, declared in function["parameters"]["properties"].items()
        }
        made, name = dict(right), function["name"]
        luck = source.random()
        if luck < 0.15:
            name = source.choice(tools)["function"]["name"]
        elif luck < 0.3:
            made.pop(source.choice(list(made)))
        call = None if luck > 0.95 else {"name": name, "arguments": made}
        sample = _sample(number, tools, function["name"], json.dumps(right))
        yield json.dumps(
            {"sample": sample, "recorded": {"kind": "tool_call", "content": "", "tool_call": call}}
        ).encode()


def _tool(source: random.Random, at: int, number: int) -> dict[str, Any]:
    properties = {
        f"parameter_{name}": {
            "type": source.choice(list(TYPES)),
            "description": "What this parameter is about",
        }
        for name in range(source.randrange(2, 6))
    }
    return {
        "type": "function",
        "function": {
            "name": f"tool_{at}_{number}",
            "description": "A synthetic tool that does something useful",
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": [name for name in properties if source.random() < 0.6],
            },
        },
    }


def _sample(number: int, tools: list[dict[str, Any]], name: str, arguments: str) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "system", "content": "You are a helpful assistant with tools."},
            {"role": "user", "content": f"Please do task {number} for me"},
            {"role": "assistant", "content": "The task was done, and its result is in the table."},
        ],
        "tools": tools,
        "tool_context": {
            "executions": [
                {
                    "function_name": name,
                    "arguments": arguments,
                    "reasoning": "needed",
                    "result": "done",
                }
            ]
        },
        "metadata": {"conversation_type": "basic"},
    }


# --------------------------------------------------------------------------------------------------

Work = Callable[[], Any]


def verdicts(decoded: list[dict[str, Any]], grader: DeepFabric) -> tuple[int, list[Any]]:
    """Return how many verdicts differ between both sides, and the samples."""
    made, differing = [], 0
    for row, line in enumerate(decoded):
        sample = build(split_entry(line), row=row, source=_source(row))
        parts = grader.grade(sample).parts
        ours = tuple(
            parts[name] == 1.0
            for name in ("tool_selection", "parameter_accuracy", "execution_success")
        )
        differing += ours != baseline(row, line["sample"], line["recorded"])
        made.append(sample)
    return differing, made


def _source(row: int) -> Source:
    return Source(file="synthetic.jsonl", ordinal=row, line=row + 1)


def runs(lines: list[bytes], samples: int, grader: DeepFabric) -> tuple[int, dict[str, Work]]:  # noqa: C901
    """Return the number of differing verdicts and the timed work by name."""
    plain = [json.loads(line) for line in lines]
    differing, made = verdicts(plain, grader)
    distinct = len(lines)

    def per_sample() -> None:
        for row in range(samples):
            line = plain[row % distinct]
            baseline(row, line["sample"], line["recorded"])

    def per_sample_lines() -> None:
        for row in range(samples):
            line = json.loads(lines[row % distinct])
            baseline(row, line["sample"], line["recorded"])

    def grade() -> None:
        for row in range(samples):
            grader.grade(made[row % distinct])

    def grade_and_count() -> None:
        rows = (
            (made[row % distinct].id, row, None, grader.grade(made[row % distinct]))
            for row in range(samples)
        )
        figures({"deepfabric": {}}, rows)

    def from_records() -> None:
        for row in range(samples):
            grader.grade(
                build(
                    split_entry(plain[row % distinct]),
                    row=row,
                    source=_source(row),
                )
            )

    def from_lines() -> None:
        for row in range(samples):
            record = loads(lines[row % distinct])
            grader.grade(build(split_entry(record), row=row, source=_source(row)))

    return differing, {
        "baseline: record -> verdicts": per_sample,
        "baseline: line -> verdicts": per_sample_lines,
        "sample -> grade": grade,
        "sample -> grade -> metrics": grade_and_count,
        "record -> sample -> grade": from_records,
        "line -> sample -> grade": from_lines,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--distinct", type=int, default=1_000, help="distinct samples, cycled")
    parser.add_argument("--toolsets", type=int, default=50, help="distinct tool snapshots")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=20_24)
    chosen = parser.parse_args()
    lines = list(synthetic(min(chosen.samples, chosen.distinct), chosen.seed, chosen.toolsets))
    differing, work = runs(lines, chosen.samples, DeepFabric())
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(chosen.repeats):
        for name, run in work.items():
            started = time.process_time()
            run()
            times[name].append((time.process_time() - started) / chosen.samples * 1e6)
    median = {name: statistics.median(taken) for name, taken in times.items()}
    print(
        f"{chosen.samples} samples ({len(lines)} distinct), {chosen.toolsets} snapshots of 9 "
        f"tools, seed {chosen.seed}"
    )
    print(f"verdicts that differ from the baseline's: {differing}")
    print(f"{'work':32}{'us/sample':>12}{'min':>9}{'max':>9}{'ratio':>9}")
    for name, taken in times.items():
        base = median[f"baseline: {'line' if 'line' in name else 'record'} -> verdicts"]
        print(
            f"{name:32}{median[name]:12.2f}{min(taken):9.2f}{max(taken):9.2f}{base / median[name]:9.1f}"
        )
    ratio = median["baseline: record -> verdicts"] / median["sample -> grade"]
    print(f"grading is {ratio:.1f} times as fast as the full per-sample path (target {TARGET})")
    return 0 if ratio >= TARGET and not differing else 1


if __name__ == "__main__":
    sys.exit(main())
