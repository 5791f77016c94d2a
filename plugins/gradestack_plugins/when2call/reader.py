"""Reader ``when2call``: predictions of every paradigm, joined with the dataset."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    Expectation,
    ExpectedCall,
    Input,
    Sample,
    Source,
    Status,
    read_records,
)
from gradestack.jsonio import (
    JsonProblem,
    as_list,
    as_map,
    compact,
    loads,
)
from gradestack_plugins.readers.chat import tool_call, tool_spec
from gradestack_plugins.readers.joined import (
    INVALID,
    LABELS,
    NO_UUID,
    JoinedReader,
    LastRecords,
    gold_label,
    last_records,
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
NO_PREDICTION = (
    "no prediction: expected predicted_label, judge_response, predicted_label_raw, raw_text or doc"
)

Method = Literal["mcq", "mcq_logprob", "llm_judge"]
Form = Literal["nvidia", "lm_eval", "logprob", "judge", "mcq", "plain", "response"]


class FormTraits(msgspec.Struct, frozen=True):
    """Traits of the records of one form."""

    keys: tuple[str, ...]
    """A record with one of them is of this form, or of one before it."""
    method: Method
    certainty: float
    """How sure it is that a record of this form is one."""
    text: str | None = None
    """Key of the model's answer."""
    item: str | None = None
    """Key of the dataset item that the record carries."""


_LABELS_OF_VARIANTS = tuple(f"predicted_label_{variant}" for variant in VARIANTS)
_JUDGE_KEYS = ("judge_raw", *(f"judge_{flag}" for flag in JUDGE_FLAGS))
_JUDGE_MARKS = ("judge_model", "judge_rationale", "judge_exception_first", "judge_exception_second")
"""Keys that tell whose label a ``predicted_label`` is, but are no prediction on their own."""
_CHOICE_KEYS = ("raw_mcq_output", "predicted_index", "answer_names")

FORMS: dict[Form, FormTraits] = {
    "nvidia": FormTraits(("judge_response",), "llm_judge", 0.9, "model_response", "question"),
    "lm_eval": FormTraits(("macro_f1",), "mcq", 0.9, item="doc"),
    "logprob": FormTraits(_LABELS_OF_VARIANTS, "mcq_logprob", 0.95, "string_fallback_raw_output"),
    "judge": FormTraits(_JUDGE_KEYS, "llm_judge", 0.95),
    "mcq": FormTraits(_CHOICE_KEYS, "mcq", 0.95, "raw_mcq_output"),
    "plain": FormTraits(("predicted_label",), "llm_judge", 0.8),
    "response": FormTraits(("raw_text",), "llm_judge", 0.6, "raw_text"),
}
_FORMS_OF_METHODS: dict[Method | None, Form | None] = {"mcq": "mcq", "mcq_logprob": "logprob"}
"""Named method -> form of the records that are too short to tell it."""
_BROKEN_OFF = (b'"judge_response"', b'"predicted_label"', b'"predicted_label_raw"', b'"judge_raw"')
"""Keys that tell a When2Call prediction where its record breaks off."""


def form_of(record: Mapping[str, Any]) -> Form | None:
    """Return the paradigm that wrote a record, by its keys; None when it is no prediction."""
    if "run_labels" in record:
        return None  # several runs of one item, a stability record
    keys = record.keys()
    for form, traits in FORMS.items():
        if not keys.isdisjoint(traits.keys):
            if form == "plain" and not keys.isdisjoint(_JUDGE_MARKS):
                return "judge"
            return form
    return None


def record_item(record: Mapping[str, Any], form: Form) -> Mapping[str, Any] | None:
    """Return the dataset item that a record carries, where it does."""
    key = FORMS[form].item
    item = record.get(key) if key else None
    return item if isinstance(item, dict) else None


