"""The outcome grader and the headline of a suite: its own, else those a stack declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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


class _Declared(NamedTuple):
    """What a stack declares of the graders in use, in the keys the suite has for them."""

    outcome: str | None = None
    """Key of the outcome grader; ``none``: the stack has no outcome; None: it declares none that is in use."""
    letta: bool = False
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
    applying = [each for each in stacks if each is not None]
    declared = applying[0] if applying else _Declared()
    written = spec.graders.values()
    letta = declared.letta or any(isinstance(each, Mapping) and each.get("kind") == "tool" for each in written)
    gate = gates[0] if letta and spec.gate is not None and gates else None
    key = spec.outcome
    if key is None and isinstance(gate, GateSpec):
        success: Success | None = Success(gate.metric_key or "", gate)
    else:
        if key is None:
            key = next((each.outcome for each in applying if each.outcome is not None), next(iter(graders), NONE))
        elif key not in graders and key != NONE:
            hint = suggest(key, graders) or f"; there are: {', '.join(graders)}, and {NONE} for no outcome"
            resolver.add_problem(("outcome",), f"no grader has the key {key!r}{hint}")
        success = Success(key, better=graders[key].component.better) if key in graders else None
    own = spec.headline
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


def _declared(
    resolver: Resolver, name: str, graders: Mapping[str, Stage], metrics: Sequence[Metric], *, asked: bool
) -> _Declared | None:
    """Return what a stack declares of the graders in use, which are told by component; of a named stack also by key.

    None where none is in use, and where the stack is broken: of one that was asked for that is a problem already.
    """
    try:
        fragment = resolver.stacks.get(name) or stack_for(resolver.registry, name)
        headline = structure(fragment.get("headline") or {}, HeadlineSpec)
    except GradestackError:
        return None
    except Problems as problems:
        for place, text in problems.found if asked else ():
            resolver.add_problem(("stack",), f"{name}: headline{''.join(f'.{each}' for each in place)}: {text}")
        return None
    if asked and (headline.passed or headline.failed):
        why = "words for a verdict are the grader's (words of its class)"
        resolver.add_problem(("stack",), f"{name}: headline: {why}")
    entries = (fragment.get("graders") or {}).items()
    keys = {key: key if asked and key in graders else _in_use(key, entry, graders) for key, entry in entries}
    if not any(keys.values()):
        return None
    found = []
    for label, path in (headline.figures or {}).items():
        grader, metric, figure = split_figure(path, {key: _keys(metrics, used) for key, used in keys.items()})
        if (used := keys.get(grader)) is not None and metric:
            found.append(Figure(label=label, grader=used, metric=metric, name=figure))
    outcome = fragment.get("outcome")
    return _Declared(outcome if outcome == NONE else keys.get(str(outcome)), headline.letta, tuple(found))


def _keys(metrics: Iterable[Metric], grader: str | None) -> list[str]:
    return [each.stage.key for each in metrics if each.of == grader]


def _in_use(key: str, entry: Any, graders: Mapping[str, Stage]) -> str | None:
    """Return the key under which a stack's grader is in use: its own, else the first of the same component."""
    kind = entry.get("kind") if isinstance(entry, Mapping) else entry
    same = [own for own, stage in graders.items() if stage.name == kind]
    return key if key in same else next(iter(same), None)


def _own_figures(
    resolver: Resolver, figures: Mapping[str, str], graders: Mapping[str, Stage], metrics: Sequence[Metric]
) -> Iterable[Figure]:
    keys = {grader: _keys(metrics, grader) for grader in graders}
    for label, path in figures.items():
        grader, metric, name = split_figure(path, keys)
        if not grader:
            first = path.partition(".")[0]
            hint = suggest(first, graders) or f"; there are: {', '.join(graders)}"
            why = f"{path!r} names no grader's figure, no grader has the key {first!r}{hint}"
        elif not metric:
            wanted = path[len(grader) + 1 :].partition(".")[0]
            hint = suggest(wanted, keys[grader]) or f"; there are: {', '.join(keys[grader]) or 'none'}"
            why = f"{path!r}: grader {grader!r} has no such aggregator{hint}"
        else:
            yield Figure(label=label, grader=grader, metric=metric, name=name)
            continue
        resolver.add_problem(("headline", "figures", label), why)


def split_figure(path: str, metrics: Mapping[str, Iterable[str]]) -> tuple[str, str, str]:
    """Return the grader, the aggregator and the figure that a dotted path names.

    Keys may hold dots: the longest that it begins with counts. Grader and aggregator are "" where none does.

    Args:
        path: ``GRADER.AGGREGATOR[.FIGURE]``.
        metrics: Keys of aggregators by grader.
    """

    def split(text: str, keys: Iterable[str]) -> tuple[str, str]:
        key = max((key for key in keys if text == key or text.startswith(f"{key}.")), key=len, default="")
        return key, text[len(key) + 1 :] if key else ""

    grader, rest = split(path, metrics)
    return grader, *split(rest, metrics.get(grader, ()))


def _average(success: Success | None, graders: Mapping[str, Stage], metrics: Sequence[Metric]) -> tuple[Figure, ...]:
    """Return the average score of the outcome grader, else of the first: with its interval, where that is computed."""
    key = success.grader if success is not None else next(iter(graders), "")
    mean = next((each.stage.key for each in metrics if each.of == key and each.stage.name == "mean"), "")
    return (Figure(label="Avg score", grader=key, metric=mean, name="mean" if mean else AVERAGE),)
