"""Scenario output files of OrchestrationBench.

A directory of ``*_out.json``, or single such files.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import attrs
import msgspec
import yaml
from attrs.validators import matches_re
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    ConfigError,
    DataError,
    Expectation,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    ToolSpec,
    replace,
    yaml_data,
)
from gradestack.jsonio import (
    JsonProblem,
    Range,
    as_list,
    as_map,
    compact,
    first_records,
    loads,
    open_regular,
    read_regular,
    read_text,
)
from gradestack_plugins.orchestrationbench.decisions import gold_step, is_case
from gradestack_plugins.orchestrationbench.graphs import Weights
from gradestack_plugins.orchestrationbench.plans import gold_plans, parse_plan
from gradestack_plugins.orchestrationbench.records import (
    EMPTY,
    PLAN_MARK,
    RUN_PREFIX,
    UNREADABLE,
    Label,
    Setting,
    TrialVerdicts,
    Turn,
    Verdicts,
    data_fault,
    read_trial,
    read_verdicts,
    verdicts_for,
)
from gradestack_plugins.readers.chat import made_calls, messages, text_of, tool_spec
from gradestack_plugins.readers.chat.unread import count_unread

_is_file_name = matches_re(r"(?!\.\.?$)[^/\\]+")
"""Refuse a pattern that could lead to another folder: directories are searched anyway."""


class AgentCard(msgspec.Struct):
    """Tools of an agent."""

    tools: list[Any]


def read_cards(path: Path) -> tuple[ToolSpec, ...]:
    """Return the tools of all agent cards in a directory (or of one card), by file name.

    A later equal name wins.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"agent cards {path}: no *.json file in it")
    tools: dict[str, ToolSpec] = {}
    for file in files:
        try:
            card = msgspec.convert(loads(read_regular(file)), AgentCard)
        except (OSError, JsonProblem, ValueError) as error:
            raise DataError(f"agent card {file}: {error}") from error
        specs = filter(None, map(tool_spec, card.tools))
        tools |= {spec.name: spec for spec in specs}
    return tuple(tools.values())


Weight = Annotated[float, msgspec.Meta(ge=0, le=2)]


class EvaluationParams(msgspec.Struct):
    """Prices of plan steps that differ, in the benchmark's evaluation YAML."""

    agent_change_weight: Weight = 0.8
    status_change_weight: Weight = 0.5


class EvaluationConfig(msgspec.Struct):
    """The benchmark's evaluation YAML, as far as grading reads it."""

    evaluation_params: EvaluationParams | None = None
    judge: Any = None


def read_config(path: Path) -> Setting:
    """Return weights and judge of the benchmark's evaluation YAML."""
    try:
        config = msgspec.convert(yaml_data(read_text(path)) or {}, EvaluationConfig)
    except (OSError, RecursionError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"evaluation config {path}: {error}") from error
    params = config.evaluation_params or EvaluationParams()
    weights = Weights(params.agent_change_weight, params.status_change_weight)
    is_judged = {"model", "generation_params"} <= as_map(config.judge).keys()
    return Setting(weights=weights, judge_section=is_judged)


def gold_expectation(label: Label) -> Expectation:
    """Return all gold calls (those that can be read) and gold plans of a label."""
    steps = [gold_step(label, name) for name in label if is_case(label, name)]
    calls: Any = tuple(call for step in steps for call in step.gold_calls)
    plans = {str(step): text for step, text in gold_plans(label).items()}
    return Expectation(calls=calls, plan=plans or None)


def user_turns(label: Label) -> str | tuple[str, ...] | None:
    """Return the user's words in a label: a text, a tuple for several turns, None for none."""
    texts = tuple(text_of(turn.content) for turn in label.values() if turn.role == "user")
    return texts if len(texts) > 1 else next(iter(texts), None)


@attrs.frozen(kw_only=True)
class _WholeFiles(RecordReader):
    """Base of readers of whole files, given or anywhere in a directory."""

    pattern: str

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for entry in inputs.data:
            for name in self._names(entry) if entry.path.is_dir() else [""]:
                file, ranges = entry.below(name), (Range(),)
                yield RecordFile(input=entry, file=file, ranges=ranges, most=2, extra=name)

    def _names(self, entry: Input) -> list[str]:
        """Return the files of a directory, sorted; hidden ones are left out."""
        found = glob.glob(f"**/{self.pattern}", root_dir=entry.path, recursive=True)  # noqa: PTH207
        names = [name.replace(os.sep, "/") for name in found if (entry.path / name).is_file()]
        if not names:
            why = f"no file named {self.pattern} in this directory or below"
            raise DataError(f"{entry.shown}: {why}")
        return sorted(names)


