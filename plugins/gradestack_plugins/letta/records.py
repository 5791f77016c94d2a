"""Results as samples: what was asked, what the agent did, and why a recorded run is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from gradestack import JSON, BadRecord, Expectation, Fault, Sample, Source, Status, replace
from gradestack.jsonio import compact
from gradestack_plugins.letta.messages import Trajectory, read_trajectory
from gradestack_plugins.readers.declared import Object, Text, convert_record
from gradestack_plugins.readers.own_rows import is_own_row, sample_of_row
from gradestack_plugins.readers.recorded import AMOUNTS, error_fault, grade_fault, shown_text

Identifier = int | str | None
Question = str | Annotated[list[str], msgspec.Meta(min_length=1)] | None
_VARIABLES = frozenset(("agent_args", "rubric_vars", "extra_vars"))
"""Objects of variables that may stand under ``metadata``; a prompt's are a facet, others none."""


class Task(msgspec.Struct, frozen=True):
    """A task: question and reference, as a row of a dataset or a result's ``sample`` has them."""

    sample_id: Identifier = None
    id: Identifier = None
    input: Question = None
    prompt: Question = None
    ground_truth: Any = None
    agent_args: Object = None
    rubric_vars: Object = None
    extra_vars: Object = None
    metadata: Object = None
    tags: Any = None

    @property
    def question(self) -> str | tuple[str, ...] | None:
        """The question of the user: one text, or one per turn."""
        if self.input is None:
            question = self.prompt
        else:
            question = self.input
        return tuple(question) if isinstance(question, list) else question

    @property
    def expected(self) -> Expectation:
        """The reference as expected text, and as expected label where it is one text.

        A list of texts (of several turns, any list) is one each; other values are JSON text.
        """
        truth = self.ground_truth
        has_turns = isinstance(self.question, tuple)
        if truth is None or truth == []:
            return Expectation()
        if isinstance(truth, list) and (has_turns or all(isinstance(one, str) for one in truth)):
            shown_texts = tuple(map(shown_text, truth))
            return Expectation(text=shown_texts)
        text = shown_text(truth)
        return Expectation(text=text, label=shown_text(truth))

    @property
    def facets(self) -> dict[str, JSON]:
        """The facets of samples: entries of ``metadata``, and ``tags``."""
        metadata = self.metadata or {}
        facets = {name: metadata[name] for name in metadata if name not in _VARIABLES}
        if variables := self.rubric_vars or metadata.get("rubric_vars"):
            facets["rubric_vars"] = variables
        if self.tags is not None:
            facets["tags"] = self.tags
        return facets


class Result(msgspec.Struct, frozen=True):
    """One result: a task, what was recorded of a run of it, and the grades it got."""

    sample: Task | None = None
    sample_id: Identifier = None
    model_name: Text = None
    model_handle: Text = None
    run: Identifier = None
    trajectory: list[list[dict[str, Any]] | dict[str, Any]] | None = None
    submission: Text = None
    agent_id: Text | msgspec.UnsetType = msgspec.UNSET
    agent_usage: Any = None
    usage: Any = None
    error: Any = None
    grade: Any = None
    grades: Object = None
    reward: Any = None


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a line has from its file."""

    run: int | str | None = None
    """Run of lines that name none."""
    input_name: str | None = None
    """Put before the run, where several inputs repeat each other's runs."""
    model: str | None = None
    """Model the file is named by."""
    unnamed: str | None = None
    """Model of results that name none, nor does their file."""
    tasks: Mapping[str, Task] = {}
    """By id, for lines that only name theirs."""


class Key(msgspec.Struct, frozen=True):
    """The key that tells a result from others."""

    id: Identifier
    model: str | None
    run: int | str | None


