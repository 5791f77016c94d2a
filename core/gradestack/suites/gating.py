"""Gates of a suite: from what is written to rules about graders and figures that it has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gradestack.aggregator import Figure as DeclaredFigure
from gradestack.aggregator import declared_figure, direction_of
from gradestack.api import Direction
from gradestack.copies.files import local_path_of
from gradestack.errors import hint_of
from gradestack.gates.paths import split_key, split_path
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
    read_threshold,
)
from gradestack.grading.plan import Stage
from gradestack.suites.components import Resolver
from gradestack.suites.options import Location
from gradestack.suites.spec import SuiteSpec

_CONDITIONS: Mapping[str, type] = {
    "simple": SimpleGate,
    "logical": LogicalSpec,
    "figure": FigureGate,
}
_FORMS: Mapping[str, type] = {
    **_CONDITIONS,
    "weighted_average": WeightedGate,
    "baseline": BaselineGate,
    "tasks": TaskGate,
}
NATIVE = "native"
"""First part of the path of a number in a native file."""
_KIND_OF = {"baseline": "baseline", "figure": "figure", "at_least": "tasks", "operator": "logical"}
"""Key of a gate -> the kind it implies where ``kind`` is left out."""
Path = tuple[str, str, str]
"""Grader key, metric key, and the path below it."""


class FigurePaths(msgspec.Struct):
    """Finds the figures of a suite's graders and metrics by their paths."""

    resolver: Resolver
    known: Collection[str]
    """Keys of the graders that the suite names, those that are refused as well."""
    graders: Mapping[str, Stage]
    metrics: Mapping[str, Mapping[str, Stage]]
    """Aggregators by their key, by that of their grader."""

    def find(self, path: str, location: Location) -> Path | None:
        """Return the three parts of ``GRADER.METRIC[.FIGURE]``; None with a problem."""
        metrics = {key: self.metrics.get(key, {}) for key in self.known}
        grader, metric, rest = split_path(path, metrics)
        if metric:
            return grader, metric, rest
        if not grader:
            unknown_grader, _, _ = path.partition(".")
            self.resolver.require_grader(unknown_grader, self.known, location)
            return None
        key, _, _ = path.removeprefix(f"{grader}.").partition(".")
        is_refused = self.resolver.has_problem(("metrics", key))
        if grader in self.graders and not is_refused:
            hint = hint_of(key, metrics[grader])
            problem = f"{grader} has no metric {key!r}{hint}"
            self.resolver.add_problem(location, problem)
        return None

    def find_declared(self, path: str, location: Location) -> Path | None:
        """Return the parts of a path; a figure that no aggregator declares is a problem."""
        parts = self.find(path, location)
        if parts is None or self.declaration(parts):
            return parts
        grader, metric, rest = parts
        figures = self.stage(parts).component.figures
        known = [figure.name for figure in figures]
        hint = hint_of(rest, known)
        why = f"{grader}.{metric} declares no figure {rest!r}{hint}"
        self.resolver.add_problem(location, why)
        return None

    def stage(self, path: Path) -> Stage:
        """Return the aggregator at a path."""
        grader, metric, _ = path
        return self.metrics[grader][metric]

    def declaration(self, path: Path) -> DeclaredFigure | None:
        """Return the declaration of a figure by its aggregator, that of a single model too."""
        _, metric, name = path
        stage = self.stage(path)
        names = [name]
        if name.startswith("models."):
            _, _, *steps = name.split(".")  # a model's name may hold dots
            while steps:
                names.append(".".join(steps))
                del steps[0]
        figures = stage.component.figures
        declared = (declared_figure(figures, metric, name, stage.name) for name in names)
        return next(filter(None, declared), None)


class Compared(NamedTuple):
    """The figure that a gate compares with its threshold."""

    name: str
    low: float = -math.inf
    high: float = math.inf
    better: Direction = "higher"

    def refuse(self, value: float, written: Any = None) -> str:
        """Return that it can never be so much; "" where it can.

        Args:
            value: The threshold, as a number.
            written: The threshold as the suite has it.
        """
        if self.low <= value <= self.high:
            return ""
        low, high = self.low, self.high
        bounds = f"from {low:g} to {high:g}"
        if isinstance(written, str):
            return f"{self.name} is {bounds}, got {written}"
        why = f"{self.name} is {bounds}, got {value:g}"
        if self.high != 1 or value <= 0:
            return why
        share = value / 100
        return f'{why}; write "{value:g}%" or {share:g}'


