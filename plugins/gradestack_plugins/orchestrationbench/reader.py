"""Scenario output files of OrchestrationBench.

A directory of ``*_out.json``, or single such files.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

import attrs
import msgspec
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
    Sample,
    Shard,
    Source,
    Status,
    ToolSpec,
    compile_later,
    replace,
    yaml_data,
)
from gradestack.jsonio import (
    JsonProblem,
    Range,
    as_list,
    as_map,
    compact,
    loads,
    read_regular,
    read_text,
)
from gradestack_plugins.orchestrationbench.decisions import gold_step, is_case
from gradestack_plugins.orchestrationbench.graphs import Weights
from gradestack_plugins.orchestrationbench.plans import gold_plans
from gradestack_plugins.orchestrationbench.records import (
    EMPTY,
    RUN_PREFIX,
    UNREADABLE,
    Label,
    Output,
    Setting,
    SideFiles,
    TrialVerdicts,
    data_fault,
    read_trial,
    read_verdicts,
    verdicts_for,
)
from gradestack_plugins.readers.chat import made_calls, messages, text_of, tool_spec
from gradestack_plugins.readers.chat.unread import count_unread
from gradestack_plugins.readers.declared import convert_record
from gradestack_plugins.readers.whole import WholeDocuments

_is_file_name = matches_re(r"(?!\.\.?$)[^/\\]+")
"""Refuse a pattern that could lead to another folder: directories are searched anyway."""


class AgentCard(msgspec.Struct):
    """Tools of an agent."""

    tools: list[Any]


def read_cards(path: Path) -> tuple[ToolSpec, ...]:
    """Return the tools of all agent cards in a directory (or of one card), by file name.

    A later equal name wins.
    """
    if path.is_dir():
        files = sorted(path.glob("*.json"))
    else:
        files = [path]
    if not files:
        raise DataError(f"agent cards {path}: no *.json file in it")
    tools: dict[str, ToolSpec] = {}
    for file in files:
        try:
            document = loads(read_regular(file))
            card = msgspec.convert(document, AgentCard)
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
    """Read the weights and the judge from the benchmark's evaluation YAML."""
    import yaml  # noqa: PLC0415 - takes long to import, and recognising files needs none

    try:
        text = read_text(path)
        config = msgspec.convert(yaml_data(text) or {}, EvaluationConfig)
    except (OSError, RecursionError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"evaluation config {path}: {error}") from error
    params = config.evaluation_params or EvaluationParams()
    weights = Weights(params.agent_change_weight, params.status_change_weight)
    judge = as_map(config.judge)
    is_judged = {"model", "generation_params"} <= judge.keys()
    return Setting(weights=weights, judge_section=is_judged)


def gold_expectation(label: Label) -> Expectation:
    """Return all gold calls (those that can be read) and gold plans of a label."""
    steps = [gold_step(label, name) for name in label if is_case(label, name)]
    calls: Any = tuple(call for step in steps for call in step.gold_calls)
    plan = gold_plans(label) or None
    return Expectation(calls=calls, plan=plan)


def user_turns(label: Label) -> str | tuple[str, ...] | None:
    """Return the user's words in a label: a text, a tuple for several turns, None for none."""
    turns = label.values()
    texts = tuple(text_of(turn.content) for turn in turns if turn.role == "user")
    if len(texts) > 1:
        return texts
    return next(iter(texts), None)


_SUFFIX = "_out.json"
_SNIFFED_FOLDERS = 5_000
"""Folders looked into before a directory is taken not to hold any scenario output."""
NO_RUN = "history: expected an object with at least one run"
_RUN_NUMBER = compile_later(re.escape(RUN_PREFIX) + r"([1-9][0-9]{0,8})")


