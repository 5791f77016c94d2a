"""A made-up run of a travel agent, with every kind of result a page must show."""
# ruff: noqa: S311 - made-up data, the same every time

import io
import json
import math
import random
from typing import Any

from gradestack import Report
from gradestack.jsonio import dumps, loads
from tests.core.outcomes import data

DATA = data(__file__, "fake_report.yaml")

Row = dict[str, Any]

POLICY = DATA["policy"]

STATIONS = ("Oslo", "Bergen", "Narvik", "Göteborg", "Malmö", "Århus", "Luleå", "Tromsø")


def _call(name: str, **arguments: Any) -> Row:
    return {"name": name, "arguments": arguments}


def _wanted(rng: random.Random, task: int) -> list[Row]:
    start, end = rng.sample(STATIONS, 2)
    journey = f"J{task:03d}"
    seats = []
    for _ in range(2):
        train = f"R{rng.randint(10, 99)}"
        day = f"2025-03-{rng.randint(1, 28):02d}"
        seats.append({"train": train, "day": day})
    possible = [
        _call("get_journey", journey_id=journey),
        _call(
            "change_journey",
            journey_id=journey,
            legs=seats,
            start=start,
            end=end,
            flexible=bool(task % 2),
        ),
        _call(
            "reserve_seat_in_the_carriage_asked_for",
            journey_id=journey,
            seat={"car": rng.randint(1, 9), "window": True},
            price=4.5,
        ),
        _call("cancel_journey", journey_id=journey, reason="plans changed"),
    ]
    return possible[: (0, 1, 2, 4)[task % 4]]


def _item(
    number: int, wanted: Row, made: list[Row], rng: random.Random, skill: float
) -> tuple[Row, Row | None]:
    item: Row = {"id": f"call {number + 1}", "outcome": "graded", "score": 1.0, "reasons": []}
    item["metadata"] = {"call": len(made), "tool": wanted["name"]}
    luck = rng.random()
    if luck < skill:
        return item, json.loads(json.dumps(wanted))
    if luck > 0.8 + skill / 5:
        reason = {
            "code": "missing_call",
            "subject": wanted["name"],
            "expected": wanted["arguments"],
        }
        metadata = {"call": None, "tool": wanted["name"]}
        return {
            **item,
            "score": 0.0,
            "reasons": [reason],
            "metadata": metadata,
        }, None
    text = json.dumps(wanted)
    call = json.loads(text)
    arguments = call["arguments"]
    if "legs" in arguments:
        old = arguments["legs"][1]["day"]
        new = "2025-03-30"
        arguments["legs"][1]["day"] = new
        pointer = "/legs/1/day"
        score_lost = 0.6 / 5 / 4
    else:
        key = max(arguments)
        old = arguments[key]
        new = "something else"
        arguments[key] = new
        pointer = f"/{key}"
        score_lost = 0.6 / len(arguments)
    subject = wanted["name"]
    reason = {
        "code": "wrong_argument",
        "pointer": pointer,
        "subject": subject,
        "expected": old,
        "actual": new,
    }
    score = round(1 - score_lost, 6)
    return {**item, "score": score, "reasons": [reason]}, call


