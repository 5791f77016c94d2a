"""letta-evals' own program, from recorded trajectories on: grades, figures, verdict, console."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from typing_extensions import override

from gradestack import (
    ConfigError,
    Expectation,
    Extractor,
    Grader,
    Program,
    ProgramFigure,
    ProgramInput,
    ProgramRun,
    Sample,
    TimedOut,
    discover,
)
from gradestack.jsonio import as_map
from gradestack_plugins.letta.gates import Gate, Result, average, metric_figures, percentage
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.recorded import Recorded, is_score

_FUNCTIONS = ("exact_match", "contains", "regex_match", "ascii_printable_only")
_BROKEN = frozenset({"raised", "timed_out", "bad_grade"})
"""Faults of tool graders that are not asked again."""

Row = Mapping[str, Any]


class Tool(msgspec.Struct, frozen=True):
    """A tool grader of a suite, and what takes the text for it out of a run."""

    function: str
    grader: Grader
    extractor: Extractor

    def score(self, turns: Sequence[Any], recorded: Row, truth: str | None) -> float:
        """Return the score of some turns: 0.0 where there is no truth to compare with."""
        messages = tuple(map(chat.messages, turns))
        text = self.extractor.extract(Sample(id="", turns=messages, recorded=recorded))
        expectation = Expectation(text=truth)
        sample = Sample(id="", text=text, expected=expectation)
        try:
            grade: Any = self.grader.grade(sample)
        except TimedOut:  # letta-evals would go on for ever
            return 0.0
        return grade.score or 0.0

    def grade(self, row: Row) -> Row:
        """Return the grade of a run: of several truths the mean over its turns.

        A turn that nobody recorded is 0.0.
        """
        truth = row["sample"]["ground_truth"]
        turns = row["trajectory"]
        truths = truth if isinstance(truth, list) else [truth]
        if isinstance(truth, list):
            parts = [[turn] for turn in turns]
        else:
            parts = [turns]
        pairs = zip(parts, truths, strict=False)
        scores = [self.score(part, row["recorded"], of) for part, of in pairs]
        score = average(scores, len(truths))
        rationale = f"{self.function}: {score:g}"
        return {"score": score, "rationale": rationale}


def tool_of(grader: Grader, written: Any) -> Tool | None:
    """Return the tool grader that a suite has written; None of any other grader."""
    spec = as_map({"kind": written} if isinstance(written, str) else written)
    kind = spec.get("kind")
    function = spec.get("function" if kind == "tool" else "kind")
    if function not in _FUNCTIONS:
        return None
    try:
        extractor = discover().load("extractor", spec.get("extractor", "last_assistant"))
    except ConfigError:  # one of the user's own, in a file
        return None
    extractor_config = spec.get("extractor_config", {})
    return Tool(function, grader, extractor(**extractor_config))


def recorded_grade(grader: Recorded, grade: Row, row: Row) -> Row | None:
    """Return a recorded grade as it stands, the 0.0 of a judge that broke down too.

    A failed run has those under ``grades`` alone; beside an error record there is none.
    """
    recorded = row["recorded"]
    attempted = is_attempted(row)
    if recorded.get("error") is not None:
        return None
    if grade["state"] == "graded" and attempted:
        return grade
    stored = as_map(recorded.get("grade") if attempted else None)
    if grader.metric is not None:
        grades = recorded.get("grades")
        stored = as_map(as_map(grades).get(grader.metric))
    if is_score(stored.get("score")) and "state" not in stored:
        return stored
    return None


def grade_row(grader: Grader, tool: Tool | None, grade: Row, row: Row) -> Row | None:
    """Return a metric's grade as letta-evals computes it; None where letta-evals has none."""
    if isinstance(grader, Recorded):
        return recorded_grade(grader, grade, row)
    fault = as_map(grade.get("fault"))
    if tool is not None and fault.get("code") not in _BROKEN:
        return tool.grade(row)
    if grade["state"] == "graded":
        return grade
    message = fault.get("message")
    why = message or grade["rationale"]
    rationale = f"Error during grading: {why}"
    return {"score": 0.0, "rationale": rationale, "metadata": {"error": why}}


def is_attempted(row: Row) -> bool:
    """Return whether letta-evals takes a run for one that ended without error.

    It wants an agent and a trajectory. Later layouts, which have no ``grade``, and rows of
    gradestack may leave the agent out.
    """
    recorded = row["recorded"]
    trajectory = row["trajectory"]
    has_failed = row["status"] != "ok" and any(trajectory)
    if not trajectory or has_failed or recorded.get("error") is not None:
        return False
    grade = as_map(recorded.get("grade"))
    agent_id = row["agent_id"]
    return agent_id is not None or not grade or "state" in grade


