"""Reader ``when2call``: predictions of every paradigm, joined with the dataset; the four behaviours they are about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Expectation,
    ExpectedCall,
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
    read_records,
    reading,
)
from gradestack.jsonio import Element, JsonProblem, Range, as_map, compact, iter_lines, loads
from gradestack_plugins.readers.chat import tool_call, tool_spec

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
"""Canonical order: of matrices, of outputs, and of ``answers`` in the dataset."""

INVALID = "invalid"
"""Label of a prediction that is none of the four."""

VARIANTS = ("norm_bytes", "raw", "norm_tokens", "norm_chars")
"""Length normalisations of log-probability scoring; each is a prediction set of its own."""

NVIDIA_DIRECT = "direct_answer"
"""Name of ``direct`` in NVIDIA's own judge prompt."""

_LONE_DIGIT = re.compile(r"[0-3]")
_DIGIT = re.compile(r"\b[0-3]\b")


def mcq_digit(text: str) -> int | None:
    """Return the choice a multiple-choice answer names, None when it names none.

    The trimmed text is a lone digit 0 to 3, or else the first 0 to 3 that stands as a word of its own counts (word
    boundaries on both sides, letters and digits of any script being word characters): ``-1`` gives 1, ``0.3`` gives 0;
    ``3rd``, ``_2_``, ``12`` and full-width digits give none.
    """
    text = text.strip()
    found = _LONE_DIGIT.fullmatch(text) or _DIGIT.search(text)
    return int(found.group()) if found else None


def label_at(names: Sequence[Any], index: Any) -> str:
    """Return the label at a position of an item's own answer names; ``invalid`` when there is none."""
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(names):
        return INVALID
    name = names[index]
    return name if isinstance(name, str) else INVALID


def judge_label(text: str, also: Collection[str] = ()) -> str | None:
    """Return the label of a judge's JSON answer, None when it is not well-formed.

    Strict JSON after trimming (no code fence, nothing behind it), an object; the value of ``classification``, or of
    ``label`` only when the first key is absent; taken as text, trimmed, in lower case; one of the four labels or of
    ``also``.
    """
    try:
        answer = loads(text.strip())
    except JsonProblem:
        return None
    if not isinstance(answer, dict):
        return None
    value = answer["classification"] if "classification" in answer else answer.get("label")
    if value is None:
        return None
    label = str(value).strip().lower()
    return label if label in LABELS or label in also else None


def best_index(scores: Any) -> int | None:
    """Return the position of the highest score, the first one on ties; None when these are not numbers.

    ``-Infinity`` is a score like any other: four of them make the first the best.
    """
    if not isinstance(scores, list) or not scores:
        return None
    if any(isinstance(score, bool) or not isinstance(score, int | float) for score in scores):
        return None
    return max(range(len(scores)), key=scores.__getitem__)


def hopeless(scores: Any) -> bool:
    """Return whether every raw score is minus infinity, so that scoring said nothing at all."""
    return isinstance(scores, list) and bool(scores) and all(score == float("-inf") for score in scores)


Method = Literal["mcq", "mcq_logprob", "llm_judge"]
Form = Literal["judge", "mcq", "logprob", "nvidia", "lm_eval", "plain", "response", "bare"]

METHODS: dict[Form, Method] = {
    "judge": "llm_judge",
    "mcq": "mcq",
    "logprob": "mcq_logprob",
    "nvidia": "llm_judge",
    "lm_eval": "mcq",
    "plain": "llm_judge",
    "response": "llm_judge",
    "bare": "llm_judge",
}
"""Form of a record -> the evaluation method it belongs to."""

SINGLE = ""
"""Name of the one prediction set of every form but log-probability scoring."""

JUDGE_FLAGS = ("parse_failed_first", "parse_failed_second", "used_retry", "fallback_to_cannot_answer")
MODES = ("llama_scoring", "string_fallback", "UNKNOWN")
"""Modes of log-probability scoring."""
_JUDGE_MARKS = ("judge_model", "judge_rationale", "judge_exception_first", "judge_exception_second")
"""Keys that tell whose label a ``predicted_label`` is, but are no prediction on their own."""