def _talk(wanted: list[Row], made: list[Row], rng: random.Random) -> list[Row]:
    messages: list[Row] = [{"role": "system", "content": POLICY}]
    messages.append(
        {
            "role": "user",
            "content": "Hello, my plans have changed. Can you help me with my journey?",
        }
    )
    messages.append(
        {
            "role": "assistant",
            "content": "Gladly. What is your traveller number, and which journey is it?",
        }
    )
    messages.append(
        {
            "role": "user",
            "content": f"Traveller {rng.randint(1000, 9999)}, the one to {rng.choice(STATIONS)}.",
        }
    )
    for number, call in enumerate(made):
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        function = {"name": call["name"], "arguments": arguments}
        tool_calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": tool_calls,
            }
        )
        price = round(rng.random() * 90, 2)
        journey_id = call["arguments"].get("journey_id")
        reply: Row = {
            "ok": True,
            "journey": journey_id,
            "price": price,
        }
        names = rng.sample(STATIONS, 5)
        reply["stops"] = [{"station": name, "minute": rng.randint(0, 600)} for name in names]
        reply["notes"] = "Second class, quiet car. " * rng.randint(1, 30)
        text = json.dumps(reply)
        tool_call_id = f"c{number}"
        messages.append(
            {
                "role": "tool",
                "name": call["name"],
                "tool_call_id": tool_call_id,
                "content": text,
            }
        )
        messages.append(
            {
                "role": "assistant",
                "content": f"Done: {call['name'].replace('_', ' ')}. Anything else?",
            }
        )
    messages.append({"role": "user", "content": "No, thank you. Goodbye!"})
    return messages


def _gather(items: list[Row], wanted: list[Row], made: list[Row]) -> tuple[float, list[Row]]:
    if not wanted:
        reasons = []
        for call in made:
            subject = call["name"]
            reasons.append(
                {"code": "unexpected_call", "subject": subject, "actual": call["arguments"]}
            )
        return float(not made), reasons
    total = 0.0
    for item in items:
        total += item["score"]
    return total / len(wanted), [reason for item in items for reason in item["reasons"]]


def graded_row(task: int, run: int, model: str, seed: int = 7, threshold: float = 0.6) -> Row:
    wanted = _wanted(random.Random(f"{seed} {task}"), task)
    rng = random.Random(f"{seed} {task} {run} {model}")
    made: list[Row] = (
        [_call("find_traveller", number=rng.randint(1000, 9999))]
        if wanted or rng.random() < 0.4
        else []
    )
    items = []
    for number, call in enumerate(wanted):
        skill = 0.75 if model == "north-2" else 0.5
        item, reply = _item(number, call, made, rng, skill)
        items.append(item)
        if reply is not None:
            made.append(reply)
    score, reasons = _gather(items, wanted, made)
    parts = {"reward": float(score == 1.0)}
    partial = {
        "score": score,
        "state": "graded",
        "rationale": f"{len(reasons)} reasons",
        "metadata": {},
        "reasons": reasons,
        "items": items,
        "parts": parts,
        "counts": {"expected_calls": len(wanted), "made_calls": len(made)},
    }
    rationale = "the database is as it should be" if score == 1.0 else "the database differs"
    reward = {
        "score": float(score == 1.0),
        "state": "graded",
        "passed": score == 1.0,
        "rationale": rationale,
        "metadata": {"hash": "5f2c"},
    }
    sample = {
        "id": f"journey-{task}",
        "input": f"You want to change journey {task}.",
        "ground_truth": None,
    }
    trajectory = [_talk(wanted, made, rng)]
    tokens = rng.randint(900, 9000)
    agent_usage = {"tokens": tokens}
    ordinal = task * 4 + run
    source = {"file": "runs/rail.json", "ordinal": ordinal, "line": None}
    recorded = {"reward": reward["score"]}
    tools = DATA["tools"]
    return {
        "sample": sample,
        "submission": "No, thank you.",
        "trajectory": trajectory,
        "agent_id": None,
        "agent_usage": agent_usage,
        "model_name": model,
        "run": run,
        "facets": {"domain": "rail"},
        "source": source,
        "state": "graded",
        "passed": score >= threshold,
        "grade": partial,
        "grades": {"partial": partial, "reward": reward},
        "expected": {"calls": wanted, "label": None, "text": None, "plan": None},
        "predicted": {"calls": made, "label": None, "plan": None},
        "tools": tools,
        "recorded": recorded,
        "status": "ok",
        "error": None,
    }


