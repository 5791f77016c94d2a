"""Seeded files of other formats, made from the recordings of ``workload.py``.

The same tasks, tools and mistakes.

    python benchmarks/formats.py tau_bench DIRECTORY --records 5000

Each follows the format's own keys and nesting; texts are invented. What they are read with is in
``readers.py``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import workload

Record = dict[str, Any]
POLICY = " ".join(
    f"Rule {number}: look the customer up before anything is changed, repeat the change in your "
    "own words and wait for "
    f"a yes; what costs more than {number * 20} is never given away, and what was sent is not "
    "called back."
    for number in range(1, 13)
)
LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
TRIALS = 3
"""Runs in one output file of OrchestrationBench."""


class Files(NamedTuple):
    """What a format's reader is given."""

    data: Path
    dataset: Path | None = None

    def all(self) -> list[Path]:
        """Return every file there is to read."""
        files = sorted(self.data.rglob("*.json*")) if self.data.is_dir() else [self.data]
        return files if self.dataset is None else [*files, self.dataset]


def tasks(number: int, seed: int) -> Iterator[tuple[Record, random.Random]]:
    """Yield records of the usual recording, each with numbers of its own."""
    for at, (line, _) in enumerate(workload.records(number, seed)):
        yield json.loads(line), random.Random(f"{seed} format {at}")


def own_id(task: Record) -> str:
    """Return what names a record, for formats without models and runs."""
    return f"{task['id']}-{task['model']}-{task['run']}"


def lines(path: Path, records: Iterable[Any]) -> Path:
    """Write records, one per line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path


# --------------------------------------------------------------------------------------------------


def tau_bench(folder: Path, number: int, seed: int) -> Files:
    """Write a tau-bench result list: conversations of about twenty messages under a long policy."""
    path = folder / "results.json"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("[\n")
        for at, (task, rng) in enumerate(tasks(number, seed)):
            file.write((",\n" if at else "") + json.dumps(_result(at, task, rng), indent=2))
        file.write("\n]\n")
    return Files(path)


def _result(at: int, task: Record, rng: random.Random) -> Record:
    actions = [
        {"name": call["name"], "kwargs": call["arguments"]} for call in task["expected"]["calls"]
    ]
    traj = [{"role": "system", "content": POLICY}, {"role": "user", "content": task["input"]}]
    for step in range(rng.randrange(3, 8)):
        looked = {"name": "look_up", "arguments": json.dumps({"customer": f"c-{at}", "page": step})}
        traj += answered(looked, f"call_{at}_{step}", rng)
        traj += [
            {"role": "assistant", "content": "Is that right?"},
            {"role": "user", "content": "Yes, it is."},
        ]
    for call in task["predicted"]["calls"]:
        traj += answered(call["function"], call["id"], rng)
    answer = {"role": "assistant", "content": task["predicted"]["text"]}
    traj += [answer, {"role": "user", "content": "Thank you. ###STOP###"}]
    reward = float(rng.random() < 0.6)
    checked = {
        "reward": reward,
        "info": {"r_actions": reward, "gt_data_hash": "0" * 64},
        "actions": actions,
    }
    asked = {"user_id": f"c-{at}", "actions": actions, "instruction": task["input"], "outputs": []}
    return {
        "task_id": at % workload.TASKS,
        "reward": reward,
        "info": {"task": asked, "source": "user", "user_cost": 0.0003, "reward_info": checked},
        "traj": traj,
        "trial": task["run"] * 2 + workload.MODELS.index(task["model"]),
    }


def answered(function: Mapping[str, Any], identifier: str, rng: random.Random) -> list[Record]:
    """Return a call as a chat has it, and the tool's answer."""
    found = {
        "done": function["name"],
        "entries": [{"reference": rng.randrange(10**6), "price": 12.5}] * 3,
    }
    asked = {"id": identifier, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {
            "role": "tool",
            "tool_call_id": identifier,
            "name": function["name"],
            "content": json.dumps(found),
        },
    ]


