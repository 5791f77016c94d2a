"""The outcome grader and the headline of a suite: its own, else those a stack declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from gradestack.api import Grader
from gradestack.errors import GradestackError, suggest
from gradestack.gates.rules import AnyGate, GateSpec
from gradestack.grading.plan import Metric, Stage
from gradestack.rows.success import Success
from gradestack.suites.components import stack_for
from gradestack.suites.references import Resolver
from gradestack.suites.spec import AVERAGE, Figure, Headline, HeadlineSpec, SuiteSpec
from gradestack.suites.strict import Problems, structure

NONE = "none"
"""What is written for "no outcome", where no grader has that key."""


@attrs.frozen(kw_only=True)
class _Declared:
    """What a stack declares, in the keys the suite has for its graders."""

    applies: bool = False
    """Whether one of the stack's graders is in use."""
    outcome: str | None = None
    """Key of the outcome grader; ``none``: the stack has no outcome; None: it declares none that is in use."""
    headline: HeadlineSpec = attrs.field(factory=HeadlineSpec)
    figures: tuple[Figure, ...] = ()


def resolve_headline(
    resolver: Resolver,
    spec: SuiteSpec,
    graders: Mapping[str, Stage],
    metrics: Sequence[Metric],
    gates: Sequence[AnyGate],
    reader: Stage | None = None,
) -> tuple[Success | None, Headline]:
    """Return what makes a sample a success, and what the run is summed up by.

    The outcome grader is the suite's own (``outcome``); in a letta-evals suite (``kind: tool`` or the stack of its
    recordings, and a flat gate) the gate's, with the gate's rule per sample; else the named stack's; else that of the
    format's stack, if a grader of that component is in use; else the first grader.
    """
    usual = reader.component.stack if reader is not None else None
    names = dict.fromkeys(name for name in (spec.stack, usual) if name)
    stacks = [_declared(resolver, name, graders, metrics, asked=name == spec.stack) for name in names]
    declared = next((each for each in stacks if each.applies), _Declared())
    letta = declared.headline.letta or any(_is_tool(each) for each in spec.graders.values())
    gate = next(iter(gates), None) if letta and spec.gate is not None else None
    own = spec.headline
    if spec.outcome is None:
        flat = gate if isinstance(gate, GateSpec) else None
        success = Success(flat.metric_key or "", flat) if flat is not None else _default(stacks, graders)
    else:
        success = _named(resolver, spec.outcome, graders)
    figures = declared.figures if own.figures is None else tuple(_own_figures(resolver, own.figures, graders, metrics))
    words = _words(graders.get(success.grader) if success is not None else None)
    return success, Headline(
        figures=figures or _average(success, graders, metrics),
        passed=own.passed or words[0],
        failed=own.failed or words[1],
        letta=own.letta or letta,
    )


def _words(grader: Stage | None) -> tuple[str, str]:
    """Return the words of a grader's verdict; it may have an option of that name, which says nothing of them."""
    declared = getattr(type(grader.component), "words", None) if grader is not None else None
    return declared if isinstance(declared, tuple) else Grader.words


def _is_tool(written: str | Mapping[str, Any]) -> bool:
    """Return whether a grader is written in the form of letta-evals suites."""
    return isinstance(written, Mapping) and written.get("kind") == "tool"


def _named(resolver: Resolver, key: str, graders: Mapping[str, Stage]) -> Success | None:
    if key in graders:
        return Success(key, better=graders[key].component.better)
    if key != NONE:
        hint = suggest(key, graders) or f"; there are: {', '.join(graders)}, and {NONE} for no outcome"
        resolver.say(("outcome",), f"no grader has the key {key!r}{hint}")
    return None


def _default(stacks: Iterable[_Declared], graders: Mapping[str, Stage]) -> Success | None:
    key = next((each.outcome for each in stacks if each.outcome is not None), next(iter(graders), NONE))
    return Success(key, better=graders[key].component.better) if key in graders else None


