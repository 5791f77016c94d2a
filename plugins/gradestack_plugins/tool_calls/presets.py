"""Published rules by name, each with the version of the program it is equal to.

Grades by them, and stacks of them.
"""

from __future__ import annotations

import copyreg
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gradestack import Fault, Grade, Outcome, Sample, ToolCall, failed, replace, skipped, suggest
from gradestack_plugins.tool_calls.diff import Expected, Made
from gradestack_plugins.tool_calls.matching import WIDE, TooManyCalls
from gradestack_plugins.tool_calls.published.frameworks import hashable
from gradestack_plugins.tool_calls.published.preset import (
    NotExpressible,
    Preset,
    Raised,
    Settings,
    Verdict,
)
from gradestack_plugins.tool_calls.published.table import published_presets

DOCUMENTED = "documented"
_JUDGES = {
    "agentevals/llm_as_judge": "0.0.9",
    "deepeval/argument_correctness": "4.3.1",
    "deepeval/task_completion": "4.3.1",
    "mlflow/tool_call_correctness/fuzzy": "3.17.0",
}
"""Rules of the same programs that ask a model.

Known by name, so that what they cannot do here is said.
"""
OWN: Settings = {
    "order": "any",
    "extra": "penalise",
    "missing": "penalise",
    "arguments": "rules",
    "equality": "json",
    "repeats": "multiset",
    "assignment": "optimal",
    "credit": "path",
    "unit": "sample",
    "requestor": "stated",
    "count": "attempted",
    "score": "f1",
}
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in sorted(
        (
            Preset(name=DOCUMENTED, version="1", settings=OWN, takes_rules=True),
            *published_presets(),
        ),
        key=lambda preset: preset.name,
    )
}
_ASKING = {name: Preset(name=name, version=version) for name, version in sorted(_JUDGES.items())}


ELSEWHERE = {
    "deepeval/tool_permission": "grader tool_policy",
    "mcp_bench/tool_accuracy": "grader tool_schema",
    "promptfoo/step-count": "grader tool_policy",
    "waza/tool_constraint": "grader tool_policy",
}
"""Published rules that are no matching of calls -> whose preset they are."""


def find(reference: str) -> Preset:
    """Return the preset of a name, or of ``NAME@VERSION``."""
    name, at, version = reference.partition("@")
    known = {**PRESETS, **_ASKING}
    preset = known.get(name)
    if name in ELSEWHERE:
        raise ValueError(f"{name} is no preset of this grader; it belongs to {ELSEWHERE[name]}")
    if preset is None:
        hint = suggest(name, known) or f"; there are: {', '.join(PRESETS)}"
        raise ValueError(f"no preset is called {name!r}{hint}")
    if at and version != preset.version:
        raise ValueError(
            f"{name} is known in version {preset.version} only, not {version!r}: {preset.full_name}"
        )
    return preset


def _found_again(preset: Preset) -> tuple[Any, ...]:
    return find, (preset.full_name,)


copyreg.pickle(
    Preset, _found_again
)  # rules are functions made for each, which do not travel to a worker


def refuse(preset: Preset, given: Mapping[str, Any]) -> None:
    """Check that options agree with a preset."""
    for option, value in given.items():
        if option not in preset.settings:
            known = ", ".join(preset.settings) or "none"
            message = (
                f"{option} cannot be set beside preset {preset.name}, which stands for: "
                f"{known}; leave it out"
            )
            raise ValueError(f"{message}, or leave the preset out")
        if preset.settings[option] != value:
            message = (
                f"{option}: {value} contradicts preset {preset.name}, which means "
                f"{preset.settings[option]}"
            )
            raise ValueError(f"{message}; leave one of them out")


def peer_grade(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Grade:
    """Return the grade of a sample by a published rule: what its program says."""
    metadata = {"preset": preset.full_name}
    try:
        verdict = _verdict(preset, sample, made, max_pairs)
    except Raised as error:
        return replace(
            failed(Fault(category="grading", code=error.code, message=str(error))),
            metadata=metadata,
        )
    except NotExpressible as error:
        return replace(skipped(error.code, str(error)), metadata=metadata)
    return Grade(
        outcome=Outcome.GRADED,
        score=verdict.score,
        passed=verdict.passed,
        parts=dict(verdict.parts),
        counts={"expected": len(sample.expected.calls or ()), "made": len(made)},
        metadata={**metadata, **verdict.metadata},
    )


def _verdict(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Verdict:
    if preset.rule is None:
        raise NotExpressible(
            f"{preset.name} asks a model, and this program asks none", "needs_judge"
        )
    expected = sample.expected.calls
    if expected is None or sample.expected.alternatives:
        raise NotExpressible("several lists of calls are right; the original program takes one")
    if not preset.takes_rules and any(
        call.rules or call.names or call.optional for call in expected
    ):
        message = (
            "an expected call is more than a name and arguments, which the original program "
            "does not support"
        )
        raise NotExpressible(message)
    if any(call.names or call.optional for call in expected):
        raise NotExpressible("an expected call is optional, or any of several tools")
    wanted = [Expected(index, call) for index, call in enumerate(expected)]
    done = [Made(index, call) for index, call in enumerate(made)]
    if preset.pairs:
        _check(wanted, done, max_pairs)
    return preset.rule(wanted, done, sample)


def _check(expected: Sequence[Expected], made: Sequence[Made], max_pairs: int) -> None:
    """Refuse more pairs than are compared in a second or so."""
    if len(expected) * len(made) <= max_pairs:
        return
    wanted = Counter((call.name, hashable(call.arguments)) for call in expected)
    done = Counter((call.name, hashable(call.arguments)) for call in made)
    left, free = (
        Counter(name for name, _ in side.elements()) for side in (wanted - done, done - wanted)
    )
    pairs = sum(number * free[name] for name, number in left.items())
    if pairs > max_pairs or len(expected) * len(made) > WIDE * max_pairs:
        message = (
            f"{max(pairs, len(expected) * len(made))} pairs of calls to compare, more than "
            f"max_pairs: {max_pairs}"
        )
        raise TooManyCalls(message)


def tool_calls() -> dict[str, Any]:
    """Return the stack that answers "did it make these calls?"."""
    return {
        "graders": {"calls": {"kind": "tool_calls"}},
        "outcome": "calls",
        "headline": {
            "figures": {
                "F1 over calls": "calls.call_figures.f1",
                "Precision": "calls.call_figures.precision",
                "Recall": "calls.call_figures.recall",
                "F1 over arguments": "calls.call_figures.argument_f1",
            },
        },
    }


def key_of(preset: str) -> str:
    """Return the key of a preset's grader in the stack ``peers``."""
    return preset.replace("trajectory:", "").replace("/", "_").replace("-", "_")


def peers() -> dict[str, Any]:
    """Return the stack of every preset, our own first."""
    names = [DOCUMENTED, *(name for name in PRESETS if name != DOCUMENTED)]
    return {
        "graders": {key_of(name): {"kind": "tool_calls", "preset": name} for name in names},
        "outcome": key_of(DOCUMENTED),
        "headline": {
            "figures": {
                "F1 over calls": f"{key_of(DOCUMENTED)}.call_figures.f1",
                "ADK, any order": f"{key_of('adk/any_order')}.mean",
                "ragas F1": f"{key_of('ragas/tool_call_f1')}.mean",
                "tau2 actions": f"{key_of('tau2/action')}.mean",
            },
        },
    }
