"""Summary of an ``audit_fallbacks.jsonl``: which fall-backs happened while a run was recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gradestack import DataError
from gradestack.jsonio import JsonProblem, iter_lines, loads

FORCED = (
    "all_logprobs_-inf_string_fallback",
    "invalid_label_coercion_to_cannot_answer",
    "judge_json_parse_failed_second_fallback_to_cannot_answer",
    "missing_prediction_uuid",
)
"""Kinds of event that forced a label."""


def read_events(path: Path | None, *, stop_at_broken_line: bool = False) -> list[Mapping[str, Any]]:
    """Return the events of an audit file, none without a file; a line that is no JSON object is left out.

    Args:
        path: The file.
        stop_at_broken_line: Read nothing behind a line that is not JSON, as the evaluation suite does.

    Raises:
        DataError: The file cannot be read.
    """
    events: list[Mapping[str, Any]] = []
    if path is None:
        return events
    try:
        for line in iter_lines(path):
            try:
                event = loads(line.data)
            except JsonProblem:
                if stop_at_broken_line:
                    break
                continue
            if isinstance(event, Mapping):
                events.append(event)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return events


def _ranked(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _named(event: Mapping[str, Any], field: str) -> str:
    return str(event.get(field) or "UNKNOWN")


def summarise(events: Iterable[Mapping[str, Any]], name: str | None) -> dict[str, Any]:
    """Return the suite's ``audit_fallbacks_summary``: counts by kind, stage and severity.

    The most frequent come first, equal ones in order of their names. Events are appended again by every re-scoring, so
    these are counts of events, not of predictions.

    Args:
        events: Lines of the audit file.
        name: What to show as its path.
    """
    found = list(events)
    by = {field: Counter(_named(event, field) for event in found) for field in ("fallback_type", "stage", "severity")}
    uuids: dict[str, set[str]] = {}
    for event in found:
        uuid = event.get("uuid")
        if isinstance(uuid, str) and uuid:
            uuids.setdefault(_named(event, "fallback_type"), set()).add(uuid)
    forced = [uuids.get(kind, set()) for kind in FORCED]
    return {
        "audit_path": name,
        "n_events_total": len(found),
        "n_uuids_with_any_event": len(set().union(*uuids.values())),
        "events_by_fallback_type": _ranked(by["fallback_type"]),
        "events_by_stage": _ranked(by["stage"]),
        "events_by_severity": _ranked(by["severity"]),
        "uuids_by_fallback_type": _ranked({kind: len(members) for kind, members in uuids.items()}),
        "n_forced_fallback_events": sum(by["fallback_type"][kind] for kind in FORCED),
        "n_forced_fallback_uuids": len(set().union(*forced)),
        "forced_fallback_types": list(FORCED),
    }
