"""Scenario output files of OrchestrationBench.

A directory of ``*_out.json``, or single such files.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import msgspec
import yaml
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    ConfigError,
    DataError,
    Expectation,
    ExpectedCall,
    Fault,
    Input,
    Inputs,
    Profile,
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
from gradestack_plugins.orchestrationbench.decisions import (
    EMPTY,
    PLAN_MARK,
    RUN_PREFIX,
    UNREADABLE,
    Setting,
    Trial,
    Verdicts,
    gold_steps,
    gold_turn,
    read_verdicts,
    steps_of,
    verdicts_for,
)
from gradestack_plugins.orchestrationbench.plans import gold_plans, parse_plan, step_number
from gradestack_plugins.readers.chat import made_calls, messages, text_of, tool_calls, tool_spec
from gradestack_plugins.readers.chat.unread import count_unread


def _check_pattern(pattern: str) -> None:
    """Refuse what is no pattern of a file's name, as it could lead to another folder."""
    if not pattern or "/" in pattern or "\\" in pattern or pattern in {".", ".."}:
        raise ValueError(
            f"pattern {pattern!r}: expected a file name with wildcards; directories are searched "
            "anyway"
        )


def read_cards(path: Path) -> tuple[ToolSpec, ...]:
    """Return the tools of all agent cards in a directory (or of one card), by file name.

    A later equal name wins.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    tools: dict[str, ToolSpec] = {}
    problems = [] if files else ["no *.json file in it"]
    for file in files:
        try:
            card = loads(read_regular(file))
        except (OSError, JsonProblem) as error:
            problems.append(f"{file.name}: {error}")
            continue
        listed = as_map(card).get("tools")
        if not isinstance(listed, list):
            problems.append(f"{file.name}: expected an object with a list of tools")
            continue
        tools.update(
            {spec.name: spec for entry in listed if (spec := tool_spec(entry)) is not None}
        )
    if problems:
        raise DataError(f"agent cards {path} cannot be used", *problems)
    return tuple(tools.values())


def read_config(path: Path) -> Setting:
    """Return what the benchmark's evaluation YAML says about weights and judge."""
    try:
        data = yaml_data(read_text(path))
    except (OSError, RecursionError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"evaluation config {path}: {error}") from error
    if data is not None and not isinstance(data, Mapping):
        raise ConfigError(
            f"evaluation config {path}: expected a mapping, found {compact(data)[:60]}"
        )
    params, judge = as_map(as_map(data).get("evaluation_params")), as_map(as_map(data).get("judge"))
    weights: dict[str, float] = {}
    problems = []
    for name in ("agent", "status"):
        value = params.get(f"{name}_change_weight")
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2:
            weights[f"{name}_weight"] = float(value)
        elif value is not None:
            found = compact(value)[:60]
            problems.append(
                f"evaluation_params.{name}_change_weight: expected a number from 0 to 2, found "
                f"{found}"
            )
    if problems:
        raise ConfigError(f"evaluation config {path}", *problems)
    return Setting(**weights, judge_section="model" in judge and "generation_params" in judge)


def trial_sample(common: Sample, trial: Trial) -> Sample:
    """Return one trial as one sample; a run that is no object, or has no label, is a failed one."""
    label, history = trial.part("label"), trial.part("sub_agent_history")
    sound = isinstance(label, dict)
    turns = messages(history)
    calls = made_calls(turns) if isinstance(history, list) else None
    unread = count_unread(as_list(history), has_calls=bool(calls))
    texts = [text for turn in turns if (text := text_of(turn.content))]
    return replace(
        common,
        input=user_turns(label),
        turns=(turns,) if turns else (),
        calls=None if unread else calls,
        text=texts[-1] if texts else None,
        plan=_plans(trial.part("main_agent_history")) or None,
        expected=expectation(label),
        status=Status.OK if sound else Status.FAILED,
        error=None if sound else _fault("run_unreadable", "expected a run with a label object"),
        remarks={**common.remarks, **unread},
        native=trial,
    )