def record_uuid(record: Mapping[str, Any], form: Form) -> str | None:
    """Return the identifier of a record, its own or that of its dataset item.

    None unless it is non-empty text.
    """
    uuid = record.get("uuid")
    return uuid_of(record_item(record, form) if uuid is None else record)


def judge_label(text: str, also: Collection[str] = ()) -> str | None:
    """Return the label of a judge's JSON answer, None when it is not well-formed."""
    try:
        verdict = as_map(loads(text.strip()))
    except JsonProblem:
        return None
    classification = verdict.get("classification", verdict.get("label"))
    label = str(classification).strip().lower()
    if label in LABELS or label in also:
        return label
    return None


def recorded_labels(
    record: Mapping[str, Any], form: Form, row: Mapping[str, Any] | None
) -> dict[str, str | None]:
    """Return prediction set -> label as recorded; None where the record makes no prediction.

    Args:
        record: A prediction.
        form: The form it is read in.
        row: The dataset's row, whose answers the numbers of lm-eval refer to.
    """
    if form == "response":
        return {}
    if form == "logprob":
        return {variant: _text(record.get(f"predicted_label_{variant}")) for variant in VARIANTS}
    if form == "nvidia":
        return {SINGLE: _nvidia_label(record.get("judge_response"))}
    if form == "lm_eval":
        answers = as_map(as_map(row).get("answers"))
        names = tuple(answers)
        macro_f1 = record.get("macro_f1")
        return {SINGLE: _choice_label(macro_f1, names or LABELS)}
    if form == "judge" and not isinstance(record.get("judge_raw"), str):
        return {SINGLE: None}
    return {SINGLE: _text(record.get("predicted_label"))}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _nvidia_label(response: Any) -> str | None:
    if isinstance(response, str):
        return judge_label(response, (NVIDIA_DIRECT,)) or response
    return _text(as_map(response).get("classification"))


def _choice_label(pair: Any, names: tuple[str, ...]) -> str | None:
    """Return the name of the choice in ``[gold index, predicted index]``, invalid beyond names."""
    if len(as_list(pair)) != 2:
        return None
    index = pair[1]
    is_choice = type(index) is int and index in range(len(names))
    return names[index] if is_choice else INVALID


def count_flags(
    record: Mapping[str, Any], form: Form, labels: Mapping[str, str | None]
) -> dict[str, int]:
    """Return 1 for each flag of a prediction; the figures of its method are their sums.

    Flags say how a label came about: by which mode or fallback, from an index of -1, or that it is
    no label at all. The raw answer of a judge is labelled again here: another label than the
    recorded one is ``relabelled`` where the record says it fell back, else ``relabel_differs``.
    """
    label = labels.get(SINGLE)
    flags = dict[str, bool]()
    if form == "logprob":
        text = _text(record.get("mode"))
        mode = text or "UNKNOWN"
        is_fallback = mode == "string_fallback"
        is_lost = is_fallback and is_minus_one(record.get("string_fallback_pred_idx"))
        known = mode if mode in MODES else "other"
        flags = {f"mode_{known}": True, "string_fallback_pred_idx_minus1": is_lost}
    elif form == "judge" and label is not None:
        flags = {f"judge_{flag}": bool(record.get(f"judge_{flag}")) for flag in JUDGE_FLAGS}
        label_again = judge_label(record["judge_raw"], (NVIDIA_DIRECT,))
        differs = label_again not in (None, label)
        fell_back = flags["judge_fallback_to_cannot_answer"]
        flags["relabelled"] = differs and fell_back
        flags["relabel_differs"] = differs and not fell_back
    elif form == "mcq" and label is not None:
        predicted_index = record.get("predicted_index")
        flags["mcq_predicted_index_minus1"] = is_minus_one(predicted_index)
        flags["mcq_predicted_label_invalid_raw"] = label not in LABELS
    return {name: 1 for name, is_set in flags.items() if is_set}


def is_minus_one(value: Any) -> bool:
    """Return whether an index says that no choice was found, as ``int()`` reads it."""
    try:
        return int(value) == -1
    except (TypeError, ValueError, OverflowError):
        return False


