"""Scenario output files of OrchestrationBench: a directory of ``*_out.json``, or single such files."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    JSON,
    BadRecord,
    DataError,
    Fault,
    Input,
    Inputs,
    Profile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    ToolSpec,
    replace,
)
from gradestack.jsonio import JsonProblem, compact, first_records, loads
from gradestack_plugins.orchestrationbench.calls.arguments import EMPTY, UNREADABLE
from gradestack_plugins.orchestrationbench.recorded.trial import Setting, Trial
from gradestack_plugins.orchestrationbench.recorded.verdicts import RUN_PREFIX, Verdicts, read_verdicts, verdicts_for
from gradestack_plugins.orchestrationbench.samples import Common, step_samples, trial_sample
from gradestack_plugins.orchestrationbench.side_files import read_cards, read_config

_SUFFIX = "_out.json"
_SNIFFED_ENTRIES = 5_000
"""Folders and files looked at before a directory is taken not to hold any scenario output."""
_RUN_NUMBER = re.compile(re.escape(RUN_PREFIX) + r"([1-9][0-9]{0,8})")


@attrs.frozen(kw_only=True)
class Index:
    """What is read once for all files."""

    tools: tuple[ToolSpec, ...] | None = None
    setting: Setting = attrs.field(factory=Setting)
    verdicts: Verdicts | None = None


@attrs.frozen(kw_only=True)
class OrchestrationBenchReader(RecordReader):
    """One sample per trial: id = scenario, run = number of the trial; or one per step, id = ``scenario/step``.

    A directory holds the output of one model and its name is the model's; files given one by one have none.
    A file that cannot be read, and one without any run, is one failed sample. Facets: ``file`` (path as shown, which
    the family's figures are grouped by) and ``trial`` (name of the run), with ``unit: step`` also ``step``.

    In ``upstream`` a file must be UTF-8 without byte-order mark, as for the original.
    """

    version: ClassVar[str] = "2"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
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
            "agent_id",
            "agent_usage",
            "facets",
            "source",
            "native",
        }
    )
    stack: ClassVar[str | None] = "orchestrationbench"
    takes_directories: ClassVar[bool] = True

    profile: Profile = "documented"
    pattern: str = "*_out.json"
    """File names looked for in a directory and all below it."""
    agent_cards: Path | None = None
    """Directory of agent cards (or one card): the tools every run had."""
    config: Path | None = None
    """The benchmark's evaluation YAML; without it the judge is skipped and weights are 0.8 and 0.5."""
    verdicts: Path | None = None
    """Recorded judge verdicts, JSON: file -> trial -> step -> argument -> counts."""
    unit: Literal["trial", "step"] = "trial"
    """What one sample is."""

    def __attrs_post_init__(self) -> None:
        if not self.pattern or "/" in self.pattern or "\\" in self.pattern:
            msg = f"pattern {self.pattern!r}: expected a file name with wildcards; directories are searched anyway"
            raise ValueError(msg)

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float | None:
        """Return None: a record by itself tells nothing."""
        return None

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        if path.is_dir():
            return 0.9 if _holds_output(path) else 0.0
        named = b'"history"' in head and any(key in head for key in (b'"sub_agent_history"', b'"main_agent_history"'))
        if not named or _is_followed(head):
            return 0.0
        return 0.95 if path.name.endswith(_SUFFIX) else 0.8

    @override
    def index(self, inputs: Inputs) -> Index:
        """Read agent cards, config and verdicts.

        Raises:
            ConfigError: The config cannot be used.
            DataError: Cards or verdicts cannot be used.
        """
        return Index(
            tools=None if self.agent_cards is None else read_cards(self.agent_cards),
            setting=Setting() if self.config is None else read_config(self.config),
            verdicts=None if self.verdicts is None else read_verdicts(self.verdicts),
        )

    @override
    def plan(self, inputs: Inputs, index: Any) -> Iterator[Shard]:
        """Return one shard per file, sorted by path within a directory.

        Raises:
            DataError: A directory holds no file of the pattern.
        """
        shards: list[Shard] = []
        position = 0
        for entry in inputs.data:
            for relative in self._files(entry):
                shards.append(Shard(ordinal=len(shards), input=entry, position=position, extra=relative))
                path = entry.path / relative if relative else entry.path
                # A file that cannot be read gives one sample too.
                position += 2 + (path.stat().st_size if path.is_file() else 0)
        return iter(shards)

    def _files(self, entry: Input) -> list[str]:
        if not entry.path.is_dir():
            return [""]
        # Not Path.rglob: hidden files and directories are left out, as the original does.
        found = glob.glob(f"**/{self.pattern}", root_dir=entry.path, recursive=True)  # noqa: PTH207
        files = sorted(name.replace(os.sep, "/") for name in found if (entry.path / name).is_file())
        if not files:
            msg = f"{entry.shown}: no file named {self.pattern} in this directory or below"
            raise DataError(msg)
        return files

    @override
    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        relative = str(shard.extra or "")
        path = shard.input.path / relative if relative else shard.input.path
        shown = f"{shard.input.shown.rstrip('/')}/{relative}" if relative else shard.input.shown
        model = shard.input.name if relative else None
        data, problem = self._load(path)
        scenario = _scenario(data, path)
        history = data.get("history") if isinstance(data, dict) else None
        if problem or not isinstance(history, dict) or not history:
            yield replace(_broken(scenario, shown, problem, index.setting), model=model)
            return
        expected = {f"{RUN_PREFIX}{number}" for number in range(1, len(history) + 1)}
        ordinal = 0
        for name, run in history.items():
            trial = Trial(
                file=shown,
                name=name,
                run=run,
                planned=name in expected,
                setting=index.setting,
                verdicts=None if index.verdicts is None else verdicts_for(index.verdicts, relative or path.name, name),
            )
            number = _RUN_NUMBER.fullmatch(name)
            common = Common(
                id=scenario,
                model=model,
                run=int(number.group(1)) if number else name,
                tools=index.tools,
                usage=data.get("usage"),
                facets={"file": shown, "trial": name},
            )
            samples = [trial_sample(common, trial)] if self.unit == "trial" else list(step_samples(common, trial))
            for sample in samples if self.ids is None else self._identified(samples, data):
                yield replace(sample, source=Source(file=shown, ordinal=ordinal))
                ordinal += 1

    def _identified(self, samples: Sequence[Sample], data: JSON) -> Iterator[Sample]:
        """Yield a file's samples with the scenario's id from where the user says; a step's own stands behind it."""
        for given, found in zip(samples, self.identified(samples, data), strict=True):
            if isinstance(found, Sample):
                step = given.facets.get("step")
                moved = self.unit == "step" and found.id != given.id
                yield replace(found, id=f"{found.id}/{step}", cluster=found.id) if moved else found

    def _load(self, path: Path) -> tuple[JSON, str]:
        """Return (content, problem); a file that holds nothing (an empty object, null) cannot be read either."""
        try:
            raw = path.read_bytes()
            data = loads(raw.decode("utf-8") if self.profile == "upstream" else raw)
        except (OSError, JsonProblem, UnicodeDecodeError) as error:
            return None, error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)
        return data, "" if data else f"the file holds nothing to grade, only {compact(data)}"