_SUFFIX = "_out.json"
_SNIFFED_ENTRIES = 5_000
"""Folders and files looked at before a directory is taken not to hold any scenario output."""
NO_RUN = "history: expected an object with at least one run"
_RUN_NUMBER = re.compile(re.escape(RUN_PREFIX) + r"([1-9][0-9]{0,8})")


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """Side files, which are read once."""

    tools: tuple[ToolSpec, ...] | None = None
    setting: Setting = msgspec.field(default_factory=Setting)
    verdicts: Verdicts | None = None


@attrs.frozen(kw_only=True)
class OrchestrationBenchReader(_WholeFiles):
    """One sample per trial: id = scenario, run = number of the trial.

    A directory holds the output of one model and its name is the model's; files given one by one
    have none. A file that cannot be read, and one without any run, is one failed sample. Facets:
    ``file`` (path as shown, which the family's figures are grouped by) and ``trial`` (name of the
    run).
    """

    example_file = "results/MODEL/1.json"
    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "run",
            "input",
            "turns",
            "calls",
            "text",
            "plan",
            "tools",
            "expected",
            "agent_usage",
            "facets",
            "source",
            "native",
        }
    )
    stack: ClassVar[str | None] = "orchestrationbench"
    takes_directories: ClassVar[bool] = True
    keeps_copies: ClassVar[bool] = True

    pattern: str = attrs.field(default="*_out.json", validator=_is_file_name)
    """File names looked for in a directory and all below it."""
    agent_cards: Path | None = None
    """Directory of agent cards (or one card): the tools every run had."""
    config: Path | None = None
    """The benchmark's evaluation YAML.

    Without it weights are 0.8 and 0.5.
    """
    verdicts: Path | None = None
    """Recorded judge verdicts, JSON: file -> trial -> step -> argument -> counts."""

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            return 0.9 if _holds_output(path) else 0.0
        has_turns = b'"sub_agent_history"' in head or b'"main_agent_history"' in head
        if not has_turns or b'"history"' not in head or not _begins_with_history(head):
            return 0.0
        return 0.95 if path.name.endswith(_SUFFIX) else 0.8

    @override
    def index(self, inputs: Inputs) -> Index:
        tools = None if self.agent_cards is None else read_cards(self.agent_cards)
        setting = Setting() if self.config is None else read_config(self.config)
        verdicts = None if self.verdicts is None else read_verdicts(self.verdicts)
        return Index(tools=tools, setting=setting, verdicts=verdicts)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        relative = str(shard.extra or "")
        file = shard.input.below(relative)
        data, problem = load_output(file.path)
        history, usage = as_map(data).get("history"), as_map(data).get("usage")
        common = Sample(
            id=_scenario(data, file.path),
            model=shard.input.name if relative else None,
            facets={"file": file.shown},
            source=Source(file=file.shown),
        )
        if problem or not isinstance(history, dict) or not history:
            fault = data_fault(UNREADABLE if problem else EMPTY, problem or NO_RUN)
            yield replace(common, status=Status.FAILED, error=fault)
            return
        common = replace(common, tools=index.tools, agent_usage=usage, source=None)
        samples = []
        for name, run in history.items():
            verdicts = verdicts_for(index.verdicts, relative or file.path.name, name)
            number = _RUN_NUMBER.fullmatch(name)
            sample = replace(
                common,
                run=int(number.group(1)) if number else name,
                facets={**common.facets, "trial": name},
            )
            samples.append(_trial_sample(sample, run, index.setting, verdicts))
        for ordinal, record in enumerate(self.identified(samples, data)):
            yield replace(record, source=Source(file=file.shown, ordinal=ordinal))


def _trial_sample(
    common: Sample, run: Any, setting: Setting, verdicts: TrialVerdicts | None
) -> Sample:
    """Return one trial as one sample, failed where it is no object or has no label."""
    history = as_map(run).get("sub_agent_history")
    turns = messages(history)
    calls = made_calls(turns) if isinstance(history, list) else None
    unread = count_unread(as_list(history), has_calls=bool(calls))
    texts = [text for turn in turns if (text := text_of(turn.content))]
    sample = replace(
        common,
        turns=(turns,) if turns else (),
        calls=None if unread else calls,
        text=texts[-1] if texts else None,
        remarks=unread,
    )
    try:
        trial, remarks = read_trial(run, setting, verdicts)
    except ValueError as error:
        fault = data_fault("run_unreadable", f"expected a run with a label object: {error}")
        return replace(sample, status=Status.FAILED, error=fault)
    plans = {str(answer.step_id): answer.content for answer in trial.plans}
    return replace(
        sample,
        input=user_turns(trial.label),
        plan=plans or None,
        expected=gold_expectation(trial.label),
        remarks={**unread, **remarks},
        native=trial,
    )


def load_output(path: Path) -> tuple[JSON, str]:
    """Return the content of a scenario output file, and why it cannot be graded ("" where it can)."""
    try:
        data = loads(read_regular(path))
    except OSError as error:
        return None, error.strerror or "cannot be read"
    except JsonProblem as error:
        return None, str(error)
    return data, "" if data else f"the file holds nothing to grade, only {compact(data)}"


