"""Gates, outcome and headline of a suite: from what is written, or a stack declares, to what a run is judged by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gradestack.api import Grader, declared_figure
from gradestack.errors import GradestackError, suggest
from gradestack.gates.rules import (
    PERCENT,
    AggregateGate,
    AnyGate,
    BaselineGate,
    FigureGate,
    GateSpec,
    Limit,
    LogicalGate,
    LogicalSpec,
    SimpleGate,
    WeightedGate,
    as_limit,
    keys_of,
    split_path,
)
from gradestack.grading.plan import Metric, Stage, Success
from gradestack.suites.components import Resolver, stack_for
from gradestack.suites.spec import AVERAGE, Figure, Headline, HeadlineSpec, SuiteSpec
from gradestack.suites.strict import Place, Problems, structure

_FORMS: Mapping[str, type] = {
    "simple": SimpleGate,
    "weighted_average": WeightedGate,
    "logical": LogicalSpec,
    "figure": FigureGate,
    "baseline": BaselineGate,
}
NONE = "none"
"""What is written for "no outcome", where no grader has that key."""


def _hint(name: object, known: Iterable[str]) -> str:
    return suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"


class Verdicts:
    """Resolves what a run is judged by, among the graders and metrics that a suite has."""

    def __init__(
        self, resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage], metrics: Sequence[Metric]
    ) -> None:
        self.resolver, self.spec, self.graders, self.metrics = resolver, spec, graders, metrics

    def _keys(self, grader: str | None) -> dict[str, str]:
        return {each.stage.key: each.stage.name for each in self.metrics if each.of == grader}

    def _without_effect(self, place: Place) -> bool:
        """Warn of what the original program does not have, and return whether the suite follows it."""
        upstream = self.resolver.profile == "upstream"
        if upstream:
            self.resolver.warn(place, "has no effect in the profile upstream")
        return upstream

    def limit(self) -> Limit | None:
        """Return the most samples that may have failed or be missing; None without a limit."""
        if self.spec.max_failed is None:
            return None
        ignored = self._without_effect(("max_failed",))
        try:
            limit = as_limit(self.spec.max_failed)
        except ValueError as error:
            self.resolver.add_problem(("max_failed",), str(error))
            return None
        return None if ignored else limit

    def gates(self) -> tuple[tuple[AnyGate, ...], str]:
        """Return the gates and the key of the main grader: the first gate's, else the first grader."""
        written: list[tuple[Place, Any]] = [(("gates", n), each) for n, each in enumerate(self.spec.gates)]
        if self.spec.gate is not None:
            written.insert(0, (("gate",), self.spec.gate))
        gates = list[AnyGate]()
        for place, each in written:
            gate = self._gate(each, place)
            names = keys_of(gate) if gate is not None else [(("metric_key",), each.get("metric_key"))]
            for below, key in names:
                if isinstance(key, str) and key not in self.spec.graders:
                    why = f"no grader has the key {key!r}{_hint(key, self.spec.graders)}"
                    self.resolver.add_problem((*place, *below), why)
            if gate is not None:
                gates.append(gate)
            if isinstance(gate, AggregateGate) and gate.aggregation in PERCENT and 0 < gate.value <= 1:
                text = f"{gate.value:g} is a percentage here: {gate.value:g}% of the samples"
                self.resolver.warn((*place, "value"), text)
            elif isinstance(gate, BaselineGate) and gate.metric in PERCENT and 0 < (gate.not_worse_than or 0) < 1:
                text = f"{gate.not_worse_than:g} is in percentage points here: {gate.not_worse_than:g} of 100 samples"
                self.resolver.warn((*place, "not_worse_than"), text)
        named = next((key for gate in gates[:1] for place, key in keys_of(gate) if len(place) == 1), None)
        main = named or next(iter(self.graders), next(iter(self.spec.graders), ""))
        for position, gate in enumerate(gates):
            of_scores = isinstance(gate, BaselineGate) and not gate.grader and gate.metric not in PERCENT
            if isinstance(gate, GateSpec) or of_scores:
                gates[position] = msgspec.structs.replace(gate, metric_key=gate.metric_key or main)  # type: ignore[union-attr]
        return tuple(gates), main

    def _gate(self, written: Mapping[str, Any], place: Place) -> AnyGate | None:
        """Return one gate of any form, None when it cannot be; without ``kind`` it is the flat form."""
        kind = written.get("kind", next((form for form in ("baseline", "figure") if form in written), None))
        if kind is not None and (not isinstance(kind, str) or kind not in _FORMS):
            why = f"unknown gate {kind!r}{suggest(kind, _FORMS)}; there are: {', '.join(_FORMS)}"
            self.resolver.add_problem((*place, "kind"), why)
            return None
        gate: Any = self.resolver.structure(written, GateSpec if kind is None else _FORMS[kind], place)
        if isinstance(gate, LogicalSpec):
            return self._logical(gate, place)
        if isinstance(gate, FigureGate):
            return self._figure(gate, place)
        if isinstance(gate, BaselineGate):
            return self._baseline(gate, place)
        if gate is not None:
            self._check(gate, place)
        return gate  # type: ignore[no-any-return]

    def _logical(self, spec: LogicalSpec, place: Place) -> LogicalGate:
        over = spec.over
        if over is not None and self._without_effect((*place, "over")):
            over = None
        parts = []
        for position, condition in enumerate(spec.conditions):
            below, implied = (*place, "conditions", position), dict[str, Any]()  # what it takes over from its gate
            if "baseline" not in condition:
                implied["on_no_data"] = spec.on_no_data
            if "baseline" not in condition and "figure" not in condition:
                implied["kind"] = "logical" if "operator" in condition else "simple"
                if over is not None and ("operator" in condition or condition.get("aggregation") in PERCENT):
                    implied["over"] = over
            part = self._gate({**implied, **condition}, below)
            if isinstance(part, WeightedGate | BaselineGate):
                self.resolver.add_problem(below, "a condition is a simple or a logical gate, or one on a figure")
            elif part is not None and part.per is not None:
                self.resolver.add_problem((*below, "per"), "stands beside `conditions`, for the gate as a whole")
            elif part is not None:
                parts.append(part)
        return LogicalGate(operator=spec.operator, conditions=tuple(parts), on_no_data=spec.on_no_data, per=spec.per)

    def _baseline(self, gate: BaselineGate, place: Place) -> BaselineGate | None:
        """Return a gate on an earlier run, its figure as grader key, metric key, and the path below it."""
        why = "the profile upstream compares no runs" if self.resolver.profile == "upstream" else ""
        why = why or ("" if gate.baseline.strip() else "expected a run directory, latest or latest_any")
        if why:
            self.resolver.add_problem((*place, "baseline"), why)
            return None
        if gate.figure is None:
            return gate
        if (path := self._path(gate.figure, (*place, "figure"))) is None:
            return None
        grader, metric, rest = path
        for used in [each.stage for each in self.metrics if (each.of, each.stage.key) == (grader, metric)]:
            meant = declared_figure(used.component.figures, metric, rest, used.name)
            why = "has no direction in which it is better; compare it with op and value"
            if meant is None:
                declared = ", ".join(each.name for each in used.component.figures) or "none"
                why = f"is no figure that {metric} declares; there are: {declared}"
            if meant is None or meant.better == "neither":
                self.resolver.add_problem((*place, "figure"), f"{'.'.join(filter(None, path))} {why}")
        return msgspec.structs.replace(gate, figure=path)

    def _figure(self, gate: FigureGate, place: Place) -> FigureGate | None:
        if (path := self._path(gate.figure, (*place, "figure"))) is None:
            return None
        self._check_confidence(gate, place)
        return msgspec.structs.replace(gate, figure=(*path, self._keys(path[0]).get(path[1], "")))

    def _path(self, figure: str | Sequence[str | int], place: Place) -> tuple[str, str, str] | None:
        """Return grader key, metric key and the path below it; of a grader that is unknown, its key alone."""
        steps = figure.split(".") if isinstance(figure, str) else [*map(str, figure)]
        if len(steps) < 2:
            why = f"expected GRADER.METRIC or a figure below it, got {figure!r}"
            self.resolver.add_problem(place, why)
            return None
        grader, metric, rest = split_path(".".join(steps), {key: self._keys(key) for key in self.spec.graders})
        if metric:
            return grader, metric, rest
        if not grader:
            return steps[0], "", ""  # said where keys are looked at
        key = ".".join(steps)[len(grader) + 1 :].partition(".")[0]
        sound = key not in self.spec.metrics or any(each.stage.key == key for each in self.metrics)
        if grader in self.graders and sound:  # else what is wrong with them is a problem already
            why = f"{grader} has no metric {key!r}{_hint(key, self._keys(grader))}"
            self.resolver.add_problem(place, why)
        return None

    def _check_confidence(self, gate: AggregateGate | FigureGate, place: Place) -> None:
        at = (*place, "confidence")
        if gate.confidence is not None and not self._without_effect(at) and gate.op == "eq":
            self.resolver.add_problem(at, "nothing is surely equal to a value; compare with gt, gte, lt or lte")

    def _check(self, gate: AggregateGate, place: Place) -> None:
        self._check_confidence(gate, place)
        at = (*place, "over")
        if gate.over == "total" and gate.aggregation not in PERCENT:
            why = f"{gate.aggregation} is over graded samples; total is for {' and '.join(PERCENT)}"
            self.resolver.add_problem(at, why)
        if gate.over is not None:
            self._without_effect(at)

    def headline(self, gates: Sequence[AnyGate], reader: Stage | None = None) -> tuple[Success | None, Headline]:
        """Return what makes a sample a success, and what the run is summed up by."""
        spec, graders = self.spec, self.graders
        names = dict.fromkeys((spec.stack, reader.component.stack if reader is not None else None))
        applying = [each for name in names if name and (each := self._declared(name)) is not None]
        declared = applying[0] if applying else _Declared()
        letta = declared.letta or any(
            isinstance(each, Mapping) and each.get("kind") == "tool" for each in spec.graders.values()
        )
        gate = gates[0] if letta and spec.gate is not None and gates else None
        key, judging = spec.outcome, [each for each in graders if graders[each].component.better != "neither"]
        if key is None and isinstance(gate, GateSpec):
            success: Success | None = Success(gate.metric_key or "", gate)
        else:
            if key is None:
                declared_there = (each.outcome for each in applying if each.outcome is not None)
                key = next(declared_there, next(iter(judging), NONE))
            elif key not in {*graders, *spec.graders, NONE}:
                hint = suggest(key, graders) or f"; there are: {', '.join(graders)}, and {NONE} for no outcome"
                self.resolver.add_problem(("outcome",), f"no grader has the key {key!r}{hint}")
            success = Success(key, better=graders[key].component.better) if key in graders else None
        brought = self.resolver.stacks.get(spec.stack or "", {}).get("graders") or ()
        first = next((each for each in judging if each not in brought), key)
        if success is not None and success.rule is None and spec.outcome is None and first != key:
            whose = f"Outcome: the verdict of grader {key!r}, not of {first!r}, the first one named"
            self.resolver.notes.append(f"{whose}. To change it: outcome: {first} (--set outcome={first})")
        main = success.grader if success is not None else next(iter(graders), "")
        mean = next((key for key, name in self._keys(main).items() if name == "mean"), "")
        average = Figure(label="Avg score", grader=main, metric=mean, name="mean" if mean else AVERAGE)
        # about the grader's own verdict, which a gate's rule is not; an option of that name says nothing of it
        own_verdict = success is not None and success.rule is None and main in graders
        words = getattr(type(graders[main].component), "words", None) if own_verdict else ()
        passed, failed = words if words and isinstance(words, tuple) else Grader.words
        own = spec.headline
        return success, Headline(
            figures=(declared.figures if own.figures is None else self._own_figures(own.figures)) or (average,),
            passed=own.passed or passed,
            failed=own.failed or failed,
            letta=own.letta or letta,
        )

    def _declared(self, name: str) -> _Declared | None:
        """Return what a stack declares of the graders in use; None where none is, or the stack is broken."""
        resolver, asked, headline = self.resolver, name == self.spec.stack, HeadlineSpec()
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
        keys: dict[str, str | None] = {}
        for key, entry in (fragment.get("graders") or {}).items():
            kind = entry.get("kind") if isinstance(entry, Mapping) else entry
            same = [own for own, stage in self.graders.items() if stage.name == kind]
            keys[key] = key if key in same or (asked and key in self.graders) else next(iter(same), None)
        if not any(keys.values()):
            return None
        figures = []
        for label, path in (headline.figures or {}).items():
            grader, metric, rest = split_path(path, {key: self._keys(used) for key, used in keys.items()})
            if (used := keys.get(grader)) is not None and metric:
                as_there = _options(fragment["graders"][grader]) == _options(self.spec.graders.get(used))
                shown = label if as_there else self._label(used, metric, rest) or label
                figures.append(Figure(label=shown, grader=used, metric=metric, name=rest))
        outcome = fragment.get("outcome")
        return _Declared(outcome if outcome == NONE else keys.get(str(outcome)), headline.letta, tuple(figures))

    def _label(self, grader: str, metric: str, name: str) -> str:
        """Return what an aggregator itself calls its figure, for a grader with other options than the stack's."""
        if metric == "mean":
            return str(self.graders[grader].component.label)
        stages = (each.stage for each in self.metrics if (each.of, each.stage.key) == (grader, metric))
        figures = (each for stage in stages for each in stage.component.figures)
        return next((each.label for each in figures if each.covers(name or metric)), "")

    def _own_figures(self, written: Mapping[str, str]) -> tuple[Figure, ...]:
        figures = []
        for label, path in written.items():
            place: Place = ("headline", "figures", label)
            grader, metric, rest = self._path(path, place) or ("", "", "")
            if metric:
                figures.append(Figure(label=label, grader=grader, metric=metric, name=rest))
            elif grader:
                self.resolver.add_problem(place, f"no grader has the key {grader!r}{_hint(grader, self.graders)}")
        return tuple(figures)


class _Declared(NamedTuple):
    outcome: str | None = None
    """Key of the outcome grader; ``none``: the stack has no outcome; None: it declares none that is in use."""
    letta: bool = False
    figures: tuple[Figure, ...] = ()


def _options(written: object) -> object:
    return written if isinstance(written, Mapping) else {"kind": written}
