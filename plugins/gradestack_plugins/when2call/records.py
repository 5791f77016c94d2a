"""The four behaviours and how they are read out of raw model and judge output."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from gradestack.jsonio import JsonProblem, loads

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
    best = 0
    for position, score in enumerate(scores):
        if score > scores[best]:
            best = position
    return best


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
    line: int

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

    @property
    def fell_back(self) -> bool:
        """Whether a judge's answer was given up and replaced by ``cannot_answer``."""
        return self.form == "judge" and bool(self.record.get("judge_fallback_to_cannot_answer"))

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