def form_of(record: Mapping[str, Any]) -> Form | None:
    """Return which paradigm wrote a record, judged by its keys; None when it is no prediction."""
    if "run_labels" in record:
        return None  # several runs of one item, a stability record
    if "judge_response" in record:
        return "nvidia"
    if isinstance(record.get("doc"), dict):
        return "lm_eval"
    if any(f"predicted_label_{variant}" in record for variant in VARIANTS):
        return "logprob"
    if "judge_raw" in record or any(f"judge_{flag}" in record for flag in JUDGE_FLAGS):
        return "judge"
    if any(key in record for key in ("raw_mcq_output", "predicted_index", "answer_names")):
        return "mcq"
    if "predicted_label" in record:
        return "judge" if any(mark in record for mark in _JUDGE_MARKS) else "plain"
    return "response" if "raw_text" in record else None


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One record of a prediction file."""

    uuid: str
    form: Form
    record: dict[str, Any]
    ordinal: int
    line: int | None

    @property
    def item(self) -> Mapping[str, Any] | None:
        """The dataset item the record itself carries, where it does."""
        found = self.record.get("question" if self.form == "nvidia" else "doc")
        return found if self.form in ("nvidia", "lm_eval") and isinstance(found, dict) else None

    @property
    def model(self) -> str | None:
        """The model that was tested."""
        found = self.record.get("target_model")
        return found if isinstance(found, str) and found else None

    @property
    def text(self) -> str | None:
        """What that model wrote, where the record has it."""
        key = {"mcq": "raw_mcq_output", "nvidia": "model_response", "response": "raw_text"}.get(self.form)
        key = "string_fallback_raw_output" if self.form == "logprob" else key
        found = self.record.get(key) if key else None
        return found if isinstance(found, str) else None

    def names(self, answers: tuple[str, ...]) -> tuple[Any, ...]:
        """Return the names that indices of this record refer to: its own, else the dataset item's, else the four."""
        key = "string_fallback_answer_names" if self.form == "logprob" else "answer_names"
        own = self.record.get(key)
        return tuple(own) if isinstance(own, list) else answers or LABELS

    def recorded(self, answers: tuple[str, ...]) -> dict[str, str | None]:
        """Return prediction set -> label as recorded; None where the record makes no prediction.

        A label that is not text is no prediction; a judge's decision counts only with its raw answer beside it.
        """
        record = self.record
        if self.form == "logprob":
            return {variant: _text(record.get(f"predicted_label_{variant}")) for variant in VARIANTS}
        if self.form == "nvidia":
            response = record["judge_response"]
            if isinstance(response, str):
                return {SINGLE: judge_label(response, (NVIDIA_DIRECT,)) or response}
            return {SINGLE: _text(response.get("classification")) if isinstance(response, dict) else None}
        if self.form == "lm_eval":
            pair = record.get("macro_f1")
            paired = isinstance(pair, list) and len(pair) == 2
            return {SINGLE: label_at(answers or LABELS, pair[1]) if paired and pair is not None else None}
        if self.form == "judge" and not isinstance(record.get("judge_raw"), str):
            return {SINGLE: None}
        return {} if self.form == "response" else {SINGLE: _text(record.get("predicted_label"))}

    def from_raw(self, answers: tuple[str, ...], *, nvidia_names: bool) -> dict[str, str]:
        """Return prediction set -> label read from the raw output again, where it says one."""
        record = self.record
        if self.form == "judge" and isinstance(raw := record.get("judge_raw"), str):
            label = judge_label(raw, (NVIDIA_DIRECT,) if nvidia_names else ())
            return {} if label is None else {SINGLE: label}
        if self.form == "mcq" and isinstance(raw := record.get("raw_mcq_output"), str):
            digit = mcq_digit(raw)
            return {} if digit is None else {SINGLE: label_at(self.names(answers), digit)}
        return self._from_scores(self.names(answers)) if self.form == "logprob" else {}

    def _from_scores(self, names: tuple[Any, ...]) -> dict[str, str]:
        record = self.record
        raw = record.get("string_fallback_raw_output")
        if isinstance(raw, str) or hopeless(record.get("scores_raw")):
            digit = mcq_digit(raw) if isinstance(raw, str) else record.get("string_fallback_pred_idx")
            return {} if digit is None else dict.fromkeys(VARIANTS, label_at(names, digit))
        found = {variant: best_index(record.get(f"scores_{variant}")) for variant in VARIANTS}
        return {variant: label_at(names, index) for variant, index in found.items() if index is not None}

    def counts(self, recorded: Mapping[str, str | None]) -> dict[str, int]:
        """Return what the record adds to the counters of its method (keys of the ``when2call_counts`` aggregator)."""
        record = self.record
        if self.form == "logprob":
            return self._mode_counts()
        if all(label is None for label in recorded.values()):
            return {}
        if self.form == "judge":
            return {f"judge_{flag}": 1 for flag in JUDGE_FLAGS if record.get(f"judge_{flag}")}
        if self.form == "mcq":
            found = {"mcq_predicted_index_minus1": int(_is_minus_one(record.get("predicted_index")))}
            found["mcq_predicted_label_invalid_raw"] = int(recorded[SINGLE] not in LABELS)
            return {name: number for name, number in found.items() if number}
        return {}

    def _mode_counts(self) -> dict[str, int]:
        mode = self.record.get("mode")
        known = mode if isinstance(mode, str) and mode else "UNKNOWN"
        counts = {f"mode_{known}": 1} if known in MODES else {"mode_other": 1}
        if mode == "string_fallback" and _is_minus_one(self.record.get("string_fallback_pred_idx")):
            counts["string_fallback_pred_idx_minus1"] = 1
        return counts