def result_of(row: Row, graders: Mapping[str, Grader], tools: Mapping[str, Tool | None]) -> Result:
    """Return the result of a row of gradestack; without grades where nobody recorded the run."""
    grades: dict[str, Any] = {}
    for key, grader in graders.items() if row["status"] != "missing" else ():
        tool = tools[key]
        grade = grade_row(grader, tool, row["grades"][key], row)
        if grade is not None:
            rationale = grade.get("rationale", "")
            metadata = grade.get("metadata", {})
            score = float(grade["score"])
            grades[key] = {"score": score, "rationale": rationale, "metadata": metadata}
    error = as_map(row["error"])
    why = error.get("message", "no grade")
    failure = {"score": 0.0, "rationale": f"Error: {why}", "metadata": {}}
    record = {name: row[name] for name in _FIELDS}
    record |= {"grade": next(iter(grades.values()), failure), "grades": grades or None}
    scores = {key: grade["score"] for key, grade in grades.items()}
    return Result(record=record, scores=scores, attempted=is_attempted(row), run=row["run"])


_FIELDS = (
    *("sample", "submission", "submissions", "trajectory", "agent_id", "model_name"),
    "agent_usage",
)
"""Of a result, as a row has them."""


_OF_MODELS = {"passed_attempts": "passed_samples", "failed_attempts": "failed_samples"}
"""Names of figures that are others in the row of a model."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A suite's results, and what figures depend on beside them."""

    results: Sequence[Result]
    keys: Sequence[str]
    """Metrics; the first one counts where no gate names one."""
    gate: Gate | None = None
    num_runs: int = 1

    @property
    def key(self) -> str:
        """The metric that counts."""
        return (self.gate and self.gate.metric_key) or self.keys[0]

    def figures(self, results: Sequence[Result]) -> dict[str, Any]:
        """Return the ``metrics`` of a summary, but for those of models."""
        by_metric = {key: metric_figures(results, key, self.gate) for key in self.keys}
        head = dict(by_metric[self.key])
        del head["pass_rate"]
        pass_rates_by_key = {key: figures["pass_rate"] for key, figures in by_metric.items()}
        total_attempted = sum(result.attempted for result in results)
        return {
            "total": len(results),
            "total_attempted": total_attempted,
            **head,
            "by_metric": by_metric,
            "metrics": pass_rates_by_key,
        }

    def metrics(self, results: Sequence[Result]) -> dict[str, Any]:
        """Return the ``metrics`` of a summary."""
        models: dict[str | None, list[Result]] = {}
        for result in results:
            model_name = result.record["model_name"]
            models.setdefault(model_name, []).append(result)
        per_model = [self._model_row(model, models[model]) for model in models]
        return {**self.figures(results), "per_model": per_model if any(models) else None}

    def _model_row(self, model: str | None, results: Sequence[Result]) -> dict[str, Any]:
        figures = self.figures(results)
        del figures["by_metric"]
        return {
            "model_name": model,
            **{_OF_MODELS.get(name, name): figures[name] for name in figures},
        }

    @property
    def runs(self) -> list[list[Result]]:
        """The results of each run, in the order of runs."""
        names = dict.fromkeys(result.run for result in self.results if result.run is not None)
        if self.num_runs < 2:
            return [list(self.results)]
        return [[result for result in self.results if result.run in (run, None)] for run in names]

    @property
    def runs_passed(self) -> int:
        """The number of runs that pass the gate; 0 without one."""
        gate = self.gate
        if gate is None:
            return 0
        return sum(gate.passes(run, self.key) for run in self.runs)

    @property
    def statistics(self) -> dict[str, Any]:
        """Figures over several runs: means and deviations, of one run 0.0."""
        metrics = [self.metrics(run) for run in self.runs]
        figures: dict[str, Any] = {"num_runs": len(metrics), "runs_passed": self.runs_passed}
        for name in ("avg_score_attempted", "avg_score_total"):
            values = [run[name] for run in metrics]
            figures[f"mean_{name}"] = statistics.mean(values)
            figures[f"std_{name}"] = deviation(values)
        means = dict[str, float]()
        deviations = dict[str, float]()
        for key in self.keys:
            averages = [run["by_metric"][key]["avg_score_attempted"] for run in metrics]
            means[key], deviations[key] = statistics.mean(averages), deviation(averages)
        scores = {"mean_scores": means, "std_scores": deviations}
        return {**figures, **scores, "individual_run_metrics": metrics}


