"""Recognising prediction files by their records."""

from __future__ import annotations

from typing import Any

from gradestack_plugins.when2call.records import form_of, uuid_of

_CERTAINTY = {"judge": 0.95, "mcq": 0.95, "logprob": 0.95, "nvidia": 0.9, "lm_eval": 0.9, "plain": 0.8, "response": 0.6}

_SIGNS = (b'"judge_response"', b'"predicted_label"', b'"predicted_label_raw"', b'"judge_raw"')
"""Keys that tell a When2Call prediction where its record breaks off."""


def looks_like(record: Any) -> float:
    """Return how much a record looks like a When2Call prediction."""
    form = form_of(record) if isinstance(record, dict) else None
    if form is None or uuid_of(record, form) is None:
        return 0.0
    if form == "lm_eval" and not ("correct_answer" in record["doc"] and "macro_f1" in record):
        return 0.0
    return _CERTAINTY[form]


def begins_like(text: bytes) -> float | None:
    """Return how much the beginning of a record looks like one."""
    return 0.7 if b'"uuid"' in text and any(sign in text for sign in _SIGNS) else None


def complaint(record: dict[str, Any]) -> str | None:
    """Return what is missing from a prediction, or from an item that has none."""
    form = form_of(record)
    if form in ("judge", "mcq", "logprob", "nvidia", "plain") and uuid_of(record, form) is None:
        return "a prediction without uuid"
    unpredicted = form is None and "uuid" in record and "run_labels" not in record
    return "a uuid without a prediction; a dataset is named by --dataset, beside predictions" if unpredicted else None