def key_of(result: Result, context: Context, *, is_own: bool) -> Key:
    """Return the key of a result; no model or run is given to a row of gradestack's without one."""
    sample = result.sample or Task()
    if sample.id is None:
        identifier = result.sample_id
    else:
        identifier = sample.id
    model = result.model_name or result.model_handle or context.model
    if result.run is None:
        run = context.run
    else:
        run = result.run
    if context.input_name is not None:
        if run is None:
            run = context.input_name
        else:
            run = f"{context.input_name}/{run}"
    if is_own:
        return Key(identifier, model, run)
    return Key(identifier, model or context.unnamed, 1 if run is None else run)


def sample_of(record: Any, source: Source, context: Context) -> Sample | BadRecord:
    """Return the sample of one result; a bad record where it has no usable id."""
    if not isinstance(record, dict):
        problem = f"expected a result (an object), found {compact(record)[:60]}"
        return BadRecord(source=source, reason=problem, native=record)
    is_own = is_own_row(record)
    result, remarks = convert_record(record, Result)
    key = key_of(result, context, is_own=is_own)
    if key.id is None:
        problem = "sample.id is missing (so is sample_id), or neither a text nor a whole number"
        return BadRecord(source=source, reason=problem, native=record)
    if isinstance(key.id, int):
        source = replace(source, id=key.id)
    if is_own:
        identifier = str(key.id)
        return replace(sample_of_row(record, identifier), run=key.run, source=source)
    task = result.sample or context.tasks.get(str(key.id), Task())
    trajectory = read_trajectory(result.trajectory or ())
    status, error = _status(result, trajectory)
    text = trajectory.text or result.submission or None
    if not result.grades and not trajectory.is_silent and grade_fault(result.grade) is not None:
        text = result.submission  # which is what a grader that broke down was given
    if result.agent_id is msgspec.UNSET:
        agent_id = None
    else:
        agent_id = result.agent_id
    if result.agent_usage is None:
        agent_usage = result.usage
    else:
        agent_usage = result.agent_usage
    recorded_values = _recorded_values(record, result, task)
    return Sample(
        id=str(key.id),
        model=key.model,
        run=key.run,
        input=task.question,
        turns=trajectory.turns,
        calls=trajectory.calls,
        text=text,
        expected=task.expected,
        status=status,
        error=error,
        agent_id=agent_id,
        agent_usage=agent_usage,
        facets=task.facets,
        recorded=recorded_values,
        remarks={**remarks, **trajectory.remarks},
        source=source,
    )


_RECORDED = ("grade", "grades", "submission", "submissions", "error", "memory_blocks", *AMOUNTS)
"""Keys of a result that are kept as they stand."""


def _recorded_values(record: Mapping[str, Any], result: Result, task: Task) -> dict[str, JSON]:
    """Return the recorded grades, costs and times of a result, and its task's metadata."""
    recorded = {name: record[name] for name in _RECORDED if record.get(name) is not None}
    if (reward := result.reward) is not None:
        recorded["reward"] = reward.get("score") if isinstance(reward, dict) else reward
    if task.metadata:
        recorded["metadata"] = task.metadata
    return recorded


_AFTERWARDS = ("extraction", "grading", "reward")
"""Categories of errors behind a conversation, which is whole all the same."""


def _status(result: Result, trajectory: Trajectory) -> tuple[Status, Fault | None]:
    """Return whether the recorded run ended in an error, and in which."""
    if result.error is not None:
        fault = error_fault(result.error)
        is_whole = fault.category in _AFTERWARDS and not trajectory.is_silent
        return (Status.OK, None) if is_whole else (Status.FAILED, fault)
    reason = grade_fault(result.grade)
    broke_off = reason is not None and reason.category == "target"
    has_answer = not trajectory.is_silent or bool(result.submission and not broke_off)
    if has_answer and result.agent_id is not None:
        return Status.OK, None
    what = "the recording names no agent" if has_answer else "the recorded trajectory is empty"
    return Status.FAILED, reason or Fault(category="target", code="target_error", message=what)
