"""The four behaviours and how they are read out of raw model and judge output."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

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