def _begins_with_history(head: bytes) -> bool:
    """Return whether a file's first record, as far as its beginning holds one whole, has runs.

    It may be a line of another format, or a list.
    """
    for element, _ in first_records(head, 1):
        if element.problem is None:
            return isinstance(element.value, dict) and "history" in element.value
    return True


def _scenario(data: JSON, path: Path) -> str:
    named = as_map(data).get("scenario_id")
    if isinstance(named, str | int) and not isinstance(named, bool) and named != "":
        return str(named)
    return path.name.removesuffix(_SUFFIX).removesuffix(".json")


def _holds_output(directory: Path) -> bool:
    looked = 0
    for _, folders, files in os.walk(directory):
        folders.sort()
        looked += 1 + len(files)
        if any(name.endswith(_SUFFIX) for name in files):
            return True
        if looked > _SNIFFED_ENTRIES:
            break
    return False


class StepData(msgspec.Struct):
    """Words of a step."""

    content: str


class ScenarioStep(msgspec.Struct):
    """A step of a scenario."""

    step_id: int | str
    data: StepData
    workflow_id: Any = None
    agent: Any = None
    agent_type: Any = None


class Scenario(msgspec.Struct):
    """A scenario YAML file."""

    steps: list[ScenarioStep]


_ROLES = {"main": "assistant", "user": "user"}
"""Agent that is no sub-agent -> its role."""


def label_of(steps: Iterable[ScenarioStep]) -> Label:
    """Return the ``label`` of scenario steps, as scenario output files have it, without results."""
    label: dict[str, Turn] = {}
    for step in steps:
        number, text = str(step.step_id), step.data.content
        if step.workflow_id == "system":
            label[number] = Turn(role="system", content=text)
        elif text.startswith(PLAN_MARK):
            label[number] = Turn(role="assistant", content=text)
        elif step.agent_type not in _ROLES:
            label[number] = Turn(role="assistant", content=text, agent_id=step.agent)
            if "tool" in text:
                label[f"{number}-1"] = replace(label[number], tool_calls=_calls_in(text))
        elif step.agent in _ROLES:
            label[number] = Turn(role=_ROLES[step.agent], content=text)
    return label


def _calls_in(text: str) -> Any:
    """Return the calls that a turn's text is about, unset where it cannot be read."""
    try:
        said = yaml_data(text.strip())
        name, arguments = said.get("tool", "tool_name"), said.get("parameters")
        usual = {"tool": name, "arguments": said.get("arguments", arguments) or {}}
        calls = []
        for call in said.get("tool_call") or [usual]:
            text = json.dumps(call.get("arguments", {}), ensure_ascii=False)
            calls.append({"function": {"name": call.get("tool", name), "arguments": text}})
    except Exception:  # noqa: BLE001 - whatever the text is, it is then kept without calls
        return msgspec.UNSET
    return calls


def unreadable_steps(label: Label) -> list[str]:
    """Return the steps of a label whose gold call or gold plan cannot be read."""
    steps = [name for name in label if is_case(label, name) and gold_step(label, name).fault]
    for step, text in gold_plans(label).items():
        if text.startswith(PLAN_MARK) and not parse_plan(text).workflows:
            steps.append(str(step))
    return steps


@attrs.frozen(kw_only=True)
class ScenarioReader(_WholeFiles):
    """Gold calls and plans of scenario YAML files, as a dataset for whatever recorded the runs.

    One sample per scenario (id = file stem). ``recorded.unreadable_steps`` lists the steps whose
    gold text does not parse; they carry no expectation.
    """

    example_file = "data/EN/1.yaml"
    provides: ClassVar[frozenset[str]] = frozenset(
        {"input", "expected", "recorded", "facets", "source"}
    )

    pattern: str = attrs.field(default="*.yaml", validator=_is_file_name)
    """File names looked for in a directory and all below it."""

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            path = min(path.glob("*.yaml"), default=path)
            if path.is_file():
                with open_regular(path) as file:
                    head = file.read(65_536)
        has_steps = all(key in head for key in (b"steps:", b"workflow_id:", b"agent_type:"))
        return 0.85 if has_steps and path.suffix in (".yaml", ".yml") else 0.0

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        file = shard.input.below(str(shard.extra or ""))
        path, source = file.path, Source(file=file.shown)
        try:
            data = yaml_data(read_text(path))
            label = label_of(msgspec.convert(data, Scenario).steps)
        # odd YAML raises odd things (dates that do not exist, deep nesting)
        except Exception as error:  # noqa: BLE001
            reason = f"not a scenario: {type(error).__name__}: {error}"
            yield BadRecord(source=source, reason=reason)
            return
        sample = Sample(
            id=path.stem,
            input=user_turns(label),
            expected=gold_expectation(label),
            recorded={"unreadable_steps": unreadable_steps(label)},
            facets={"file": source.file},
            source=source,
        )
        yield from self.identified((sample,), data)