def deepfabric(folder: Path, number: int, seed: int) -> Files:
    """Write DeepFabric dataset records, each with the reply recorded to it."""
    return Files(
        lines(folder / "evaluated.jsonl", (_evaluated(task) for task, _ in tasks(number, seed)))
    )


def _evaluated(task: Record) -> Record:
    identifier = own_id(task)
    thought = {"reasoning": "The request asks for it.", "result": "ok"}
    done = [
        {"function_name": call["name"], "arguments": json.dumps(call["arguments"]), **thought}
        for call in task["expected"]["calls"]
    ]
    talk = [("system", POLICY[:200]), ("user", task["input"]), ("assistant", "Done.")]
    sample = {
        "messages": [{"role": role, "content": content} for role, content in talk],
        "metadata": {"id": identifier, "topic": task["facets"]["domain"]},
        "tools": task["tools"],
        "tool_context": {"executions": done},
    }
    reply = {"kind": "chat", "content": "", "tool_calls": task["predicted"]["calls"]}
    return {"id": identifier, "sample": sample, "recorded": reply}


def when2call(folder: Path, number: int, seed: int) -> Files:
    """Write a When2Call dataset, and a judge's decision about one reply to each question."""
    dataset = lines(
        folder / "dataset.jsonl", (_question(task, rng) for task, rng in tasks(number, seed))
    )
    decisions = (_decision(task, rng) for task, rng in tasks(number, seed))
    return Files(lines(folder / "judge_decisions.jsonl", decisions), dataset)


def _question(task: Record, rng: random.Random) -> Record:
    tools = [json.dumps(tool["function"]) for tool in task["tools"]]
    gold = rng.choice(LABELS[1:])
    return {
        "uuid": own_id(task),
        "source": "invented",
        "source_id": task["id"],
        "question": task["input"],
        "correct_answer": gold,
        "answers": {
            "direct": "It is as I remember it, and nothing has changed since.",
            "tool_call": json.dumps(task["expected"]["calls"][0]),
            "request_for_info": "Could you tell me a little more about when and where?",
            "cannot_answer": "I am sorry, I have no way to do that.",
        },
        "target_tool": None if gold == "cannot_answer" else tools[0],
        "tools": tools,
    }


def _decision(task: Record, rng: random.Random) -> Record:
    label = rng.choice(LABELS)
    return {
        "uuid": own_id(task),
        "predicted_label": label,
        "judge_raw": json.dumps({"classification": label}),
        "judge_rationale": None,
        "judge_model": "judge",
        "temperature": 0.0,
        "judge_parse_failed_first": False,
        "judge_parse_failed_second": False,
        "judge_used_retry": False,
        "judge_fallback_to_cannot_answer": False,
        "judge_exception_first": None,
        "judge_exception_second": None,
        "target_model": "model-a",
    }


def orchestrationbench(folder: Path, number: int, seed: int) -> Files:
    """Write OrchestrationBench output files of three trials each, one scenario per file."""
    place = folder / "results"
    place.mkdir()
    history: dict[str, Any] = {}
    for at, (task, _) in enumerate(tasks(number, seed)):
        history[f"run #{at % TRIALS + 1}"] = _trial(task)
        if len(history) == TRIALS or at + 1 == number:
            scenario = f"{at // TRIALS:06d}"
            output = {
                "scenario_id": scenario,
                "generated_at": "0.0",
                "usage": {},
                "history": history,
            }
            (place / f"{scenario}_out.json").write_text(
                json.dumps(output, indent=1), encoding="utf-8"
            )
            history = {}
    return Files(place)