def _is_minus_one(value: Any) -> bool:
    """Return whether an index says that no choice was found, whether a number or text, as ``int()`` reads it."""
    try:
        return int(value) == -1
    except (TypeError, ValueError, OverflowError):
        return False


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def uuid_of(record: Mapping[str, Any], form: Form) -> str | None:
    """Return the identifier of a record, its own or that of the dataset item inside; None unless non-empty text."""
    found = record.get("uuid")
    inner = record.get({"nvidia": "question", "lm_eval": "doc"}.get(form, ""))
    if found is None and isinstance(inner, dict):
        found = inner.get("uuid")
    return found if isinstance(found, str) and found else None


Relabel = Literal["recorded", "from_raw", "fallbacks"]
NO_PREDICTION = "no prediction: expected predicted_label, judge_response, predicted_label_raw, raw_text or doc"
_TELLING = ("judge", "mcq", "logprob", "nvidia", "lm_eval")
"""Forms a record's keys tell for sure."""
_CERTAINTY = {"judge": 0.95, "mcq": 0.95, "logprob": 0.95, "nvidia": 0.9, "lm_eval": 0.9, "plain": 0.8, "response": 0.6}
_SIGNS = (b'"judge_response"', b'"predicted_label"', b'"predicted_label_raw"', b'"judge_raw"')
"""Keys that tell a When2Call prediction where its record breaks off."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset row says about one task."""

    question: str | None = None
    gold: str | None = None
    answers: tuple[str, ...] = ()
    """Names of the candidate answers, in the row's own order: what a choice's number refers to."""
    tools: tuple[ToolSpec, ...] | None = None
    no_tools: bool | None = None
    """Whether the model had no tool at all; None when the row is unknown."""
    expected: Expectation = msgspec.field(default_factory=Expectation)
    facets: dict[str, str] = msgspec.field(default_factory=dict)


UNKNOWN = Row()
"""Nothing is known but the prediction."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """One prediction file: the last record of every uuid, in order of each uuid's first record."""

    predictions: dict[str, Prediction]
    bad: tuple[BadRecord, ...]
    method: Method
    model: str | None = None
    """The model tested, when the file names exactly one."""


class When2CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader hands the When2Call grader and exporter beside the general fields."""

    method: Method
    labels: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Prediction set -> label; None where a record makes no prediction. ``""`` names the only set of most forms."""
    answered: bool = True
    """False when only the model's free text was recorded, which a judge has yet to label."""
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    no_tools: bool | None = None
    in_dataset: bool = True