def _fault(code: str, message: str) -> Fault:
    return Fault(category="data", code=code, message=message)


def expectation(label: Any) -> Expectation:
    """Return all gold calls (those that can be read) and gold plans of a label.

    Nothing when it is no object.
    """
    if not isinstance(label, dict):
        return Expectation()
    calls = tuple(
        call
        for step in in_order(gold_steps(label))
        for call in step_expectation(label, step).calls or ()
    )
    plans = {str(step): text for step, text in gold_plans(label).items()}
    return Expectation(calls=calls, plan=plans or None)


def step_expectation(label: Mapping[str, Any], step: str) -> Expectation:
    """Return the gold calls, decision and text of a sub-agent's step.

    Nothing when its gold turn cannot be read.
    """
    gold, calls, text, fault = gold_turn(label, step)
    if fault is not None:
        return Expectation()
    known = text if isinstance(text, str) else None
    return Expectation(calls=tuple(map(ExpectedCall.of, calls)), label=gold, text=known)


def step_samples(common: Sample, trial: Trial) -> Iterator[Sample]:
    """Yield one sample per step.

    ``scenario/step``, predicted ones first in their order, then those not predicted.
    """

    def sample(step: str, **fields: Any) -> Sample:
        facets = {**common.facets, "step": step}
        return replace(
            common,
            id=f"{common.id}/{step}",
            cluster=common.id,
            facets=facets,
            agent_usage=None,
            **fields,
        )

    known, history = as_map(trial.part("label")), trial.part("sub_agent_history")
    steps = steps_of(known, history, "documented")
    seen = {step.id for step in steps}
    for step, entry in zip(steps, as_list(history), strict=True):
        calls = tool_calls(as_map(entry).get("tool_calls"))
        unread = count_unread([entry], has_calls=bool(calls))
        yield sample(
            step.id,
            calls=None if unread else calls,
            remarks={**common.remarks, **unread},
            label=step.predicted,
            text=step.text if isinstance(step.text, str) else None,
            expected=Expectation() if step.fault else step_expectation(known, step.id),
            status=Status.FAILED if step.fault else Status.OK,
            error=step.fault,
            agent_id=step.agent if isinstance(step.agent, str) else None,
        )
    for name in in_order([name for name in gold_steps(known) if name not in seen]):
        yield sample(name, expected=step_expectation(known, name), status=Status.MISSING)
    predicted = _plans(trial.part("main_agent_history"))
    for name, text in ((str(number), text) for number, text in gold_plans(known).items()):
        status = Status.OK if name in predicted else Status.MISSING
        yield sample(name, plan=predicted.get(name), expected=Expectation(plan=text), status=status)


def user_turns(label: Any) -> str | tuple[str, ...] | None:
    """Return what the user says in a label: a text, a tuple for several turns, None for none."""
    turns = as_map(label)
    spoken = [key for key, turn in turns.items() if as_map(turn).get("role") == "user"]
    texts = tuple(text_of(turns[key].get("content")) for key in in_order(spoken))
    return None if not texts else texts[0] if len(texts) == 1 else texts


def in_order(steps: list[str]) -> list[str]:
    """Return step keys by number, those without one last, as they came."""
    return sorted(steps, key=lambda key: (step_number(key) is None, step_number(key) or 0))


def _plans(history: Any) -> dict[str, JSON]:
    entries = [as_map(entry) for entry in as_list(history)]
    numbered = [(step_number(entry.get("step_id")), entry) for entry in entries]
    return {str(number): entry.get("content") for number, entry in numbered if number is not None}


def whole_file(entry: Input, relative: str) -> RecordFile:
    """Return a file, of a directory or the input itself, as one shard."""
    return RecordFile(
        input=entry, file=entry.below(relative), ranges=(Range(),), most=2, extra=relative
    )


_SUFFIX = "_out.json"
_SNIFFED_ENTRIES = 5_000
"""Folders and files looked at before a directory is taken not to hold any scenario output."""
_RUN_NUMBER = re.compile(re.escape(RUN_PREFIX) + r"([1-9][0-9]{0,8})")


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """What is read once for all files."""

    tools: tuple[ToolSpec, ...] | None = None
    setting: Setting = msgspec.field(default_factory=Setting)
    verdicts: Verdicts | None = None