class PredictionFile(LastRecords, frozen=True, kw_only=True):
    """The predictions of a file."""

    method: Method
    short_form: Form | None
    """Form of the records that are too short to tell it; None: of their own."""
    model: str | None
    """The model tested, when the file names exactly one."""


class When2CallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction as the When2Call grader takes it, beside the general fields."""

    method: Method
    labels: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Prediction set -> label; None where a record makes no prediction.

    ``""`` names the only set of most forms. Empty when only the model's free text was recorded,
    which a judge has yet to label.
    """
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    """Counters that the record adds 1 to; ``not_in_dataset``: the dataset has no such uuid."""


@attrs.frozen(kw_only=True)
class When2CallReader(JoinedReader):
    """Joins a prediction file of any When2Call paradigm with the dataset.

    One sample per dataset row.

    Understood predictions, as JSON Lines or as one JSON list: ``judge_decisions``,
    ``mcq_predictions`` and ``mcq_logprob_predictions`` of the evaluation suite, NVIDIA's judge
    results, lm-eval sample lines, and plain ``{"uuid", "predicted_label"}``. A repeated uuid
    overwrites: the last record counts, in the place of the first, and leaves the row without a
    prediction when it holds none. A record too short to tell its form is read in that of its file.
    A record that is not JSON, holds no prediction or has no usable uuid is reported as bad.

    With a dataset, samples come in its order, and a uuid that occurs twice counts twice. A row
    without a prediction has status missing. A prediction for an unknown uuid becomes a sample at
    the end that no metric counts. A row that cannot be used is reported as bad and is no row.

    Without a dataset the gold label is taken from the record, where it has one.

    Labels are taken as recorded. Where a judge fell back to ``cannot_answer`` although its answer
    is well-formed, the label is read from that answer and counted as ``relabelled``. Where another
    recorded label differs from the judge's answer, it is kept and counted as ``relabel_differs``.
    """

    example_file = "when2call_test_llm_judge.jsonl"
    provides = frozenset({"label", "expected", "tools", "input", "text", "native"})
    stack = "when2call"

    method: Method | None = None
    """Evaluation method of the files; default: that of the first record whose keys tell."""

    @classmethod
    @override
    def looks_like(cls, record: Any) -> float:
        try:
            form, _ = identify(record, short_form=None)
        except ValueError:
            return 0.0
        return FORMS[form].certainty

    @classmethod
    @override
    def begins_like(cls, text: bytes) -> float | None:
        has_key = any(key in text for key in _BROKEN_OFF)
        return 0.7 if has_key and b'"uuid"' in text else None

    @classmethod
    @override
    def complaint(cls, record: dict[str, Any]) -> str | None:
        form = form_of(record)
        if form is None and "uuid" in record and "question" in record:
            return (
                "a uuid without a prediction; a dataset is named by --dataset, beside predictions"
            )
        if form in (None, "lm_eval", "response") or record_uuid(record, form) is not None:
            return None
        return "a prediction without uuid"

    @override
    def load(self, file: Input, *, is_only: bool) -> PredictionFile:
        elements = list(read_records(file))
        forms = [form_of(as_map(element.value)) for element in elements]
        first = next((form for form in forms if form not in (None, "plain", "response")), None)
        form_of_file = first if first in ("judge", "mcq", "logprob") else None
        short_form = _FORMS_OF_METHODS.get(self.method, form_of_file)
        last = last_records(elements, lambda record: identify(record, short_form)[1])
        usable = last.by_uuid.values()
        texts = {_text(element.value.get("target_model")) for element in usable}
        models = texts - {None, ""}
        method = self.method or FORMS[first or "plain"].method
        model = None
        if len(models) == 1:
            model = models.pop()
        return PredictionFile(
            by_uuid=last.by_uuid,
            unusable=last.unusable,
            method=method,
            short_form=short_form,
            model=model,
        )

    @override
    def check_row(self, row: Mapping[str, Any]) -> None:
        for name in ("question", "correct_answer"):
            if name not in row:
                raise ValueError(f"{name} is missing")
        gold_label(row, "correct_answer", required=True)

    @override
    def samples_of_pair(
        self, file: PredictionFile, row: Any, record: Any, source: Source, *, n_rows: int | None
    ) -> Iterator[Sample]:
        if record is None:
            when2_call_record = When2CallRecord(method=file.method)
            yield Sample(
                id=row["uuid"],
                model=file.model,
                status=Status.MISSING,
                source=source,
                native=when2_call_record,
                **read_row(row),
            )
            return
        form, uuid = identify(record, file.short_form)
        traits = FORMS[form]
        if n_rows is None:
            item = record_item(record, form)
        else:
            item = row
        fields: dict[str, Any] = {}
        if item is not None:
            fields = read_row(item)
        elif n_rows is None:
            fields["expected"] = Expectation(label=gold_label(record, "gold_label"))
        labels = recorded = recorded_labels(record, form, item)
        flags = count_flags(record, form, recorded)
        if n_rows == 0:
            flags["not_in_dataset"] = 1
        if "relabelled" in flags:
            labels = {SINGLE: judge_label(record["judge_raw"], (NVIDIA_DIRECT,))}
        is_missing = form != "response" and all(label is None for label in labels.values())
        named_labels = {f"label {name}".strip(): label for name, label in recorded.items()}
        native = When2CallRecord(method=file.method, labels=labels, counts=flags)
        text = None
        if traits.text:
            text = _text(record.get(traits.text))
        target_model = record.get("target_model")
        model = _text(target_model) or file.model
        status = Status.MISSING if is_missing else Status.OK
        yield Sample(
            id=uuid,
            model=model,
            label=next(iter(labels.values()), None),
            text=text,
            recorded=named_labels,
            status=status,
            source=source,
            native=native,
            **fields,
        )


