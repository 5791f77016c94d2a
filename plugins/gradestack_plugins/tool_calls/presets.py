"""Published rules by name, each with the version of the program it is equal to and the options it stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from gradestack import ExpectedCall, Fault, Grade, Outcome, Sample, ToolCall, failed, replace, skipped, suggest
from gradestack_plugins.tool_calls.calls import Call, expected_call, made_call
from gradestack_plugins.tool_calls.matching import WIDE, TooManyCalls
from gradestack_plugins.tool_calls.peers import (
    adk,
    agentevals,
    azure,
    bfcl,
    deepeval,
    gold_actions,
    mlflow,
    names,
    promptfoo,
    ragas,
)
from gradestack_plugins.tool_calls.peers.ragas import hashable
from gradestack_plugins.tool_calls.peers.verdict import NotTold, Raised, Rule, SampleRule, Verdict

DOCUMENTED = "documented"
"""The preset that is this grader's own rule."""
Settings = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Preset:
    """One published rule."""

    name: str
    version: str
    rule: Rule | None = None
    """None for our own, for those that ask a model, and for those that look at more than calls."""
    sample_rule: SampleRule | None = None
    settings: Settings = attrs.field(factory=dict)
    """The options it stands for; any other value of them, and any other option, contradicts it."""
    takes_rules: bool = False
    """Whether it can be told of arguments that are not simply compared."""
    pairs: bool = True
    """Whether it compares calls pair by pair, so that many of them take long."""
    judge: bool = False
    """Whether the original program asks a model."""

    @property
    def full_name(self) -> str:
        """``NAME@VERSION``, which outputs record."""
        return f"{self.name}@{self.version}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a worker finds it: rules are functions made for each, which do not travel."""
        return find, (self.full_name,)


def _settings(order: str, extra: str, arguments: str, equality: str = "python", **more: Any) -> Settings:
    """Return the options a rule stands for; ``missing`` is ``forbid`` unless something else is said."""
    return {"order": order, "extra": extra, "missing": "forbid", "arguments": arguments, "equality": equality} | more


def _adk() -> Iterator[Preset]:
    modes = {"exact": ("strict", "forbid"), "in_order": ("in_order", "allow"), "any_order": ("any", "allow")}
    for mode, (order, extra) in modes.items():
        for suffix, arguments in (("", "exact"), ("/names", "ignore")):
            stands = _settings(order, extra, arguments, assignment="first_fit", credit="none")
            rule = adk.rule(mode, names=bool(suffix))
            yield Preset(name=f"adk/{mode}{suffix}", version="2.13.0", sample_rule=rule, settings=stands)


def _azure() -> Iterator[Preset]:
    modes = {
        "exact_match": ("strict", "forbid", "none"),
        "in_order_match": ("in_order", "allow", "none"),
        "any_order_match": ("any", "allow", "none"),
        "f1": ("any", "penalise", "call"),
    }
    for mode, (order, extra, credit) in modes.items():
        for suffix, arguments in (("", "exact"), ("/names", "ignore")):
            missing = "penalise" if mode == "f1" else "forbid"
            stands = _settings(order, extra, arguments, "text", credit=credit, missing=missing)
            rule = azure.rule(mode, names=bool(suffix))
            yield Preset(name=f"azure/{mode}{suffix}", version="1.18.10", rule=rule, settings=stands, pairs=False)


def _agentevals() -> Iterator[Preset]:
    modes = {
        "strict": {"order": "strict", "extra": "forbid", "missing": "forbid"},
        "unordered": {"order": "any", "extra": "forbid", "missing": "forbid"},
        "subset": {"order": "any", "extra": "forbid"},
        "superset": {"order": "any", "extra": "allow", "missing": "forbid"},
    }
    for mode, stands in modes.items():
        for arguments in agentevals.ARGUMENTS:
            more = {"arguments": arguments, "equality": "python", "assignment": "first_fit", "credit": "none"}
            rule = agentevals.rule(mode, arguments)
            yield Preset(name=f"agentevals/{mode}/{arguments}", version="0.0.9", rule=rule, settings={**stands, **more})


def _ragas() -> Iterator[Preset]:
    version = "0.4.3"
    for mode, order in (("strict", "strict"), ("flexible", "any")):
        stands = _settings(order, "forbid", "superset", "text", credit="path")
        rule = ragas.accuracy(mode)
        yield Preset(name=f"ragas/tool_call_accuracy/{mode}", version=version, rule=rule, settings=stands, pairs=False)
    stands = _settings("any", "penalise", "exact", repeats="set", credit="call", missing="penalise")
    yield Preset(name="ragas/tool_call_f1", version=version, rule=ragas.call_f1, settings=stands, pairs=False)