class GateReader:
    """Resolves the gates of a suite.

    A threshold that is hardly meant is a problem; in a recorded gate it is a warning.
    """

    def __init__(self, paths: FigurePaths) -> None:
        self.paths = paths
        self.resolver = paths.resolver
        self.graders = paths.graders
        self.main = ""

    def read_all(self, spec: SuiteSpec) -> tuple[tuple[AnyGate, ...], str]:
        """Return the gates and the key of the main grader.

        That is the first gate's, else the first grader.
        """
        written: dict[Location, Any] = {}
        if spec.gate is not None:
            written["gate",] = spec.gate
        for position, gate in enumerate(spec.gates):
            written["gates", position] = gate
        named = [self._grader_of(gate) for gate in written.values()]
        keys = [*named[:1], *self.graders, *spec.graders]
        self.main = next(filter(None, keys), "")
        gates = [self.read(gate, location) for location, gate in written.items()]
        return tuple(gate for gate in gates if gate is not None), self.main

    def _grader_of(self, written: Mapping[str, Any]) -> str:
        """Return the key of the one grader that a gate names; "" where it names none."""
        metric_key = written.get("metric_key")
        path = metric_key or _path_of(written.get("figure"))
        key, _ = split_key(str(path), self.graders)
        return key

    def read(
        self,
        written: Mapping[str, Any],
        location: Location,
        forms: Mapping[str, type] = _FORMS,
        default: str | None = None,
    ) -> AnyGate | None:
        """Return one gate, None with a problem.

        Args:
            written: The gate as the suite has it.
            location: Where it stands.
            forms: The forms it may have, by kind.
            default: Its kind where nothing says one; None is the flat form.
        """
        implied = [_KIND_OF[key] for key in _KIND_OF if key in written]
        kind = written.get("kind") or next(iter(implied), default)
        form = GateSpec if kind is None else forms.get(str(kind))
        if form is None:
            why = f"unknown gate {kind!r}{hint_of(kind, forms)}"
            self.resolver.add_problem((*location, "kind"), why)
            return None
        numbers = self._with_numbers(written, location)
        is_of_scores = form is GateSpec
        if form is BaselineGate and numbers.get("figure") is None:
            is_of_scores = numbers.get("metric") not in PERCENT
        if is_of_scores and numbers.get("metric_key") is None:
            numbers["metric_key"] = self.main
        gate: Any = self.resolver.structure(numbers, form, location)
        if gate is None:
            return None
        if isinstance(gate, LogicalSpec):
            return self._logical(gate, location)
        if isinstance(gate, BaselineGate):
            with self.resolver.refusals((*location, "baseline")):
                local_path_of(gate.baseline, self.resolver.base)
        if gate.figure is not None:
            gate = self._with_figure(gate, (*location, "figure"))
        else:
            for below, key in gate.graders.items():
                at = (*location, *below)
                self.resolver.require_grader(key, self.paths.known, at)
        if gate is not None:
            self._check_ranges(gate, location, written)
        return gate  # type: ignore[no-any-return]

    def _object(self, location: Location, text: str) -> None:
        if text and self.resolver.has_recorded_gates:
            key = f"the recorded gate's {location[-1]}"
            self.resolver.warnings.append(f"{key}: {text}")
        elif text:
            self.resolver.add_problem(location, text)

    def _with_numbers(self, written: Mapping[str, Any], location: Location) -> dict[str, Any]:
        """Return a gate with its thresholds as numbers in the unit of the compared figure."""
        name = "metric"
        if "aggregation" in written:
            name = "aggregation"
        metric = written.get(name)
        gate = dict(written)
        if metric == SHARE_OF_RUNS:
            gate[name] = "accuracy"
        for key in THRESHOLDS:
            if key in written:
                of_runs = None
                if key in ("value", "not_worse_than"):
                    of_runs = metric
                gate[key] = self._number(written[key], (*location, key), of_runs)
        return gate

    def _number(self, written: Any, location: Location, metric: Any) -> Any:
        """Return a threshold as a number: a percentage of one for percentages and shares."""
        in_percent = metric in PERCENT
        is_share = metric == SHARE_OF_RUNS
        number = 0.0
        with self.resolver.refusals(location):
            number = read_threshold(written, in_percent=in_percent or is_share)
        if type(written) not in (int, float):
            return number
        if in_percent:
            self._object(location, doubtful_percentage(written))
        if is_share:
            return as_percent(number)
        return number

    def _logical(self, spec: LogicalSpec, location: Location) -> LogicalGate | None:
        """Return a gate whose conditions are resolved; None with a problem."""
        parts = []
        for position, written in enumerate(spec.conditions):
            at = (*location, "conditions", position)
            condition: dict[str, Any] = {"on_no_data": spec.on_no_data, **written}
            is_of_runs = "operator" in written or written.get("aggregation") in PERCENT
            if spec.over is not None and is_of_runs:
                condition.setdefault("over", spec.over)
            if "per" in written:
                why = "belongs beside `conditions`, for the gate as a whole"
                self.resolver.add_problem((*at, "per"), why)
            parts.append(self.read(condition, at, _CONDITIONS, "simple"))
        if None in parts:
            return None
        fields = msgspec.structs.asdict(spec)
        fields["conditions"] = tuple(parts)
        return LogicalGate(**fields)

    def _with_figure(self, gate: Any, location: Location) -> AnyGate | None:
        """Return a gate with the parts of its figure's path and the metric's kind.

        One on a number of a native file is of another class.
        """
        written = _path_of(gate.figure)
        first_step, *steps = written.split(".")
        is_native = first_step == NATIVE and first_step not in self.paths.known
        if is_native and isinstance(gate, FigureGate):
            is_plain = gate.confidence is None and gate.per is None
            if is_plain and len(steps) > 1:
                figure = ".".join(steps)
                return NativeGate(op=gate.op, value=gate.value, figure=figure)
            problem = (
                "expected native.FILE.PATH, such as native.stability.metrics.stability_at_k, "
                "without confidence and per: it has no interval and no groups"
            )
            self.resolver.add_problem(location, problem)
            return None
        path = self.paths.find_declared(written, location)
        if path is None:
            return None
        kind = self.paths.stage(path).name
        return msgspec.structs.replace(gate, figure=(*path, kind))  # type: ignore[no-any-return]

    def _check_ranges(self, gate: AnyGate, location: Location, written: Mapping[str, Any]) -> None:
        """Object to thresholds beyond every value that the compared figure can have."""
        scores = self._scores(gate.graders.values())
        compared = self._compared(gate, scores)
        size = compared.high - compared.low
        difference = Compared(f"a difference of {compared.name}", 0.0, size)
        figures = {
            "value": compared,
            "pass_value": scores,
            "pass_threshold": scores,
            "not_worse_than": difference,
        }
        metric = written.get("metric")
        aggregation = written.get("aggregation")
        is_share = SHARE_OF_RUNS in (metric, aggregation)
        share = Compared(SHARE_OF_RUNS, 0.0, 1.0)
        for key, figure in figures.items():
            value = getattr(gate, key, None)
            if value is None:
                continue
            if is_share and key == "value":
                problem = share.refuse(value / 100, written[key])
            else:
                problem = figure.refuse(value, written.get(key))
            self._object((*location, key), problem)
        if isinstance(gate, BaselineGate) and gate.compares_values and compared.better == "neither":
            at = (*location, "metric_key" if gate.figure is None else "figure")
            why = "has no direction in which it is better; compare a figure with op and value"
            self.resolver.add_problem(at, f"{gate.name} {why}")

    def _compared(self, gate: AnyGate, scores: Compared) -> Compared:
        """Return the figure that a gate compares."""
        if gate.is_percent:
            return Compared(gate.metric, 0.0, 100.0)
        if gate.figure is None:
            return scores
        if isinstance(gate, NativeGate):
            return Compared(gate.name)
        path: Any = gate.figure[:3]
        scores = self._scores(path[:1])
        declared = self.paths.declaration(path)
        stage = self.paths.stage(path)
        if declared is None:
            return scores
        direction = direction_of(declared, stage.name, scores.better)
        compared = Compared(gate.name, better=direction)
        is_mean = stage.name == "mean" and path[2] in ("", "mean")
        if declared.unit != "share" and not is_mean:
            return compared
        low, high = (scores.low, scores.high) if is_mean else declared.bounds
        return compared._replace(low=low, high=high)

    def _scores(self, keys: Iterable[str]) -> Compared:
        """Return the range and direction of the scores of some graders."""
        graders = [self.graders[key].component for key in keys if key in self.graders]
        name = f"the score of {' and '.join(keys)}"
        if not graders:
            return Compared(name)
        anything = (-math.inf, math.inf)
        ranges = [grader.score_range or anything for grader in graders]
        lows, highs = zip(*ranges, strict=True)
        return Compared(name, min(lows), max(highs), graders[0].better)


def _path_of(figure: str | Sequence[str | int] | None) -> str:
    """Return the path of a figure as text, which a suite may have as a list of its parts."""
    if isinstance(figure, str):
        return figure
    return ".".join(map(str, figure or ()))