def read_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a dataset row gives a sample.

    ``tools`` may hold JSON texts or objects, missing optional fields are empty.
    """
    gold = gold_label(record, "correct_answer")
    tools = record.get("tools")
    source = _text(record.get("source"))
    answers = as_map(record.get("answers"))
    calls: tuple[ExpectedCall, ...] | None = None if gold is None else ()
    if gold == "tool_call":
        decoded = _decoded(answers.get("tool_call"))
        call = tool_call(decoded)
        calls = None
        if call is not None and call.name:
            calls = (ExpectedCall.of(call),)
    specs = [spec for tool in as_list(tools) if (spec := tool_spec(_decoded(tool))) is not None]
    question = _text(record.get("question"))
    specs_or_unknown = None
    if specs or not tools:
        specs_or_unknown = tuple(specs)
    reference = _text(answers.get(gold)) if gold else None
    expected = Expectation(calls=calls, label=gold, text=reference)
    facets = {"source": source} if source else {}
    return {
        "input": question,
        "tools": specs_or_unknown,
        "expected": expected,
        "facets": facets,
    }


def _decoded(value: Any) -> Any:
    """Return an object given as JSON text or as itself."""
    try:
        return loads(value) if isinstance(value, str) else value
    except JsonProblem:
        return None


def identify(record: Any, short_form: Form | None) -> tuple[Form, str]:
    """Return form and uuid of a record.

    Raises:
        ValueError: It is no prediction, or has no usable uuid.
    """
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, found {compact(record)[:60]}")
    form = form_of(record)
    if form == "plain" or (short_form == "logprob" and form in (None, "response")):
        form = short_form or form  # there a record without labels is still counted, under its mode
    if form is None:
        raise ValueError(NO_PREDICTION)
    uuid = record_uuid(record, form)
    if uuid is None:
        raise ValueError(f"{NO_UUID}, so the record belongs to no dataset row")
    return form, uuid