def deviation(values: Sequence[float]) -> float:
    """Return the sample standard deviation, 0.0 of one value."""
    if len(values) > 1:
        return statistics.stdev(values)
    return 0.0


_RESULTS = """Results:
  Total samples: {total}
  Attempted: {total_attempted}
  Avg score: {avg_score_total:.2f} (attempted: {avg_score_attempted:.2f})
  Passed: {passed_attempts} ({rate:.1f}%)"""
_MODEL = "  {model_name} - Avg: {avg_score_attempted:.2f}, Pass: {rate:.1f}%"


def console_lines(evaluation: Evaluation, metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the results block."""
    rate = percentage(metrics["passed_attempts"], metrics["total_attempted"])
    yield _RESULTS.format(**metrics, rate=rate)
    if metrics["per_model"]:
        yield from ("", "Results by model:")
    for row in metrics["per_model"] or ():
        rate = percentage(row["passed_samples"], row["total_attempted"])
        yield _MODEL.format(**row, rate=rate)
    if evaluation.num_runs > 1:
        yield from ("", f"Runs passed: {evaluation.runs_passed}")
    if evaluation.gate is not None:
        lines = evaluation.gate.lines(evaluation.results, evaluation.key)
        yield from ("", *lines)


def gate_of(config: Mapping[str, Any]) -> Gate | None:
    """Return the gate of a suite; None of one that letta-evals has not got, or of several."""
    if config.get("gates"):
        return None
    try:
        gate = config.get("gate")
        return msgspec.convert(gate, Gate | None)
    except msgspec.ValidationError:
        return None


_WHY = "letta-evals takes a failed run, no answer and no reference for 0.0; ours leave them out"


class LettaProgram(Program):
    """letta-evals' results, summary and statistics over runs, of recorded results graded again.

    Tool graders judge failed runs and empty answers, too. Any other grader that gave no grade has
    given 0.0. A gate that letta-evals has not got is left to gradestack.
    """

    reader = "letta"
    title = "letta-evals"
    needs_rows = True

    @override
    def run(self, program_input: ProgramInput) -> ProgramRun:
        config, graders = program_input.config, program_input.graders
        written = as_map(config.get("graders"))
        tools = {key: tool_of(grader, written.get(key)) for key, grader in graders.items()}
        rows = program_input.rows()
        results = [result_of(row, graders, tools) for row in rows]
        gate = gate_of(config)
        num_runs = config.get("num_runs") or 1
        evaluation = Evaluation(
            results=results,
            keys=list(graders),
            gate=gate,
            num_runs=num_runs,
        )
        metrics = evaluation.metrics(evaluation.results)
        if evaluation.gate is None:
            has_passed = None
        else:
            has_passed = evaluation.runs_passed > 0
        files = _files(evaluation, metrics, has_passed)
        console = "\n".join(console_lines(evaluation, metrics))
        if has_passed is None:
            exit_code = None
        else:
            exit_code = int(not has_passed)
        by_metric = metrics["by_metric"].items()
        return ProgramRun(
            files=files,
            console=console,
            exit_code=exit_code,
            figures=tuple(map(_figure, by_metric)),
        )


def _files(
    evaluation: Evaluation, metrics: Mapping[str, Any], has_passed: bool | None
) -> dict[str, str]:
    """Return letta-evals' result files."""
    summary = {"type": "summary", "metrics": metrics, "gates_passed": has_passed}
    lines = [{"type": "result", "result": result.record} for result in evaluation.results]
    letta_results_jsonl = "".join([f"{json.dumps(line)}\n" for line in lines])
    text = json.dumps(summary, indent=2)
    files = {
        "letta/summary.json": text,
        "letta/results.jsonl": letta_results_jsonl,
    }
    if evaluation.num_runs > 1:
        files["letta/aggregate_stats.json"] = json.dumps(evaluation.statistics, indent=2)
    return files


def _figure(metric: tuple[str, Mapping[str, Any]]) -> ProgramFigure:
    key, figures = metric
    value = figures["avg_score_attempted"]
    path = f"{key}.mean.mean"
    label = f"{key} average"
    return ProgramFigure(label=label, value=value, figure=path, why=_WHY)
