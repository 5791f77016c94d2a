"""Gates of a suite: from what is written to resolved rules, every mistake reported with its place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from gradestack.api import Grader
from gradestack.errors import suggest
from gradestack.gates.limit import Limit, as_limit
from gradestack.gates.rules import (
    OPERATORS,
    PERCENT,
    AggregateGate,
    AnyGate,
    BaselineGate,
    FigureGate,
    FigureSpec,
    GateSpec,
    LogicalGate,
    LogicalSpec,
    Over,
    SimpleGate,
    WeightedGate,
    keys_of,
)
from gradestack.grading.plan import Metric, Stage
from gradestack.suites.references import Resolver
from gradestack.suites.spec import SuiteSpec
from gradestack.suites.strict import Place

_FORMS: Mapping[str, type] = {
    "simple": SimpleGate,
    "weighted_average": WeightedGate,
    "logical": LogicalSpec,
    "figure": FigureSpec,
    "baseline": BaselineGate,
}


class _Gates:
    """Resolves the gates of a suite."""

    def __init__(
        self, resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage], metrics: Iterable[Metric]
    ) -> None:
        self.resolver, self.spec, self.graders, self.metrics = resolver, spec, graders, [*metrics]

    def gate(self, written: Mapping[str, Any], place: Place) -> AnyGate | None:
        """Return one gate of any form, None when it cannot be; without ``kind`` it is the flat form."""
        kind = written.get("kind", next((form for form in ("figure", "baseline") if form in written), None))
        if kind is not None and (not isinstance(kind, str) or kind not in _FORMS):
            why = f"unknown gate {kind!r}{suggest(kind, _FORMS)}; there are: {', '.join(_FORMS)}"
            self.resolver.add_problem((*place, "kind"), why)
            return None
        found: Any = self.resolver.structure(written, GateSpec if kind is None else _FORMS[kind], place)
        if isinstance(found, LogicalSpec):
            return self._logical(found, place)
        if isinstance(found, FigureSpec):
            return self._figure(found, place)
        if isinstance(found, BaselineGate):  # the original program has none
            why = "the profile upstream compares no runs" if self.resolver.profile == "upstream" else ""
            why = why or ("" if found.baseline.strip() else "expected a run directory, or latest")
            if why:
                self.resolver.add_problem((*place, "baseline"), why)
            return None if why else found
        if found is not None:
            self._check(found, place)
        return found  # type: ignore[no-any-return]

    def _logical(self, spec: LogicalSpec, place: Place) -> LogicalGate:
        parts, over = [], spec.over
        if over is not None and _without_effect(self.resolver, (*place, "over")):
            over = None
        for position, condition in enumerate(spec.conditions):
            below = (*place, "conditions", position)
            part = self.gate(_filled(condition, spec, over), below)
            if isinstance(part, WeightedGate | BaselineGate):
                self.resolver.add_problem(below, "a condition is a simple or a logical gate, or one on a figure")
            elif part is not None and part.per is not None:
                self.resolver.add_problem((*below, "per"), "stands beside `conditions`, for the gate as a whole")
            elif part is not None:
                parts.append(part)
        return LogicalGate(operator=spec.operator, conditions=tuple(parts), on_no_data=spec.on_no_data, per=spec.per)

    def _figure(self, spec: FigureSpec, place: Place) -> FigureGate | None:
        """Return a gate on a figure of a metric there is; what figures that has is known when it has run."""
        at, given = (*place, "figure"), spec.figure
        path = tuple(given.split(".")) if isinstance(given, str) else tuple(map(str, given))
        if len(path) < 2:
            self.resolver.add_problem(at, f"expected GRADER.METRIC or a figure below it, got {given!r}")
            return None
        grader, key = path[:2]
        if grader not in self.spec.graders:
            return FigureGate(path=path, component="", op=spec.op, value=spec.value)  # said where keys are looked at
        metrics = {metric.stage.key: metric.stage.name for metric in self.metrics if metric.of == grader}
        broken = key in self.spec.metrics and all(metric.stage.key != key for metric in self.metrics)
        if broken or grader not in self.graders:  # what is wrong with them is a problem already
            return None
        if key not in metrics:
            hint = suggest(key, metrics) or f"; there are: {', '.join(metrics) or 'none'}"
            self.resolver.add_problem(at, f"{grader} has no metric {key!r}{hint}")
            return None
        self._check_confidence(spec, place)
        options = {
            name: getattr(spec, name) for name in ("op", "value", "on_no_data", "confidence", "on_undecided", "per")
        }
        return FigureGate(path=path, component=metrics[key], **options)

    def _check_confidence(self, gate: AggregateGate | FigureSpec, place: Place) -> None:
        at = (*place, "confidence")
        if gate.confidence is not None and not _without_effect(self.resolver, at) and gate.op == "eq":
            self.resolver.add_problem(at, "nothing is surely equal to a value; compare with gt, gte, lt or lte")

    def _check(self, gate: AggregateGate, place: Place) -> None:
        self._check_confidence(gate, place)
        self._check_range(gate, place)
        at = (*place, "over")
        if gate.over == "total" and gate.aggregation not in PERCENT:
            self.resolver.add_problem(
                at, f"{gate.aggregation} is over graded samples; total is for {' and '.join(PERCENT)}"
            )
        if gate.over is not None:
            _without_effect(self.resolver, at)

    def _check_range(self, gate: AggregateGate, place: Place) -> None:
        """Warn of a value beyond all that the figure can be, as far as that is sure."""
        if isinstance(gate, WeightedGate):
            return
        key = gate.metric_key or next(iter(self.graders), "")
        low, high = (0.0, 100.0) if gate.aggregation in PERCENT else _stated_bounds(self.graders.get(key))
        if low <= gate.value <= high:
            return
        passes = OPERATORS[gate.op][1](low if math.isfinite(low) else high, gate.value)
        between = f"is at least {low:g}" if math.isinf(high) else f"lies between {low:g} and {high:g}"
        verdict = f"this {'passes' if passes else 'fails'} whatever is graded"
        text = f"{gate.value:g} is out of reach: {gate.aggregation} of {key} {between}, so that {verdict}"
        self.resolver.warn((*place, "value"), text)


def _stated_bounds(grader: Stage | None) -> tuple[float, float]:
    """Return the bounds of a grader's scores where its class says them: nobody has to who writes one of their own."""
    kinds = type(grader.component).__mro__ if grader is not None else ()
    stated = any("bounds" in vars(kind) for kind in kinds if kind is not Grader)
    return grader.component.bounds if grader is not None and stated else (-math.inf, math.inf)


