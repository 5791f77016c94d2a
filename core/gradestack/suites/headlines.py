"""The outcome of a suite, and the figures a run of it is summed up by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradestack.api import Grader
from gradestack.errors import GradestackError
from gradestack.gates.rules import AnyGate, GateSpec, split_path
from gradestack.grading.plan import Stage, Success
from gradestack.suites.components import Resolver, stack_for
from gradestack.suites.gating import FigurePaths
from gradestack.suites.spec import AVERAGE, Figure, Headline, SuiteSpec

NONE = "none"
"""Outcome of a suite in which no grader's verdict makes a sample a success."""


class Declared(NamedTuple):
    """The outcome and headline that a stack declares, as far as its graders are in use."""

    outcome: str | None = None
    """Key of the outcome grader, or ``none``; None: it declares none that is in use."""
    letta: bool = False
    figures: tuple[Figure, ...] = ()


class HeadlineReader:
    """Resolves outcome and headline of a suite."""

    def __init__(self, paths: FigurePaths, spec: SuiteSpec) -> None:
        self.paths = paths
        self.spec = spec
        self.resolver: Resolver = paths.resolver
        self.graders = paths.graders

    def read(
        self, gates: Sequence[AnyGate], reader: Stage | None
    ) -> tuple[Success | None, Headline]:
        """Return what makes a sample a success, and what the run is summed up by.

        Args:
            gates: Those of the suite, resolved.
            reader: Its default stack declares for graders of the suite; None for samples in memory.
        """
        declared = self._all_declared(reader)
        first = declared[0] if declared else Declared()
        has_tool = any(map(_is_tool, self.spec.graders.values()))
        is_letta = first.letta or has_tool
        has_rule = is_letta and self.spec.gate is not None
        success = self._success(gates[0] if has_rule and gates else None, declared)
        has_verdict = success is not None and success.rule is None
        main = next(iter(self.graders), "") if success is None else success.grader
        words: Any = ()
        if has_verdict:  # of which the words are the grader's own, unless they are an option
            words = getattr(type(self.graders[main].component), "verdict_labels", ())
        passed, failed = words if words and isinstance(words, tuple) else Grader.verdict_labels
        own = self.spec.headline
        figures = first.figures or (self._average(main),)
        if own.figures is not None:
            figures = self._own_figures(own.figures) or (self._average(main),)
        if has_verdict:
            figures = self._with_corrected(main, figures)
        passed, failed = own.passed or passed, own.failed or failed
        is_letta = own.letta or is_letta
        return success, Headline(figures=figures, passed=passed, failed=failed, letta=is_letta)

    def _all_declared(self, reader: Stage | None) -> list[Declared]:
        """Return what the named stack, and the format's own, declare of graders in use."""
        names = [self.spec.stack]
        if reader is not None:
            names.append(reader.component.stack)
        stacks = map(self._declared, filter(None, dict.fromkeys(names)))
        return [stack for stack in stacks if stack is not None]

    def _success(self, rule: AnyGate | None, declared: Sequence[Declared]) -> Success | None:
        """Return what makes a sample a success: the outcome grader's verdict, or a gate's rule."""
        components = {key: stage.component for key, stage in self.graders.items()}
        judging = [key for key in components if components[key].better != "neither"]
        key = self.spec.outcome
        if key is None and isinstance(rule, GateSpec):
            return Success(rule.metric_key or "", rule)
        if key is None:
            outcomes = [stack.outcome for stack in declared if stack.outcome is not None]
            key = next(iter([*outcomes, *judging]), NONE)
            self._note_other_outcome(key, judging)
        else:
            self.resolver.require_grader(key, [*self.spec.graders, NONE], ("outcome",))
        if key not in components:
            return None
        return Success(key, better=components[key].better)

    def _note_other_outcome(self, key: str, judging: Sequence[str]) -> None:
        """Note that a stack chose another grader than the first that the suite names."""
        stack = self.resolver.stacks.get(self.spec.stack or "", {})
        of_stack = stack.get("graders") or ()
        first = next((name for name in judging if name not in of_stack), key)
        if first != key and key in self.graders:
            choice = f"Outcome: as grader {key!r} says, although {first!r} is named first"
            self.resolver.notes.append(f"{choice}; for {first!r}: --set outcome={first}")

    def _average(self, grader: str) -> Figure:
        """Return the figure of a run that declares none."""
        metrics = self.paths.metrics.get(grader, {})
        means = [key for key in metrics if metrics[key].name == "mean"]
        mean = next(iter(means), "")
        name = "mean" if mean else AVERAGE
        return Figure(label="Avg score", grader=grader, metric=mean, name=name)

    def _declared(self, name: str) -> Declared | None:
        """Return what a stack declares of graders in use; None where none is in use."""
        try:
            laid = self.resolver.stacks.get(name)
            fragment = laid or stack_for(self.resolver.registry, name)
        except GradestackError:  # a broken stack that was not asked for
            return None
        theirs = fragment.get("graders") or {}
        keys = {key: self._key_in_use(name, key, entry) for key, entry in theirs.items()}
        if not any(keys.values()):
            return None
        headline = fragment.get("headline") or {}
        own = self.paths.metrics
        metrics = {key: own.get(used, {}) for key, used in keys.items()}
        figures = []
        for label, path in headline.get("figures", {}).items():
            grader, metric, rest = split_path(path, metrics)
            if metric and keys[grader]:
                used = keys[grader]
                shown = self._label(label, theirs[grader], used, metric, rest)
                figures.append(Figure(label=shown, grader=used, metric=metric, name=rest))
        outcome = str(fragment.get("outcome"))
        own_outcome = outcome if outcome == NONE else keys.get(outcome)
        is_letta = headline.get("letta", False)
        return Declared(own_outcome or None, is_letta, tuple(figures))

    def _key_in_use(self, stack: str, key: str, entry: Any) -> str:
        """Return the suite's key of a stack's grader; "" where it is not in use."""
        kind = entry.get("kind") if isinstance(entry, Mapping) else entry
        same = [own for own in self.graders if self.graders[own].name == kind]
        is_laid = stack == self.spec.stack
        if key in same or (is_laid and key in self.graders):
            return key
        return next(iter(same), "")

    def _label(self, label: str, theirs: Any, grader: str, metric: str, name: str) -> str:
        """Return a stack's label of a figure, or the aggregator's own.

        With other options than the stack's a grader is another one.
        """
        own = self.spec.graders.get(grader)
        if theirs in (own, {"kind": own}) or own == {"kind": theirs}:
            return label
        if metric == "mean":
            return str(self.graders[grader].component.label) or label
        aggregator = self.paths.metrics[grader][metric].component
        path = name or metric
        labels = (figure.label for figure in aggregator.figures if figure.covers(path))
        return next(labels, "") or label

    def _with_corrected(self, main: str, figures: tuple[Figure, ...]) -> tuple[Figure, ...]:
        """Return figures of a headline, before them that which corrects the outcome's share."""
        corrected = getattr(type(self.graders[main].component), "corrected", None)
        if corrected is None:
            return figures
        path, label, share = corrected
        metric, _, name = path.partition(".")
        metrics = self.paths.metrics.get(main, {})
        for key, stage in metrics.items():
            if stage.name == metric:
                first = Figure(label=label, grader=main, metric=key, name=name, corrects=share)
                others = [figure for figure in figures if figure.path != first.path]
                return (first, *others)
        return figures

    def _own_figures(self, written: Mapping[str, str]) -> tuple[Figure, ...]:
        figures = []
        for label, path in written.items():
            parts = self.paths.find(path, ("headline", "figures", label))
            if parts is not None:
                grader, metric, name = parts
                figures.append(Figure(label=label, grader=grader, metric=metric, name=name))
        return tuple(figures)


def _is_tool(written: Any) -> bool:
    return isinstance(written, Mapping) and written.get("kind") == "tool"