class When2CallIndex(msgspec.Struct, frozen=True):
    """Prediction files by input name, and the identifiers of the dataset."""

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

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float:
        form = form_of(record) if isinstance(record, dict) else None
        if form is None or uuid_of(record, form) is None:
            return 0.0
        if form == "lm_eval" and not ("correct_answer" in record["doc"] and "macro_f1" in record):
            return 0.0
        return _CERTAINTY[form]

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        return 0.7 if b'"uuid"' in text and any(sign in text for sign in _SIGNS) else None

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        form = form_of(record)
        if form in ("judge", "mcq", "logprob", "nvidia", "plain") and uuid_of(record, form) is None:
            return "a prediction without uuid"
        bare = form is None and "uuid" in record and "run_labels" not in record
        return "a uuid without a prediction; a dataset is named by --dataset, beside predictions" if bare else None

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
            uuid = _uuid(raw.value)
            if uuid is None or _problem(raw.value, strict=True) is not None:
                continue
            if uuid in uuids:
                repeats.add(raw.ordinal)
            uuids.add(uuid)
        return When2CallIndex(loaded, inputs.dataset, uuids=frozenset(uuids), repeats=frozenset(repeats))

    def files(self, inputs: Inputs, index: When2CallIndex) -> Iterator[RecordFile]:
        """Yield the dataset, once per prediction file, each followed by what the dataset does not know."""
        for given in inputs.data:
            if inputs.dataset is not None:
                yield RecordFile(input=given, file=inputs.dataset, extra="dataset")
            yield RecordFile(input=given, ranges=(Range(end=given.path.stat().st_size),))

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
        identifier, row = _identified(value, self.profile), read_row(value)
        prediction = loaded.predictions.get(_uuid(value) or "")
        if prediction is None:
            yield Sample(
                id=identifier,
                model=loaded.model,
                input=row.question,
                tools=row.tools,
                expected=row.expected,
                status=Status.MISSING,
                facets=row.facets,
                source=place,
                native=When2CallRecord(method=loaded.method, no_tools=row.no_tools),
            )
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
        fell_back = prediction.form == "judge" and prediction.record.get("judge_fallback_to_cannot_answer")
        if relabel == "recorded" or (relabel == "fallbacks" and not fell_back):
            return recorded, {"relabel_differs": 1}
        return {name: raw.get(name, label) if label is not None else None for name, label in recorded.items()}, {
            "relabelled": 1
        }


def _identified(value: Any, profile: Profile) -> str:
    """Return the identifier of a dataset row.

    ``upstream``: of one that is no non-empty text, so that no prediction can have it, its JSON text: the evaluation
    suite counts such a row as one without a prediction. Not of a list or an object, at which the suite stops.
    """
    if not isinstance(value, dict):
        raise ValueError(f"expected a dataset row (an object), found {compact(value)[:60]}")  # noqa: TRY004
    uuid = _uuid(value)
    if uuid is None and profile == "upstream" and not isinstance(value.get("uuid", []), list | dict):
        uuid = compact(value["uuid"])
    if uuid is None:
        raise ValueError("uuid is missing or not a non-empty text")
    return uuid


def _uuid(record: Any) -> str | None:
    uuid = record.get("uuid") if isinstance(record, dict) else None
    return uuid if isinstance(uuid, str) and uuid else None


def _own_row(prediction: Prediction) -> Row:
    """Return what a prediction says about its own task when there is no dataset."""
    if prediction.item is not None:
        return read_row(prediction.item, strict=False)
    gold = prediction.record.get("gold_label")
    if gold is None:
        return UNKNOWN
    if gold not in LABELS:
        raise ValueError(f"gold_label must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}")
    return Row(gold=gold, expected=Expectation(label=gold))


def _problem(record: Mapping[str, Any], *, strict: bool) -> str | None:
    for name in ("question", "correct_answer") if strict else ():
        if name not in record:
            return f"{name} is missing"
    gold = record.get("correct_answer")
    if gold not in LABELS and (strict or gold is not None):
        return f"correct_answer must be one of {', '.join(LABELS)}; got {compact(gold)[:60]}"
    return None


def read_row(record: Mapping[str, Any], *, strict: bool = True) -> Row:
    """Return a dataset row; ``tools`` may hold JSON texts or objects, missing optional fields are empty.

    A row without tools (missing, null or empty list) is one without any tool at hand: such rows are the denominator of
    the tool hallucination rate. ``strict`` requires question and gold label, as the evaluation suite does; a row inside
    a prediction may lack them. ValueError where a row breaks this, or its gold label is none of the four.
    """
    if (problem := _problem(record, strict=strict)) is not None:
        raise ValueError(problem)
    question, gold, tools = record.get("question"), record.get("correct_answer"), record.get("tools")
    source, answers = record.get("source"), as_map(record.get("answers"))
    text = answers.get(gold) if isinstance(gold, str) else None
    calls: tuple[ExpectedCall, ...] | None = None if gold is None else ()
    if gold == "tool_call":
        call = tool_call(_decoded(answers.get("tool_call")))
        calls = (ExpectedCall.of(call),) if call is not None and call.name else None
    specs = (tool_spec(_decoded(entry)) for entry in (tools if isinstance(tools, list) else ()))
    return Row(
        question=question if isinstance(question, str) else None,
        gold=gold,
        answers=tuple(answers),
        tools=tuple(spec for spec in specs if spec is not None),
        no_tools=not tools,
        expected=Expectation(calls=calls, label=gold, text=text if isinstance(text, str) else None),
        facets={"source": source} if isinstance(source, str) and source else {},
    )