@attrs.frozen(kw_only=True)
class OrchestrationBenchReader(WholeDocuments):
    """One sample per trial: id = scenario, run = number of the trial.

    A directory holds the output of one model and its name is the model's; files given one by one
    have none. A file that cannot be read, and one without any run, is one failed sample. Facets:
    ``file`` (path as shown, which the family's figures are grouped by) and ``trial`` (name of the
    run).
    """

    example_file = "results/MODEL/1.json"
    version = "2"
    provides = frozenset(
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
    stack = "orchestrationbench"
    takes_directories: ClassVar[bool] = True
    keeps_copies: ClassVar[bool] = True
    keys = frozenset({"history"})
    marks = (("history",),)
    sniffed = 1

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
        if not has_turns or not super().sniff(path, head):
            return 0.0
        return 0.95 if path.name.endswith(_SUFFIX) else 0.8

    @override
    def index(self, inputs: Inputs) -> SideFiles:
        if self.agent_cards is None:
            tools = None
        else:
            tools = read_cards(self.agent_cards)
        if self.config is None:
            setting = Setting()
        else:
            setting = read_config(self.config)
        if self.verdicts is None:
            verdicts = None
        else:
            verdicts = read_verdicts(self.verdicts)
        return SideFiles(tools=tools, setting=setting, verdicts=verdicts)

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        for entry in inputs.data:
            for name in self._names(entry) if entry.path.is_dir() else [""]:
                file = entry.below(name)
                ranges = (Range(),)
                yield RecordFile(input=entry, file=file, ranges=ranges, most=2, extra=name)

    def _names(self, entry: Input) -> list[str]:
        """Return the files of a directory, sorted; hidden ones are left out."""
        pattern = f"**/{self.pattern}"
        matching_paths = glob.glob(pattern, root_dir=entry.path, recursive=True)  # noqa: PTH207
        names = [
            name.replace(os.sep, "/") for name in matching_paths if (entry.path / name).is_file()
        ]
        if not names:
            why = f"no file named {self.pattern} in this directory or below"
            raise DataError(f"{entry.shown}: {why}")
        return sorted(names)

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        relative = str(shard.extra or "")
        file = shard.input.below(relative)
        data, problem = load_output(file.path)
        output, remarks = convert_record(as_map(data), Output)
        name = file.path.name.removesuffix(_SUFFIX).removesuffix(".json")
        facets = {"file": file.shown}
        model = shard.input.name if relative else None
        common = Sample(
            id=name if output.scenario_id in (None, "") else str(output.scenario_id),
            model=model,
            facets=facets,
            source=Source(file=file.shown),
            remarks=remarks,
        )
        if not output.history:
            code = UNREADABLE if problem else EMPTY
            fault = data_fault(code, problem or NO_RUN)
            yield replace(common, status=Status.FAILED, error=fault)
            return
        common = replace(common, tools=index.tools, agent_usage=output.usage, source=None)
        samples = []
        for name, run in output.history.items():
            verdicts = verdicts_for(index.verdicts, relative or file.path.name, name)
            number = _RUN_NUMBER.fullmatch(name)
            sample = replace(
                common,
                run=int(number.group(1)) if number else name,
                facets={**common.facets, "trial": name},
            )
            trial_sample = _trial_sample(sample, run, index.setting, verdicts)
            samples.append(trial_sample)
        for ordinal, record in enumerate(self.identified(samples, data)):
            source = Source(file=file.shown, ordinal=ordinal)
            yield replace(record, source=source)


def _trial_sample(
    common: Sample, run: Any, setting: Setting, verdicts: TrialVerdicts | None
) -> Sample:
    """Convert a trial to a sample; a failed one where the trial is no object or has no label."""
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
        remarks={**common.remarks, **unread},
    )
    try:
        trial, remarks = read_trial(run, setting, verdicts)
    except ValueError as error:
        fault = data_fault("run_unreadable", f"expected a run with a label object: {error}")
        return replace(sample, status=Status.FAILED, error=fault)
    plans = {str(reply.step_id): reply.content for reply in trial.plans}
    return replace(
        sample,
        input=user_turns(trial.label),
        plan=plans or None,
        expected=gold_expectation(trial.label),
        remarks={**sample.remarks, **remarks},
        native=trial,
    )


def load_output(path: Path) -> tuple[JSON, str]:
    """Read the content of a scenario output file.

    Returns:
        The content; the problem for which it cannot be graded, "" where it can.
    """
    try:
        data = loads(read_regular(path))
    except OSError as error:
        return None, error.strerror or "cannot be read"
    except JsonProblem as error:
        return None, str(error)
    return data, "" if data else f"the file holds nothing to grade, only {compact(data)}"


def _holds_output(directory: Path) -> bool:
    for _, folders, files in islice(os.walk(directory), _SNIFFED_FOLDERS):
        folders.sort()
        if any(name.endswith(_SUFFIX) for name in files):
            return True
    return False