@attrs.frozen(kw_only=True)
class OrchestrationBenchReader(RecordReader):
    """One sample per trial: id = scenario, run = number of the trial.

    Or one per step, id = ``scenario/step``.

    A directory holds the output of one model and its name is the model's; files given one by one
    have none. A file that cannot be read, and one without any run, is one failed sample. Facets:
    ``file`` (path as shown, which the family's figures are grouped by) and ``trial`` (name of the
    run), with ``unit: step`` also ``step``.

    In ``upstream`` a file must be UTF-8 without byte-order mark, as for the original.
    """

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            *(
                "model",
                "run",
                "input",
                "turns",
                "calls",
                "label",
                "text",
                "plan",
                "tools",
                "expected",
            ),
            *("agent_id", "agent_usage", "facets", "source", "native"),
        }
    )
    stack: ClassVar[str | None] = "orchestrationbench"
    takes_directories: ClassVar[bool] = True
    keeps_copies: ClassVar[bool] = True

    profile: Profile = "documented"
    pattern: str = "*_out.json"
    """File names looked for in a directory and all below it."""
    agent_cards: Path | None = None
    """Directory of agent cards (or one card): the tools every run had."""
    config: Path | None = None
    """The benchmark's evaluation YAML.

    Without it the judge is skipped and weights are 0.8 and 0.5.
    """
    verdicts: Path | None = None
    """Recorded judge verdicts, JSON: file -> trial -> step -> argument -> counts."""
    unit: Literal["trial", "step"] = "trial"
    """What one sample is."""

    def __attrs_post_init__(self) -> None:
        _check_pattern(self.pattern)

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            return 0.9 if _holds_output(path) else 0.0
        named = b'"history"' in head and any(
            key in head for key in (b'"sub_agent_history"', b'"main_agent_history"')
        )
        if not named or _is_followed(head):
            return 0.0
        return 0.95 if path.name.endswith(_SUFFIX) else 0.8

    @override
    def index(self, inputs: Inputs) -> Index:
        return Index(
            tools=None if self.agent_cards is None else read_cards(self.agent_cards),
            setting=Setting() if self.config is None else read_config(self.config),
            verdicts=None if self.verdicts is None else read_verdicts(self.verdicts),
        )

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for entry in inputs.data:
            if not entry.path.is_dir():
                yield whole_file(entry, "")
                continue
            # Not Path.rglob: hidden files and directories are left out, as the original does.
            found = glob.glob(f"**/{self.pattern}", root_dir=entry.path, recursive=True)  # noqa: PTH207
            names = sorted(
                name.replace(os.sep, "/") for name in found if (entry.path / name).is_file()
            )
            if not names:
                raise DataError(
                    f"{entry.shown}: no file named {self.pattern} in this directory or below"
                )
            yield from (whole_file(entry, name) for name in names)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        relative = str(shard.extra or "")
        file = shard.input.below(relative)
        path, shown = file.path, file.shown
        model = shard.input.name if relative else None
        data, problem = self._load(path)
        scenario, history = _scenario(data, path), as_map(data).get("history")
        code = UNREADABLE if problem else EMPTY
        if problem or not isinstance(history, dict) or not history:
            yield Sample(
                id=scenario,
                model=model,
                status=Status.FAILED,
                error=_fault(code, problem or "history: expected an object with at least one run"),
                facets={"file": shown},
                source=Source(file=shown),
            )
            return
        expected = {f"{RUN_PREFIX}{number}" for number in range(1, len(history) + 1)}
        ordinal = 0
        for name, run in history.items():
            trial = Trial(
                name=name,
                run=run,
                planned=name in expected,
                setting=index.setting,
                verdicts=None
                if index.verdicts is None
                else verdicts_for(index.verdicts, relative or path.name, name),
            )
            number = _RUN_NUMBER.fullmatch(name)
            common = Sample(
                id=scenario,
                model=model,
                run=int(number.group(1)) if number else name,
                tools=index.tools,
                agent_usage=data.get("usage"),
                facets={"file": shown, "trial": name},
            )
            samples = (
                [trial_sample(common, trial)]
                if self.unit == "trial"
                else list(step_samples(common, trial))
            )
            for sample in samples if self.ids is None else self._identified(samples, data):
                yield replace(sample, source=Source(file=shown, ordinal=ordinal))
                ordinal += 1

    def _identified(self, samples: Sequence[Sample], data: JSON) -> Iterator[Sample | BadRecord]:
        for given, found in zip(samples, self.identified(samples, data), strict=True):
            if isinstance(found, BadRecord):
                yield found
            else:
                step = given.facets.get("step")
                moved = self.unit == "step" and found.id != given.id
                yield replace(found, id=f"{found.id}/{step}", cluster=found.id) if moved else found

    def _load(self, path: Path) -> tuple[JSON, str]:
        try:
            raw = read_regular(path)
            data = loads(raw.decode("utf-8") if self.profile == "upstream" else raw)
        except (OSError, JsonProblem, UnicodeDecodeError) as error:
            return None, error.strerror or "cannot be read" if isinstance(error, OSError) else str(
                error
            )
        return data, "" if data else f"the file holds nothing to grade, only {compact(data)}"


