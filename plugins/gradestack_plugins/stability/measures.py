"""The stability of one task: what its k labels say."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import attrs

UPSTREAM_FLOATS = ("consistency", "mean_accuracy_across_runs", "entropy", "normalized_entropy", "flip_rate")
UPSTREAM_FLAGS = ("is_stable", "is_mode_correct", "is_stable_and_correct", "is_stable_but_wrong")


@attrs.frozen(kw_only=True)
class Measures:
    """Stability of one task."""

    consistency: float = 0.0
    is_stable: bool = False
    is_mode_correct: bool = False
    is_stable_and_correct: bool = False
    is_stable_but_wrong: bool = False
    mean_accuracy_across_runs: float = 0.0
    entropy: float = 0.0
    normalized_entropy: float | None = 0.0
    flip_rate: float | None = 0.0


def mode(labels: Sequence[Hashable]) -> tuple[Hashable, int]:
    """Return the most frequent label and its multiplicity; on a tie the label seen first in the runs."""
    return Counter(labels).most_common(1)[0]


def entropy(labels: Sequence[Hashable]) -> float:
    """Return ``-sum of p log2 p`` over the labels present, in bits; the order of the runs does not matter."""
    n = len(labels)
    return abs(math.fsum(-(c / n) * math.log2(c / n) for c in Counter(labels).values()))


def entropy_in_order(labels: Sequence[Hashable]) -> float:
    """Return the same, summed label by label in first-seen order as the evaluation suite does."""
    n, total = len(labels), 0.0
    for count in Counter(labels).values():
        p = count / float(n)
        total -= p * math.log2(p)
    return total


def flips(labels: Sequence[Hashable]) -> int:
    """Return how often neighbouring runs differ."""
    return sum(a != b for a, b in itertools.pairwise(labels))


def documented(labels: Sequence[Hashable], gold: Hashable, k: int, n_labels: int) -> Measures:
    """Return the measures of at least one recorded run, as the document defines them.

    With m the multiplicity of the mode: ``consistency = m / k``, stable when ``m = k``; accuracy is the number of runs
    with the gold label / k; entropy and flips are over the runs recorded,
    ``normalized_entropy = entropy / log2(n_labels)``, ``flip_rate = changes / (recorded - 1)``.

    Args:
        labels: Labels of the recorded runs in order.
        gold: Gold label.
        k: Runs asked for, at least as many as recorded.
        n_labels: Number of values a run can take; normalised entropy is undefined below 2.
    """
    label, count = mode(labels)
    stable, right = count == k, label == gold
    h = entropy(labels)
    return Measures(
        consistency=count / k,
        is_stable=stable,
        is_mode_correct=right,
        is_stable_and_correct=stable and right,
        is_stable_but_wrong=stable and not right,
        mean_accuracy_across_runs=sum(each == gold for each in labels) / k,
        entropy=h,
        normalized_entropy=min(1.0, h / math.log2(n_labels)) if n_labels > 1 else None,
        flip_rate=flips(labels) / (len(labels) - 1) if len(labels) > 1 else None,
    )


def upstream(
    labels: Sequence[Hashable], gold: Hashable, n_runs: int, n_labels: int, trusted: Mapping[str, Any]
) -> Measures:
    """Return the measures as the evaluation suite computes them from a record it finds on disk.

    Fields the record already has are trusted; mode and its count are computed unless both are there. ``k`` is
    ``n_runs`` of the record, or the number of runs when that is 0. Without runs, what is not there is 0.

    Args:
        labels: Labels of the recorded runs in order.
        gold: Gold label.
        n_runs: Runs asked for, 0 when the record does not say.
        n_labels: Number of labels entropy is normalised by.
        trusted: Derived fields of the record, of the right types.
    """
    found: dict[str, Any] = {name: trusted[name] for name in (*UPSTREAM_FLOATS, *UPSTREAM_FLAGS) if name in trusted}
    if not labels:
        return Measures(**found)
    k = n_runs if n_runs > 0 else len(labels)
    if "mode_label" in trusted and "mode_count" in trusted:
        label, count = trusted["mode_label"], trusted["mode_count"]
    else:
        label, count = mode(labels)
    if "consistency" not in found:  # numbers too large for a float are allowed where nothing is computed from them
        found["consistency"] = float(count) / float(k)
    found.setdefault("is_stable", count == k)
    found.setdefault("is_mode_correct", label == gold)
    found.setdefault("is_stable_and_correct", found["is_stable"] and found["is_mode_correct"])
    found.setdefault("is_stable_but_wrong", found["is_stable"] and not found["is_mode_correct"])
    found.setdefault("mean_accuracy_across_runs", sum(each == gold for each in labels) / float(len(labels)))
    found.setdefault("entropy", entropy_in_order(labels))
    found.setdefault("normalized_entropy", found["entropy"] / math.log2(n_labels) if n_labels > 1 else 0.0)
    found.setdefault("flip_rate", flips(labels) / float(len(labels) - 1) if len(labels) > 1 else 0.0)
    return Measures(**found)
