"""Recognising prediction files by their first record."""

from __future__ import annotations

import json
from typing import Any

from gradestack_plugins.when2call.records import form_of, uuid_of

_CERTAINTY = {"judge": 0.95, "mcq": 0.95, "logprob": 0.95, "nvidia": 0.9, "lm_eval": 0.9, "plain": 0.8, "response": 0.6}

_SIGNS = (b'"judge_response"', b'"predicted_label"', b'"predicted_label_raw"', b'"judge_raw"')
"""Keys that tell a When2Call prediction when its first record is longer than the piece looked at."""


def first_record(head: bytes) -> Any:
    """Return the first record at the beginning of a JSON Lines or JSON list file; None when cut off or not JSON."""
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    text = text[1:].lstrip() if text.startswith("[") else text
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def confidence(head: bytes) -> float:
    """Return how sure the beginning of a file looks like When2Call predictions."""
    record = first_record(head)
    if isinstance(record, dict):
        form = form_of(record)
        if form is None or uuid_of(record, form) is None:
            return 0.0
        if form == "lm_eval" and not ("correct_answer" in record["doc"] and "macro_f1" in record):
            return 0.0
        return _CERTAINTY[form]
    cut = record is None and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    return 0.7 if cut and b'"uuid"' in head and any(sign in head for sign in _SIGNS) else 0.0
