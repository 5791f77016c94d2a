"""letta-evals' own program, from recorded trajectories on: grades, figures, verdict, console."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from typing_extensions import override

from gradestack import (
    ConfigError,
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
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.letta.gates import Gate, Result, average, metric_figures, percentage
from gradestack_plugins.readers import chat
from gradestack_plugins.readers.recorded import Recorded, is_score


def _matches(submission: str, truth: str) -> bool:
    try:
        return re.search(truth, submission) is not None
    except (re.error, OverflowError, RecursionError, TimedOut):  # letta-evals would go on for ever
        return False


_PRINTABLE = re.compile(r"[ -~\r\n]*")
TOOLS: dict[str, Callable[[str, str], bool]] = {"regex_match": _matches}
TOOLS["exact_match"] = lambda submission, truth: submission.strip() == truth.strip()
TOOLS["contains"] = lambda submission, truth: truth.lower() in submission.lower()
TOOLS["ascii_printable_only"] = lambda submission, _: bool(_PRINTABLE.fullmatch(submission))
_WITHOUT_TRUTH = "ascii_printable_only"
_BROKEN = frozenset({"raised", "timed_out", "bad_grade"})
"""Faults of tool graders that are not asked again."""


class Tool(msgspec.Struct, frozen=True):
    """A tool grader of a suite: a function of a text, and what takes the text out of a run."""

    function: str
    extractor: Extractor

    def score(self, turns: Sequence[Any], recorded: Mapping[str, Any], truth: str | None) -> float:
        """Return the score of some turns: 0.0 where there is no truth to compare with."""
        if not truth and self.function != _WITHOUT_TRUTH:
            return 0.0
        messages = tuple(map(chat.messages, turns))
        text = self.extractor.extract(Sample(id="", turns=messages, recorded=recorded))
        return float(TOOLS[self.function](text, truth or ""))

    def grade(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the grade of a run: of several truths the mean over its turns.

        A turn that nobody recorded is 0.0.
        """
        truth, turns, recorded = row["sample"]["ground_truth"], row["trajectory"], row["recorded"]
        if isinstance(truth, list):
            pairs = zip(turns, truth, strict=False)
            scores = [self.score([turn], recorded, of) for turn, of in pairs]
            score = average(scores, len(truth))
        else:
            score = self.score(turns, recorded, truth)
        return {"score": score, "rationale": f"{self.function}: {score:g}"}


def tool_of(written: Any) -> Tool | None:
    """Return the tool grader that a suite has written; None of any other grader."""
    spec = as_map({"kind": written} if isinstance(written, str) else written)
    function = spec.get("function" if spec.get("kind") == "tool" else "kind")
    if function not in TOOLS:
        return None
    try:
        extractor = discover().load("extractor", spec.get("extractor", "last_assistant"))
    except ConfigError:  # one of the user's own, in a file
        return None
    return Tool(function, extractor(**spec.get("extractor_config", {})))


