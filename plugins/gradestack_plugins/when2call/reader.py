"""Reader ``when2call``: predictions of every paradigm, joined with the dataset.

The four behaviours they are about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
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
    read_records,
    reading,
    replace,
)
from gradestack.jsonio import (
    Element,
    JsonProblem,
    Range,
    as_list,
    as_map,
    compact,
    iter_lines,
    loads,
)
from gradestack_plugins.readers.chat import tool_call, tool_spec
from gradestack_plugins.readers.joined import (
    INVALID,
    LABELS,
    NO_UUID,
    gold_label,
    row_uuid,
    uuid_of,
)

VARIANTS = ("norm_bytes", "raw", "norm_tokens", "norm_chars")
"""Length normalisations of log-probability scoring; each is a prediction set of its own."""
SINGLE = ""
"""Name of the one prediction set of every other form."""
NVIDIA_DIRECT = "direct_answer"
"""Name of ``direct`` in NVIDIA's own judge prompt."""
JUDGE_FLAGS = (
    "parse_failed_first",
    "parse_failed_second",
    "used_retry",
    "fallback_to_cannot_answer",
)
MODES = ("llama_scoring", "string_fallback", "UNKNOWN")

_LONE_DIGIT = re.compile(r"[0-3]")
_DIGIT = re.compile(r"\b[0-3]\b")


def mcq_digit(text: str) -> int | None:
    """Return the choice a multiple-choice answer names, None when it names none."""
    found = _LONE_DIGIT.fullmatch(text.strip()) or _DIGIT.search(text.strip())
    return int(found.group()) if found else None


def label_at(names: Sequence[Any], index: Any) -> str:
    """Return the label at a position of an item's own answer names.

    ``invalid`` when there is none.
    """
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(names):
        return INVALID
    name = names[index]
    return name if isinstance(name, str) else INVALID


def judge_label(text: str, also: Collection[str] = ()) -> str | None:
    """Return the label of a judge's JSON answer, None when it is not well-formed."""
    try:
        answer = as_map(loads(text.strip()))
    except JsonProblem:
        return None
    label = str(answer.get("classification", answer.get("label"))).strip().lower()
    return label if label in LABELS or label in also else None


def best_index(scores: Any) -> int | None:
    """Return the position of the highest score, the first one on ties.

    None when these are not numbers.
    """
    if not isinstance(scores, list) or not scores:
        return None
    if any(isinstance(score, bool) or not isinstance(score, int | float) for score in scores):
        return None
    return max(range(len(scores)), key=scores.__getitem__)


