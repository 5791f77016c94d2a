"""Published rules by name, each with the version of the program it is equal to.

Grades by them, and stacks of them.
"""

from __future__ import annotations

import copyreg
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Fault, Grade, Outcome, Sample, ToolCall, failed, replace, skipped, suggest
from gradestack_plugins.tool_calls.diff import Expected, Made
from gradestack_plugins.tool_calls.matching import WIDE, Options, TooManyCalls
from gradestack_plugins.tool_calls.published.frameworks import hashable
from gradestack_plugins.tool_calls.published.preset import (
    NotExpressible,
    Preset,
    Raised,
    Settings,
    Verdict,
    refuse_nothing,
    refuse_undecodable,
)
from gradestack_plugins.tool_calls.published.table import published_presets

DOCUMENTED = "documented"
_JUDGES = {
    "agentevals/llm_as_judge": "0.0.9",
    "deepeval/argument_correctness": "4.3.1",
    "deepeval/task_completion": "4.3.1",
    "mlflow/tool_call_correctness/fuzzy": "3.17.0",
}
"""Rules of the same programs that ask a model, each with its version."""
_OPTIONS = msgspec.structs.asdict(Options(max_pairs=1))
_OWN: Settings = {name: value for name, value in _OPTIONS.items() if isinstance(value, str)}
_DOCUMENTED = Preset(name=DOCUMENTED, version="1", settings=_OWN, takes_rules=True)
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in sorted((_DOCUMENTED, *published_presets()), key=lambda preset: preset.name)
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
        problem = f"{name} is known in version {preset.version} only, not {version!r}"
        raise ValueError(f"{problem}: {preset.full_name}")
    return preset


def _reduce(preset: Preset) -> tuple[Any, ...]:
    """Pickle a preset by its name: its rule is a function that does not travel to a worker."""
    return find, (preset.full_name,)


copyreg.pickle(Preset, _reduce)


def refuse(preset: Preset, stated: Mapping[str, Any]) -> None:
    """Check that options agree with a preset.

    Raises:
        ValueError: One is not among its options, or contradicts it.
    """
    name, settings = preset.name, preset.settings
    for option, value in stated.items():
        if option not in settings:
            known = ", ".join(settings) or "none"
            problem = f"{option} cannot be set beside preset {name}, which stands for: {known}"
            raise ValueError(f"{problem}; leave it out, or leave the preset out")
        if settings[option] != value:
            problem = f"{option}: {value} contradicts preset {name}"
            raise ValueError(f"{problem}, which means {settings[option]}; leave one of them out")


def grade_as_published(
    preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int
) -> Grade:
    """Return the grade of a sample by a published rule, as its program has it.

    Raises:
        TooManyCalls: More pairs of calls would be compared than ``max_pairs``.
    """
    metadata = {"preset": preset.full_name}
    try:
        verdict = _verdict(preset, sample, made, max_pairs)
    except Raised as error:
        fault = Fault(category="grading", code=error.code, message=str(error))
        return replace(failed(fault), metadata=metadata)
    except NotExpressible as error:
        return replace(skipped(error.code, str(error)), metadata=metadata)
    expected = len(sample.expected.calls or ())
    counts = {"expected": expected, "made": len(made)}
    parts = dict(verdict.parts)
    return Grade(
        outcome=Outcome.GRADED,
        score=verdict.score,
        passed=verdict.passed,
        parts=parts,
        counts=counts,
        metadata={**metadata, **verdict.metadata},
    )


def _verdict(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Verdict:
    """Apply a published rule to a sample, after the checks that it can be expressed there.

    Raises:
        NotExpressible: It cannot.
        Raised: The original program raises on the sample.
    """
    if preset.rule is None:
        problem = f"{preset.name} asks a model, and this program asks none"
        raise NotExpressible(problem, "needs_judge")
    expected = sample.expected.calls
    if expected is None or sample.expected.alternatives:
        raise NotExpressible("several lists of calls are right; the original program takes one")
    has_choices = any(call.names or call.optional for call in expected)
    if not preset.takes_rules and (has_choices or any(call.rules for call in expected)):
        problem = "an expected call is more than a name and arguments"
        raise NotExpressible(f"{problem}, which the original program does not support")
    if has_choices:
        raise NotExpressible("an expected call is optional, or any of several tools")
    wanted = [Expected(index, call) for index, call in enumerate(expected)]
    done = [Made(index, call) for index, call in enumerate(made)]
    if preset.pairs:
        _check_number(wanted, done, max_pairs)
    if preset.raises == "nothing":
        refuse_nothing(wanted)
    if preset.raises == "undecodable":
        refuse_undecodable((*wanted, *done))
    return preset.rule(wanted, done, sample)


def _check_number(expected: Sequence[Expected], made: Sequence[Made], max_pairs: int) -> None:
    """Refuse more pairs than are compared in a second or so."""
    every = len(expected) * len(made)
    if every <= max_pairs:
        return
    wanted = Counter((call.name, hashable(call.arguments)) for call in expected)
    done = Counter((call.name, hashable(call.arguments)) for call in made)
    elements = (wanted - done).elements()
    left = Counter(name for name, _ in elements)
    free = Counter(name for name, _ in (done - wanted).elements())
    pairs = sum(number * free[name] for name, number in left.items())
    if pairs > max_pairs or every > WIDE * max_pairs:
        problem = f"{max(pairs, every)} pairs of calls to compare"
        raise TooManyCalls(f"{problem}, more than max_pairs: {max_pairs}")


def tool_calls() -> dict[str, Any]:
    """Return the stack that answers "did it make these calls?"."""
    figures = {
        "F1 over calls": "calls.call_figures.f1",
        "Precision": "calls.call_figures.precision",
        "Recall": "calls.call_figures.recall",
        "F1 over arguments": "calls.call_figures.argument_f1",
    }
    graders = {"calls": {"kind": "tool_calls"}}
    return {"graders": graders, "outcome": "calls", "headline": {"figures": figures}}


def key_of(preset: str) -> str:
    """Return the key of a preset's grader in the stack ``peers``."""
    return preset.replace("trajectory:", "").replace("/", "_").replace("-", "_")


def peers() -> dict[str, Any]:
    """Return the stack of every preset, our own first."""
    names = dict.fromkeys((DOCUMENTED, *PRESETS))
    figures = {
        "F1 over calls": "documented.call_figures.f1",
        "ADK, any order": "adk_any_order.mean",
        "ragas F1": "ragas_tool_call_f1.mean",
        "tau2 actions": "tau2_action.mean",
    }
    graders = {key_of(name): {"kind": "tool_calls", "preset": name} for name in names}
    return {
        "graders": graders,
        "outcome": DOCUMENTED,
        "headline": {"figures": figures},
    }