def _fragment(resolver: Resolver, name: str, *, asked: bool) -> Mapping[str, Any]:
    """Return a stack with its headline structured; one that was not asked for and is broken declares nothing."""
    try:
        fragment = resolver.stacks.get(name) or stack_for(resolver.registry, name)
        headline = structure(fragment.get("headline") or {}, HeadlineSpec)
        if asked and (headline.passed or headline.failed):
            resolver.say(("stack",), f"{name}: headline: words for a verdict are the grader's (words of its class)")
    except GradestackError:  # of a stack that was asked for, this is said where it is laid under the suite
        return {}
    except Problems as problems:
        for place, text in problems.found if asked else ():
            resolver.say(("stack",), f"{name}: headline{''.join(f'.{each}' for each in place)}: {text}")
        return {}
    else:
        return {**fragment, "headline": headline}


def _declared(
    resolver: Resolver, name: str, graders: Mapping[str, Stage], metrics: Sequence[Metric], *, asked: bool
) -> _Declared:
    """Return what a stack declares of the graders in use, which are told by component; of a named stack also by key."""
    fragment = _fragment(resolver, name, asked=asked)
    entries = (fragment.get("graders") or {}).items()
    keys = {key: key if asked and key in graders else _in_use(key, entry, graders) for key, entry in entries}
    if not any(keys.values()):
        return _Declared()
    headline: HeadlineSpec = fragment["headline"]
    found = []
    for label, path in (headline.figures or {}).items():
        grader, rest = split_path(path, keys)
        used = keys.get(grader)
        metric, figure = split_path(rest, [each.stage.key for each in metrics if each.of == used])
        if used is not None and metric:
            found.append(Figure(label=label, grader=used, metric=metric, name=figure))
    outcome = fragment.get("outcome")
    return _Declared(
        applies=True,
        outcome=outcome if outcome == NONE else keys.get(str(outcome)),
        headline=headline,
        figures=tuple(found),
    )


def _in_use(key: str, entry: Any, graders: Mapping[str, Stage]) -> str | None:
    """Return the key under which a stack's grader is in use: its own, else the first of the same component."""
    kind = entry.get("kind") if isinstance(entry, Mapping) else entry
    same = [own for own, stage in graders.items() if stage.name == kind]
    return key if key in same else next(iter(same), None)


def _own_figures(
    resolver: Resolver, figures: Mapping[str, str], graders: Mapping[str, Stage], metrics: Sequence[Metric]
) -> Iterable[Figure]:
    for label, path in figures.items():
        place = ("headline", "figures", label)
        grader, rest = split_path(path, graders)
        if not grader:
            first = path.partition(".")[0]
            hint = suggest(first, graders) or f"; there are: {', '.join(graders)}"
            resolver.say(place, f"{path!r} names no grader's figure, no grader has the key {first!r}{hint}")
            continue
        keys = [each.stage.key for each in metrics if each.of == grader]
        metric, name = split_path(rest, keys)
        if not metric:
            hint = suggest(rest.partition(".")[0], keys) or f"; there are: {', '.join(keys) or 'none'}"
            resolver.say(place, f"{path!r}: grader {grader!r} has no such aggregator{hint}")
            continue
        yield Figure(label=label, grader=grader, metric=metric, name=name)


def split_path(path: str, keys: Iterable[str]) -> tuple[str, str]:
    """Return the longest of the keys a dotted path begins with, and the rest of it; two empty texts for none."""
    key = max((key for key in keys if path == key or path.startswith(f"{key}.")), key=len, default="")
    return key, path[len(key) + 1 :] if key else ""


def _average(success: Success | None, graders: Mapping[str, Stage], metrics: Sequence[Metric]) -> tuple[Figure, ...]:
    """Return the average score of the outcome grader, else of the first: with its interval, where that is computed."""
    key = success.grader if success is not None else next(iter(graders), "")
    means = [each.stage.key for each in metrics if each.of == key and each.stage.name == "mean"]
    if not means:
        return (Figure(label="Avg score", grader=key, name=AVERAGE),)
    return (Figure(label="Avg score", grader=key, metric=means[0], name="mean"),)