def hopeless(scores: Any) -> bool:
    """Return whether every raw score is minus infinity, so that scoring said nothing at all."""
    return (
        isinstance(scores, list)
        and bool(scores)
        and all(score == float("-inf") for score in scores)
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


Method = Literal["mcq", "mcq_logprob", "llm_judge"]
Form = Literal["judge", "mcq", "logprob", "nvidia", "lm_eval", "plain", "response", "bare"]


class _About(msgspec.Struct, frozen=True):
    """What is known of the records of one form."""

    method: Method
    certainty: float = 0.0
    """How sure it is that a record of this form is one."""
    tells: bool = False
    """Whether a record's keys tell the form for sure."""
    text: str | None = None
    item: str | None = None


_FORMS: dict[Form, _About] = {
    "judge": _About("llm_judge", 0.95, tells=True),
    "mcq": _About("mcq", 0.95, tells=True, text="raw_mcq_output"),
    "logprob": _About("mcq_logprob", 0.95, tells=True, text="string_fallback_raw_output"),
    "nvidia": _About("llm_judge", 0.9, tells=True, text="model_response", item="question"),
    "lm_eval": _About("mcq", 0.9, tells=True, item="doc"),
    "plain": _About("llm_judge", 0.8),
    "response": _About("llm_judge", 0.6, text="raw_text"),
    "bare": _About("llm_judge"),
}
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


def _item(record: Mapping[str, Any], form: Form) -> Mapping[str, Any] | None:
    """Return the dataset item a record itself carries, where it does."""
    key = _FORMS[form].item
    found = record.get(key) if key else None
    return found if isinstance(found, dict) else None


def _uuid(record: Any, form: Form) -> str | None:
    """Return the identifier of a record, its own or that of the dataset item inside.

    None unless non-empty text.
    """
    own = as_map(record)
    return uuid_of(own if own.get("uuid") is not None else _item(own, form))


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One record of a prediction file."""

    uuid: str
    form: Form
    record: dict[str, Any]
    ordinal: int
    line: int | None

    def names(self, answers: tuple[str, ...]) -> tuple[Any, ...]:
        """Return the names that indices of this record refer to.

        Its own, else the dataset item's, else the four.
        """
        own = self.record.get(
            "string_fallback_answer_names" if self.form == "logprob" else "answer_names"
        )
        return tuple(own) if isinstance(own, list) else answers or LABELS

    def recorded(self, answers: tuple[str, ...]) -> dict[str, str | None]:
        """Return prediction set -> label as recorded; None where the record makes no prediction."""
        record, form = self.record, self.form
        if form == "response":
            return {}
        if form == "logprob":
            return {
                variant: _text(record.get(f"predicted_label_{variant}")) for variant in VARIANTS
            }
        label = _text(record.get("predicted_label"))
        if form == "nvidia":
            response = record["judge_response"]
            label = _text(as_map(response).get("classification"))
            if isinstance(response, str):
                label = judge_label(response, (NVIDIA_DIRECT,)) or response
        elif form == "lm_eval":
            pair = as_list(record.get("macro_f1"))
            label = label_at(answers or LABELS, pair[1]) if len(pair) == 2 else None
        elif form == "judge" and not isinstance(record.get("judge_raw"), str):
            label = None
        return {SINGLE: label}

    def from_raw(self, answers: tuple[str, ...], *, nvidia_names: bool) -> dict[str, str]:
        """Return prediction set -> label read from the raw output again, where it says one."""
        record, names = self.record, self.names(answers)
        if self.form == "judge" and isinstance(raw := record.get("judge_raw"), str):
            label = judge_label(raw, (NVIDIA_DIRECT,) if nvidia_names else ())
            return {} if label is None else {SINGLE: label}
        if self.form == "mcq" and isinstance(raw := record.get("raw_mcq_output"), str):
            digit = mcq_digit(raw)
            return {} if digit is None else {SINGLE: label_at(names, digit)}
        if self.form != "logprob":
            return {}
        raw = record.get("string_fallback_raw_output")
        if isinstance(raw, str) or hopeless(record.get("scores_raw")):
            digit = (
                mcq_digit(raw) if isinstance(raw, str) else record.get("string_fallback_pred_idx")
            )
            return {} if digit is None else dict.fromkeys(VARIANTS, label_at(names, digit))
        found = {variant: best_index(record.get(f"scores_{variant}")) for variant in VARIANTS}
        return {
            variant: label_at(names, index) for variant, index in found.items() if index is not None
        }

    def counts(self, recorded: Mapping[str, str | None]) -> dict[str, int]:
        """Return what the record adds to the counters of its method (keys of the
        ``when2call_counts`` aggregator).
        """
        record, found = self.record, dict[str, bool]()
        if self.form == "logprob":
            mode = _text(record.get("mode")) or "UNKNOWN"
            lost = mode == "string_fallback" and _is_minus_one(
                record.get("string_fallback_pred_idx")
            )
            found = {
                f"mode_{mode if mode in MODES else 'other'}": True,
                "string_fallback_pred_idx_minus1": lost,
            }
        elif all(label is None for label in recorded.values()):
            return {}
        elif self.form == "judge":
            found = {f"judge_{flag}": bool(record.get(f"judge_{flag}")) for flag in JUDGE_FLAGS}
        elif self.form == "mcq":
            found = {
                "mcq_predicted_index_minus1": _is_minus_one(record.get("predicted_index")),
                "mcq_predicted_label_invalid_raw": recorded[SINGLE] not in LABELS,
            }
        return {name: 1 for name, counted in found.items() if counted}


def _is_minus_one(value: Any) -> bool:
    """Return whether an index says that no choice was found, whether a number or text, as ``int()``
    reads it.
    """
    try:
        return int(value) == -1
    except (TypeError, ValueError, OverflowError):
        return False


Relabel = Literal["recorded", "from_raw", "fallbacks"]
NO_PREDICTION = (
    "no prediction: expected predicted_label, judge_response, predicted_label_raw, raw_text or doc"
)
_SIGNS = (b'"judge_response"', b'"predicted_label"', b'"predicted_label_raw"', b'"judge_raw"')
"""Keys that tell a When2Call prediction where its record breaks off."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What a dataset row says about one task."""

    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    answers: tuple[str, ...] = ()
    """Names of the candidate answers, in the row's own order: what a choice's number refers to."""
    no_tools: bool | None = None
    """Whether the model had no tool at all; None when the row is unknown."""


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
    """Prediction set -> label; None where a record makes no prediction.

    ``""`` names the only set of most forms.
    """
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
    """Joins a prediction file of any When2Call paradigm with the dataset.

    One sample per dataset row.

    Understood predictions, as JSON Lines or as one JSON list: ``judge_decisions``,
    ``mcq_predictions`` and ``mcq_logprob_predictions`` of the evaluation suite, NVIDIA's judge
    results, lm-eval sample lines, and plain ``{"uuid", "predicted_label"}``. A repeated uuid
    overwrites: the last record counts, in the place of the first, and leaves the row without a
    prediction when it holds none. A record too short to tell its form is read in that of its file.
    A record that is not JSON, holds no prediction or has no usable uuid is reported as bad.

    With a dataset: rows in dataset order, a uuid that occurs twice counts twice, a row without a
    prediction has status missing, and a prediction for an unknown uuid becomes a sample at the end
    that no metric counts. A row that cannot be used is reported as bad and is no row; ``upstream``
    keeps one whose uuid is another value than text.

    Without a dataset the gold label is taken from the record, where it has one.

    Labels are taken as recorded or read from the raw output again (``relabel``); the number
    changed, and the number that differs though it was kept, are counted. Defaults: ``documented``
    reads again where the suite's judge fell back to ``cannot_answer`` although the judge's answer
    is well-formed (``fallbacks``); ``upstream`` keeps the record.
    """

    provides = frozenset({"label", "expected", "tools", "input", "text", "native"})
    stack = "when2call"
    takes_dataset = True
    behind_others = 0.0

    profile: Profile = "documented"
    relabel: Relabel | None = None
    """``recorded``, ``from_raw`` (wherever raw output can be read) or ``fallbacks`` (where the
    judge fell back).
    """
    method: Method | None = None
    """Evaluation method of the files; default: that of the first record whose keys tell."""
    audit: Path | None = None
    """An ``audit_fallbacks.jsonl`` to summarise in the native artefact."""

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float:
        form = form_of(record) if isinstance(record, dict) else None
        if form is None or _uuid(record, form) is None:
            return 0.0
        if form == "lm_eval" and not ("correct_answer" in record["doc"] and "macro_f1" in record):
            return 0.0
        return _FORMS[form].certainty

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        return 0.7 if b'"uuid"' in text and any(sign in text for sign in _SIGNS) else None

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        form = form_of(record)
        if form in ("judge", "mcq", "logprob", "nvidia", "plain") and _uuid(record, form) is None:
            return "a prediction without uuid"
        bare = form is None and "uuid" in record and "run_labels" not in record
        return (
            "a uuid without a prediction; a dataset is named by --dataset, beside predictions"
            if bare
            else None
        )

    @override
    def index(self, inputs: Inputs) -> When2CallIndex:
        if self.audit is not None and not self.audit.is_file():
            raise DataError(f"{self.audit}: the audit file does not exist")
        read_events(
            self.audit
        )  # for the exporter, which comes last: what is wrong with it is said first
        loaded = {each.name: load(each, self.method) for each in inputs.data}
        uuids, repeats = set[str](), set[int]()
        for raw in read_records(inputs.dataset) if inputs.dataset is not None else ():
            uuid = uuid_of(raw.value)
            if uuid in uuids:
                repeats.add(raw.ordinal)
            elif uuid is not None:
                with suppress(ValueError):
                    check_row(raw.value)
                    uuids.add(uuid)
        return When2CallIndex(
            loaded, inputs.dataset, uuids=frozenset(uuids), repeats=frozenset(repeats)
        )

    def files(self, inputs: Inputs, index: When2CallIndex) -> Iterator[RecordFile]:
        """Yield the dataset, once per prediction file, each followed by what the dataset does not
        know.
        """
        for given in inputs.data:
            if inputs.dataset is not None:
                yield RecordFile(input=given, file=inputs.dataset, extra="dataset")
            yield RecordFile(input=given, ranges=(Range(end=given.path.stat().st_size),))

    @override
    def read(self, shard: Shard, index: When2CallIndex) -> Iterator[Sample | BadRecord]:
        loaded, shown = index.loaded[shard.input.name], shard.input.shown
        if shard.extra is not None:
            yield from self.samples(
                shard, partial(self._row, shown, loaded, index.repeats), index.dataset
            )
            return
        yield from loaded.bad
        for prediction in loaded.predictions.values():
            if prediction.uuid not in index.uuids:
                try:
                    row = _own_row(prediction) if index.dataset is None else Row()
                except ValueError as problem:
                    place = _place(prediction, shown)
                    yield BadRecord(source=place, reason=str(problem), native=prediction.record)
                    continue
                yield self._sample(prediction, row, shown, loaded, in_dataset=index.dataset is None)

    def _row(
        self, shown: str, loaded: Loaded, repeats: Collection[int], value: Any, place: Source
    ) -> Iterator[Sample]:
        identifier = row_uuid(value, self.profile)
        check_row(value)
        row = read_row(value)
        prediction = loaded.predictions.get(uuid_of(value) or "")
        if prediction is not None:
            yield self._sample(prediction, row, shown, loaded, counted=place.ordinal not in repeats)
            return
        native = When2CallRecord(method=loaded.method, no_tools=row.no_tools)
        yield Sample(
            id=identifier,
            model=loaded.model,
            status=Status.MISSING,
            source=place,
            native=native,
            **row.fields,
        )

    def _sample(
        self,
        prediction: Prediction,
        row: Row,
        shown: str,
        loaded: Loaded,
        *,
        in_dataset: bool = True,
        counted: bool = True,
    ) -> Sample:
        """Return the sample of one prediction.

        The counters of its record count once per uuid (``counted``).
        """
        recorded, about = prediction.recorded(row.answers), _FORMS[prediction.form]
        labels, changed = self._labels(prediction, recorded, row.answers)
        answered = prediction.form != "response"
        missing = answered and all(label is None for label in labels.values())
        return Sample(
            id=prediction.uuid,
            model=_text(prediction.record.get("target_model")) or loaded.model,
            label=next(iter(labels.values()), None),
            text=_text(prediction.record.get(about.text)) if about.text else None,
            recorded={f"label {name}".strip(): label for name, label in recorded.items()},
            status=Status.MISSING if missing else Status.OK,
            source=_place(prediction, shown),
            native=When2CallRecord(
                method=self.method or about.method,
                labels=labels,
                answered=answered,
                counts={**prediction.counts(recorded), **changed} if counted else {},
                no_tools=row.no_tools,
                in_dataset=in_dataset,
            ),
            **row.fields,
        )

    def _labels(
        self, prediction: Prediction, recorded: dict[str, str | None], answers: tuple[str, ...]
    ) -> tuple[dict[str, str | None], dict[str, int]]:
        """Return the labels to grade, and whether the raw output changed one or would have."""
        documented = self.profile == "documented"
        raw = prediction.from_raw(answers, nvidia_names=documented)
        if all(recorded.get(name) in (None, label) for name, label in raw.items()):
            return recorded, {}
        fell_back = prediction.form == "judge" and prediction.record.get(
            "judge_fallback_to_cannot_answer"
        )
        relabel = self.relabel or ("fallbacks" if documented else "recorded")
        if relabel == "recorded" or (relabel == "fallbacks" and not fell_back):
            return recorded, {"relabel_differs": 1}
        again = {
            name: None if label is None else raw.get(name, label)
            for name, label in recorded.items()
        }
        return again, {"relabelled": 1}


def _place(found: Prediction | Element, shown: str) -> Source:
    return Source(file=shown, ordinal=found.ordinal, line=found.line)


def _own_row(prediction: Prediction) -> Row:
    """Return what a prediction says about its own task when there is no dataset."""
    item = _item(prediction.record, prediction.form)
    if item is not None:
        return read_row(item)
    return Row(fields={"expected": Expectation(label=gold_label(prediction.record, "gold_label"))})


def check_row(record: Mapping[str, Any]) -> None:
    """Raise ValueError where a dataset row lacks what it must have."""
    for name in ("question", "correct_answer"):
        if name not in record:
            raise ValueError(f"{name} is missing")
    gold_label(record, "correct_answer", required=True)


def read_row(record: Mapping[str, Any]) -> Row:
    """Return a dataset row.

    ``tools`` may hold JSON texts or objects, missing optional fields are empty.
    """
    gold, tools = gold_label(record, "correct_answer"), record.get("tools")
    source, answers = _text(record.get("source")), as_map(record.get("answers"))
    calls: tuple[ExpectedCall, ...] | None = None if gold is None else ()
    if gold == "tool_call":
        call = tool_call(_decoded(answers.get("tool_call")))
        calls = (ExpectedCall.of(call),) if call is not None and call.name else None
    specs = [tool_spec(_decoded(entry)) for entry in (tools if isinstance(tools, list) else ())]
    fields = {
        "input": _text(record.get("question")),
        "tools": tuple(spec for spec in specs if spec is not None),
        "expected": Expectation(
            calls=calls, label=gold, text=_text(answers.get(gold) if gold else None)
        ),
        "facets": {"source": source} if source else {},
    }
    return Row(fields=fields, answers=tuple(answers), no_tools=not tools)


def _decoded(value: Any) -> Any:
    """Return an object given as JSON text or as itself."""
    try:
        return loads(value) if isinstance(value, str) else value
    except JsonProblem:
        return None


def load(source: Input, method: Method | None) -> Loaded:
    """Read a prediction file."""
    predictions: dict[str, Prediction] = {}
    bad: list[BadRecord] = []
    bare: list[BadRecord] = []
    first: Form | None = None
    for raw in read_records(source):
        prediction = _parsed(raw)
        if isinstance(prediction, str):
            bad.append(
                BadRecord(source=_place(raw, source.shown), reason=prediction, native=raw.value)
            )
            continue
        predictions[prediction.uuid] = (
            prediction  # a key stays at its place in a dict when its value is replaced
        )
        if prediction.form == "bare":
            bare.append(
                BadRecord(source=_place(raw, source.shown), reason=NO_PREDICTION, native=raw.value)
            )
        elif first is None and _FORMS[prediction.form].tells:
            first = prediction.form
    form = first if first == "judge" or (method is None and first in ("mcq", "logprob")) else None
    if method in ("mcq", "mcq_logprob"):
        form = "mcq" if method == "mcq" else "logprob"
    if form != "logprob":  # there a record without labels is still counted, under its mode
        bad = sorted(bad + bare, key=lambda each: each.source.ordinal)
    short = ("plain", "bare", "response") if form == "logprob" else ("plain",)
    read = {
        k: replace(each, form=form) if form and each.form in short else each
        for k, each in predictions.items()
    }
    models = {
        _text(each.record.get("target_model")) for each in read.values() if each.form != "bare"
    } - {None, ""}
    return Loaded(
        predictions={uuid: each for uuid, each in read.items() if each.form != "bare"},
        bad=tuple(bad),
        method=method or (_FORMS[first].method if first else "llm_judge"),
        model=models.pop() if len(models) == 1 else None,
    )


def _parsed(raw: Element) -> Prediction | str:
    """Return the prediction of a record, or what is wrong with it.

    A ``bare`` one may still turn out to be none.
    """
    if raw.problem is not None:
        return raw.problem
    if not isinstance(raw.value, dict):
        return f"expected an object, found {compact(raw.value)[:60]}"
    form = form_of(raw.value) or "bare"
    uuid = _uuid(raw.value, form)
    if uuid is None:
        return (
            NO_PREDICTION
            if form == "bare"
            else f"{NO_UUID}, so the record belongs to no dataset row"
        )
    return Prediction(uuid=uuid, form=form, record=raw.value, ordinal=raw.ordinal, line=raw.line)


def read_events(path: Path | None, *, stop_at_broken_line: bool = False) -> list[Mapping[str, Any]]:
    """Return the events of an audit file, none without a file.

    A line that is no JSON object is left out.
    """
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
