"""Figures of a run as pages show them: the results, gates, and the table of all figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Declarations, Report, gate_texts, which_is_better, with_unit
from gradestack import Figure as Meaning
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages.blocks import Figure, GateLine
from gradestack_plugins.pages.draw import Shape, ends_text, value_text
from gradestack_plugins.pages.index import RowEntry
from gradestack_plugins.pages.meanings import meaning_of
from gradestack_plugins.pages.tallies import sum_over
from gradestack_plugins.pages.tasks import by_task
from gradestack_plugins.pages.text import UNDEFINED, brief, capital, counted, end, number
from gradestack_plugins.tables.figures import figure_tables

_WORDS = {
    "passed": "passed",
    "lost": "not passed",
    "error": "error",
    "graded": "graded",
    "missing": "missing",
    "skipped": "not applicable",
}
_LONGEST_WORD, _LONGEST_REASON = 40, 160
_MOST_ROWS, _MOST_ENTRIES = 16, 6
_MEANS = ("mean", "mean.mean", "classification.accuracy")
"""Figures that are the share of successes where every score is 1 or 0."""
_PERCENT = ("accuracy", "pass_rate")
_SIGNS = {
    "gte": "at least",
    "gt": "above",
    "lte": "at most",
    "lt": "below",
    "eq": "exactly",
}
_AVERAGES = {
    "avg_score_attempted": ("Mean score of graded runs", "score"),
    "avg_score_total": ("Mean score of all runs", "score"),
    "pass_rate": ("Passed runs", "percent"),
}
"""Name of an average of a grader -> its label and unit."""
_REASONS = {"quantile": "a least or greatest value has none"}
OVER_K = {
    "pass_hat_k": "{passed} in all {k} trials",
    "pass_at_k": "{passed} in at least one of {k}",
}
"""Figure over k -> its label."""
_SHORT = {"pass_hat_k": "pass^{k}", "pass_at_k": "pass@{k}"}
Line = tuple[Any, ...]


class Success(msgspec.Struct, frozen=True):
    """The successes by the outcome grader."""

    passed: int
    of: int
    """Samples that it graded."""
    grader: str
    models: Mapping[str, tuple[int, int]] = {}
    """Model -> samples that are a success, and that are not."""
    others: int = 0
    """Models that pages leave out."""

    @property
    def many(self) -> bool:
        """Whether there are several models, which are not summed up."""
        return len(self.models) > 1


class Result(msgspec.Struct, frozen=True):
    """A figure of the results with its path and its direction."""

    figure: Figure
    path: str
    better: str = ""
    """``lower is better`` or ""."""


def success_of(summary: Mapping[str, Any]) -> Success | None:
    """Return the successes of a run; None where it has no outcome."""
    outcome = as_map(summary.get("outcome"))
    if not outcome:
        return None
    models = {}
    per_model = outcome.get("per_model")
    for entry in map(as_map, as_list(per_model)):
        counts = (as_count(entry.get("passed")), as_count(entry.get("failed")))
        models[as_text(entry.get("model_name"))] = counts
    passed = as_count(outcome.get("passed"))
    failed = outcome.get("failed")
    grader = outcome.get("grader")
    models_left_out = summary.get("models_left_out")
    others = as_count(models_left_out)
    return Success(
        passed=passed,
        of=passed + as_count(failed),
        grader=as_text(grader),
        models=models,
        others=others,
    )


def words_of(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the word for each state of a sample; for success and failure the outcome grader's."""
    outcome = summary.get("outcome")
    declared = as_map(as_map(outcome).get("words"))
    words = dict(_WORDS)
    for state, name in (("passed", "passed"), ("lost", "failed")):
        word = brief(as_text(declared.get(name)), _LONGEST_WORD)
        words[state] = word or words[state]
    return words


def ends_of(interval: Any) -> tuple[float, float] | None:
    """Return both ends of an interval of a summary, None without one."""
    low, high = (as_number(as_map(interval).get(name)) for name in ("low", "high"))
    if low is None or high is None:
        return None
    return (low, high)