def _decoded(value: Any) -> Any:
    """Return an object given as JSON text or as itself."""
    try:
        return loads(value) if isinstance(value, str) else value
    except JsonProblem:
        return None


def load(source: Input, method: Method | None) -> Loaded:
    """Read a prediction file.

    The last record of a uuid counts whatever it holds: one without a prediction leaves its dataset row without one. A
    record too short to tell its own form (``plain``, ``bare``) is read in the form of its file: that of the method the
    user named, else that of the first record whose keys tell.
    """
    predictions: dict[str, Prediction] = {}
    bad: list[BadRecord] = []
    bare: list[BadRecord] = []
    first: Form | None = None
    for raw in read_records(source):
        place = Source(file=source.shown, ordinal=raw.ordinal, line=raw.line)
        prediction = _parsed(raw)
        if isinstance(prediction, str):
            bad.append(BadRecord(source=place, reason=prediction, native=raw.value))
            continue
        predictions[prediction.uuid] = prediction  # a key stays at its place in a dict when its value is replaced
        if prediction.form == "bare":
            bare.append(BadRecord(source=place, reason=NO_PREDICTION, native=raw.value))
        elif first is None and prediction.form in _TELLING:
            first = prediction.form
    form = first if first == "judge" or (method is None and first in ("mcq", "logprob")) else None
    if method in ("mcq", "mcq_logprob"):
        form = "mcq" if method == "mcq" else "logprob"
    if form != "logprob":  # there a record without labels is still counted, under its mode
        bad = sorted(bad + bare, key=lambda each: each.source.ordinal)
    if form is not None or bare:
        predictions = _in_form(predictions, form)
    models = {each.model for each in predictions.values()} - {None}
    only = models.pop() if len(models) == 1 else None
    guessed: Method = METHODS[first] if first else "llm_judge"
    return Loaded(predictions=predictions, bad=tuple(bad), method=method or guessed, model=only)


def _parsed(raw: Element) -> Prediction | str:
    """Return the prediction of a record, or what is wrong with it; a ``bare`` one may still turn out to be none."""
    if raw.problem is not None:
        return raw.problem
    if not isinstance(raw.value, dict):
        return f"expected an object, found {compact(raw.value)[:60]}"
    form = form_of(raw.value) or "bare"
    uuid = uuid_of(raw.value, form)
    if uuid is None and form == "bare":
        return NO_PREDICTION
    if uuid is None:
        return "uuid is missing or not a non-empty text, so the record belongs to no dataset row"
    return Prediction(uuid=uuid, form=form, record=raw.value, ordinal=raw.ordinal, line=raw.line)


def _in_form(predictions: dict[str, Prediction], form: Form | None) -> dict[str, Prediction]:
    """Return predictions with the short ones read in the form of their file, without those that predict nothing."""
    short: tuple[Form, ...] = ("plain", "bare", "response") if form == "logprob" else ("plain",)
    read = {
        uuid: msgspec.structs.replace(each, form=form) if form is not None and each.form in short else each
        for uuid, each in predictions.items()
    }
    return {uuid: each for uuid, each in read.items() if each.form != "bare"}


def read_events(path: Path | None, *, stop_at_broken_line: bool = False) -> list[Mapping[str, Any]]:
    """Return the events of an audit file, none without a file; a line that is no JSON object is left out."""
    events: list[Mapping[str, Any]] = []
    if path is None:
        return events
    with reading(path):
        for line in iter_lines(path):
            try:
                event = loads(line.data)
            except JsonProblem:
                if stop_at_broken_line:
                    break
                continue
            if isinstance(event, Mapping):
                events.append(event)
    return events
