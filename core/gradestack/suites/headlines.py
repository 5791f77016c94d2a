"""The outcome of a suite, and the figures a run of it is summed up by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gradestack.api import Grader
from gradestack.errors import GradestackError
from gradestack.gates.paths import split_path
from gradestack.gates.rules import AnyGate, GateSpec
from gradestack.grading.plan import Stage, Success
from gradestack.suites.components import Resolver, stack_for
from gradestack.suites.gating import FigurePaths, Path
from gradestack.suites.spec import AVERAGE, Figure, Headline, SuiteSpec

NONE = "none"
"""Outcome of a suite in which no grader's verdict makes a sample a success."""


class Declared(msgspec.Struct, frozen=True):
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
        """Return the rule of success, and the headline of a run.

        Args:
            gates: Those of the suite, resolved.
            reader: Its default stack declares for graders of the suite; None for samples in memory.
        """
        stacks = self._all_declared(reader)
        first_stack = stacks[0] if stacks else Declared()
        graders = self.spec.graders.values()
        grader_kinds = [_entry(written).get("kind") for written in graders]
        is_letta = first_stack.letta or "tool" in grader_kinds
        has_rule = is_letta and self.spec.gate is not None
        rules = gates[:1] if has_rule else ()
        success = self._success(rules, stacks)
        main = next(iter(self.graders), "")
        if success is not None:
            main = success.grader
        written = self.spec.headline
        figures = first_stack.figures
        if written.figures is not None:
            figures = self._own_figures(written.figures)
        figures = figures or (self._average(main),)
        passed, failed = Grader.verdict_labels
        if success is not None and success.rule is None:
            figures = self._with_corrected(main, figures)
            passed, failed = self.graders[main].component.verdict_labels
        passed = written.passed or passed
        failed = written.failed or failed
        letta = written.letta or is_letta
        return success, Headline(figures=figures, passed=passed, failed=failed, letta=letta)

    def _all_declared(self, reader: Stage | None) -> list[Declared]:
        """Return the outcomes and headlines that the named stack and the format's own declare."""
        names = {self.spec.stack: None}
        if reader is not None:
            names[reader.component.stack] = None
        stacks = map(self._declared, filter(None, names))
        return [stack for stack in stacks if stack is not None]

    def _success(self, rules: Sequence[AnyGate], stacks: Sequence[Declared]) -> Success | None:
        """Return the rule of success: the outcome grader's verdict, or a gate's rule."""
        key = self.spec.outcome
        for rule in rules:
            if key is None and isinstance(rule, GateSpec):
                return Success(rule.metric_key or "", rule)
        if key is None:
            graders = self.graders.items()
            components = {key: stage.component for key, stage in graders}
            judging = [key for key in components if components[key].better != "neither"]
            outcomes = [stack.outcome for stack in stacks if stack.outcome is not None]
            key = next(iter([*outcomes, *judging]), NONE)
            self._note_other_outcome(key, judging)
        else:
            known = [*self.spec.graders, NONE]
            self.resolver.require_grader(key, known, ("outcome",))
        stage = self.graders.get(key)
        if stage is None:
            return None
        return Success(key, better=stage.component.better)

    def _note_other_outcome(self, key: str, judging: Sequence[str]) -> None:
        """Note that a stack chose another grader than the first that the suite names."""
        name = self.spec.stack or ""
        stack = self.resolver.stacks.get(name, {})
        of_stack = stack.get("graders") or ()
        first = next((name for name in judging if name not in of_stack), key)
        if first != key and key in self.graders:
            choice = f"Passed is decided by {key!r}"
            self.resolver.notes.append(f"{choice}; to use {first!r}: --set outcome={first}")

    def _average(self, grader: str) -> Figure:
        """Return the figure of a run that declares none."""
        for key in self._metrics_named("mean", grader):
            return Figure(label="Avg score", grader=grader, metric=key, name="mean")
        return Figure(label="Avg score", grader=grader, name=AVERAGE)

    def _metrics_named(self, name: str, grader: str) -> list[str]:
        """Return the keys of a grader's metrics of a component."""
        metrics = self.paths.metrics.get(grader, {})
        return [key for key, stage in metrics.items() if stage.name == name]

    def _declared(self, name: str) -> Declared | None:
        """Return the outcome and headline that a stack declares; None without a grader in use."""
        stack = self.resolver.stacks.get(name)
        if stack is None:
            try:
                stack = stack_for(self.resolver.registry, name)
            except GradestackError:  # a broken stack that was not asked for
                return None
        entries = stack.get("graders") or {}
        keys = {key: self._key_in_use(name, key, entry) for key, entry in entries.items()}
        if not any(keys.values()):
            return None
        headline = stack.get("headline") or {}
        metrics = {key: self.paths.metrics.get(own_key, {}) for key, own_key in keys.items()}
        figures = []
        for label, path in headline.get("figures", {}).items():
            grader, metric, rest = split_path(path, metrics)
            if metric:
                own_path = keys[grader], metric, rest
                shown = self._label(label, entries[grader], own_path)
                figures.append(_figure_at(own_path, shown))
        outcome = stack.get("outcome")
        own_outcome = NONE if outcome == NONE else keys.get(outcome)
        letta = headline.get("letta", False)
        return Declared(own_outcome or None, letta, tuple(figures))

    def _key_in_use(self, stack: str, key: str, entry: Any) -> str:
        """Return the suite's key of a stack's grader; "" where it is not in use."""
        kind = _entry(entry).get("kind")
        graders = self.graders.items()
        keys = [own_key for own_key, stage in graders if stage.name == kind]
        is_named = stack == self.spec.stack and key in self.graders
        if is_named or key in keys:
            return key
        return next(iter(keys), "")

    def _label(self, label: str, theirs: Any, path: Path) -> str:
        """Return a stack's label of a figure; of a grader with other options the figure's own."""
        grader, metric, _ = path
        written = self.spec.graders.get(grader)
        if _entry(theirs) == _entry(written):
            return label
        if metric == "mean":
            own_label = self.graders[grader].component.label
            return str(own_label) or label
        declared = self.paths.declaration(path)
        if declared is None:
            return label
        return declared.label

    def _with_corrected(self, main: str, figures: tuple[Figure, ...]) -> tuple[Figure, ...]:
        """Put the figure that corrects the outcome's share before the figures of a headline."""
        corrected = self.graders[main].component.corrected
        path, label, share = corrected or ("", "", "")
        metric, _, name = path.partition(".")
        for key in self._metrics_named(metric, main):
            corrected_figure = Figure(
                label=label, grader=main, metric=key, name=name, corrects=share
            )
            other_figures = [figure for figure in figures if figure.path != corrected_figure.path]
            return (corrected_figure, *other_figures)
        return figures

    def _own_figures(self, written: Mapping[str, str]) -> tuple[Figure, ...]:
        figures = []
        for label, path in written.items():
            parts = self.paths.find(path, ("headline", "figures", label))
            if parts is not None:
                figures.append(_figure_at(parts, label))
        return tuple(figures)


def _figure_at(path: Path, label: str) -> Figure:
    grader, metric, name = path
    return Figure(label=label, grader=grader, metric=metric, name=name)


def _entry(written: Any) -> Mapping[str, Any]:
    """Return a suite's entry for a grader as a mapping; a kind alone is short for one."""
    if isinstance(written, Mapping):
        return written
    return {"kind": written}
