"""Benchmarks that run every task several times: Terminal-Bench and MCPMark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from typing_extensions import override

from gradestack import Input, Inputs, RecordFile, Source, replace
from gradestack.jsonio import as_list, as_map
from gradestack_plugins.leaderboards.verdicts import (
    SURE,
    VerdictReader,
    document_at,
    is_true,
    only,
    spent,
    tokens,
)
from gradestack_plugins.readers.chat import word
from gradestack_plugins.readers.runs import Record, Run

_TRIAL: Final = frozenset({"task_id", "is_resolved", "failure_mode"})
_RUN_OF_ALL: Final = "results.json"
_ABOUT_RUN: Final = "run_metadata.json"


@attrs.frozen(kw_only=True)
class TerminalBench(VerdictReader):
    """Reads ``results.json`` of Terminal-Bench: of a run with all its trials, or of one trial.

    The id is the task's, the run the trial's name; ``recorded.resolved`` is the verdict. A trial
    whose verdict is null ended in an error and is not resolved, as its own ``n_unresolved`` and
    ``accuracy`` have it. The model, or the agent where none is named, is that of
    ``run_metadata.json`` beside the file. In a folder the files of single trials below the file of their run are read with that one.
    """

    version = "1"
    marks = (("results", "n_resolved", "n_unresolved"), ("trial_name", "is_resolved"))

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        trials = _trials_of(record)
        return SURE if trials and as_map(trials[0]).keys() >= _TRIAL else 0.0

    @classmethod
    @override
    def main_of(cls, path: Path) -> Path | None:
        return path.with_name(_RUN_OF_ALL) if path.name == _ABOUT_RUN else None

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        runs = [each.path for each in inputs.data if _holds_all_trials(each.path)]
        folders = {path.parent.resolve() for path in runs}
        own = tuple(
            given
            for given in inputs.data
            if given.path in runs or folders.isdisjoint(given.path.resolve().parents)
        )
        yield from super().files(replace(inputs, data=own), index)

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        about = as_map(document_at(file.path.with_name(_ABOUT_RUN)))
        for value, source in records:
            for place, trial in enumerate(_trials_of(value)):
                run = _of_trial(as_map(trial), about)
                run.source = replace(source, ordinal=source.ordinal + place)
                yield run


def _trials_of(record: Any) -> list[Any]:
    """Return the trials of a run, or the one that a record is."""
    if not isinstance(record, dict):
        return []
    return list(as_list(record.get("results"))) or [record] * ("is_resolved" in record)


def _holds_all_trials(path: Path) -> bool:
    """Return whether a file has the results of a run, beside which those of its trials stand."""
    return path.name == _RUN_OF_ALL and "results" in as_map(document_at(path))


def _of_trial(trial: Mapping[str, Any], about: Mapping[str, Any]) -> Run:
    mode = word(dict(trial), "failure_mode")
    ended = {"agent_timeout": "limit:time", "test_timeout": "limit:time"}.get(mode)
    has_no_verdict = trial.get("is_resolved") is None
    return Run(
        id=str(trial.get("task_id") or trial.get("trial_name")),
        trial=word(dict(trial), "trial_name") or None,
        entries=[],
        first=dict(trial),
        model=word(dict(about), "model_name") or word(dict(about), "agent_name") or None,
        usage=tokens(trial, "total_input_tokens", "total_output_tokens"),
        recorded={"resolved": is_true(trial.get("is_resolved"))},
        ended=ended or ("error" if has_no_verdict else None),
        error=(mode or "no verdict") if has_no_verdict else None,
        facets=only({"failure_mode": mode, "agent_name": about.get("agent_name")}),
        remarks={"verdict_is_null": 1} if has_no_verdict else {},
    )


@attrs.frozen(kw_only=True)
class McpMark(VerdictReader):
    """Reads results of MCPMark: ``MODEL/TASK.json`` with runs by name, or ``meta.json`` of a run.

    The id is the task's, ``run`` the name of the run (``run-1``). A run that other tasks of the
    same model and service have and one has not, or that is null, is a run that failed, as the
    benchmark's aggregator counts it. ``messages.json`` beside ``meta.json`` is the conversation of
    that run.
    """

    version = "1"
    marks = (("service", "model", "runs"), ("task_name", "execution_result", "turn_count"))

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        if not isinstance(record, dict):
            return 0.0
        named = "service" in record and isinstance(record.get("runs"), dict)
        is_meta = "success" in as_map(record.get("execution_result")) and "task_name" in record
        return SURE if named or is_meta else 0.0

    @classmethod
    @override
    def main_of(cls, path: Path) -> Path | None:
        return path.with_name("meta.json") if path.name == "messages.json" else None

    @override
    def index(self, inputs: Inputs) -> dict[str, list[str]]:
        """Return the names of runs by model and service."""
        found: dict[str, set[str]] = {}
        for given in inputs.data:
            document = document_at(given.path)
            if self.looks_like(document):
                names = found.setdefault(_group_of(document, given.path), set())
                names.update(_runs_in(document, given.path))
        return {group: sorted(names) for group, names in found.items()}

    @override
    def runs_of(self, records: Iterator[Record], file: Input, index: Any) -> Iterator[Run]:
        for value, source in records:
            if not self.looks_like(value):
                raise ValueError("expected runs of a task by name, or what was met of one run")
            group, known = _group_of(value, file.path), _runs_in(value, file.path)
            names: Iterable[str] = known
            if "runs" in value:
                names = [*known, *(name for name in index.get(group, ()) if name not in known)]
            for name in names:
                run = _of_run(as_map(known.get(name)), name, value)
                run.source, run.first = source, value
                if "runs" not in value:
                    run.entries = list(as_list(document_at(file.path.with_name("messages.json"))))
                    run.source = Source(file=file.shown, ordinal=source.ordinal)
                yield run


def _group_of(document: Any, path: Path) -> str:
    """Return what runs share that are to be as many: the model and the service."""
    if "runs" in document:
        return f"{document.get('model') or path.parent.name}/{document.get('service')}"
    return f"{document.get('model_name')}/{document.get('mcp')}"


def _runs_in(document: Any, path: Path) -> dict[str, Any]:
    """Return the runs of a document by name; that of one run has the name of its folder."""
    if "runs" in document:
        return dict(document["runs"])
    return {path.parent.parent.name: document}


def _of_run(known: Mapping[str, Any], name: str, document: Mapping[str, Any]) -> Run:
    about = as_map(known.get("execution_result", known))
    error = about.get("error_message") if "verification_error" in about else None
    if not about:
        error = f"{name} is not there"
    seconds = known.get("agent_execution_time", known.get("execution_time"))
    task = document.get("task", document.get("task_name"))
    turns = known.get("turn_count")
    return Run(
        id=str(task),
        trial=name,
        entries=[],
        model=str(document.get("model", document.get("model_name")) or "") or None,
        usage=spent(known.get("token_usage"), seconds),
        recorded={"success": is_true(about.get("success"))},
        ended="error" if error else None,
        error=error or None,
        facets=only({"service": document.get("service", document.get("mcp")), "turns": turns}),
        remarks={} if about else {"run_missing": 1},
    )
