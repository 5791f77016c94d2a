"""Reports of benchmarks: AppWorld, Gaia2, SWE-bench and ToolSandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import DataError, Input, Inputs, replace
from gradestack.jsonio import as_list, as_map, as_number
from gradestack_plugins.leaderboards.verdicts import (
    SURE,
    VerdictReader,
    document_at,
    is_true,
    join_texts,
    known_values,
)
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.declared import Items, Text, convert_record
from gradestack_plugins.readers.runs import Record, Run


class _Task(msgspec.Struct):
    """The result of a task in a report of AppWorld."""

    success: Any = None
    difficulty: Any = None
    passes: list[Any] = []
    failures: list[Any] = []


class AppWorld(VerdictReader):
    """Reads evaluation reports of AppWorld: documents with ``individual`` results by task.

    The verdict is ``success``; ``recorded.requirements`` is the share of requirements that are
    met. Tasks of one scenario, whose ids begin alike, are a cluster.
    """

    version = "1"
    marks = (("individual", "passes", "failures"),)
    stack = "appworld"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        individual = as_map(record).get("individual")
        tasks = as_map(individual)
        task = next(iter(tasks.values()), None)
        first = as_map(task)
        return SURE if "success" in first else 0.0

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            individual = as_map(value).get("individual")
            tasks = as_map(individual)
            for number, (name, recorded) in enumerate(tasks.items()):
                task, remarks = convert_record(as_map(recorded), _Task)
                run = _run_of_task(name, task)
                run.source = replace(source, ordinal=number)
                run.first = value
                run.remarks = remarks
                yield run


def _run_of_task(name: str, task: _Task) -> Run:
    """Build the run of an AppWorld task: success, and the share of requirements met."""
    scenario = name.rpartition("_")[0] or name
    run = Run(id=name, entries=[], cluster=scenario)
    run.facets = known_values(difficulty=task.difficulty, scenario=scenario)
    run.recorded = {"success": is_true(task.success)}
    met = len(task.passes)
    requirements = met + len(task.failures)
    if requirements:
        run.recorded["requirements"] = met / requirements
    return run


class _Metadata(msgspec.Struct, frozen=True):
    """The metadata of a run of Gaia2."""

    model: Text = None
    run_number: int | None = None
    has_exception: Any = None
    status: Any = None
    exception_type: Any = None
    config: Any = None
    rationale: Any = None


class _Judged(msgspec.Struct):
    """A line of Gaia2's output."""

    task_id: Any
    score: Any = None
    metadata: _Metadata = _Metadata()


class Gaia2(VerdictReader):
    """Reads ``output.jsonl`` of Gaia2: a run of a scenario a line.

    The id is the scenario's, ``run`` its number; the verdict is ``score``. A run that ended in an
    exception is a failure, and a run that was not judged counts nowhere, as in the benchmark's
    success rate.
    """

    version = "1"

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        metadata = as_map(record).get("metadata")
        about = as_map(metadata)
        keys = as_map(record).keys()
        is_line = {"task_id", "trace_id", "score"} <= keys
        return SURE if is_line and "scenario_id" in about else 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return True

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            if not self.looks_like(value):
                raise ValueError("expected task_id, trace_id, score and metadata of a scenario")
            judged, remarks = convert_record(value, _Judged)
            run = _run_of_scenario(judged)
            run.source, run.first = source, value
            run.remarks = {**run.remarks, **remarks}
            yield run


def _run_of_scenario(judged: _Judged) -> Run:
    """Build the run of a Gaia2 scenario: its score, or the exception that ended it."""
    about = judged.metadata
    task_id = str(judged.task_id)
    run = Run(id=task_id, entries=[], trial=about.run_number)
    run.model = about.model or None
    names = ("status", "exception_type", "config", "rationale")
    run.facets = known_values(**{name: getattr(about, name) for name in names})
    is_verdict = isinstance(judged.score, bool)
    score = float(judged.score) if is_verdict else as_number(judged.score)
    if about.has_exception is True or about.status == "exception":
        run.ended = "error"
        run.error = about.rationale or "exception"
        score = 0.0 if score is None else score
    if score is None:
        run.remarks = {"run_not_judged": 1}
    else:
        run.recorded = {"score": score}
    return run


class _Scenario(msgspec.Struct):
    """The result of a scenario in a summary of ToolSandbox."""

    name: Any = None
    similarity: Any = None
    exception_type: Any = None
    categories: Items = None
    turn_count: Any = None


_SUMMARY: Final = "result_summary.json"


class ToolSandbox(VerdictReader):
    """Reads ``result_summary.json`` of ToolSandbox: a similarity for each scenario.

    The similarity is a figure, no verdict. A scenario that ended in an exception has 0, as in the
    benchmark. Conversations beside the summary are those of its scenarios.
    """

    version = "1"
    marks = (("per_scenario_results",),)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        per_scenario_results = as_map(record).get("per_scenario_results")
        rows = as_list(per_scenario_results)
        if rows and "similarity" in as_map(rows[0]):
            return SURE
        return 0.0

    @classmethod
    @override
    def main_of(cls, path: Path) -> Path | None:
        above = path.parent.parent
        if above.name == "trajectories":
            return above.parent / _SUMMARY
        return None

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        """Yield a run for each scenario, with the conversation of its own folder if it has one."""
        folder = file.path.parent / "trajectories"
        for value, source in records:
            per_scenario_results = as_map(value).get("per_scenario_results")
            rows = as_list(per_scenario_results)
            for number, row in enumerate(rows):
                scenario, remarks = convert_record(as_map(row), _Scenario)
                run = _run_of_similarity(scenario)
                run.entries += as_list(document_at(folder / run.id / "conversation.json"))
                run.source = replace(source, ordinal=number)
                run.first = value
                run.remarks = remarks
                yield run