def _trial(task: Record) -> Record:
    """Return one trial: a plan, then a step for each expected call."""
    expected, made = task["expected"]["calls"], task["predicted"]["calls"]
    agents = [f"{call['name'].partition('_')[2]}_agent" for call in expected]
    head = "  status: pending\n  type: independent\n  steps:\n  - status: pending\n"
    plan = "".join(
        f"workflow_{number}:\n{head}    name: {agent}\n" for number, agent in enumerate(agents, 1)
    )
    label: dict[str, Any] = {
        "1": {"role": "system", "content": "Today's date: 2031-03-05"},
        "2": {"role": "user", "content": task["input"]},
        "3": {"role": "assistant", "content": plan},
    }
    steps = []
    for at, (call, agent) in enumerate(zip(expected, agents, strict=True)):
        step, name, who = str(4 + at), call["name"], {"role": "assistant", "agent_id": agent}
        gold = {
            "type": "function",
            "id": "c",
            "function": {"name": name, "arguments": json.dumps(call["arguments"])},
        }
        label[step] = {**who, "content": f"tool: {name}"}
        label[f"{step}-1"] = {**who, "content": "", "tool_calls": [gold]}
        label[f"{step}-2"] = {
            "role": "tool",
            "agent_id": agent,
            "name": name,
            "content": {"status": "success"},
        }
        steps.append({"step_id": step, **who, "content": None, "tool_calls": made[at : at + 1]})
    label[str(4 + len(expected))] = {"role": "assistant", "content": task["predicted"]["text"]}
    planned = {
        f"workflow_{number}": {"status": "pending", "steps": [{"name": agent, "status": "pending"}]}
        for number, agent in enumerate(agents, 1)
    }
    main = [{"step_id": 3, "role": "assistant", "content": json.dumps(planned)}]
    return {"label": label, "main_agent_history": main, "sub_agent_history": steps}


def letta(folder: Path, number: int, seed: int) -> Files:
    """Write the results of a letta-evals run: messages by their type, two recorded grades."""
    place = folder / "recorded"
    place.mkdir()
    results = (
        {"type": "result", "result": _agent(at, *task)}
        for at, task in enumerate(tasks(number, seed))
    )
    lines(place / "results.jsonl", results)
    return Files(place)


def _agent(at: int, task: Record, rng: random.Random) -> Record:
    turn: list[Record] = []
    for call in task["predicted"]["calls"]:
        identifier = {"tool_call_id": call["id"]}
        back = {
            "name": call["function"]["name"],
            "tool_return": "arranged",
            "status": "success",
            **identifier,
        }
        turn += [
            {"message_type": "reasoning_message", "reasoning": "The request asks for it."},
            {"message_type": "tool_call_message", "tool_call": {**call["function"], **identifier}},
            {"message_type": "tool_return_message", **back},
        ]
    answer = task["predicted"]["text"]
    turn.append({"message_type": "assistant_message", "content": answer})
    grade = {
        "score": round(rng.random(), 2),
        "rationale": "right, but short",
        "metadata": {"model": "judge"},
    }
    return {
        "sample": {
            "id": at,
            "input": task["input"],
            "ground_truth": answer,
            "agent_args": None,
            "rubric_vars": None,
        },
        "submission": answer,
        "submissions": {"exact": answer, "quality": answer},
        "trajectory": [turn],
        "agent_id": f"agent-{at}",
        "grade": grade,
        "grades": {"exact": {"score": 1.0, "rationale": "", "metadata": {}}, "quality": grade},
        "model_name": task["model"],
        "agent_usage": [{"completion_tokens": 40}],
    }


def openai(folder: Path, number: int, seed: int) -> Files:
    """Write chat completion requests with their answers.

    A short conversation, three tools, usage.
    """
    return Files(
        lines(folder / "log.jsonl", (_chat_log(task, rng) for task, rng in tasks(number, seed)))
    )