def _deepeval() -> Iterator[Preset]:
    modes = {
        "default": ("any", "allow", "penalise", "path"),
        "ordering": ("in_order", "allow", "penalise", "path"),
        "exact": ("strict", "forbid", "forbid", "none"),
    }
    for mode, (order, extra, missing, credit) in modes.items():
        for what, compared in (("names", "ignore"), ("arguments", "exact")):
            stands = _settings(order, extra, compared, missing=missing, credit=credit, score="recall")
            rule = deepeval.rule(mode, arguments=what == "arguments")
            name = f"deepeval/tool_correctness/{mode}/{what}"
            yield Preset(name=name, version="4.3.1", rule=rule, settings=stands)


def _mlflow() -> Iterator[Preset]:
    for word, order, repeats in (("ordered", "strict", "multiset"), ("unordered", "any", "set")):
        stands = _settings(order, "forbid", "exact", "text", repeats=repeats, credit="none")
        rule = mlflow.rule(ordered=word == "ordered")
        name = f"mlflow/tool_call_correctness/{word}"
        yield Preset(name=name, version="3.17.0", rule=rule, settings=stands, pairs=False)


def _names() -> Iterator[Preset]:
    orders = {"exact": "strict", "in_order": "in_order", "any_order": "any"}
    for mode, order in orders.items():
        credit, lost = ("none", "forbid") if mode == "exact" else ("call", "penalise")
        stands = _settings(order, lost, "ignore", missing=lost, credit=credit)
        rule = names.trajectory_match(mode)
        name = f"pydantic_evals/trajectory_match/{mode}"
        yield Preset(name=name, version="2.62.0", rule=rule, settings=stands)
    for mode, order in orders.items():
        stands = {"arguments": "ignore", "order": order, "credit": "call"}
        rule = names.action_sequence(f"{mode}_match")
        name = f"waza/action_sequence/{mode}_match"
        yield Preset(name=name, version="091a1f9", rule=rule, settings=stands, pairs=False)


def _promptfoo() -> Iterator[Preset]:
    version, named = "0.121.20", {"arguments": "ignore", "missing": "forbid"}
    called = {"order": "any", "extra": "penalise", "arguments": "ignore", "repeats": "set", "credit": "call"}
    yield Preset(name="promptfoo/tool-call-f1", version=version, rule=promptfoo.call_f1, settings=called, pairs=False)
    stands = {**named, "order": "any", "extra": "allow", "repeats": "set", "credit": "none"}
    yield Preset(name="promptfoo/trajectory:tool-used", version=version, rule=promptfoo.tool_used, settings=stands)
    for mode, order, extra in (("in_order", "in_order", "allow"), ("exact", "strict", "forbid")):
        rule = promptfoo.tool_sequence(mode)
        stands = {**named, "order": order, "extra": extra, "credit": "none"}
        yield Preset(
            name=f"promptfoo/trajectory:tool-sequence/{mode}", version=version, rule=rule, settings=stands, pairs=False
        )
    for mode, compared in (("partial", "superset"), ("exact", "exact")):
        rule = promptfoo.tool_args_match(mode)
        stands = {"order": "any", "extra": "allow", "missing": "penalise", "arguments": compared, "credit": "call"}
        stands["repeats"] = "set"
        yield Preset(name=f"promptfoo/trajectory:tool-args-match/{mode}", version=version, rule=rule, settings=stands)


def _others() -> Iterator[Preset]:
    stands = _settings("any", "allow", "subset", credit="none", repeats="set")
    yield Preset(
        name="tau2/action", version="a2c0247", sample_rule=gold_actions.actions, settings=stands, takes_rules=True
    )
    stands = {"order": "any", "extra": "allow", "arguments": "superset", "equality": "python", "credit": "none"}
    yield Preset(
        name="toolsandbox/tool_trace",
        version="165848b",
        sample_rule=gold_actions.tool_trace,
        settings=stands,
        takes_rules=True,
    )
    stands = {"order": "any", "extra": "forbid", "missing": "forbid", "assignment": "first_fit", "credit": "none"}
    yield Preset(
        name="bfcl/ast",
        version="2025.10.27.1",
        sample_rule=bfcl.rule(),
        settings=stands | {"arguments": "rules"},
        takes_rules=True,
    )


_JUDGES = {
    "agentevals/llm_as_judge": "0.0.9",
    "deepeval/argument_correctness": "4.3.1",
    "deepeval/task_completion": "4.3.1",
    "mlflow/tool_call_correctness/fuzzy": "3.17.0",
}
"""Rules of the same programs that ask a model: known by name, so that what they cannot do here is said."""
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
"""The options of our own rule."""
_PEERS = (_adk, _azure, _agentevals, _ragas, _deepeval, _mlflow, _names, _promptfoo, _others)
PRESETS: Mapping[str, Preset] = {
    each.name: each
    for each in sorted(
        (
            Preset(name=DOCUMENTED, version="1", settings=OWN, takes_rules=True),
            *(preset for family in _PEERS for preset in family()),
        ),
        key=lambda preset: preset.name,
    )
}
"""Name -> rule, of all those that need no model."""
_ASKING = {name: Preset(name=name, version=version, judge=True) for name, version in sorted(_JUDGES.items())}


