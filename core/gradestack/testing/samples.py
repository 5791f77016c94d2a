"""Samples and grades that break careless components."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

from gradestack.model import (
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Item,
    Key,
    Message,
    Outcome,
    Reason,
    Rule,
    Sample,
    Source,
    Status,
    ToolCall,
    ToolSpec,
    Usage,
    replace,
)

ALWAYS_READABLE = frozenset({"id", "status", "error"})


def nasty_samples() -> list[Sample]:
    """Return valid samples with everything that breaks careless graders."""
    text, deep = "<script>\u202e\ud800\x00", json.loads('{"a": [' * 60 + "1" + "]}" * 60)
    odd = {"text": text, "big": 10**40, "nan": float("nan"), "null": None, "deep": deep, "": []}
    call = ToolCall(name="search", arguments={"q": "x", "n": 1})
    tool = ToolSpec(name="search", parameters={"type": "object", "properties": {"q": {"type": "string"}}})
    broken_tool = ToolSpec(name="search", parameters={"type": 3, "properties": ["q"], "required": "q"})
    wanted = ExpectedCall(name="search", arguments={"q": "x", "n": 1})
    both = Expectation(calls=(wanted,), label="tool_call", text="x")
    ruled = ExpectedCall(names=("search", "find"), rules={"q": Rule(any_of=("x", odd), compare="regex")}, optional=True)
    strange = ExpectedCall(name="x", arguments=odd)
    anything = ExpectedCall(name="search", arguments=None, group=1, turn=0)
    bare = Sample(id="bare")
    return [
        bare,
        Sample(id="", expected=Expectation(calls=()), calls=()),
        Sample(id="none-called", expected=both, calls=(), tools=(), label="direct"),
        Sample(id="right", expected=both, calls=(call,), tools=(tool,), label="tool_call", text="x"),
        Sample(id="twice", expected=Expectation(calls=(wanted, wanted)), calls=(call, call), tools=(tool, tool)),
        Sample(id="unparsable", expected=both, calls=(ToolCall(name="", arguments=None, raw_arguments="{"),)),
        Sample(id="odd", expected=Expectation(calls=(strange,)), calls=(call,), recorded=odd),
        Sample(id="odd calls", expected=both, calls=(ToolCall(name="search", arguments=odd),), tools=(broken_tool,)),
        Sample(id="open", expected=Expectation(calls=(ruled, anything), alternatives=((wanted,), ())), calls=(call,)),
        Sample(id="labels", expected=Expectation(label="no such label"), label="\ud800", text="\x00" * 10),
        Sample(id="recorded", recorded={"reward": "1", "score": [], "reward_info": None}, run="a", model=""),
        Sample(
            id="talk",
            run=10**20,
            input=("one", ""),
            turns=((), (Message(role="", content=[{"type": "image"}, None, "t"], tool_calls=(call,)),)),
            facets={"x": None},
            usage=Usage(input_tokens=0),
            agent_usage="?",
            state=odd,
            trace={"trace_id": "\ud800"},
            ended="limit:turns",
            source=Source(file="f", ordinal=3, line=4),
            expected=Expectation(text=("a",), plan={"workflow_1": None}),
            plan=["?"],
        ),
        Sample(id="failed", status=Status.FAILED, error=Fault(category="target", code="x"), expected=both),
        Sample(id="missing", status=Status.MISSING, expected=both),
        replace(bare, id="stranger", native=object()),
    ]


def masked(sample: Sample, allowed: Iterable[str]) -> Sample:
    """Return a copy of a sample whose other fields raise AssertionError when read."""
    names = frozenset(Sample.__struct_fields__)
    readable = ALWAYS_READABLE | set(allowed)

    class Masked(Sample, frozen=True, kw_only=True, eq=False):
        def __getattribute__(self, name: str) -> Any:
            if name in names and name not in readable:
                msg = f"the grader read Sample.{name}, which its `needs` does not declare; add it there"
                raise AssertionError(msg)
            return super().__getattribute__(name)

    return Masked(**{name: getattr(sample, name) for name in names})


def random_grades(seed: int = 0, count: int = 60) -> list[tuple[Key, Grade]]:
    """Return seeded keys and grades of every outcome, with what families put into them."""
    rng = random.Random(seed)  # noqa: S311 - test data
    labels = ["direct", "tool_call", "request_for_info", "cannot_answer", "invalid"]
    found = []
    for ordinal in range(count):
        outcome = rng.choice([Outcome.GRADED] * 5 + [Outcome.SKIPPED, Outcome.FAILED, Outcome.MISSING])
        score = rng.choice([0.0, 1.0, rng.random(), 1e-17, 0.1]) if outcome is Outcome.GRADED else None
        key = Key(
            id=f"t{rng.randrange(8)}",
            model=rng.choice([None, "m1", "m2"]),
            run=rng.choice([None, 0, 1, 2]),
            ordinal=ordinal,
            facets={"domain": rng.choice("ab")},
        )
        item = Item(id="0", score=score or 0.0, parts={"argument_similarity": rng.random()}, counts={"tp": 1})
        grade = Grade(
            outcome=outcome,
            score=score,
            passed=rng.choice([None, score == 1.0]) if score is not None else None,
            counts={"expected_calls": rng.randrange(3), "called": rng.randrange(3)},
            parts={"reward": rng.choice([0.0, 1.0]), "tool_selection": rng.random()} if score is not None else {},
            label=rng.choice(labels),
            gold=rng.choice(labels[:4]),
            items=(item,) if score is not None else (),
            fault=Fault(category="data", code="x") if outcome is Outcome.FAILED else None,
            reasons=(Reason(code="missing_call", subject="f"),) if score == 0.0 else (),
        )
        found.append((key, grade))
    return found
