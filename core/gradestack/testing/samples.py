"""Samples and grades that components are checked with."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import yaml

from gradestack.model import Fault, Grade, Item, Key, Outcome, Reason, Sample, replace

GradedKeys = Sequence[tuple[Key, Grade]]

_OUTCOMES = [Outcome.GRADED] * 5 + [Outcome.SKIPPED, Outcome.FAILED, Outcome.MISSING]
_LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer", "invalid")


@cache
def _read_samples() -> Any:
    file = resources.files("gradestack.testing") / "nasty_samples.yaml"
    text = file.read_text(encoding="utf-8")
    return yaml.safe_load(text)["samples"]


def nasty_samples() -> list[Sample]:
    """Return valid samples with everything that breaks careless graders."""
    samples = msgspec.convert(copy.deepcopy(_read_samples()), list[Sample])
    return [*samples, replace(samples[0], id="stranger", native=object())]


def random_grades(seed: int = 0, count: int = 60) -> list[tuple[Key, Grade]]:
    """Return seeded keys and grades of every outcome, with what families put into them."""
    rng = random.Random(seed)  # noqa: S311 - test data
    return [(_random_key(rng, ordinal), _random_grade(rng)) for ordinal in range(count)]


def _random_key(rng: random.Random, ordinal: int) -> Key:
    return Key(
        id=f"t{rng.randrange(8)}",
        model=rng.choice([None, "m1", "m2"]),
        run=rng.choice([None, 0, 1, 2]),
        ordinal=ordinal,
        facets={"domain": rng.choice("ab")},
    )


def _random_grade(rng: random.Random) -> Grade:
    """Make a random grade of any outcome; a graded one has score, parts, an item and reasons."""
    outcome = rng.choice(_OUTCOMES)
    expected_calls = rng.randrange(3)
    called = min(expected_calls, rng.randrange(3))
    counts = {"expected_calls": expected_calls, "called": called}
    label = rng.choice(_LABELS)
    gold = rng.choice(_LABELS[:4])
    grade = Grade(outcome=outcome, counts=counts, label=label, gold=gold)
    if outcome is Outcome.FAILED:
        fault = Fault(category="data", code="x")
        return replace(grade, fault=fault)
    if outcome is not Outcome.GRADED:
        return grade
    score = rng.choice([0.0, 1.0, rng.random(), 1e-17, 0.1])
    passed = rng.choice([None, score == 1.0])
    reward = rng.choice([0.0, 1.0])
    parts = {"reward": reward, "tool_selection": rng.random()}
    item_parts = {"argument_similarity": rng.random()}
    item = Item(id="0", score=score, parts=item_parts, counts={"tp": 1})
    reasons = () if score else (Reason(code="missing_call", subject="f"),)
    return replace(grade, score=score, passed=passed, parts=parts, items=(item,), reasons=reasons)
