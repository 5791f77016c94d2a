"""The first failure of every grader: why its grade failed, and where the sample was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gradestack.jsonio.values import as_map, as_text, loads
from gradestack.model import Outcome, Source

_LONGEST = 300
"""Characters kept of a reason."""
_MARK = b'"failed"'
"""What the line of a sample with a failed grade holds."""


def first_failures(lines: Iterable[bytes], states: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, Any]]:
    """Return grader key -> number of its failed grades, and reason and place of the first."""
    failed = {key: counts[Outcome.FAILED] for key, counts in states.items() if counts.get(Outcome.FAILED)}
    found: dict[str, dict[str, Any]] = {key: {"count": count} for key, count in failed.items()}
    wanted = set(failed)
    for line in lines if wanted else ():
        if _MARK not in line:
            continue
        row = loads(line)
        for key in sorted(wanted):
            grade = row["grades"][key]
            if grade["state"] == Outcome.FAILED:
                found[key]["first"] = {"reason": _reason(grade), "at": _place(row)}
                wanted.discard(key)
        if not wanted:
            break
    return found


def _reason(grade: Mapping[str, Any]) -> str:
    """Return what a failed grade's fault says, on one line."""
    fault = as_map(grade.get("fault"))
    message = as_text(fault.get("message")) or as_text(fault.get("code"))
    kind = as_text(fault.get("type"))
    text = " ".join((f"{kind}: {message}" if kind and not message.startswith(kind) else message).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _place(row: Mapping[str, Any]) -> str:
    """Return where a sample was read, ``file:line`` where its format has lines; its id where nobody knows."""
    source = row["source"]
    return f"sample {row['sample']['id']}" if source is None else str(Source(**source))
