"""Gates of a suite: from what is written to rules about graders and figures that it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import attrs
import msgspec

from gradestack.api import Direction, declared_figure, direction_of
from gradestack.api import Figure as DeclaredFigure
from gradestack.copies.files import local_path_of
from gradestack.errors import hint_of
from gradestack.gates.rules import (
    PERCENT,
    SHARE_OF_RUNS,
    THRESHOLDS,
    AnyGate,
    BaselineGate,
    FigureGate,
    GateSpec,
    LogicalGate,
    LogicalSpec,
    NativeGate,
    SimpleGate,
    TaskGate,
    WeightedGate,
    as_percent,
    doubtful_percentage,
    keys_of,
    read_threshold,
    split_path,
)
from gradestack.grading.plan import Stage
from gradestack.suites.components import Resolver
from gradestack.suites.options import Location
from gradestack.suites.spec import SuiteSpec

_FORMS: Mapping[str, type] = {
    "simple": SimpleGate,
    "weighted_average": WeightedGate,
    "logical": LogicalSpec,
    "figure": FigureGate,
    "baseline": BaselineGate,
    "tasks": TaskGate,
}
NATIVE = "native"
"""First part of the path of a number in a native file."""
_KIND_OF = {"baseline": "baseline", "figure": "figure", "at_least": "tasks"}
"""Key of a gate -> the kind it implies where ``kind`` is left out."""
Path = tuple[str, str, str]
"""Grader key, metric key, and the path below it."""
Ends = tuple[float, float]


@attrs.define
class FigurePaths:
    """Finds the figures of a suite's graders and metrics by their paths."""

    resolver: Resolver
    known: Collection[str]
    """Keys of the graders that the suite names, those that are refused as well."""
    graders: Mapping[str, Stage]
    metrics: Mapping[str, Mapping[str, Stage]]
    """Aggregators by their key, by that of their grader."""

    def find(self, figure: str | Sequence[str | int], location: Location) -> Path | None:
        """Return the three parts of ``GRADER.METRIC[.FIGURE]``; None with a problem."""
        steps = [figure] if isinstance(figure, str) else map(str, figure)
        path = ".".join(steps)
        if "." not in path:
            why = f"expected GRADER.METRIC or a figure below it, got {figure!r}"
            self.resolver.add_problem(location, why)
            return None
        metrics = {key: self.metrics.get(key, {}) for key in self.known}
        grader, metric, rest = split_path(path, metrics)
        if metric:
            return grader, metric, rest
        if not grader:
            first, _, _ = path.partition(".")
            self.resolver.require_grader(first, self.known, location)
            return None
        below = path.removeprefix(f"{grader}.")
        key, _, _ = below.partition(".")
        is_refused = self.resolver.has_problem(("metrics", key))
        if grader in self.graders and not is_refused:
            hint = hint_of(key, metrics[grader])
            self.resolver.add_problem(location, f"{grader} has no metric {key!r}{hint}")
        return None

    def find_declared(self, figure: str | Sequence[str | int], location: Location) -> Path | None:
        """Return the parts of a path; a figure that no aggregator declares is a problem."""
        path = self.find(figure, location)
        if path is None or self.declaration(path):
            return path
        grader, metric, rest = path
        figures = self.stage(path).component.figures
        hint = hint_of(rest, [known.name for known in figures])
        why = f"{grader}.{metric} declares no figure {rest!r}{hint}"
        self.resolver.add_problem(location, why)
        return None

    def stage(self, path: Path) -> Stage:
        """Return the aggregator at a path."""
        return self.metrics[path[0]][path[1]]

    def declaration(self, path: Path) -> DeclaredFigure | None:
        """Return what an aggregator declares of a figure, that of a single model too."""
        _, metric, rest = path
        stage = self.stage(path)
        names = [rest]
        if rest.startswith("models."):
            steps = rest.split(".")
            starts = range(2, len(steps))
            names += [".".join(steps[start:]) for start in starts]
        figures = stage.component.figures
        declared = (declared_figure(figures, metric, name, stage.name) for name in names)
        return next(filter(None, declared), None)


