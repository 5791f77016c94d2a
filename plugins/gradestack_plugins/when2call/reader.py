"""Reader of When2Call predictions, joined with the dataset."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import attrs
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    Input,
    Inputs,
    Profile,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    Status,
    read_records,
)
from gradestack.jsonio import Range, compact
from gradestack_plugins.when2call.audit import read_events
from gradestack_plugins.when2call.dataset import UNKNOWN, Row, other_uuid, read_row, row_uuid, usable_uuid
from gradestack_plugins.when2call.labels import LABELS
from gradestack_plugins.when2call.predictions import Loaded, load
from gradestack_plugins.when2call.recognition import begins_like, complaint, looks_like
from gradestack_plugins.when2call.records import METHODS, Method, Prediction

Relabel = Literal["recorded", "from_raw", "fallbacks"]


@attrs.frozen(kw_only=True)
class When2CallRecord:
    """What the reader hands the When2Call grader and exporter beside the general fields."""

    method: Method
    labels: dict[str, str | None] = attrs.field(factory=dict)
    """Prediction set -> label; None where a record makes no prediction. ``""`` names the only set of most forms."""
    recorded: dict[str, str | None] = attrs.field(factory=dict)
    """The same before any label was read again."""
    answered: bool = True
    """False when only the model's free text was recorded, which a judge has yet to label."""
    counts: dict[str, int] = attrs.field(factory=dict)
    no_tools: bool | None = None
    in_dataset: bool = True


@attrs.frozen
class When2CallIndex:
    """Prediction files by input name, and what is known of the dataset."""

    loaded: dict[str, Loaded]
    dataset: Input | None = None
    uuids: frozenset[str] = frozenset()
    """Those of the rows that can be used."""
    repeats: frozenset[int] = frozenset()
    """Places of dataset rows whose uuid an earlier row has."""


