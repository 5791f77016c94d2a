"""Reader ``letta``: recorded letta-evals results, and gradestack's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    DataError,
    Input,
    Inputs,
    Profile,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    read_records,
)
from gradestack.jsonio import Layout
from gradestack_plugins.letta.layout import ResultFile, check_rows, place_of, result_files, suite_samples, unwrapped
from gradestack_plugins.letta.models import models_of, only_model
from gradestack_plugins.letta.recognition import begins_like, complaint, directory_certainty, looks_like
from gradestack_plugins.letta.records import Context, identity, model_of, run_of, sample_of


@attrs.frozen(kw_only=True)
class LettaIndex:
    """What is known before the results are read."""

    samples: dict[str, dict[str, Mapping[str, Any]]] = attrs.field(factory=dict)
    """Input name -> samples by id, for results that only name theirs."""
    models: dict[str, str | None] = attrs.field(factory=dict)
    """Input name -> model of its results that name none."""
    apart: bool = False
    """Whether two inputs hold results of the same sample, model and run."""


@attrs.frozen(kw_only=True)
class Letta(RecordReader):
    """Reads letta-evals output directories (or their ``results.jsonl``), one sample per result line.

    Directories: ``results.jsonl``; ``run_N/results.jsonl`` (runs in numeric order); and, of later versions,
    ``suite.json`` with ``MODEL.jsonl`` or ``MODEL/run_N.jsonl``. Header and summary are not needed. A line is a bare
    result or ``{"type": "result", "result": ...}``; lines of other types are passed over.

    ``id`` is the sample's id as text, ``model`` the recorded model name (None when none is named), ``run`` the number
    of the run's folder, else 1. Results that name no model beside others that do are those of the only one named; where
    several are, ``model`` must say whose they are. When several inputs are given and repeat each other's runs, the
    input's name is put before it. ``turns`` are the trajectory's: letta messages by their ``message_type``, or chat
    messages; calls are paired with their returns. ``ground_truth`` becomes ``expected.text``, and ``expected.label``
    where it is one text.

    A result is a failed run when it has an ``error`` record, a null ``agent_id`` or an empty trajectory. In
    ``documented`` a judge's or extractor's error does not fail the run, whose conversation is whole, and neither does
    an empty trajectory beside a submission; ``upstream`` takes any of them as failed, and a result that leaves
    ``agent_id`` out, but not a trajectory that holds an empty turn. Recorded grades, submissions, costs and times are
    kept in ``recorded``, also of failed runs.

    gradestack's own run directories are read without loss of what rows hold: predictions, references, runs, facets,
    states. Tools come back by name only.

    Attributes:
        profile: ``documented`` or ``upstream``.
        model: Model of results that name none.
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
            "recorded",
            "status",
            "error",
            "agent_id",
            "agent_usage",
            "facets",
            "source",
        }
    )
    stack: ClassVar[str | None] = "letta"
    layout: ClassVar[Layout] = "lines"
    sniffed: ClassVar[int] = 100
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "last"

    profile: Profile = "documented"
    model: str | None = None

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)
    complaint = staticmethod(complaint)

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        return directory_certainty(path, cls.recognised) if path.is_dir() else super().sniff(path, head)

    @override
    def index(self, inputs: Inputs) -> LettaIndex:
        samples = {each.name: suite_samples(each.path) for each in inputs.data}
        models = {each.name: self.model or only_model(each) for each in inputs.data}
        apart = len(inputs.data) > 1 and self._repeats(inputs, models)
        return LettaIndex(samples=samples, models=models, apart=apart)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield a warning for each input some of whose results name no model and are taken as the only one's.

        Raises:
            ConfigError: An input's other results name several.
            DataError: An input cannot be read, or is a run of gradestack's that has lost rows.
        """
        for given in inputs.data:
            check_rows(given.path)
        for given in inputs.data if self.model is None else ():
            if (model := only_model(given)) is not None:
                count = models_of(given).unnamed
                whose = f"{count} result(s) name no model, the first at {models_of(given).first}"
                yield f"{given.shown}: {whose}; they are taken as those of {model!r}, the only one named"

    def _repeats(self, inputs: Inputs, models: Mapping[str, str | None]) -> bool:
        seen: set[int] = set()
        for given in inputs.data:
            own: set[int] = set()
            for file in _files(given):
                context = Context(run=file.run, model=file.model, unnamed=models[given.name])
                for found in read_records(place_of(given, file.relative), layout=self.layout):
                    result = unwrapped(found.value)
                    if identity(result) is not None:
                        own.add(hash((str(identity(result)), model_of(result, context), run_of(result, context))))
            if seen & own:
                return True
            seen |= own
        return False

    def files(self, inputs: Inputs, index: LettaIndex) -> Iterator[RecordFile]:
        """Yield every file of results, runs in numeric order.

        Raises:
            DataError: An input holds no result file.
        """
        for given in inputs.data:
            for file in _files(given):
                extra = {"relative": file.relative, "run": file.run, "model": file.model}
                yield RecordFile(input=given, file=place_of(given, file.relative), extra=extra)

    @override
    def read(self, shard: Shard, index: LettaIndex) -> Iterator[Sample | BadRecord]:
        """Yield one sample per result line.

        Raises:
            DataError: The file cannot be read.
        """
        given, extra = shard.input, shard.extra
        context = Context(
            run=extra["run"],
            apart=given.name if index.apart else None,
            model=extra["model"],
            unnamed=index.models.get(given.name),
            samples=index.samples.get(given.name, {}),
            profile=self.profile,
        )

        def samples_of(record: Any, source: Source) -> Iterator[Sample | BadRecord]:
            result = unwrapped(record)
            if result is not ABSENT:
                yield sample_of(result, source, context)

        return self.samples(shard, samples_of, place_of(given, extra["relative"]))


def _files(given: Input) -> list[ResultFile]:
    found = result_files(given.path)
    if not found:
        raise DataError(f"{given.path}: holds neither results.jsonl nor run_N/results.jsonl")
    return found