def _filled(condition: Mapping[str, Any], spec: LogicalSpec, over: Over | None) -> dict[str, Any]:
    """Return a condition with what it takes over from its gate."""
    if "baseline" in condition:
        return dict(condition)
    if "figure" in condition:
        return {"on_no_data": spec.on_no_data, **condition}
    logical = "operator" in condition
    implied: dict[str, Any] = {"kind": "logical" if logical else "simple", "on_no_data": spec.on_no_data}
    if over is not None and (logical or condition.get("aggregation") in PERCENT):
        implied["over"] = over
    return {**implied, **condition}


def _without_effect(resolver: Resolver, place: Place) -> bool:
    """Warn of what the original program does not have, and return whether the suite follows it."""
    upstream = resolver.profile == "upstream"
    if upstream:
        resolver.warn(place, "has no effect in the profile upstream")
    return upstream


def resolve_limit(resolver: Resolver, spec: SuiteSpec) -> Limit | None:
    """Return the most samples that may have failed or be missing; None without a limit."""
    if spec.max_failed is None:
        return None
    ignored = _without_effect(resolver, ("max_failed",))
    try:
        found = as_limit(spec.max_failed)
    except ValueError as error:
        resolver.add_problem(("max_failed",), str(error))
        return None
    return None if ignored else found


def resolve_gates(
    resolver: Resolver, spec: SuiteSpec, graders: Mapping[str, Stage], metrics: Iterable[Metric]
) -> tuple[tuple[AnyGate, ...], str]:
    """Return the gates and the key of the main grader: the first gate's, else the first grader."""
    written: list[tuple[Place, Any]] = [(("gates", n), each) for n, each in enumerate(spec.gates)]
    if spec.gate is not None:
        written.insert(0, (("gate",), spec.gate))
    gates, found = _Gates(resolver, spec, graders, metrics), list[AnyGate]()
    for place, each in written:
        gate = gates.gate(each, place)
        names = keys_of(gate) if gate is not None else [(("metric_key",), each.get("metric_key"))]
        for below, key in names:
            if isinstance(key, str) and key not in spec.graders:
                hint = suggest(key, spec.graders) or f"; there are: {', '.join(spec.graders)}"
                resolver.add_problem((*place, *below), f"no grader has the key {key!r}{hint}")
        if gate is None:
            continue
        found.append(gate)
        if isinstance(gate, AggregateGate) and gate.aggregation in PERCENT and 0 < gate.value <= 1:
            text = f"{gate.value:g} is a percentage here: {gate.value:g}% of the samples"
            resolver.warn((*place, "value"), text)
    first = found[0] if found else None
    named = first.metric_key if isinstance(first, GateSpec | SimpleGate | BaselineGate) else None
    named = first.path[0] if isinstance(first, FigureGate) else named
    main = named or next(iter(graders), next(iter(spec.graders), ""))
    for position, gate in enumerate(found):
        if isinstance(gate, GateSpec | BaselineGate) and not gate.metric_key:  # a flat one is about the main grader
            found[position] = attrs.evolve(gate, metric_key=main)
    return tuple(found), main