@attrs.frozen(kw_only=True)
class When2CallReader(RecordReader):
    """Joins a prediction file of any When2Call paradigm with the dataset: one sample per dataset row.

    Understood predictions, as JSON Lines or as one JSON list: ``judge_decisions``, ``mcq_predictions`` and
    ``mcq_logprob_predictions`` of the evaluation suite, NVIDIA's judge results, lm-eval sample lines, and plain
    ``{"uuid", "predicted_label"}``. A repeated uuid overwrites: the last record counts, in the place of the first, and
    leaves the row without a prediction when it holds none. A record too short to tell its form is read in that of its
    file. A record that is not JSON, holds no prediction or has no usable uuid is reported as bad.

    With a dataset: rows in dataset order, a uuid that occurs twice counts twice, a row without a prediction has status
    missing, and a prediction for an unknown uuid becomes a sample at the end that no metric counts. A row that cannot
    be used is reported as bad and is no row; ``upstream`` keeps one whose uuid is another value than text.

    Without a dataset the gold label is taken from the record, where it has one.

    Labels are taken as recorded or read from the raw output again (``relabel``); the number changed, and the number
    that differs though it was kept, are counted. Defaults: ``documented`` reads again where the suite's judge fell back
    to ``cannot_answer`` although the judge's answer is well-formed (``fallbacks``); ``upstream`` keeps the record.
    """

    provides = frozenset({"label", "expected", "tools", "input", "text", "native"})
    stack = "when2call"
    takes_dataset = True
    behind_others = 0.0

    profile: Profile = "documented"
    relabel: Relabel | None = None
    """``recorded``, ``from_raw`` (wherever raw output can be read) or ``fallbacks`` (where the judge fell back)."""
    method: Method | None = None
    """Evaluation method of the files; default: that of the first record whose keys tell."""
    audit: Path | None = None
    """An ``audit_fallbacks.jsonl`` to summarise in the native artefact."""

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)
    complaint = staticmethod(complaint)

    @override
    def index(self, inputs: Inputs) -> When2CallIndex:
        if self.audit is not None and not self.audit.is_file():
            raise DataError(f"{self.audit}: the audit file does not exist")
        read_events(self.audit)  # for the exporter, which comes last: what is wrong with it is said first
        loaded = {each.name: load(each, self.method) for each in inputs.data}
        if inputs.dataset is None:
            return When2CallIndex(loaded)
        uuids: set[str] = set()
        repeats: set[int] = set()
        for raw in read_records(inputs.dataset):
            uuid = usable_uuid(raw.value)
            if uuid in uuids:
                repeats.add(raw.ordinal)
            elif uuid is not None:
                uuids.add(uuid)
        return When2CallIndex(loaded, inputs.dataset, uuids=frozenset(uuids), repeats=frozenset(repeats))

    def files(self, inputs: Inputs, index: When2CallIndex) -> Iterator[RecordFile]:
        """Yield the dataset, once per prediction file, each followed by what the dataset does not know."""
        for given in inputs.data:
            if inputs.dataset is not None:
                yield RecordFile(input=given, file=inputs.dataset, extra="dataset")
            yield RecordFile(input=given, ranges=(Range(),))

    @override
    def read(self, shard: Shard, index: When2CallIndex) -> Iterator[Sample | BadRecord]:
        loaded = index.loaded[shard.input.name]
        if shard.extra is not None:
            yield from self.samples(shard, partial(self._row, shard, index), index.dataset)
            return
        yield from loaded.bad
        for prediction in loaded.predictions.values():
            if prediction.uuid in index.uuids:
                continue
            place = Source(file=shard.input.shown, ordinal=prediction.ordinal, line=prediction.line)
            if index.dataset is not None:
                yield self._sample(prediction, UNKNOWN, place, model=loaded.model, in_dataset=False)
                continue
            try:
                row = _own_row(prediction)
            except ValueError as problem:
                yield BadRecord(source=place, reason=str(problem), native=prediction.record)
                continue
            yield self._sample(prediction, row, place, model=loaded.model)

    def _row(self, shard: Shard, index: When2CallIndex, value: Any, place: Source) -> Iterator[Sample]:
        loaded = index.loaded[shard.input.name]
        uuid = row_uuid(value)
        identifier, record = _usable(value, uuid, self.profile)
        row = read_row(record)
        prediction = None if uuid is None else loaded.predictions.get(uuid)
        if prediction is None:
            yield _missing(identifier, row, place, loaded)
            return
        found = Source(file=shard.input.shown, ordinal=prediction.ordinal, line=prediction.line)
        counted = place.ordinal not in index.repeats
        yield self._sample(prediction, row, found, model=loaded.model, counted=counted)

    def _sample(
        self,
        prediction: Prediction,
        row: Row,
        place: Source,
        *,
        model: str | None,
        in_dataset: bool = True,
        counted: bool = True,
    ) -> Sample:
        """Return the sample of one prediction; the counters of its record count once per uuid (``counted``)."""
        recorded = prediction.recorded(row.answers)
        labels, changed = self._labels(prediction, recorded, row.answers)
        counts = {**prediction.counts(recorded), **changed} if counted else {}
        answered = prediction.form != "response"
        predicted = answered and any(label is not None for label in labels.values())
        native = When2CallRecord(
            method=METHODS[prediction.form] if self.method is None else self.method,
            labels=labels,
            recorded=recorded,
            answered=answered,
            counts=counts,
            no_tools=row.no_tools,
            in_dataset=in_dataset,
        )
        return Sample(
            id=prediction.uuid,
            model=prediction.model or model,
            input=row.question,
            label=next(iter(labels.values()), None),
            text=prediction.text,
            tools=row.tools,
            expected=row.expected,
            recorded={f"label {name}".strip(): label for name, label in recorded.items()},
            status=Status.OK if predicted or not answered else Status.MISSING,
            facets=row.facets,
            source=place,
            native=native,
        )

    def _labels(
        self, prediction: Prediction, recorded: dict[str, str | None], answers: tuple[str, ...]
    ) -> tuple[dict[str, str | None], dict[str, int]]:
        """Return the labels to grade, and whether the raw output changed one or would have."""
        documented = self.profile == "documented"
        relabel = self.relabel or ("fallbacks" if documented else "recorded")
        raw = prediction.from_raw(answers, nvidia_names=documented)
        differs = any(recorded.get(name) is not None and recorded[name] != label for name, label in raw.items())
        if not differs:
            return recorded, {}
        if relabel == "recorded" or (relabel == "fallbacks" and not prediction.fell_back):
            return recorded, {"relabel_differs": 1}
        return {name: raw.get(name, label) if label is not None else None for name, label in recorded.items()}, {
            "relabelled": 1
        }


def _usable(value: Any, uuid: str | None, profile: Profile) -> tuple[str, dict[str, object]]:
    """Return the identifier and the record of a dataset row that has one.

    Raises:
        ValueError: It is no object, or has none.
    """
    if not isinstance(value, dict):
        raise ValueError(f"expected a dataset row (an object), found {compact(value)[:60]}")  # noqa: TRY004
    if uuid is None and profile == "upstream":
        uuid = other_uuid(value)
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    return uuid, value


def _own_row(prediction: Prediction) -> Row:
    """Return what a prediction says about its own task when there is no dataset.

    Raises:
        ValueError: Its gold label is none of the four.
    """
    if prediction.item is not None:
        return read_row(prediction.item, strict=False)
    gold = prediction.record.get("gold_label")
    if gold is None:
        return UNKNOWN
    if gold not in LABELS:
        raise ValueError(f"gold_label must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")
    return Row(gold=gold, expected=Expectation(label=gold))


def _missing(uuid: str, row: Row, place: Source, loaded: Loaded) -> Sample:
    return Sample(
        id=uuid,
        model=loaded.model,
        input=row.question,
        tools=row.tools,
        expected=row.expected,
        status=Status.MISSING,
        facets=row.facets,
        source=place,
        native=When2CallRecord(method=loaded.method, no_tools=row.no_tools),
    )