def ungraded_row(task: int, run: int, model: str, state: str) -> Row:
    row = graded_row(task, run, model)
    rationale = f"this sample is {state}"
    grade: Row = {
        "score": 0.0,
        "state": state,
        "rationale": rationale,
        "metadata": {},
    }
    if state == "failed":
        fault = {
            "category": "target",
            "code": "recorded_error",
            "type": "TimeoutError",
            "message": "no answer in 60 s",
        }
        grade = {
            **grade,
            "fault": fault,
            "metadata": {"error": "no answer in 60 s", "error_type": "TimeoutError"},
        }
        row["error"] = fault
        row["trajectory"] = []
    if state == "skipped":
        grade["reasons"] = [{"code": "no_reference", "message": "no reference calls"}]
        row["expected"] = {"calls": None, "label": None, "text": None, "plan": None}
    if state == "missing":
        row["predicted"] = {"calls": None, "label": None, "plan": None}
        row["trajectory"] = []
    return {
        **row,
        "grade": grade,
        "grades": {"partial": grade, "reward": grade},
        "state": state,
        "passed": None,
    }


def _figures(rows: list[Row], key: str, threshold: float) -> Row:
    scores = []
    for row in rows:
        state = row["grades"][key]["state"]
        if state == "graded":
            grade = row["grades"][key]
            scores.append(grade["score"])
    passed = sum(score >= threshold for score in scores)
    total = math.fsum(scores)
    pass_rate = None
    if scores:
        pass_rate = 100 * passed / len(scores)
    avg_score_attempted = None
    if scores:
        avg_score_attempted = total / len(scores)
    avg_score_total = None
    if rows:
        avg_score_total = total / len(rows)
    failed_attempts = len(scores) - passed
    return {
        "avg_score_attempted": avg_score_attempted,
        "avg_score_total": avg_score_total,
        "pass_rate": pass_rate,
        "passed_attempts": passed,
        "failed_attempts": failed_attempts,
    }


def _states(rows: list[Row], key: str) -> Row:
    counts = dict.fromkeys(("graded", "skipped", "failed", "missing"), 0)
    for row in rows:
        counts[row["grades"][key]["state"]] += 1
    return counts


def _model(rows: list[Row], name: str, threshold: float) -> Row:
    rows_of_model = [row for row in rows if row["model_name"] == name]
    figures = _figures(rows_of_model, "partial", threshold)
    states = _states(rows_of_model, "partial")
    metrics = {"partial": figures["pass_rate"]}
    graded = states["graded"]
    avg_score_attempted = figures["avg_score_attempted"]
    avg_score_total = figures["avg_score_total"]
    return {
        "model_name": name,
        "total": len(rows_of_model),
        "total_attempted": graded,
        "avg_score_attempted": avg_score_attempted,
        "avg_score_total": avg_score_total,
        "passed_samples": figures["passed_attempts"],
        "failed_samples": figures["failed_attempts"],
        "metrics": metrics,
    }


def _outcome(rows: list[Row], models: list[str]) -> Row:
    def counts(rows_counted: list[Row]) -> Row:
        verdicts = [row["passed"] for row in rows_counted]
        passed = verdicts.count(True)
        failed = verdicts.count(False)
        return {"passed": passed, "failed": failed}

    gates = []
    for name in models:
        gates.append(
            {"model_name": name, **counts([row for row in rows if row["model_name"] == name])}
        )
    return {
        "grader": "partial",
        "rule": "passed by grader partial",
        "words": {"passed": "solved", "failed": "not solved"},
        **counts(rows),
        "per_model": gates or None,
    }


