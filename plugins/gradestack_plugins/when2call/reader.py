"""Reader of When2Call predictions, joined with the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import attrs

from gradestack import BadRecord, DataError, Expectation, Input, Inputs, Profile, Reader, Sample, Shard, Source, Status
from gradestack.jsonio import Range, compact
from gradestack_plugins.when2call.dataset import UNKNOWN, Row, other_uuid, read_row, row_uuid, usable_uuid
from gradestack_plugins.when2call.labels import LABELS
from gradestack_plugins.when2call.predictions import Loaded, load
from gradestack_plugins.when2call.recognition import confidence
from gradestack_plugins.when2call.records import METHODS, Method, Prediction, Raw, iter_raw, ranges

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
    joined: bool = False
    """Whether there is a dataset."""
    uuids: frozenset[str] = frozenset()
    """Those of the rows that can be used."""
    repeats: frozenset[int] = frozenset()
    """Places of dataset rows whose uuid an earlier row has."""


@attrs.frozen(kw_only=True)
class When2CallReader(Reader):
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

    profile: Profile = "documented"
    relabel: Relabel | None = None
    """``recorded``, ``from_raw`` (wherever raw output can be read) or ``fallbacks`` (where the judge fell back)."""
    method: Method | None = None
    """Evaluation method of the files; default: that of the first record whose keys tell."""
    audit: Path | None = None
    """An ``audit_fallbacks.jsonl`` to summarise in the native artefact."""

    @classmethod
    def sniff(cls, path: Path, head: bytes) -> float:
        """Recognise a prediction file by the keys of its first record."""
        return 0.0 if path.is_dir() else confidence(head)

    def index(self, inputs: Inputs) -> When2CallIndex:
        """Load the predictions, of which the last per uuid counts, and the dataset's identifiers."""
        if self.audit is not None and not self.audit.is_file():
            raise DataError(f"{self.audit}: the audit file does not exist")
        loaded = {each.name: load(each, self.method) for each in inputs.data}
        if inputs.dataset is None:
            return When2CallIndex(loaded)
        uuids: set[str] = set()
        repeats: set[int] = set()
        for raw in _rows(inputs.dataset):
            uuid = usable_uuid(raw.value)
            if uuid in uuids:
                repeats.add(raw.ordinal)
            elif uuid is not None:
                uuids.add(uuid)
        return When2CallIndex(loaded, joined=True, uuids=frozenset(uuids), repeats=frozenset(repeats))

    def plan(self, inputs: Inputs, index: When2CallIndex) -> Iterable[Shard]:
        """Cut the dataset into ranges, once per prediction file, each followed by what the dataset does not know."""
        dataset = inputs.dataset
        number = position = 0
        for each in inputs.data:
            size = each.path.stat().st_size
            if dataset is not None:
                for part in ranges(dataset.path):
                    extra = {"dataset": str(dataset.path), "shown": dataset.shown}
                    yield Shard(
                        ordinal=number,
                        input=each,
                        start=part.start,
                        end=part.end,
                        first_line=part.first_line,
                        first_row=part.first_row,
                        position=position + part.start,
                        extra=extra,
                    )
                    number += 1
                position += dataset.path.stat().st_size + 1
            yield Shard(ordinal=number, input=each, position=position)
            number += 1
            position += size + 1

    def read(self, shard: Shard, index: When2CallIndex) -> Iterator[Sample | BadRecord]:
        """Yield the samples of a range of dataset rows, or those of the predictions no dataset row asks for."""
        loaded = index.loaded[shard.input.name]
        if shard.extra is not None:
            yield from self._dataset_rows(shard, index, loaded)
            return
        yield from loaded.bad
        for prediction in loaded.predictions.values():
            if prediction.uuid in index.uuids:
                continue
            place = Source(file=shard.input.shown, ordinal=prediction.ordinal, line=prediction.line)
            if index.joined:
                yield self._sample(prediction, UNKNOWN, place, model=loaded.model, in_dataset=False)
                continue
            try:
                row = _own_row(prediction)
            except ValueError as problem:
                yield BadRecord(source=place, reason=str(problem), native=prediction.record)
                continue
            yield self._sample(prediction, row, place, model=loaded.model)

    def _dataset_rows(self, shard: Shard, index: When2CallIndex, loaded: Loaded) -> Iterator[Sample | BadRecord]:
        path, shown = Path(shard.extra["dataset"]), shard.extra["shown"]
        part = Range(shard.start, shard.end, shard.first_line, shard.first_row)
        for raw in iter_raw(path, part):
            place = Source(file=shown, ordinal=raw.ordinal, line=raw.line)
            uuid = row_uuid(raw.value)
            try:
                identifier, record = _usable(raw, uuid, self.profile)
                row = read_row(record)
            except ValueError as problem:
                yield BadRecord(source=place, reason=str(problem), native=raw.value)
                continue
            prediction = None if uuid is None else loaded.predictions.get(uuid)
            if prediction is None:
                yield _missing(identifier, row, place, loaded)
                continue
            found = Source(file=shard.input.shown, ordinal=prediction.ordinal, line=prediction.line)
            counted = raw.ordinal not in index.repeats
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


def _rows(dataset: Input) -> Iterator[Raw]:
    try:
        yield from iter_raw(dataset.path)
    except OSError as error:
        raise DataError(f"{dataset.shown}: cannot be read: {error.strerror or error}") from error


def _usable(raw: Raw, uuid: str | None, profile: Profile) -> tuple[str, dict[str, object]]:
    """Return the identifier and the record of a dataset row that has one.

    Raises:
        ValueError: It is broken, no object, or has none.
    """
    if raw.problem is not None:
        raise ValueError(raw.problem)
    if not isinstance(raw.value, dict):
        raise ValueError(f"expected a dataset row (an object), found {compact(raw.value)[:60]}")  # noqa: TRY004
    if uuid is None and profile == "upstream":
        uuid = other_uuid(raw.value)
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    return uuid, raw.value


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