def _is_followed(head: bytes) -> bool:
    """Return whether a file begins with a record of its own, such as a line of another format, or
    with a list.
    """
    for first, _ in first_records(head, 1):
        return first.problem is None and not (
            isinstance(first.value, dict) and "history" in first.value
        )
    return False


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
        if (found := any(name.endswith(_SUFFIX) for name in files)) or looked > _SNIFFED_ENTRIES:
            return found
    return False


Label = dict[str, dict[str, JSON]]


def label_of(steps: Any) -> Label:
    """Return the ``label`` of scenario steps, as scenario output files carry it."""
    label: Label = {}
    for position, step in enumerate(steps if isinstance(steps, list) else [steps], start=1):
        content, number = (
            as_map(as_map(step).get("data")).get("content"),
            as_map(step).get("step_id"),
        )
        if (
            not isinstance(content, str)
            or isinstance(number, bool)
            or not isinstance(number, int | str)
        ):
            raise ValueError(
                f"step {position}: expected an object with a step_id and a text in data.content"
            )
        label.update(_turns(str(number), step, content))
    return label


def _turns(number: str, step: Mapping[str, Any], content: str) -> Label:
    kind, agent = step.get("agent_type"), step.get("agent")
    if step.get("workflow_id") == "system":
        return {number: {"role": "system", "content": content}}
    if content.startswith(PLAN_MARK):
        return {number: {"role": "assistant", "content": content}}
    if kind in ("main", "user"):
        role = {"main": "assistant", "user": "user"}.get(str(agent))
        return {number: {"role": role, "content": content}} if role else {}
    turn: Label = {number: {"role": "assistant", "content": content, "agent_id": agent}}
    return turn | _call_turns(number, agent, content) if "tool" in content else turn


def _call_turns(number: str, agent: JSON, content: str) -> Label:
    try:
        read = yaml_data(content.strip())
        calls = [
            (call.get("tool", read.get("tool", "tool_name")), call.get("arguments", {}))
            for call in read.get("tool_call") or []
        ]
        if not calls:
            arguments = read["arguments"] if "arguments" in read else read.get("parameters", {})
            calls = [(read.get("tool", "tool_name"), arguments or {})]
        listed = [
            _call(f"call_{number}_{place}", *call) for place, call in enumerate(calls, start=1)
        ]
    # whatever the text is, the converter then keeps it without calls
    except Exception:  # noqa: BLE001
        return {f"{number}-1": {"role": "assistant", "agent_id": agent, "content": content}}
    first = listed[0]
    return {
        f"{number}-1": {
            "role": "assistant",
            "agent_id": agent,
            "content": "",
            "tool_calls": listed,
        },
        f"{number}-2": {
            "role": "tool",
            "agent_id": agent,
            "tool_call_id": first["id"],
            "content": read.get("tool_call_result", ""),
            "name": first["function"]["name"],
        },
    }


