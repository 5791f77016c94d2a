"""Stability records: one line per task with the labels of its runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from gradestack import Profile
from gradestack.jsonio import compact

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
"""Label set of the sweeps, in canonical order."""

INVALID = "invalid"

UPSTREAM_FLOATS = ("consistency", "mean_accuracy_across_runs", "entropy", "normalized_entropy", "flip_rate")
UPSTREAM_FLAGS = ("is_stable", "is_mode_correct", "is_stable_and_correct", "is_stable_but_wrong")
"""Derived fields of a record that ``upstream`` trusts."""

_LARGEST = 10**15
"""No count of runs is larger; beyond, counts are no longer exact as floats."""

_LARGEST_UPSTREAM = 10**308
"""What the suite can still divide by."""

_LARGEST_FIGURE = 1e100
"""Sums of many figures of this size stay finite."""


def uuid_of(record: Any) -> str | None:
    """Return a record's identifier, None unless it is non-empty text."""
    found = record.get("uuid") if isinstance(record, Mapping) else None
    return found if isinstance(found, str) and found else None


class RunLabel(msgspec.Struct, frozen=True, kw_only=True):
    """The label of one run: text, or for other values their JSON text."""

    text: str | None = None
    json: str | None = None

    @property
    def missing(self) -> bool:
        """Whether there is no run here."""
        return self.text is None and self.json is None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """One record: a task and its runs."""

    uuid: str
    gold: str | None
    runs: tuple[RunLabel, ...]
    texts: tuple[str | None, ...] = ()
    model: str | None = None
    n_runs: int = 0
    """Runs asked for; 0 when the record does not say."""
    derived: dict[str, Any] | None = None
    """Derived fields the record already has; only kept where they are trusted."""
    experiment: str | None = None


def read_sweep(record: Mapping[str, Any], uuid: str, profile: Profile) -> Sweep:
    """Return a record's runs; ValueError where it cannot be used.

    ``documented``: a null label is a missing run, any other value that is not text is ``invalid``. ``upstream``: every
    value is a label, ``run_labels`` that are no list are no runs, and the derived fields are kept.
    """
    trusting = profile == "upstream"
    model, experiment = record.get("target_model"), record.get("ckpt_name")
    texts = record.get("run_target_texts") or record.get("run_aux")
    labels = record.get("run_labels")
    if not trusting and labels is not None and not isinstance(labels, list):
        raise ValueError(f"run_labels must be a list, got {compact(labels)[:60]}")
    n_runs = _n_runs_upstream(record) if trusting else _n_runs_documented(record.get("n_runs"))
    derived = _derived(record) if trusting else None
    if trusting and _measured(record) and any(isinstance(label, list | dict) for label in record["run_labels"]):
        raise ValueError("run_labels holds a list or an object, which cannot be counted")
    return Sweep(
        uuid=uuid,
        gold=_gold(record, trusting=trusting),
        runs=tuple(_label(value, trusting=trusting) for value in labels) if isinstance(labels, list) else (),
        texts=tuple(text if isinstance(text, str) else None for text in texts) if isinstance(texts, list) else (),
        model=model if isinstance(model, str) and model else None,
        n_runs=n_runs,
        derived=derived,
        experiment=experiment if isinstance(experiment, str) and experiment else None,
    )


def _known_gold(record: Mapping[str, Any]) -> bool:
    return record.get("gold_label") in LABELS


def _measured(record: Mapping[str, Any]) -> bool:
    """Return whether the suite looks at the runs at all: it does for a known gold label and a list of runs."""
    labels = record.get("run_labels")
    return _known_gold(record) and isinstance(labels, list) and bool(labels)


def _gold(record: Mapping[str, Any], *, trusting: bool) -> str | None:
    """Return the gold label, None when there is none; upstream tells an unknown one (null too) from an absent one."""
    if "gold_label" not in record:
        return None
    gold = record["gold_label"]
    if isinstance(gold, str):
        return gold
    return compact(gold) if trusting or gold is not None else None


def _label(value: Any, *, trusting: bool) -> RunLabel:
    if isinstance(value, str):
        return RunLabel(text=value)
    if not trusting:
        return RunLabel() if value is None else RunLabel(text=INVALID)
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)  # true, 1 and 1.0 are one value to the suite
    return RunLabel(json=compact(value))


def _whole(record: Mapping[str, Any], name: str) -> int:
    """Return a field as a whole number the way ``int()`` reads it; what is empty or not there is 0."""
    value = record.get(name)
    try:
        return int(value or 0)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a whole number, got {compact(value)[:60]}") from None


def _computable(record: Mapping[str, Any], name: str, number: int, largest: float) -> None:
    """Make sure that a number the consistency is computed from is of a size it can be computed with."""
    if abs(number) > largest and "consistency" not in record and _measured(record):
        raise ValueError(f"{name} is too large")


def _n_runs_documented(value: Any) -> int:
    """Return the runs asked for, 0 unless given as a number of sensible size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _LARGEST:
        return 0
    return int(value)


def _n_runs_upstream(record: Mapping[str, Any]) -> int:
    number = _whole(record, "n_runs")
    _computable(record, "n_runs", number, _LARGEST_UPSTREAM)
    return min(max(0, number), _LARGEST_UPSTREAM)


def _derived(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the derived fields a record has, as numbers and truth values."""
    found: dict[str, Any] = {name: bool(record[name]) for name in UPSTREAM_FLAGS if name in record}
    for name in UPSTREAM_FLOATS:
        if name in record:
            try:
                number = float(record[name])
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"{name} must be a number, got {compact(record[name])[:60]}") from None
            if abs(number) <= _LARGEST_FIGURE:
                found[name] = number
            elif _known_gold(record):
                raise ValueError(f"{name} must be finite" + (", not this large" if math.isfinite(number) else ""))
    if "mode_label" in record and "mode_count" in record and _measured(record):
        found["mode_label"], found["mode_count"] = record["mode_label"], _whole(record, "mode_count")
        _computable(record, "mode_count", found["mode_count"], _LARGEST_FIGURE)
    return found


def kind_of(record: Mapping[str, Any]) -> str:
    """Return the evaluation method: as the record says, else by the fields it has."""
    named = str(record.get("eval_type") or record.get("ckpt_name") or "").lower()
    if "judge" in named or (not named and "run_judge_raw_outputs" in record):
        return "llm_judge"
    return "mcq_logprob" if "logprob" in named else "mcq"


def sweep_name(record: Mapping[str, Any], stem: str) -> str:
    """Return the name of the sweep a record belongs to.

    Its ``ckpt_name``, else ``mcq_stability_k=5_T=0.7`` and the like, else ``stem``.
    """
    name = record.get("ckpt_name")
    if isinstance(name, str) and name:
        return name
    kind, k, temperature = kind_of(record), record.get("n_runs"), record.get("temperature")
    mark = "Ttarget" if kind == "llm_judge" else "T"
    return f"{kind}_stability_k={k}_{mark}={temperature}" if k is not None and temperature is not None else stem