def _chat_log(task: Record, rng: random.Random) -> Record:
    talk = [{"role": "system", "content": POLICY[:200]}, {"role": "user", "content": task["input"]}]
    for call in task["predicted"]["calls"]:
        talk += answered(call["function"], call["id"], rng)
    message = {"role": "assistant", "content": task["predicted"]["text"], "refusal": None}
    counts = {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940}
    answer = {
        "id": f"chatcmpl-{rng.randrange(10**9)}",
        "object": "chat.completion",
        "created": 1,
        "model": task["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {**counts, "prompt_tokens_details": {"cached_tokens": 512}},
    }
    request = {"model": task["model"], "messages": talk, "tools": task["tools"], "temperature": 0.0}
    return {"custom_id": own_id(task), "request": request, "response": answer}


def anthropic(folder: Path, number: int, seed: int) -> Files:
    """Write Messages requests that hold the whole conversation.

    Blocks of tool use and their results, three tools.
    """
    return Files(
        lines(folder / "log.jsonl", (_message_log(task, rng) for task, rng in tasks(number, seed)))
    )


def _message_log(task: Record, rng: random.Random) -> Record:
    talk: list[Record] = [{"role": "user", "content": task["input"]}]
    for asked, answer in zip(task["expected"]["calls"], task["predicted"]["calls"], strict=False):
        use = {
            "type": "tool_use",
            "id": answer["id"],
            "name": asked["name"],
            "input": asked["arguments"],
        }
        result = answered(answer["function"], answer["id"], rng)[1]["content"]
        talk += [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "It is asked for."}, use],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": answer["id"], "content": result}
                ],
            },
        ]
    talk.append(
        {"role": "assistant", "content": [{"type": "text", "text": task["predicted"]["text"]}]}
    )
    functions = [tool["function"] for tool in task["tools"]]
    tools = [
        {**{k: v for k, v in f.items() if k != "parameters"}, "input_schema": f["parameters"]}
        for f in functions
    ]
    return {
        "id": own_id(task),
        "model": task["model"],
        "system": POLICY[:200],
        "tools": tools,
        "messages": talk,
    }


def bfcl(folder: Path, number: int, seed: int) -> Files:
    """Write questions, possible answers and results of BFCL's parallel calls."""
    questions: list[Record] = []
    answers: list[Record] = []
    results: list[Record] = []
    for at, (task, _) in enumerate(tasks(number, seed)):
        name = f"parallel_{at}"
        functions = [tool["function"] for tool in task["tools"]]
        asked = [[{"role": "user", "content": task["input"]}]]
        questions.append({"id": name, "question": asked, "function": functions})
        truth = [
            {call["name"]: {key: [value] for key, value in call["arguments"].items()}}
            for call in task["expected"]["calls"]
        ]
        answers.append({"id": name, "ground_truth": truth})
        called = (call["function"] for call in task["predicted"]["calls"])
        made = [{call["name"]: call["arguments"]} for call in called]
        results.append(
            {
                "id": name,
                "result": made,
                "input_token_count": 900,
                "output_token_count": 90,
                "latency": 1.5,
            }
        )
    result = "result/model-1-FC/non_live/BFCL_v4_parallel_result.json"
    answer = "possible_answer/BFCL_v4_parallel.json"
    for place, entries in (
        ("BFCL_v4_parallel.json", questions),
        (answer, answers),
        (result, results),
    ):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        lines(path, entries)
    return Files(folder)


def records(folder: Path, number: int, seed: int) -> Files:
    """Write rows whose columns have the names of fields."""
    rows = (
        {
            "id": own_id(task),
            "input": task["input"],
            "calls": task["predicted"]["calls"],
            "tools": task["tools"],
        }
        for task, _ in tasks(number, seed)
    )
    return Files(lines(folder / "rows.jsonl", rows))


def letta_dataset(folder: Path, number: int, seed: int) -> Files:
    """Write a dataset of letta-evals."""
    rows = (
        {"id": own_id(task), "input": task["input"], "ground_truth": "yes"}
        for task, _ in tasks(number, seed)
    )
    return Files(lines(folder / "dataset.jsonl", rows))


