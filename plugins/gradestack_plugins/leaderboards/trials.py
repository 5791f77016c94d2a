"""Benchmarks that run every task several times: Terminal-Bench and MCPMark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from typing_extensions import override

from gradestack import Input, Inputs, RecordFile, replace
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.leaderboards.verdicts import (
    SURE,
    VerdictReader,
    document_at,
    is_true,
    known_values,
    usage_in,
)
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.declared import convert_record
from gradestack_plugins.readers.runs import Record, Run

_TRIAL: Final = frozenset({"task_id", "is_resolved", "failure_mode"})
_NO_FAILURE: Final = frozenset({"", "unset", "none"})
_TIMEOUTS: Final = frozenset({"agent_timeout", "test_timeout"})
_RUN_OF_ALL: Final = "results.json"
_ABOUT_RUN: Final = "run_metadata.json"


class _Trial(msgspec.Struct):
    """The result of a trial."""

    task_id: Any = None
    trial_name: str = ""
    is_resolved: Any = None
    failure_mode: str = ""
    total_input_tokens: Any = None
    total_output_tokens: Any = None


class TerminalBench(VerdictReader):
    """Reads ``results.json`` of Terminal-Bench: of a run with all its trials, or of one trial.

    The id is the task's, the run the trial's name; ``recorded.resolved`` is the verdict. A trial
    whose verdict is null ended in an error and is not resolved, as its own ``n_unresolved`` and
    ``accuracy`` have it. The model, or the agent where none is named, is that of
    ``run_metadata.json`` beside the file. In a folder the files of single trials below the file of
    their run are read with that one.
    """

    version = "1"
    marks = (("results", "n_resolved", "n_unresolved"), ("trial_name", "is_resolved"))

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        trials = _trials_of(record)
        if trials and as_map(trials[0]).keys() >= _TRIAL:
            return SURE
        return 0.0

    @classmethod
    @override
    def main_of(cls, path: Path) -> Path | None:
        if path.name == _ABOUT_RUN:
            return path.with_name(_RUN_OF_ALL)
        return None

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        runs = [input_file.path for input_file in inputs.data if _holds_all_trials(input_file.path)]
        folders = {path.parent.resolve() for path in runs}
        own_files: list[Input] = []
        for input_file in inputs.data:
            above = input_file.path.resolve().parents
            if input_file.path in runs or folders.isdisjoint(above):
                own_files.append(input_file)
        yield from super().files(replace(inputs, data=tuple(own_files)), index)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        path = file.path.with_name(_ABOUT_RUN)
        document = as_map(document_at(path))
        about = dict(document)
        model = word(about, "model_name") or word(about, "agent_name") or None
        for value, source in records:
            for number, recorded in enumerate(_trials_of(value)):
                trial, remarks = convert_record(as_map(recorded), _Trial)
                run = _run_of_trial(trial)
                ordinal = source.ordinal + number
                run.source = replace(source, ordinal=ordinal)
                run.first, run.model = recorded, model
                run.remarks = {**run.remarks, **remarks}
                yield run


def _trials_of(record: Any) -> list[Any]:
    """Return the trials of a run, or the one that a record is."""
    if not isinstance(record, dict):
        return []
    results = list(as_list(record.get("results")))
    return results or [record] * ("is_resolved" in record)


def _holds_all_trials(path: Path) -> bool:
    """Return whether a file has the results of a run, beside which those of its trials stand."""
    return path.name == _RUN_OF_ALL and "results" in as_map(document_at(path))


def _run_of_trial(trial: _Trial) -> Run:
    """Build the run of a Terminal-Bench trial: verdict, failure mode and tokens."""
    mode = trial.failure_mode
    run = Run(id=str(trial.task_id or trial.trial_name), entries=[], trial=trial.trial_name or None)
    run.usage = usage_in(
        {"input_tokens": trial.total_input_tokens, "output_tokens": trial.total_output_tokens}
    )
    run.recorded = {"resolved": is_true(trial.is_resolved)}
    if mode not in _NO_FAILURE:
        run.facets = {"failure_mode": mode}
    if trial.is_resolved is None:
        run.ended = "error"
        run.error = mode or "no verdict"
        run.remarks = {"verdict_is_null": 1}
    if mode in _TIMEOUTS:
        run.ended = "limit:time"
    return run


class McpMark(VerdictReader):
    """Reads results of MCPMark: runs by name of a model in ``MODEL/TASK.json``, runs of all models
    in ``TASK.json``, or ``meta.json`` of a run.

    The id is the task's, ``run`` the name of the run (``run-1``). A run that is null, or that only
    other tasks of the same model and service have, is a run that failed, as the benchmark's
    aggregator counts it. ``messages.json`` beside ``meta.json`` is the conversation of that run.
    """

    version = "1"
    marks = (
        ("service", "model", "runs"),
        ("service", "models", "runs"),
        ("task_name", "execution_result", "turn_count"),
    )

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        models = record.get("models")
        runs = record.get("runs", models)
        has_runs = isinstance(runs, dict)
        execution_result = record.get("execution_result")
        is_meta = "success" in as_map(execution_result) and "task_name" in record
        if ("service" in record and has_runs) or is_meta:
            return SURE
        return 0.0

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return True

    @classmethod
    @override
    def main_of(cls, path: Path) -> Path | None:
        if path.name == "messages.json":
            return path.with_name("meta.json")
        return None

    @override
    def index(self, inputs: Inputs) -> dict[str, dict[str, list[str]]]:
        """Return by model and service the names of the runs of each task."""
        groups: dict[str, dict[str, list[str]]] = {}
        for input_file in inputs.data:
            document = document_at(input_file.path)
            if not self.looks_like(document):
                continue
            for task in _tasks_in(document, input_file.path):
                names = groups.setdefault(task.group, {}).setdefault(task.name, [])
                names += task.runs
        return groups

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            if not self.looks_like(value):
                raise ValueError("expected runs of a task by name, or the result of one run")
            for task in _tasks_in(value, file.path):
                of_group = index.get(task.group, {})
                missing_runs = _missing_runs(task, of_group)
                for name in [*task.runs, *missing_runs]:
                    run = _run_of_task(task, name)
                    run.source, run.first = source, value
                    if "execution_result" in value and name in task.runs:
                        run.entries += as_list(document_at(file.path.with_name("messages.json")))
                    yield run


class _Task(msgspec.Struct, frozen=True):
    """The runs of a model on a task, by name."""

    name: str
    model: str
    service: str
    runs: Mapping[str, Any]

    @property
    def group(self) -> str:
        """The model and the service, whose tasks have the same runs."""
        return f"{self.model}/{self.service}"


def _tasks_in(document: Any, path: Path) -> Iterator[_Task]:
    """Yield the tasks of a document: one for each model, or the task of its run."""
    task_name = document.get("task_name")
    name = str(document.get("task", task_name))
    mcp = document.get("mcp")
    service = str(document.get("service", mcp))
    if "execution_result" in document:
        model_name = document.get("model_name")
        model = str(model_name or "")
        yield _Task(name, model, service, {path.parent.parent.name: document})
        return
    own_files = {str(document.get("model") or path.parent.name): document}
    models = as_map(document.get("models", own_files))
    for model, result in models.items():
        runs = as_map(result).get("runs")
        listed = {str(as_map(run).get("run")): run for run in as_list(runs)}
        yield _Task(name, model, service, listed or as_map(runs))


def _missing_runs(task: _Task, of_group: Mapping[str, list[str]]) -> list[str]:
    """Return the runs that only other tasks have, with the first document of a task."""
    names = of_group.get(task.name, [])
    if not names or names[0] not in task.runs:
        return []
    expected = {name for own_files in of_group.values() for name in own_files}
    return sorted(expected.difference(names))


def _find_error(run: Mapping[str, Any], result: Mapping[str, Any]) -> Any:
    """Return the error that ended a run; None where it ended by itself.

    An older ``meta.json`` keeps what the verifier said under the same key, and no
    ``verification_error``: that ended no run.
    """
    is_older_meta = "execution_result" in run and "verification_error" not in result
    if is_older_meta or is_true(result.get("success")):
        return None
    return result.get("error_message")


def _run_of_task(task: _Task, name: str) -> Run:
    """Build the run of a MCPMark task: success, usage and error, or that it is missing."""
    model = task.model or None
    run = Run(id=task.name, trial=name, entries=[], model=model)
    known = as_map(task.runs.get(name))
    result = as_map(known.get("execution_result", known))
    execution_time = known.get("execution_time")
    seconds = known.get("agent_execution_time", execution_time)
    token_usage = known.get("token_usage")
    run.usage = usage_in(token_usage, seconds)
    success = result.get("success")
    run.recorded = {"success": is_true(success)}
    turn_count = known.get("turn_count")
    run.facets = known_values(service=task.service, turns=turn_count)
    if result:
        error = _find_error(known, result)
        run.error = error or None
    else:
        run.error = f"{name} is not there"
        run.remarks = {"run_missing": 1}
    if run.error:
        run.ended = "error"
    return run