def _is_followed(head: bytes) -> bool:
    """Return whether a file begins with a record of its own, such as a line of another format, or with a list."""
    for first, _ in first_records(head, 1):
        return first.problem is None and not (isinstance(first.value, dict) and "history" in first.value)
    return False


def _broken(scenario: str, shown: str, problem: str, setting: Setting) -> Sample:
    """Return the one failed sample of a file that cannot be read, or that holds no run."""
    empty = "" if problem else "history: expected an object with at least one run"
    return Sample(
        id=scenario,
        status=Status.FAILED,
        error=Fault(category="data", code=UNREADABLE if problem else EMPTY, message=problem or empty),
        facets={"file": shown},
        source=Source(file=shown),
        native=Trial(file=shown, setting=setting, unreadable=problem, empty=empty),
    )


def _scenario(data: JSON, path: Path) -> str:
    named = data.get("scenario_id") if isinstance(data, dict) else None
    if isinstance(named, str | int) and not isinstance(named, bool) and named != "":
        return str(named)
    return path.name.removesuffix(_SUFFIX).removesuffix(".json")


def _holds_output(directory: Path) -> bool:
    looked = 0
    for _, folders, files in os.walk(directory):
        folders.sort()
        if any(name.endswith(_SUFFIX) for name in files):
            return True
        looked += 1 + len(files)
        if looked > _SNIFFED_ENTRIES:
            return False
    return False