def otel(folder: Path, number: int, seed: int) -> Files:
    """Write traces of OpenTelemetry's GenAI conventions, a batch a line.

    Two answers that repeat what was said.
    """
    return Files(
        lines(
            folder / "traces.jsonl",
            (_traced(at, *task) for at, task in enumerate(tasks(number, seed))),
        )
    )


def _traced(at: int, task: Record, rng: random.Random) -> Record:
    made = task["predicted"]["calls"]
    parts = [{"type": "tool_call", "id": each["id"], **each["function"]} for each in made]
    results = [answered(each["function"], each["id"], rng)[1]["content"] for each in made]
    asked = [{"role": "user", "parts": [{"type": "text", "content": task["input"]}]}]
    called = [{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]
    told = [
        {"type": "tool_call_response", "id": each["id"], "response": result}
        for each, result in zip(made, results, strict=True)
    ]
    said = [
        {"role": "assistant", "parts": [{"type": "text", "content": task["predicted"]["text"]}]}
    ]
    history = [*asked, *called, {"role": "tool", "parts": told}]
    spans = [_span(at, 0, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"})]
    for place, (before, after) in enumerate(((asked, called), (history, said))):
        content = {
            "gen_ai.input.messages": json.dumps(before),
            "gen_ai.output.messages": json.dumps(after),
        }
        known = {"gen_ai.operation.name": "chat", "gen_ai.request.model": task["model"], **content}
        tools = json.dumps([tool["function"] for tool in task["tools"]])
        usage = {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 20}
        spans.append(
            _span(at, 1 + 20 * place, {**known, "gen_ai.tool.definitions": tools, **usage})
        )
    for place, (each, result) in enumerate(zip(made, results, strict=True)):
        known = {"gen_ai.tool.name": each["function"]["name"], "gen_ai.tool.call.id": each["id"]}
        known |= {
            "gen_ai.tool.call.arguments": each["function"]["arguments"],
            "gen_ai.tool.call.result": result,
        }
        spans.append(_span(at, 2 + place, {"gen_ai.operation.name": "execute_tool", **known}))
    scoped = {"scope": {"name": "desk"}, "spans": spans}
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]}
    return {"resourceSpans": [{"resource": service, "scopeSpans": [scoped]}]}


def _span(at: int, place: int, known: Record) -> Record:
    start = 10**18 + at * 10**10 + place * 10**6
    kinds = {int: "intValue", str: "stringValue"}
    found = {
        "traceId": f"{at + 1:032x}",
        "spanId": f"{at * 32 + place + 1:016x}",
        "name": "span",
        "kind": 1,
    }
    found |= {"parentSpanId": f"{at * 32 + 1:016x}"} if place else {}
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 10**5), "status": {}}
    values = (
        {"key": key, "value": {kinds[type(each)]: str(each) if isinstance(each, int) else each}}
        for key, each in known.items()
    )
    return {**found, **times, "attributes": list(values)}


def mlflow(folder: Path, number: int, seed: int) -> Files:
    """Write traces of MLflow, one a line.

    An agent's, with two answers of OpenAI's API and the tools between them.
    """
    return Files(
        lines(
            folder / "traces.jsonl",
            (_mlflow(at, *task) for at, task in enumerate(tasks(number, seed))),
        )
    )