class Compared(NamedTuple):
    """The figure that a gate compares with its threshold."""

    name: str
    ends: Ends | None = None
    """The values it lies between; None where only the data say."""
    better: Direction = "higher"

    @property
    def difference(self) -> Compared:
        """How much worse it can be."""
        name = f"a difference of {self.name}"
        if self.ends is None:
            return Compared(name)
        low, high = self.ends
        return Compared(name, (0.0, high - low))

    def beyond(self, value: float) -> str:
        """Return that it can never be so much; "" where it can."""
        if self.ends is None:
            return ""
        low, high = self.ends
        if low <= value <= high:
            return ""
        ends = f"from {low:g} to {high:g}"
        why = f"{self.name} is {ends}, got {value:g}"
        is_percentage = 0 < value <= 100
        if is_percentage and self.ends == (0.0, 1.0):
            share = value / 100
            why += f'; write "{value:g}%" or {share:g}'
        return why


_SHARE = Compared("a share of the runs", (0.0, 1.0))


class GateReader:
    """Resolves the gates of a suite.

    A threshold that is hardly meant is a problem; in a recorded gate it is a warning.
    """

    def __init__(self, paths: FigurePaths) -> None:
        self.paths = paths
        self.resolver = paths.resolver
        self.graders = paths.graders

    def read_all(self, spec: SuiteSpec) -> tuple[tuple[AnyGate, ...], str]:
        """Return the gates and the key of the main grader.

        That is the first gate's, else the first grader.
        """
        written: dict[Location, Any] = {}
        if spec.gate is not None:
            written["gate",] = spec.gate
        for position, gate in enumerate(spec.gates):
            written["gates", position] = gate
        read = {location: self.read(written[location], location) for location in written}
        sound = {location: gate for location, gate in read.items() if gate is not None}
        named = [_grader_of(gate) for gate in sound.values()]
        keys = [*named[:1], *self.graders, *spec.graders]
        main = next(filter(None, keys), "")
        gates = []
        for location, rule in sound.items():
            gates.append(_with_main(rule, main))
            self._check_ranges(gates[-1], location)
        return tuple(gates), main

    def read(
        self,
        written: Mapping[str, Any],
        location: Location,
        implied: Mapping[str, Any] | None = None,
    ) -> AnyGate | None:
        """Return one gate of any form, None with a problem.

        Args:
            written: The gate as the suite has it; without ``kind`` it is the flat form.
            location: Where it stands.
            implied: Keys it takes over from the gate it is a condition of.
        """
        given = {**(implied or {}), **written}
        kinds = [_KIND_OF[key] for key in _KIND_OF if key in given]
        kind = given.get("kind") or next(iter(kinds), None)
        form: type = GateSpec
        if isinstance(kind, str) and kind in _FORMS:
            form = _FORMS[kind]
        elif kind is not None:
            why = f"unknown gate {kind!r}{hint_of(kind, _FORMS)}"
            self.resolver.add_problem((*location, "kind"), why)
            return None
        self._check_graders(written, location)
        numbers = self._with_numbers(given, location)
        gate: Any = self.resolver.structure(numbers, form, location)
        if isinstance(gate, LogicalSpec):
            return self._logical(gate, location)
        if isinstance(gate, BaselineGate):
            return self._baseline(gate, location)
        if isinstance(gate, FigureGate):
            return self._figure(gate, location)
        return gate  # type: ignore[no-any-return]

    def _check_graders(self, written: Mapping[str, Any], location: Location) -> None:
        key, weights = written.get("metric_key"), written.get("weights")
        if isinstance(key, str):
            self.resolver.require_grader(key, self.paths.known, (*location, "metric_key"))
        for name in weights if isinstance(weights, Mapping) else ():
            self.resolver.require_grader(name, self.paths.known, (*location, "weights", name))

    def _object(self, location: Location, text: str) -> None:
        if self.resolver.has_recorded_gates:
            key = f"the recorded gate's {location[-1]}"
            self.resolver.warnings.append(f"{key}: {text}")
        else:
            self.resolver.add_problem(location, text)

    def _with_numbers(self, written: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """Return a gate with every threshold as a number in the unit of what it compares."""
        name = "aggregation" if "aggregation" in written else "metric"
        metric = written.get(name)
        is_share = metric == SHARE_OF_RUNS
        read = dict(written)
        if is_share:
            read[name] = "accuracy"
        for key in THRESHOLDS:
            if key not in written:
                continue
            at = (*location, key)
            in_percent = is_share or metric in PERCENT
            in_percent = in_percent and key in ("value", "not_worse_than")
            is_number = type(written[key]) in (int, float)
            read[key] = 0.0
            with self.resolver.refusals(at):
                read[key] = read_threshold(written[key], in_percent=in_percent)
            if in_percent and is_number:
                read[key] = self._percentage(written[key], at, is_share=is_share)
        return read

    def _percentage(self, number: float, location: Location, *, is_share: bool) -> float:
        """Return a number as a percentage."""
        if not is_share:
            doubt = doubtful_percentage(number)
            if doubt is not None:
                self._object(location, doubt)
            return number
        beyond = _SHARE.beyond(number)
        if beyond:
            self.resolver.add_problem(location, beyond)
        return 0.0 if beyond else as_percent(number)

    def _logical(self, spec: LogicalSpec, location: Location) -> LogicalGate:
        """Return a gate whose conditions are resolved."""
        parts: list[Any] = []
        for position, condition in enumerate(spec.conditions):
            at = (*location, "conditions", position)
            part = self.read(condition, at, self._implied(spec, condition))
            if part is not None and self._may_be_condition(part, at):
                parts.append(part)
        return LogicalGate(
            operator=spec.operator,
            conditions=tuple(parts),
            on_no_data=spec.on_no_data,
            per=spec.per,
        )

    def _implied(self, spec: LogicalSpec, condition: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys that a condition takes over from its gate."""
        if "baseline" in condition:
            return {}
        implied: dict[str, Any] = {"on_no_data": spec.on_no_data}
        if "figure" in condition:
            return implied
        is_logical = "operator" in condition
        implied["kind"] = "logical" if is_logical else "simple"
        of_runs = is_logical or condition.get("aggregation") in PERCENT
        if spec.over is not None and of_runs:
            implied["over"] = spec.over
        return implied

    def _may_be_condition(self, gate: AnyGate, location: Location) -> bool:
        if isinstance(gate, WeightedGate | BaselineGate | TaskGate):
            why = "a condition is a simple or a logical gate, or one on a figure"
            self.resolver.add_problem(location, why)
            return False
        if gate.per is not None:
            why = "stands beside `conditions`, for the gate as a whole"
            self.resolver.add_problem((*location, "per"), why)
        return gate.per is None

    def _baseline(self, gate: BaselineGate, location: Location) -> BaselineGate | None:
        """Return a gate on an earlier run, its figure in three parts."""
        at = (*location, "baseline")
        if not gate.baseline.strip():
            self.resolver.add_problem(at, "expected a run directory, latest or latest_any")
        with self.resolver.refusals(at):
            local_path_of(gate.baseline, self.resolver.base)
        if gate.figure is None:
            return gate
        path = self.paths.find_declared(gate.figure, (*location, "figure"))
        if path is None:
            return None
        return msgspec.structs.replace(gate, figure=path)

    def _figure(self, gate: FigureGate, location: Location) -> FigureGate | NativeGate | None:
        """Return a gate on a figure: its three parts, and the metric's kind.

        One on a number of a native file is of another class.
        """
        written = gate.figure.split(".") if isinstance(gate.figure, str) else map(str, gate.figure)
        first, *steps = written
        if first == NATIVE and first not in self.paths.known:
            return self._native(gate, tuple(steps), location)
        path = self.paths.find_declared(gate.figure, (*location, "figure"))
        if path is None:
            return None
        name = self.paths.stage(path).name
        return msgspec.structs.replace(gate, figure=(*path, name))

    def _native(
        self, gate: FigureGate, path: tuple[str, ...], location: Location
    ) -> NativeGate | None:
        """Return a gate on a number of a native file: ``native.FILE.PATH``."""
        if len(path) < 2:
            why = "expected native.FILE.PATH, such as native.stability.metrics.stability_at_k"
            self.resolver.add_problem((*location, "figure"), why)
            return None
        for key in ("confidence", "per"):
            if getattr(gate, key) is not None:
                why = "a number of a native file has no interval and no groups"
                self.resolver.add_problem((*location, key), why)
        return NativeGate(op=gate.op, value=gate.value, path=path)

    def _check_ranges(self, gate: AnyGate, location: Location) -> None:
        """Object to thresholds beyond every value that the compared figure can have."""
        if isinstance(gate, LogicalGate):
            for position, part in enumerate(gate.conditions):
                self._check_ranges(part, (*location, "conditions", position))
        if isinstance(gate, LogicalGate | TaskGate | NativeGate):
            return
        compared = self._compared(gate)
        self._check_range(gate, "value", compared, location)
        if isinstance(gate, GateSpec | SimpleGate):
            scores = self._scores([gate.metric_key or ""])
            self._check_range(gate, "pass_value", scores, location)
            self._check_range(gate, "pass_threshold", scores, location)
        if isinstance(gate, BaselineGate):
            self._check_range(gate, "not_worse_than", compared.difference, location)
            if gate.compares_values and compared.better == "neither":
                at = (*location, "metric_key" if gate.figure is None else "figure")
                why = "has no direction in which it is better; compare a figure with op and value"
                self.resolver.add_problem(at, f"{gate.name} {why}")

    def _check_range(self, gate: AnyGate, key: str, compared: Compared, location: Location) -> None:
        value = getattr(gate, key, None)
        beyond = "" if value is None else compared.beyond(value)
        if beyond:
            self._object((*location, key), beyond)

    def _compared(self, gate: Any) -> Compared:
        """Return the figure that a gate compares."""
        figure = getattr(gate, "figure", None)
        if figure is not None:
            return self._compared_figure(figure[:3])
        if gate.aggregation in PERCENT:
            return Compared(gate.aggregation, (0.0, 100.0))
        return self._scores([key for _, key in keys_of(gate)])

    def _compared_figure(self, path: Path) -> Compared:
        declared, stage = self.paths.declaration(path), self.paths.stage(path)
        scores = self._scores([path[0]])
        if declared is None:
            return scores
        name = ".".join(filter(None, path))
        better = direction_of(declared, stage.name, scores.better)
        if declared.unit == "share":
            return Compared(name, declared.bounds, better)
        is_mean = stage.name == "mean" and path[2] in ("", "mean")
        return Compared(name, scores.ends if is_mean else None, better)

    def _scores(self, keys: Sequence[str]) -> Compared:
        """Return what is known of the scores of some graders."""
        graders = [self.graders[key].component for key in keys if key in self.graders]
        ranges = [grader.score_range for grader in graders]
        name = f"the score of {' and '.join(keys)}"
        if not graders:
            return Compared(name)
        ends = None
        if None not in ranges:
            lows, highs = zip(*ranges, strict=True)
            ends = (min(lows), max(highs))
        return Compared(name, ends, graders[0].better)


def _grader_of(gate: AnyGate) -> str | None:
    """Return the key of the one grader that a gate names."""
    figure = getattr(gate, "figure", None)
    if figure is not None:
        return str(figure[0])
    return getattr(gate, "metric_key", None)


def _with_main(gate: AnyGate, main: str) -> AnyGate:
    """Return a gate of scores that names its grader: the main one where it names none."""
    is_of_scores = isinstance(gate, GateSpec)
    if isinstance(gate, BaselineGate) and gate.figure is None:
        is_of_scores = gate.metric not in PERCENT
    if is_of_scores and not getattr(gate, "metric_key", None):
        return msgspec.structs.replace(gate, metric_key=main)
    return gate