def _aggregates(rows: list[Row]) -> Row:
    scores = []
    for row in rows:
        if row["state"] == "graded":
            scores.append(row["grade"]["score"])
    mean = None
    if scores:
        mean = math.fsum(scores) / len(scores)
    edges = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    bins = [max(n for n, low in enumerate(edges) if score >= low) for score in scores]
    names = ("[0.0-0.2)", "[0.2-0.4)", "[0.4-0.6)", "[0.6-0.8)", "[0.8-1.0)", "[1.0]")
    histogram = []
    for number, name in enumerate(names):
        count = bins.count(number)
        histogram.append({"bin": name, "count": count})
    error = None if mean is None else 0.031
    if mean is None:
        mean_interval = {"reason": "nothing graded"}
    else:
        high = mean + 0.06
        mean_interval = {"low": mean - 0.06, "high": high, "confidence": 0.95}
    partial_statistics = {
        "average": mean,
        "histogram": histogram,
        **DATA["partial_statistics"],
    }
    partial = {
        "mean": {
            "n": len(scores),
            "mean": mean,
            "stderr": error,
            "mean_interval": mean_interval,
        },
        "partial_statistics": partial_statistics,
    }
    return {
        "partial": partial,
        "reward": DATA["reward"],
    }


def summary_of(
    rows: list[Row], *, threshold: float = 0.6, gate: bool = True, many_models: bool = True
) -> Row:
    figures = {}
    for key in ("partial", "reward"):
        figures[key] = _figures(rows, key, threshold if key == "partial" else 1.0)
    actual = figures["partial"]["avg_score_attempted"]
    good = actual is not None and actual >= threshold
    if actual is None:
        outcome = "no_data"
    else:
        outcome = "passed" if good else "failed"
    text = f"partial >= {threshold}"
    gates = [
        {
            "text": text,
            "metric_key": "partial",
            "metric": "avg_score",
            "op": "gte",
            "value": threshold,
            "actual": actual,
            "passed": good,
            "outcome": outcome,
        }
    ]
    names = list(dict.fromkeys(row["model_name"] for row in rows))
    head = figures["partial"]
    if many_models and len(names) > 1:
        models = names
    else:
        models = []
    return {
        "suite": "rail",
        "config": {
            "name": "rail",
            "graders": {"partial": {"kind": "tau_partial"}, "reward": {"kind": "tau_reward"}},
        },
        "outcome": _outcome(rows, models),
        "headline": {
            "letta": False,
            "figures": [
                {
                    "label": "Partial credit",
                    "figure": "partial.mean.mean",
                    "value": actual,
                    "reason": "nothing graded",
                },
                {
                    "label": "pass^k",
                    "figure": "reward.pass_hat_k.pass_hat_k",
                    "value": {"1": 0.42, "2": 0.2733},
                },
                {
                    "label": "Reward",
                    "figure": "reward.mean.mean",
                    "value": None,
                    "reason": "no <b>reward</b> | at all",
                },
            ],
        },
        "gates_passed": good if gate else None,
        "gates": gates if gate else [],
        "metrics": {
            "total": len(rows),
            "total_attempted": _states(rows, "partial")["graded"],
            **{key: value for key, value in head.items() if key != "pass_rate"},
            "per_model": [_model(rows, name, threshold) for name in names]
            if many_models and len(names) > 1
            else None,
            "by_metric": figures,
            "metrics": {key: value["pass_rate"] for key, value in figures.items()},
            "states": {key: _states(rows, key) for key in figures},
            "aggregates": _aggregates(rows),
        },
        **DATA["summary"],
    }


HEADER: Row = DATA["header"]


def make_report(rows: list[Row], **options: Any) -> Report:
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    text = dumps(summary_of(rows, **options))
    summary = loads(text)
    bytes_io = io.BytesIO(lines.encode())
    return Report(path=None, header=HEADER, summary=summary, row_buffer=bytes_io)


def realistic_rows(
    tasks: int = 14, trials: int = 4, models: tuple[str, ...] = ("north-1", "north-2")
) -> list[Row]:
    rows = []
    for model in models:
        for run in range(trials):
            for task in range(tasks):
                special = {(2, 1): "failed", (5, 2): "skipped", (8, 3): "missing"}.get((task, run))
                rows.append(
                    ungraded_row(task, run, model, special)
                    if special
                    else graded_row(task, run, model)
                )
    return rows