def _mlflow(at: int, task: Record, rng: random.Random) -> Record:
    made = task["predicted"]["calls"]
    talk: list[Record] = [
        {"role": "system", "content": POLICY[:200]},
        {"role": "user", "content": task["input"]},
    ]
    answers = [answered(each["function"], each["id"], rng)[1] for each in made]
    called = {"role": "assistant", "content": None, "tool_calls": made}
    said = {"role": "assistant", "content": task["predicted"]["text"]}
    usage = {"input_tokens": 900, "output_tokens": 20, "total_tokens": 920}
    spans = [_of_mlflow(at, 0, "AGENT", task["input"], task["predicted"]["text"], {})]
    for place, (before, after) in enumerate(((talk, called), ([*talk, called, *answers], said))):
        asked = {"model": task["model"], "messages": before, "tools": task["tools"]}
        told = {
            "model": task["model"],
            "choices": [{"index": 0, "message": after, "finish_reason": "stop"}],
        }
        more = {"mlflow.chat.tokenUsage": usage, "mlflow.chat.tools": task["tools"]}
        spans.append(_of_mlflow(at, 1 + 20 * place, "CHAT_MODEL", asked, told, more))
    for place, (each, answer) in enumerate(zip(made, answers, strict=True)):
        given = _arguments(each["function"])
        name = {"mlflow.spanFunctionName": each["function"]["name"]}
        spans.append(_of_mlflow(at, 2 + place, "TOOL", given, answer["content"], name))
    info = {
        "trace_id": f"tr-{at}",
        "state": "OK",
        "trace_metadata": {},
        "tags": {},
        "assessments": [],
    }
    return {"info": info, "data": {"spans": spans}}


def _of_mlflow(at: int, place: int, kind: str, inputs: Any, outputs: Any, more: Record) -> Record:
    start = 10**18 + at * 10**10 + place * 10**6
    known = {
        "mlflow.spanType": kind,
        "mlflow.spanInputs": inputs,
        "mlflow.spanOutputs": outputs,
        **more,
    }
    return {
        "trace_id": f"{at + 1:032x}",
        "span_id": f"{at * 32 + place + 1:016x}",
        "parent_span_id": f"{at * 32 + 1:016x}" if place else None,
        "name": kind.lower(),
        "start_time_unix_nano": start,
        "end_time_unix_nano": start + 10**5,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {key: json.dumps(each) for key, each in known.items()},
    }


def _arguments(function: Mapping[str, Any]) -> Any:
    """Return arguments decoded; as text where they are no JSON."""
    try:
        return json.loads(function["arguments"])
    except ValueError:
        return function["arguments"]


def deepeval(folder: Path, number: int, seed: int) -> Files:
    """Write a test run of deepeval."""
    cases = [_test_case(task) for task, _ in tasks(number, seed)]
    path = folder / "run.json"
    path.write_text(
        json.dumps({"testFile": "test_desk.py", "testCases": cases, "testPassed": 1}),
        encoding="utf-8",
    )
    return Files(path)


def _test_case(task: Record) -> Record:
    def used(calls: Iterable[Record]) -> list[Record]:
        return [
            {"name": each["name"], "inputParameters": each["arguments"], "output": "arranged"}
            for each in calls
        ]

    made = (call["function"] for call in task["predicted"]["calls"])
    metric = {
        "name": "Tool Correctness",
        "score": 0.5,
        "threshold": 0.5,
        "success": True,
        "reason": "as expected",
    }
    return {
        "name": own_id(task),
        "input": task["input"],
        "actualOutput": task["predicted"]["text"],
        "toolsCalled": used({"name": each["name"], "arguments": _arguments(each)} for each in made),
        "expectedTools": used(task["expected"]["calls"]),
        "success": True,
        "metricsData": [metric],
    }


def atif(folder: Path, number: int, seed: int) -> Files:
    """Write trajectories of ATIF, one a line."""
    return Files(
        lines(
            folder / "trajectories.jsonl",
            (_trajectory(task, rng) for task, rng in tasks(number, seed)),
        )
    )