def _call(identifier: str, name: JSON, arguments: JSON) -> dict[str, JSON]:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function", "id": identifier, "function": {"name": name, "arguments": text}}


def unreadable_steps(label: Label) -> list[str]:
    """Return the steps of a label whose gold call or gold plan cannot be read."""
    calls = [step for step in in_order(gold_steps(label)) if gold_turn(label, step)[3] is not None]
    plans = [
        str(step)
        for step, text in gold_plans(label).items()
        if text.startswith(PLAN_MARK) and not parse_plan(text, "documented").workflows
    ]
    return in_order([*calls, *plans])


@attrs.frozen(kw_only=True)
class ScenarioReader(RecordReader):
    """Gold calls and plans of scenario YAML files, as a dataset for whatever recorded the runs.

    One sample per scenario (id = file stem), or with ``unit: step`` one per sub-agent step and plan
    (``scenario/step``). ``recorded.unreadable_steps`` lists the steps whose gold text does not
    parse; they carry no expectation.
    """

    provides: ClassVar[frozenset[str]] = frozenset(
        {"input", "expected", "recorded", "facets", "source"}
    )

    pattern: str = "*.yaml"
    """File names looked for in a directory."""
    unit: Literal["scenario", "step"] = "scenario"
    """What one sample is."""

    def __attrs_post_init__(self) -> None:
        _check_pattern(self.pattern)

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            first = next(iter(sorted(path.glob("*.yaml"))), None)
            if first is None or not first.is_file():
                return 0.0
            with open_regular(first) as file:
                return 0.85 if _looks_right(file.read(65_536)) else 0.0
        return 0.85 if path.suffix in (".yaml", ".yml") and _looks_right(head) else 0.0

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for entry in inputs.data:
            names = (
                sorted(path.name for path in entry.path.glob(self.pattern))
                if entry.path.is_dir()
                else [""]
            )
            if not names:
                raise DataError(f"{entry.shown}: no file named {self.pattern} in this directory")
            yield from (whole_file(entry, name) for name in names)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        file = shard.input.below(str(shard.extra or ""))
        path, source = file.path, Source(file=file.shown)
        try:
            data = yaml_data(read_text(path))
            label = label_of(data["steps"] if isinstance(data, Mapping) else None)
        # odd YAML raises odd things (dates that do not exist, deep nesting)
        except Exception as error:  # noqa: BLE001
            yield BadRecord(
                source=source, reason=f"not a scenario: {type(error).__name__}: {error}"
            )
            return
        whole = Sample(
            id=path.stem,
            input=user_turns(label),
            expected=expectation(label),
            recorded={"unreadable_steps": unreadable_steps(label)},
            facets={"file": source.file},
            source=source,
        )
        for each in self.identified((whole,), data):
            yield from (
                [each]
                if self.unit == "scenario" or isinstance(each, BadRecord)
                else _steps(each, label)
            )


def _steps(whole: Sample, label: Label) -> Iterator[Sample]:
    steps = [step for step in in_order(gold_steps(label)) if gold_turn(label, step)[3] is None]
    expectations = {step: step_expectation(label, step) for step in steps}
    plans = {str(number): text for number, text in gold_plans(label).items()}
    read = {step for step, text in plans.items() if parse_plan(text, "documented").workflows}
    expectations |= {step: Expectation(plan=text) for step, text in plans.items() if step in read}
    for ordinal, step in enumerate(in_order(list(expectations))):
        yield replace(
            whole,
            id=f"{whole.id}/{step}",
            expected=expectations[step],
            facets={**whole.facets, "step": step},
            source=replace(whole.source, ordinal=ordinal) if whole.source is not None else None,
        )


def _looks_right(head: bytes) -> bool:
    return all(key in head for key in (b"steps:", b"workflow_id:", b"agent_type:"))