def headline(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the figures of a summary's headline."""
    figures = as_map(summary.get("headline")).get("figures")
    return list(map(as_map, as_list(figures)))


# The results


class _Results:
    """Makes the results of a summary."""

    def __init__(self, summary: Mapping[str, Any], declared: Declarations) -> None:
        self._outcome = as_map(summary.get("outcome"))
        self._success = success_of(summary)
        self._declared = declared
        metrics = summary.get("metrics")
        total = as_map(metrics).get("total")
        self._total = as_count(total)
        passed = words_of(summary)["passed"]
        self._word = capital(passed)
        self._entries = headline(summary)

    def make(self) -> list[Result]:
        """Return corrected shares, the share of successes, and the other figures."""
        corrected: list[Result] = []
        others: list[Result] = []
        share_path = ""
        for entry in self._entries:
            if "corrects" in entry:
                corrected += self._corrected(entry)
            elif self._success is not None and not share_path and self._is_share(entry):
                share_path = as_text(entry.get("figure"))
            else:
                others += self._of_entry(entry)
        shares = self._shares(share_path)
        return [*corrected, *shares, *others]

    def of_gate(self, gate: Mapping[str, Any], path: str) -> Result:
        """Return the figure that a gate compares, which the headline does not have."""
        key = as_text(gate.get("metric_key"))
        meaning = self._declared.at(path) or self._declared.score(key)
        label = "Mean score" if meaning is None else meaning.label
        interval = gate.get("interval")
        estimate = {"value": gate["actual"], "interval": interval}
        return self._result(f"{label} ({brief(key, 40)})", estimate, meaning, path)

    def _shares(self, path: str) -> Iterator[Result]:
        success = self._success
        if success is None:
            return
        path = path or "outcome"
        if not success.many:
            value = success.passed / success.of if success.of else None
            note = "no result"
            if success.of:
                note = count_text(success, self._total)
            yield self._share({**self._outcome, "value": value}, note, path)
            return
        per_model = as_list(self._outcome.get("per_model"))
        for entry in map(as_map, per_model):
            model = as_text(entry.get("model_name"))
            passed, failed = success.models[model]
            note = f"{number(passed)} of {number(passed + failed)}"
            share = {**entry, "value": entry.get("share")}
            yield self._share(share, note, path, model or "(no name)")

    def _share(self, share: Mapping[str, Any], note: str, path: str, model: str = "") -> Result:
        share_interval = share.get("share_interval")
        share = {"value": share["value"], "interval": share_interval}
        rule = as_text(self._outcome.get("rule"))
        meaning = meaning_of("outcome", rule)
        made = self._result(self._word, share, None, path, note=note, model=model, unit="share")
        figure = msgspec.structs.replace(made.figure, meaning=meaning)
        return msgspec.structs.replace(made, figure=figure)

    def _corrected(self, entry: Mapping[str, Any]) -> Iterator[Result]:
        """Yield the share of successes as labels correct it: one, or one of each model."""
        label = brief(as_text(entry.get("label")), 80)
        path = as_text(entry.get("figure"))
        for model, estimate in self._by_model(entry):
            yield self._result(label, estimate, None, path, model=model, unit="share")

    def _of_entry(self, entry: Mapping[str, Any]) -> Iterator[Result]:
        """Yield the results of a figure of the headline, of each model that has it."""
        label = brief(as_text(entry.get("label")), 80)
        path = as_text(entry.get("figure"))
        for model, estimate in self._by_model(entry):
            value = estimate.get("value")
            if not isinstance(value, Mapping):
                meaning = self._declared.at(path)
                yield self._result(label, estimate, meaning, path, model=model)
            elif value and all(key.isdecimal() for key in value):
                yield from self._over_k(label, path, estimate, model)
            else:
                yield from self._of_map(label, path, estimate, model)

    def _over_k(
        self, label: str, path: str, estimate: Mapping[str, Any], model: str
    ) -> Iterator[Result]:
        """Yield a figure over k at the last k; k = 1 says what the share of successes says."""
        last = max(as_map(estimate["value"]), key=int)
        if last == "1" and self._success is not None:
            return
        name = path.rpartition(".")[2]
        note = ""
        title = f"{label}, k = {last}"
        if name in OVER_K:
            title = OVER_K[name].format(passed=self._word, k=last)
            note = _SHORT[name].format(k=last)
        one = _entry_at(estimate, last)
        meaning = self._declared.at(f"{path}.{last}")
        yield self._result(title, one, meaning, f"{path}.{last}", note=note, model=model)

    def _of_map(
        self, label: str, path: str, estimate: Mapping[str, Any], model: str
    ) -> Iterator[Result]:
        for key in list(as_map(estimate["value"]))[:_MOST_ENTRIES]:
            title = f"{label}: {brief(key, 40)}"
            entry_path = f"{path}.{key}"
            entry = _entry_at(estimate, key)
            meaning = self._declared.at(entry_path)
            yield self._result(
                title,
                entry,
                meaning,
                entry_path,
                model=model,
            )

    def _result(
        self,
        label: str,
        estimate: Mapping[str, Any],
        meaning: Meaning | None,
        path: str,
        *,
        note: str = "",
        model: str = "",
        unit: str = "",
    ) -> Result:
        """Return a figure with its interval, its runs, and why it has no value or no interval."""
        value = as_number(estimate.get("value"))
        interval = as_map(estimate.get("interval"))
        better = "" if meaning is None else which_is_better(meaning.better)
        notes = [note or self._other_runs(interval), better]
        if value is None:
            reason = brief(as_text(estimate.get("reason")), _LONGEST_REASON)
            notes = [reason or note, better]
        elif why := brief(as_text(interval.get("reason")), _LONGEST_REASON):
            notes.append(f"no interval: {why}")
        is_integer = type(estimate.get("value")) is int and not unit
        figure = Figure(
            label=label,
            value=int(value) if is_integer and value is not None else value,
            interval=None if value is None else ends_of(interval),
            note="; ".join(filter(None, notes)),
            unit=unit or _unit_of(meaning),
            meaning="" if meaning is None else meaning_of(path, meaning.about),
            model=model,
        )
        return Result(figure, path, better)

    def _other_runs(self, interval: Mapping[str, Any]) -> str:
        """Return ``of N runs`` where a figure counts other runs than the graded ones, else ""."""
        if self._success is None or self._success.many:
            return ""
        runs = as_count(interval.get("n"))
        is_runs = runs and runs == interval.get("clusters")
        if is_runs and runs != self._success.of:
            return f"of {counted(runs, 'runs')}"
        return ""

    def _by_model(self, entry: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        """Return a figure of the headline by model, in the order of the outcome."""
        models = as_map(entry.get("models"))
        if not models:
            return [("", entry)]
        if self._success is None:
            order = []
        else:
            order = list(self._success.models)
        names = sorted(models, key=lambda name: order.index(name) if name in order else 0)
        return [(brief(name, 40) or "(no name)", as_map(models[name])) for name in names]

    def _is_share(self, entry: Mapping[str, Any]) -> bool:
        """Return whether a figure is the share of successes itself, of every model.

        Only the outcome grader's mean or accuracy can be; any other figure may have the same
        values by chance.
        """
        grader = "" if self._success is None else self._success.grader
        figure = entry.get("figure")
        if as_text(figure) not in {f"{grader}.{name}" for name in _MEANS}:
            return False
        outcomes = {"": self._outcome}
        if self._success is not None and self._success.many:
            per_model = as_list(self._outcome.get("per_model"))
            entries = map(as_map, per_model)
            outcomes = {as_text(line.get("model_name")): line for line in entries}
        models = as_map(entry.get("models")) or {"": entry}
        estimates = {
            name: _rounded(as_map(estimate), "value", "interval")
            for name, estimate in models.items()
        }
        shares = {
            name: _rounded(estimate, "share", "share_interval")
            for name, estimate in outcomes.items()
        }
        return estimates == shares


def _rounded(estimate: Mapping[str, Any], value: str, interval: str) -> list[float | None]:
    ends = ends_of(estimate.get(interval))
    numbers = (as_number(estimate.get(value)), *(ends or (None, None)))
    return [None if number is None else round(number, 9) for number in numbers]


def _entry_at(estimate: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the figure under one key of a figure with several values."""
    interval = as_map(estimate.get("interval")).get(key)
    return {"value": as_map(estimate["value"])[key], "interval": interval}


def _unit_of(meaning: Meaning | None) -> str:
    """Return the unit a figure is shown in: scores that lie between 0 and 1 are shares."""
    if meaning is None:
        return ""
    low, high = meaning.bounds
    if meaning.unit == "score" and low >= 0 and high <= 1:
        return "share"
    return "" if meaning.unit in ("score", "count") else meaning.unit


def count_text(success: Success, total: int) -> str:
    """Return the successes and the runs they are of: ``9 of 18 graded runs``."""
    runs = "runs" if success.of == total else "graded runs"
    return f"{number(success.passed)} of {counted(success.of, runs)}"


def results_of(summary: Mapping[str, Any], declared: Declarations) -> list[Result]:
    """Return the share of successes, the figures of the headline and those that gates compare.

    Each has the gate that asks something of it.
    """
    maker = _Results(summary, declared)
    results = maker.make()[:_MOST_ROWS]
    gates = summary.get("gates")
    for gate in map(as_map, as_list(gates)):
        threshold = as_number(gate.get("value"))
        sign = _SIGNS.get(as_text(gate.get("op")))
        paths = _paths_of(gate, summary)
        if threshold is None or sign is None or not paths:
            continue
        places = [at for at, result in enumerate(results) if _is_gated(result, gate, paths)]
        if not places and as_number(gate.get("actual")) is not None:
            places = [len(results)]
            results.append(maker.of_gate(gate, paths[0]))
        metric = gate.get("metric")
        scale = 100.0 if metric in _PERCENT else 1.0
        for at in places:
            results[at] = _with_gate(results[at], threshold / scale, sign)
    return results


def _is_gated(result: Result, gate: Mapping[str, Any], paths: Sequence[str]) -> bool:
    """Return whether a gate compares a result, maybe as the mean that a share is."""
    if result.path in paths:
        return True
    key = as_text(gate.get("metric_key"))
    figure = result.figure
    if result.path not in {f"{key}.{name}" for name in _MEANS}:
        return False
    actual = gate.get("actual")
    interval = gate.get("interval")
    ends = ends_of(interval)
    return (figure.value, figure.interval) == (actual, ends)


def _with_gate(result: Result, threshold: float, sign: str) -> Result:
    figure = result.figure
    text = f"gate: {sign} {gate_value(threshold, figure.unit)}"
    at = threshold if figure.unit == "share" else None
    figure = msgspec.structs.replace(figure, threshold=at, gate=text)
    return msgspec.structs.replace(result, figure=figure)


def gate_value(value: float, unit: str) -> str:
    """Return a threshold: a share in percent, with the decimals it has."""
    if unit == "share":
        return f"{100 * value:.10g}%"
    return with_unit(f"{value:.10g}", unit)


def _paths_of(gate: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """Return the paths of the figure that a gate compares with a number; none of other gates."""
    key = as_text(gate.get("metric_key"))
    metric = as_text(gate.get("metric"))
    kind = gate.get("kind")
    if kind == "baseline" or gate.get("conditions") or gate.get("kind") == "tasks":
        return []
    if metric in _PERCENT or metric == "share":
        grader = as_map(summary.get("outcome")).get("grader")
        outcome = as_text(grader)
        if key == outcome:
            return ["outcome", *(f"{key}.{name}" for name in _MEANS)]
        return []
    figure = gate.get("figure")
    path = as_text(figure) or f"{key}.mean"
    return [path, f"{path}.mean"]


def gate_lines(summary: Mapping[str, Any], results: Sequence[Result]) -> list[GateLine]:
    """Return the gates of a run, in the units of the figures they compare."""
    lines = []
    gates = summary.get("gates")
    for gate in map(as_map, as_list(gates)):
        paths = _paths_of(gate, summary)
        units = [result.figure.unit for result in results if _is_gated(result, gate, paths)]
        unit = units[0] if paths and units else ""
        lines.append(_gate_line(gate, unit))
    return lines


def _gate_line(gate: Mapping[str, Any], unit: str) -> GateLine:
    """Return a gate; its note says whether the verdict is sure, and what it leaves out."""
    is_percent = gate.get("metric") in _PERCENT
    scale = 100.0 if is_percent else 1.0
    on_axis = not isinstance(gate.get("actual"), int) and gate.get("kind") != "baseline"
    ends = ends_of(gate.get("interval"))
    actual, notes = gate_texts(gate, 3)
    asked_text = ""
    at = as_number(gate.get("actual")) if on_axis else None
    threshold = as_number(gate.get("value")) if on_axis else None
    if unit == "share" and not is_percent and at is not None and threshold is not None:
        metric = _PERCENT[-1]
        shown = {"actual": 100 * at, "value": 100 * threshold, "metric": metric}
        actual, _ = gate_texts({**gate, **shown}, 3)
        sign = _SIGNS.get(as_text(gate.get("op")), "")
        asked_text = ""
        if sign:
            asked_text = f"{sign} {gate_value(threshold, unit)} is asked"
    has_data = gate.get("outcome") != "no_data"
    remarks = notes or ([] if has_data else ["nothing was graded"])
    text = gate.get("text")
    rule = brief(text or "gate", 200)
    interval = None if ends is None else (ends[0] / scale, ends[1] / scale)
    note = ", ".join(filter(None, (asked_text, *(brief(remark, 300) for remark in remarks))))
    doubt = _doubt_of(gate, "" if not asked_text else gate_value(threshold or 0.0, unit))
    passed = gate.get("passed") is True if has_data else None
    return GateLine(
        rule=rule,
        value=actual,
        passed=passed,
        interval=interval,
        at=None if at is None else at / scale,
        threshold=None if threshold is None else threshold / scale,
        note=note,
        unit="share" if is_percent else unit,
        doubt=doubt,
    )


def _doubt_of(gate: Mapping[str, Any], threshold: str) -> str:
    """Return on which side of its threshold the figure of a gate may be as well."""
    if gate.get("sure") is not False:
        return ""
    is_least = as_text(gate.get("op")) in {"gt", "gte"}
    side = "above"
    passed = gate.get("passed")
    if is_least == (passed is True):
        side = "below"
    if threshold and gate.get("op") != "eq":
        return f"but may be {side} {threshold}"
    return "but the threshold lies within the interval"


def confidence_of(summary: Mapping[str, Any], *, has_trials: bool = True) -> str:
    """Return a sentence with the confidence of the headline's intervals; "" where they differ.

    Args:
        summary: Of the evaluation.
        has_trials: Whether a task has several runs.
    """
    outcome = summary.get("outcome")
    share_interval = as_map(outcome).get("share_interval")
    intervals = [as_map(share_interval)]
    for entry in headline(summary):
        models = as_map(entry.get("models")).values()
        for estimate in (entry, *map(as_map, models)):
            interval = as_map(estimate.get("interval"))
            intervals += [interval, *map(as_map, interval.values())]
    known = [interval for interval in intervals if "low" in interval]
    confidences = {as_number(interval.get("confidence")) for interval in known}
    levels = confidences - {None}
    if len(levels) != 1:
        return ""
    (level,) = levels
    text = f"{100 * (level or 0):.6g}% intervals"
    is_by_task = all(as_number(interval.get("clusters")) is not None for interval in known)
    if is_by_task and has_trials:
        return f"{text}; trials of one task are not counted as independent."
    return f"{text}."


# Tables


def lines_of(report: Report) -> list[Shape]:
    """Return the lines of the table ``figures`` as texts.

    A number that is not declared has no label.
    """
    lines = []
    for row in figure_tables(report)["figures"].rows():
        unit = row["unit"] or ""
        value = row["value"]
        better = which_is_better(row["better"]) if row["better"] else ""
        aggregator = row["aggregator"]
        path = ".".join(filter(None, (aggregator, row["figure"])))
        model = row["model"]
        low = row["low"]
        high = row["high"]
        if low is None or high is None:
            ends = None
        else:
            ends = (low, high)
        line = Shape(grader=row["grader"], path=brief(path, 160))
        if model is None:
            line.model = None
        else:
            line.model = brief(model, 80) or "(no name)"
        label, unit = _AVERAGES.get(path, (row["label"] or "", unit))
        line.label = brief(label, 120)
        if value is None:
            line.value = UNDEFINED
        else:
            line.value = _table_value(value, unit)
        line.interval = ends_text(ends, unit)
        if row["n"] is None:
            line.n = ""
        else:
            line.n = number(row["n"])
        reason = as_text(row["reason"])
        if reason and value is not None:
            reason = f"no interval: {_REASONS.get(reason, reason)}"
        line.note = brief("; ".join(filter(None, (better, reason))), 200)
        lines.append(line)
    return lines


def _table_value(value: Any, unit: str) -> str:
    if unit == "share":
        return value_text(as_number(value), unit)
    if unit == "percent":
        return f"{value:.1f}%"
    return with_unit(number(value), unit)


def end_text(value: float, unit: str) -> str:
    """Return an end of an axis."""
    if unit == "share":
        return f"{100 * value:.0f}%"
    return end(value)


def task_lines(entries: Sequence[RowEntry]) -> Iterator[Line]:
    """Yield the lines of the table ``tasks``: each task of each model."""
    for (model, task), trials in by_task(entries).items():
        verdicts = [entry.passed for entry in trials]
        scores = [entry.score for entry in trials if entry.score is not None]
        ungraded = sum(entry.state != "graded" for entry in trials)
        mean = sum_over(scores, len(scores)) if scores else None
        passed = verdicts.count(True)
        failed = verdicts.count(False)
        yield (task, model or None, len(trials), passed, failed, ungraded, mean)