def _trajectory(task: Record, rng: random.Random) -> Record:
    steps: list[Record] = [{"source": "user", "message": task["input"]}]
    for call in task["predicted"]["calls"]:
        content = answered(call["function"], call["id"], rng)[1]["content"]
        asked = {"tool_call_id": call["id"], "function_name": call["function"]["name"]}
        asked["arguments"] = _arguments(call["function"])
        results = [{"source_call_id": call["id"], "content": content}]
        metrics = {"prompt_tokens": 900, "completion_tokens": 20, "cached_tokens": 512}
        done = {"tool_calls": [asked], "observation": {"results": results}, "metrics": metrics}
        steps.append({"source": "agent", "message": "", **done})
    steps.append({"source": "agent", "message": task["predicted"]["text"]})
    agent = {
        "name": "desk",
        "version": "1",
        "model_name": task["model"],
        "tool_definitions": task["tools"],
    }
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": own_id(task),
        "agent": agent,
        "steps": numbered,
    }


def inspect(folder: Path, number: int, seed: int) -> Files:
    """Write a log of inspect_ai as JSON."""
    path = folder / "log.json"
    samples = [_inspected(task, rng) for task, rng in tasks(number, seed)]
    head = {
        "version": 2,
        "status": "success",
        "eval": {"task": "desk", "model": "model-a"},
        "plan": {},
    }
    path.write_text(json.dumps({**head, "samples": samples}), encoding="utf-8")
    return Files(path)


def _inspected(task: Record, rng: random.Random) -> Record:
    talk: list[Record] = [
        {"role": "system", "content": POLICY[:200]},
        {"role": "user", "content": task["input"]},
    ]
    for call in task["predicted"]["calls"]:
        asked, result = answered(call["function"], call["id"], rng)
        function, arguments = call["function"]["name"], _arguments(call["function"])
        made = [
            {"id": call["id"], "function": function, "arguments": arguments, "type": "function"}
        ]
        talk += [{**asked, "content": "", "tool_calls": made}, {**result, "function": function}]
    talk.append({"role": "assistant", "content": task["predicted"]["text"], "source": "generate"})
    tools = [tool["function"] for tool in task["tools"]]
    used = {"input_tokens": 900, "output_tokens": 20, "total_tokens": 920}
    return {
        "id": own_id(task),
        "epoch": 1,
        "input": task["input"],
        "target": task["predicted"]["text"],
        "messages": talk,
        "scores": {"match": {"value": "C", "answer": "yes", "explanation": "as expected"}},
        "metadata": {},
        "store": {},
        "events": [{"event": "model", "model": "model-a", "tools": tools, "input": talk}],
        "model_usage": {"model-a": used},
        "total_time": 1.5,
    }


def promptfoo(folder: Path, number: int, seed: int) -> Files:
    """Write results of promptfoo, one a line."""
    rows = (_row(at, task) for at, (task, _) in enumerate(tasks(number, seed)))
    return Files(lines(folder / "results.jsonl", rows))


def _row(at: int, task: Record) -> Record:
    return {
        "testIdx": at,
        "promptIdx": 0,
        "provider": {"id": task["model"]},
        "prompt": {"raw": task["input"], "label": "first"},
        "vars": {"question": task["input"]},
        "response": {
            "output": task["predicted"]["calls"],
            "tokenUsage": {"prompt": 900, "completion": 20},
        },
        "success": True,
        "score": 1,
        "namedScores": {"calls": 1},
        "latencyMs": 1200,
        "failureReason": 0,
    }


_WRITERS = (
    tau_bench,
    deepfabric,
    when2call,
    orchestrationbench,
    letta,
    letta_dataset,
    openai,
    anthropic,
    bfcl,
    records,
    otel,
    mlflow,
    deepeval,
    atif,
    inspect,
    promptfoo,
)
FORMATS: dict[str, Callable[[Path, int, int], Files]] = {each.__name__: each for each in _WRITERS}
"""Reader -> what writes files for it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("format", choices=list(FORMATS))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=workload.SEED)
    chosen = parser.parse_args()
    chosen.directory.mkdir(parents=True, exist_ok=True)
    for path in FORMATS[chosen.format](chosen.directory, chosen.records, chosen.seed).all():
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
