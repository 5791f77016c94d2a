"""Stability records: one line per task with the labels of its runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Profile
from gradestack.jsonlist import Range, iter_list, list_ranges
from gradestack.jsontext import JsonProblem, compact, iter_lines, line_ranges, loads
from gradestack_plugins.stability.measures import UPSTREAM_FLAGS, UPSTREAM_FLOATS

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
"""Label set of the sweeps, in canonical order."""

INVALID = "invalid"

_LARGEST = 10**15
"""No count of runs is larger; beyond, counts are no longer exact as floats."""


@attrs.frozen(kw_only=True)
class Raw:
    """One record of a file, or what is wrong with it."""

    ordinal: int
    line: int
    value: Any = None
    problem: str | None = None


def is_list(path: Path) -> bool:
    """Return whether a file holds one JSON list rather than JSON Lines."""
    with path.open("rb") as file:
        head = file.read(4096)
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def ranges(path: Path) -> Iterator[Range]:
    """Yield the ranges in which a JSON Lines file or a JSON list may be read."""
    if is_list(path):
        yield from list_ranges(path)
        return
    for start, end, line in line_ranges(path):
        yield Range(start, end, line, line - 1)


def iter_raw(path: Path, part: Range | None = None) -> Iterator[Raw]:
    """Yield the records of a JSON Lines file or of a JSON list, or of one of its ranges."""
    if is_list(path):
        for element in iter_list(path, part):
            yield Raw(ordinal=element.ordinal, line=element.line, value=element.value, problem=element.problem)
        return
    part = part or Range()
    for line in iter_lines(path, part.start, part.end, part.first_line):
        try:
            yield Raw(ordinal=line.number - 1, line=line.number, value=loads(line.data))
        except JsonProblem as problem:
            yield Raw(ordinal=line.number - 1, line=line.number, problem=str(problem))


def uuid_of(record: Any) -> str | None:
    """Return a record's identifier, None unless it is non-empty text."""
    found = record.get("uuid") if isinstance(record, Mapping) else None
    return found if isinstance(found, str) and found else None


@attrs.frozen(kw_only=True)
class RunLabel:
    """The label of one run: text, or for other values their JSON text."""

    text: str | None = None
    json: str | None = None

    @property
    def missing(self) -> bool:
        """Whether there is no run here."""
        return self.text is None and self.json is None


@attrs.frozen(kw_only=True)
class Sweep:
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
    """Return a record's runs.

    ``documented``: a null label is a missing run, any other value that is not text is ``invalid``. ``upstream``: every
    value is a label, and the derived fields are kept.

    Raises:
        ValueError: ``run_labels`` is no list, or in ``upstream`` a value the evaluation suite cannot digest.
    """
    labels = record.get("run_labels")
    if labels is None:
        labels = []
    if not isinstance(labels, list):
        raise ValueError(f"run_labels must be a list, got {compact(labels)[:60]}")  # noqa: TRY004
    trusting = profile == "upstream"
    model, experiment = record.get("target_model"), record.get("ckpt_name")
    texts = record.get("run_target_texts") or record.get("run_aux")
    return Sweep(
        uuid=uuid,
        gold=_gold(record, trusting=trusting),
        runs=tuple(_label(value, trusting=trusting) for value in labels),
        texts=tuple(text if isinstance(text, str) else None for text in texts) if isinstance(texts, list) else (),
        model=model if isinstance(model, str) and model else None,
        n_runs=_n_runs(record.get("n_runs"), trusting=trusting),
        derived=_derived(record) if trusting else None,
        experiment=experiment if isinstance(experiment, str) and experiment else None,
    )


def _gold(record: Mapping[str, Any], *, trusting: bool) -> str | None:
    """Return the gold label, None when there is none; upstream tells an unknown one (null too) from an absent one."""
    if "gold_label" not in record:
        return None
    gold = record["gold_label"]
    if isinstance(gold, str):
        return gold
    if isinstance(gold, list | dict) and trusting:
        raise ValueError("gold_label must be a label")
    return compact(gold) if trusting or gold is not None else None


def _label(value: Any, *, trusting: bool) -> RunLabel:
    if isinstance(value, str):
        return RunLabel(text=value)
    if not trusting:
        return RunLabel() if value is None else RunLabel(text=INVALID)
    if isinstance(value, list | dict):
        raise ValueError("run_labels holds a list or an object, which cannot be counted")  # noqa: TRY004
    return RunLabel(json=compact(value))


def _whole(value: Any) -> int | None:
    """Return a value as a whole number the way ``int()`` reads it; None when it is none, or absurdly large."""
    try:
        number = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) <= _LARGEST else None


def _n_runs(value: Any, *, trusting: bool) -> int:
    number = _whole(value) if trusting or (isinstance(value, int | float) and not isinstance(value, bool)) else 0
    if number is None and trusting:
        raise ValueError(f"n_runs must be a whole number, got {compact(value)[:60]}")
    return max(0, number or 0)


def _derived(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the derived fields a record has, as numbers and truth values.

    Raises:
        ValueError: One of the numbers is none, or not finite.
    """
    found: dict[str, Any] = {name: bool(record[name]) for name in UPSTREAM_FLAGS if name in record}
    for name in UPSTREAM_FLOATS:
        if name in record:
            try:
                found[name] = float(record[name])
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"{name} must be a number, got {compact(record[name])[:60]}") from None
            if not math.isfinite(found[name]):
                raise ValueError(f"{name} must be finite")
    if "mode_label" in record and "mode_count" in record:
        found["mode_label"], found["mode_count"] = record["mode_label"], _whole(record["mode_count"])
        if found["mode_count"] is None:
            raise ValueError(f"mode_count must be a whole number, got {compact(record['mode_count'])[:60]}")
    return found