def recorded_grade(
    grader: Recorded, grade: Mapping[str, Any], row: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return a recorded grade as it stands, the 0.0 of a judge that broke down too.

    A failed run has those under ``grades`` alone; beside an error record there is none.
    """
    recorded, attempted = row["recorded"], is_attempted(row)
    if grade["state"] == "graded" and attempted:
        return grade
    if recorded.get("error") is not None:
        return None
    unnamed = recorded.get("grade") if attempted else None
    named = as_map(recorded.get("grades")).get(grader.metric or "")
    stored = as_map(named if grader.metric else unnamed)
    return stored if is_score(stored.get("score")) and "state" not in stored else None


def grade_row(
    grader: Grader, tool: Tool | None, grade: Mapping[str, Any], row: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the grade of one metric, given ours; None where letta-evals has none."""
    if isinstance(grader, Recorded):
        return recorded_grade(grader, grade, row)
    faults = [as_map(item.get("fault")) for item in (grade, *as_list(grade.get("items")))]
    if tool is not None and _BROKEN.isdisjoint(fault.get("code") for fault in faults):
        return tool.grade(row)
    if grade["state"] == "graded":
        return grade
    why = faults[0].get("message") or grade["rationale"]
    rationale = f"Error during grading: {why}"
    return {"score": 0.0, "rationale": rationale, "metadata": {"error": why}}


def is_attempted(row: Mapping[str, Any]) -> bool:
    """Return whether letta-evals takes a run for one that ended without error.

    It wants an agent and a trajectory. Later layouts, which have no ``grade``, and rows of
    gradestack may leave the agent out.
    """
    recorded, trajectory = row["recorded"], row["trajectory"]
    has_failed = row["status"] != "ok" and any(trajectory)
    if not trajectory or has_failed or recorded.get("error") is not None:
        return False
    grade = as_map(recorded.get("grade"))
    return row["agent_id"] is not None or not grade or "state" in grade


def result_of(
    row: Mapping[str, Any], graders: Mapping[str, Grader], tools: Mapping[str, Tool | None]
) -> Result:
    """Return the result of a row of gradestack; without grades where nobody recorded the run."""
    grades: dict[str, Any] = {}
    for key, grader in graders.items() if row["status"] != "missing" else ():
        grade = grade_row(grader, tools[key], row["grades"][key], row)
        if grade is not None:
            empty = {"rationale": "", "metadata": {}}
            about = {name: grade.get(name, value) for name, value in empty.items()}
            grades[key] = {"score": float(grade["score"]), **about}
    why = as_map(row["error"]).get("message", "no grade")
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


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """A suite's results, and what figures depend on beside them."""

    results: Sequence[Result]
    keys: Sequence[str]
    """Metrics; the first one counts where no gate names one."""
    gates: Sequence[Gate] = ()
    num_runs: int = 1

    def figures(self, results: Sequence[Result]) -> dict[str, Any]:
        """Return the ``metrics`` of a summary, but for those of models."""
        gate = self.gates[0] if self.gates else Gate(kind="simple")
        by_metric = {key: metric_figures(results, key, gate) for key in self.keys}
        head = dict(by_metric[gate.metric_key or self.keys[0]])
        del head["pass_rate"]
        attempted = sum(result.attempted for result in results)
        rates = {key: figures["pass_rate"] for key, figures in by_metric.items()}
        counts = {"total": len(results), "total_attempted": attempted}
        return {**counts, **head, "by_metric": by_metric, "metrics": rates}

    def metrics(self, results: Sequence[Result]) -> dict[str, Any]:
        """Return the ``metrics`` of a summary."""
        models: dict[str | None, list[Result]] = {}
        for result in results:
            models.setdefault(result.record["model_name"], []).append(result)
        per_model = [{"model_name": name, **self.figures(of)} for name, of in models.items()]
        for row in per_model:
            row["passed_samples"] = row.pop("passed_attempts")
            row["failed_samples"] = row.pop("failed_attempts")
            del row["by_metric"]
        return {**self.figures(results), "per_model": per_model if any(models) else None}

    def passes(self, results: Sequence[Result]) -> bool:
        """Return the verdict on one run."""
        return all(gate.passes(results, self.keys[0]) for gate in self.gates)

    @property
    def runs(self) -> list[list[Result]]:
        """The results of each run, runs by number."""
        if self.num_runs < 2:
            return [list(self.results)]
        names = {result.run for result in self.results} - {None}
        ordered = sorted(names, key=lambda run: (len(str(run)), str(run)))
        return [[result for result in self.results if result.run in (run, None)] for run in ordered]

    @property
    def statistics(self) -> dict[str, Any]:
        """Figures over several runs: means and deviations, of one run 0.0."""
        metrics = [self.metrics(run) for run in self.runs]
        series = {
            name: [run[name] for run in metrics]
            for name in ("avg_score_attempted", "avg_score_total")
        }
        scores = {
            key: [run["by_metric"][key]["avg_score_attempted"] for run in metrics]
            for key in self.keys
        }
        passed = sum(map(self.passes, self.runs)) if self.gates else 0
        found: dict[str, Any] = {"num_runs": len(metrics), "runs_passed": passed}
        for name, values in series.items():
            found |= {f"mean_{name}": statistics.mean(values), f"std_{name}": deviation(values)}
        found["mean_scores"] = {key: statistics.mean(values) for key, values in scores.items()}
        found["std_scores"] = {key: deviation(values) for key, values in scores.items()}
        return {**found, "individual_run_metrics": metrics}


def deviation(values: Sequence[float]) -> float:
    """Return the sample standard deviation, 0.0 of one value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


_BANDS = ((1.0, "perfect"), (0.8, "very good"), (0.6, "good"), (0.4, "acceptable"), (0.2, "poor"))
"""Least average and its band, in letta-evals' guide."""


def console_lines(evaluation: Evaluation, metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield the results block."""
    score, attempted = metrics["avg_score_attempted"], metrics["total_attempted"]
    passed = metrics["passed_attempts"]
    yield "Results:"
    yield f"  Total samples: {metrics['total']}"
    yield f"  Attempted: {attempted}"
    yield f"  Avg score: {metrics['avg_score_total']:.2f} (attempted: {score:.2f})"
    yield f"  Passed: {passed} ({percentage(passed, attempted):.1f}%)"
    yield f"  Score band: {next((name for least, name in _BANDS if score >= least), 'failed')}"
    if metrics["per_model"]:
        yield from ("", "Results by model:")
    for row in metrics["per_model"] or ():
        rate = percentage(row["passed_samples"], row["total_attempted"])
        yield f"  {row['model_name']} - Avg: {row['avg_score_attempted']:.2f}, Pass: {rate:.1f}%"
    if evaluation.num_runs > 1:
        yield from ("", f"Runs passed: {sum(map(evaluation.passes, evaluation.runs))}")
    for gate in evaluation.gates:
        yield from ("", *gate.lines(evaluation.results, evaluation.keys[0]))


def gates_of(config: Mapping[str, Any]) -> tuple[Gate, ...]:
    """Return the gates of a suite; none where one of them is not a gate of letta-evals."""
    gate = config.get("gate")
    written = [*([] if gate is None else [gate]), *as_list(config.get("gates"))]
    try:
        return msgspec.convert(written, tuple[Gate, ...])
    except msgspec.ValidationError:
        return ()


_WHY = "letta-evals takes a failed run, no answer and no reference for 0.0; ours leave them out"


class LettaProgram(Program):
    """letta-evals' results, summary and statistics over runs, of recorded results graded again.

    Tool graders judge failed runs and empty answers, too. Any other grader that gave no grade has
    given 0.0. A gate that letta-evals has not got is left to gradestack.
    """

    reader: ClassVar[str] = "letta"
    title: ClassVar[str] = "letta-evals"
    needs_rows: ClassVar[bool] = True

    @override
    def run(self, given: ProgramInput) -> ProgramRun:
        config, graders = given.config, given.graders
        written = as_map(config.get("graders"))
        tools = {key: tool_of(written.get(key)) for key in graders}
        evaluation = Evaluation(
            results=[result_of(row, graders, tools) for row in given.rows()],
            keys=list(graders),
            gates=gates_of(config),
            num_runs=config.get("num_runs") or 1,
        )
        metrics = evaluation.metrics(evaluation.results)
        passed = any(map(evaluation.passes, evaluation.runs)) if evaluation.gates else None
        summary = {"type": "summary", "metrics": metrics, "gates_passed": passed}
        lines = [{"type": "result", "result": result.record} for result in evaluation.results]
        files = {
            "letta/summary.json": json.dumps(summary, indent=2),
            "letta/results.jsonl": "".join(f"{json.dumps(line)}\n" for line in lines),
        }
        if evaluation.num_runs > 1:
            files["letta/aggregate_stats.json"] = json.dumps(evaluation.statistics, indent=2)
        averages = {key: each["avg_score_attempted"] for key, each in metrics["by_metric"].items()}
        figures = [
            ProgramFigure(label=f"{key} average", value=score, figure=f"{key}.mean.mean", why=_WHY)
            for key, score in averages.items()
        ]
        return ProgramRun(
            files=files,
            console="\n".join(console_lines(evaluation, metrics)),
            exit_code=None if passed is None else int(not passed),
            figures=tuple(figures),
        )
