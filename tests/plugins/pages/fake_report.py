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
    seats = [
        {"train": f"R{rng.randint(10, 99)}", "day": f"2025-03-{rng.randint(1, 28):02d}"}
        for _ in range(2)
    ]
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
        return {
            **item,
            "score": 0.0,
            "reasons": [reason],
            "metadata": {"call": None, "tool": wanted["name"]},
        }, None
    call = json.loads(json.dumps(wanted))
    arguments = call["arguments"]
    if "legs" in arguments:
        old, new = arguments["legs"][1]["day"], "2025-03-30"
        arguments["legs"][1]["day"] = new
        pointer, score_lost = "/legs/1/day", 0.6 / 5 / 4
    else:
        key = max(arguments)
        old, new = arguments[key], "something else"
        arguments[key] = new
        pointer, score_lost = f"/{key}", 0.6 / len(arguments)
    reason = {
        "code": "wrong_argument",
        "pointer": pointer,
        "subject": wanted["name"],
        "expected": old,
        "actual": new,
    }
    return {**item, "score": round(1 - score_lost, 6), "reasons": [reason]}, call


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
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
            }
        )
        reply: Row = {
            "ok": True,
            "journey": call["arguments"].get("journey_id"),
            "price": round(rng.random() * 90, 2),
        }
        reply["stops"] = [
            {"station": name, "minute": rng.randint(0, 600)} for name in rng.sample(STATIONS, 5)
        ]
        reply["notes"] = "Second class, quiet car. " * rng.randint(1, 30)
        messages.append(
            {
                "role": "tool",
                "name": call["name"],
                "tool_call_id": f"c{number}",
                "content": json.dumps(reply),
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
        reasons = [
            {"code": "unexpected_call", "subject": call["name"], "actual": call["arguments"]}
            for call in made
        ]
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
        item, reply = _item(number, call, made, rng, 0.75 if model == "north-2" else 0.5)
        items.append(item)
        if reply is not None:
            made.append(reply)
    score, reasons = _gather(items, wanted, made)
    partial = {
        "score": score,
        "state": "graded",
        "rationale": f"{len(reasons)} reasons",
        "metadata": {},
        "reasons": reasons,
        "items": items,
        "parts": {"reward": float(score == 1.0)},
        "counts": {"expected_calls": len(wanted), "made_calls": len(made)},
    }
    reward = {
        "score": float(score == 1.0),
        "state": "graded",
        "passed": score == 1.0,
        "rationale": "the database is as it should be" if score == 1.0 else "the database differs",
        "metadata": {"hash": "5f2c"},
    }
    return {
        "sample": {
            "id": f"journey-{task}",
            "input": f"You want to change journey {task}.",
            "ground_truth": None,
        },
        "submission": "No, thank you.",
        "trajectory": [_talk(wanted, made, rng)],
        "agent_id": None,
        "agent_usage": {"tokens": rng.randint(900, 9000)},
        "model_name": model,
        "run": run,
        "facets": {"domain": "rail"},
        "source": {"file": "runs/rail.json", "ordinal": task * 4 + run, "line": None},
        "state": "graded",
        "passed": score >= threshold,
        "grade": partial,
        "grades": {"partial": partial, "reward": reward},
        "expected": {"calls": wanted, "label": None, "text": None, "plan": None},
        "predicted": {"calls": made, "label": None, "plan": None},
        "tools": DATA["tools"],
        "recorded": {"reward": reward["score"]},
        "status": "ok",
        "error": None,
    }


def ungraded_row(task: int, run: int, model: str, state: str) -> Row:
    row = graded_row(task, run, model)
    grade: Row = {
        "score": 0.0,
        "state": state,
        "rationale": f"this sample is {state}",
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
    scores = [
        row["grades"][key]["score"] for row in rows if row["grades"][key]["state"] == "graded"
    ]
    passed = sum(score >= threshold for score in scores)
    total = math.fsum(scores)
    return {
        "avg_score_attempted": total / len(scores) if scores else None,
        "avg_score_total": total / len(rows) if rows else None,
        "pass_rate": 100 * passed / len(scores) if scores else None,
        "passed_attempts": passed,
        "failed_attempts": len(scores) - passed,
    }


def _states(rows: list[Row], key: str) -> Row:
    counts = dict.fromkeys(("graded", "skipped", "failed", "missing"), 0)
    for row in rows:
        counts[row["grades"][key]["state"]] += 1
    return counts


def _model(rows: list[Row], name: str, threshold: float) -> Row:
    rows_of_model = [row for row in rows if row["model_name"] == name]
    figures = _figures(rows_of_model, "partial", threshold)
    return {
        "model_name": name,
        "total": len(rows_of_model),
        "total_attempted": _states(rows_of_model, "partial")["graded"],
        "avg_score_attempted": figures["avg_score_attempted"],
        "avg_score_total": figures["avg_score_total"],
        "passed_samples": figures["passed_attempts"],
        "failed_samples": figures["failed_attempts"],
        "metrics": {"partial": figures["pass_rate"]},
    }


def _outcome(rows: list[Row], models: list[str]) -> Row:
    def counts(rows_counted: list[Row]) -> Row:
        verdicts = [row["passed"] for row in rows_counted]
        return {"passed": verdicts.count(True), "failed": verdicts.count(False)}

    gates = [
        {"model_name": name, **counts([row for row in rows if row["model_name"] == name])}
        for name in models
    ]
    return {
        "grader": "partial",
        "rule": "passed by grader partial",
        "words": {"passed": "solved", "failed": "not solved"},
        **counts(rows),
        "per_model": gates or None,
    }


def _aggregates(rows: list[Row]) -> Row:
    scores = [row["grade"]["score"] for row in rows if row["state"] == "graded"]
    mean = None
    if scores:
        mean = math.fsum(scores) / len(scores)
    edges = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    bins = [max(n for n, low in enumerate(edges) if score >= low) for score in scores]
    names = ("[0.0-0.2)", "[0.2-0.4)", "[0.4-0.6)", "[0.6-0.8)", "[0.8-1.0)", "[1.0]")
    histogram = [{"bin": name, "count": bins.count(number)} for number, name in enumerate(names)]
    error = None if mean is None else 0.031
    return {
        "partial": {
            "mean": {
                "n": len(scores),
                "mean": mean,
                "stderr": error,
                "mean_interval": {"reason": "nothing graded"}
                if mean is None
                else {"low": mean - 0.06, "high": mean + 0.06, "confidence": 0.95},
            },
            "partial_statistics": {
                "average": mean,
                "histogram": histogram,
                **DATA["partial_statistics"],
            },
        },
        "reward": DATA["reward"],
    }


def summary_of(
    rows: list[Row], *, threshold: float = 0.6, gate: bool = True, many_models: bool = True
) -> Row:
    figures = {
        key: _figures(rows, key, threshold if key == "partial" else 1.0)
        for key in ("partial", "reward")
    }
    actual = figures["partial"]["avg_score_attempted"]
    good = actual is not None and actual >= threshold
    gates = [
        {
            "text": f"partial >= {threshold}",
            "metric_key": "partial",
            "metric": "avg_score",
            "op": "gte",
            "value": threshold,
            "actual": actual,
            "passed": good,
            "outcome": "no_data" if actual is None else "passed" if good else "failed",
        }
    ]
    names = list(dict.fromkeys(row["model_name"] for row in rows))
    head = figures["partial"]
    return {
        "suite": "rail",
        "config": {
            "name": "rail",
            "graders": {"partial": {"kind": "tau_partial"}, "reward": {"kind": "tau_reward"}},
        },
        "outcome": _outcome(rows, names if many_models and len(names) > 1 else []),
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
    summary = loads(dumps(summary_of(rows, **options)))
    return Report(path=None, header=HEADER, summary=summary, row_buffer=io.BytesIO(lines.encode()))


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