ELSEWHERE = {
    "deepeval/tool_permission": "grader tool_policy",
    "mcp_bench/tool_accuracy": "grader tool_schema",
    "mcpmark/pass": "metric pass_hat_k",
    "promptfoo/step-count": "grader tool_policy",
    "tau2/pass": "metric pass_hat_k",
    "vitabench/pass": "metric pass_hat_k",
    "waza/tool_constraint": "grader tool_policy",
}
"""Published rules that are no matching of calls -> whose preset they are."""


def find(reference: str) -> Preset:
    """Return the preset of a name, or of ``NAME@VERSION``.

    Raises:
        ValueError: There is none, or not in that version.
    """
    name, at, version = reference.partition("@")
    known = {**PRESETS, **_ASKING}
    preset = known.get(name)
    if name in ELSEWHERE:
        raise ValueError(f"{name} is no preset of this grader; it belongs to {ELSEWHERE[name]}")
    if preset is None:
        hint = suggest(name, known) or f"; there are: {', '.join(PRESETS)}"
        raise ValueError(f"no preset is called {name!r}{hint}")
    if at and version != preset.version:
        raise ValueError(f"{name} is known in version {preset.version} only, not {version!r}: {preset.full_name}")
    return preset


def refuse(preset: Preset, given: Mapping[str, Any]) -> None:
    """Check that options agree with a preset.

    Raises:
        ValueError: One contradicts it, or is none of its options.
    """
    for option, value in given.items():
        if option not in preset.settings:
            known = ", ".join(preset.settings) or "none"
            told = f"{option} cannot be set beside preset {preset.name}, which stands for: {known}; leave it out"
            raise ValueError(f"{told}, or leave the preset out")
        if preset.settings[option] != value:
            told = f"{option}: {value} contradicts preset {preset.name}, which means {preset.settings[option]}"
            raise ValueError(f"{told}; leave one of them out")


def peer_grade(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Grade:
    """Return the grade of a sample by a published rule: what its program says.

    Raises:
        TooManyCalls: There are more pairs of calls of one name, those of equal calls not counted, than ``max_pairs``.
        RecursionError: Arguments are nested too deeply to be compared.
    """
    metadata = {"preset": preset.full_name}
    try:
        found = _verdict(preset, sample, made, max_pairs)
    except Raised as error:
        fault = Fault(category="grading", code=error.code, message=str(error))
        return replace(failed(fault), metadata=metadata)
    except NotTold as error:
        return replace(skipped(error.code, str(error)), metadata=metadata)
    return Grade(
        outcome=Outcome.GRADED,
        score=found.score,
        passed=found.passed,
        parts=dict(found.parts),
        counts={"expected": len(sample.expected.calls or ()), "made": len(made)},
        metadata={**metadata, **found.metadata},
    )


def _verdict(preset: Preset, sample: Sample, made: Sequence[ToolCall], max_pairs: int) -> Verdict:
    if preset.judge:
        raise NotTold("needs_judge", f"{preset.name} asks a model, and this program asks none")
    expected = sample.expected.calls
    if expected is None or sample.expected.alternatives:
        raise NotTold("not_expressible", "several lists of calls are right; the original program takes one")
    wanted, done = list(map(expected_call, expected)), list(map(made_call, made))
    if not preset.takes_rules and not all(map(_plain, expected)) and wanted:
        told = "an expected call is more than a name and arguments, which the original program cannot be told"
        raise NotTold("not_expressible", told)
    if any(call.names or call.optional for call in expected):
        raise NotTold("not_expressible", "an expected call is optional, or any of several tools")
    if preset.pairs:
        _check(wanted, done, max_pairs)
    if preset.sample_rule is not None:
        return preset.sample_rule(wanted, done, sample)
    if preset.rule is None:
        raise AssertionError  # our own is no peer's
    return preset.rule(wanted, done)


def _plain(call: ExpectedCall) -> bool:
    return not call.rules and not call.names and not call.optional


def _check(expected: Sequence[Call], made: Sequence[Call], max_pairs: int) -> None:
    """Refuse more pairs than are compared in a second or so.

    Raises:
        TooManyCalls: There are more than that.
    """
    if len(expected) * len(made) <= max_pairs:
        return
    wanted, done = (Counter((call.name, hashable(call.arguments)) for call in side) for side in (expected, made))
    left, free = (Counter(name for name, _ in side.elements()) for side in (wanted - done, done - wanted))
    pairs = sum(number * free[name] for name, number in left.items())
    if pairs > max_pairs or len(expected) * len(made) > WIDE * max_pairs:
        told = f"{max(pairs, len(expected) * len(made))} pairs of calls to compare, more than max_pairs: {max_pairs}"
        raise TooManyCalls(told)