def _run_of_similarity(scenario: _Scenario) -> Run:
    """Build the run of a ToolSandbox scenario: similarity and exception, without its messages."""
    run = Run(id=str(scenario.name), entries=[])
    similarity = as_number(scenario.similarity)
    run.recorded = {"similarity": similarity or 0.0}
    categories = join_texts(scenario.categories)
    run.facets = known_values(categories=categories, turns=scenario.turn_count)
    if scenario.exception_type:
        kind = str(scenario.exception_type)
        run.ended, run.error = "error", {"type": kind, "message": kind}
    return run


_NAMED: Final = ("submitted", "completed", "resolved", "unresolved", "error", "empty_patch")
"""Lists of instances in a report of a run, without those that were not handed in."""
_MOST_UNNAMED: Final = 100_000


class SweBench(VerdictReader):
    """Reads reports of SWE-bench's harness, of a run or of one instance, and predictions.

    The verdict is ``resolved``. Every instance of a report of a run counts, also those that were
    not handed in, have no patch or ended in an error: the benchmark divides by
    ``total_instances``. Instances that it counts and does not name are runs with numbered ids.
    Predictions (``instance_id``, ``model_patch``) beside a report are the answers of its runs.
    """

    version = "1"
    marks = (
        ("total_instances", "resolved_ids"),
        ("patch_successfully_applied", "tests_status"),
        ("instance_id", "model_patch"),
    )

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        report = _is_report(record)
        is_known = report or _instances_in(record) or _predictions_in(record)
        return SURE if is_known else 0.0

    @override
    def index(self, inputs: Inputs) -> dict[str, Any]:
        """Return the predictions, by instance.

        Raises:
            DataError: There are predictions only.
        """
        predictions: dict[str, Any] = {}
        has_report = False
        for input_file in inputs.data:
            in_file: dict[str, Any] = {}
            for record in self._records(input_file, [], []):
                in_file |= _predictions_in(record.value)
            has_report = has_report or not in_file
            predictions |= in_file
        if predictions and not has_report:
            raise DataError(
                f"{inputs.data[0].shown}: predictions without a report: nothing was run that says "
                "whether they resolve anything",
                "run the benchmark's evaluation, and name the report it writes too",
            )
        return predictions

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            runs = _runs_of_report if _is_report(value) else _runs_of_instances
            for number, run in enumerate(runs(value, file.path)):
                predicted = dict(as_map(index.get(run.id)))
                patch = predicted.get("model_patch")
                if isinstance(patch, str):
                    run.entries = [{"role": "assistant", "content": patch}]
                run.model = word(predicted, "model_name_or_path") or run.model
                run.source = replace(source, ordinal=number)
                run.first = value
                yield run


def _is_report(value: Any) -> bool:
    """Return whether an object is the report of a whole run."""
    report = as_map(value)
    resolved_ids = report.get("resolved_ids")
    return isinstance(resolved_ids, list) and "total_instances" in report


def _instances_in(value: Any) -> Mapping[str, Any]:
    """Return the instances of a report by id; an empty object for other values."""
    instances = as_map(value)
    entries = instances.values()
    verdicts = [as_map(entry).get("resolved") for entry in entries]
    if all(isinstance(verdict, bool) for verdict in verdicts):
        return instances
    return {}


def _predictions_in(value: Any) -> dict[str, Any]:
    """Return predictions by instance: the one that a record is, or those under their ids."""
    rows = as_map(value)
    if "instance_id" in rows:
        rows = {str(rows["instance_id"]): rows}
    if all("model_patch" in as_map(row) for row in rows.values()):
        return dict(rows)
    return {}


def _runs_of_report(report: Mapping[str, Any], path: Path) -> Iterator[Run]:
    """Yield a run for every instance that a report counts."""
    by_list = {name: _ids_in(report, name) for name in (*_NAMED, "incomplete")}
    names = list(dict.fromkeys(name for listed in by_list.values() for name in listed))
    model = None
    if path.name.count(".") > 1:
        model = path.name.partition(".")[0]
    for name in names:
        run = Run(id=name, entries=[], model=model)
        states = ("resolved", "empty_patch", "error", "incomplete")
        state = next((entry for entry in states if name in by_list[entry]), "unresolved")
        run.facets = {"state": state}
        run.recorded = {"resolved": state == "resolved"}
        if name in by_list["error"]:
            run.ended, run.error = "error", "the evaluation ended in an error"
        yield run
    total = report.get("total_instances")
    unnamed = 0
    if isinstance(total, int):
        unnamed = total - len(names)
    for number in range(min(unnamed, _MOST_UNNAMED)):
        run = Run(id=f"unnamed-{number + 1}", entries=[], model=model)
        run.facets, run.recorded = {"state": "incomplete"}, {"resolved": False}
        run.remarks = {"instance_counted_and_not_named": 1}
        yield run


def _ids_in(report: Mapping[str, Any], name: str) -> dict[str, None]:
    return dict.fromkeys(map(str, as_list(report.get(f"{name}_ids"))))


def _runs_of_instances(value: Any, path: Path) -> Iterator[Run]:
    """Yield a run for every instance of a report by id."""
    folder = path.parent
    for name, recorded in _instances_in(value).items():
        run = Run(id=name, entries=[])
        if folder.name == name:
            run.model = folder.parent.name
        else:
            run.model = None
        resolved = as_map(recorded).get("resolved")
        run.recorded = {"resolved": resolved is True}
        yield run
