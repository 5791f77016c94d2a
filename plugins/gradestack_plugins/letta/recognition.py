"""How sure it is that a file, or a directory, holds results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradestack.jsonio import JsonProblem, loads, open_regular, read_regular
from gradestack_plugins.letta.layout import SUITE, result_files, unwrapped

_HEAD = 64 * 1024
_BEHIND_OTHERS = 0.3
_PERHAPS = 0.05
_SIGNS = frozenset({"trajectory", "grades", "submissions", "reward", "submission", "error"})
_OWN_START = b'{"grade":{'
"""How gradestack's own rows begin: with what graders say."""
_NAMED = (b'"sample"', b'"sample_id"')


def directory_certainty(path: Path, recognised: Callable[[Path, bytes], float | None]) -> float:
    """Return how sure it is that a directory is one of letta-evals' (or gradestack's) outputs.

    It is when any of its result files is one: a run that is empty or begins with a damaged line is part of it. Without
    one, ``suite.json`` with its samples speaks for it, or, where no line can be read, a header.
    """
    files = result_files(path)
    best, undecided, named = 0.0, True, False
    for file in files:
        try:
            with open_regular(file.path) as opened:
                head = opened.read(_HEAD)
        except OSError:  # reading it will say so
            continue
        found = recognised(file.path, head)
        undecided = undecided and found is None
        named = named or any(name in head for name in _NAMED)
        best = max(best, found or 0.0)
        if best > _BEHIND_OTHERS:
            return best
    if files and _has_samples(path / SUITE):
        return 0.9
    if files and undecided and ((path / "header.json").is_file() or (path / SUITE).is_file()):
        return 0.5
    return best or (_PERHAPS if undecided and named else 0.0)


def _has_samples(suite: Path) -> bool:
    try:
        content = loads(read_regular(suite))
    except (OSError, JsonProblem):
        return False
    return isinstance(content, Mapping) and isinstance(content.get("samples"), list | Mapping)


def looks_like(record: Any) -> float | None:
    """Return how much a line looks like a result; None for one of another type, and for what holds nothing."""
    result = unwrapped(record)
    if not result or not isinstance(result, Mapping):
        return None
    sample, error = result.get("sample"), result.get("error")
    if isinstance(sample, Mapping) and ("id" in sample or "sample_id" in result):
        return 0.95 if {"trajectory", "grade", "grades", "submission"} & set(result) else 0.0
    if "sample_id" not in result:
        return 0.0
    if len(_SIGNS & set(result)) > 1:
        return 0.9
    # Null fields are dropped: of a run that failed, little but the error may be left.
    return 0.8 if isinstance(error, Mapping) and {"category", "exception_type"} & set(error) else 0.0


def complaint(record: dict[str, Any]) -> str | None:
    """Return what is missing from a result that names its sample."""
    result = unwrapped(record)
    sample = result.get("sample") if isinstance(result, Mapping) else None
    named = isinstance(sample, Mapping) and "id" in sample
    return "none of trajectory, grade, grades and submission is there" if named and not looks_like(record) else None


def begins_like(text: bytes) -> float | None:
    """Return how much a line that breaks off looks like a result; 0.0 where it is no object."""
    if not text.startswith(b"{"):
        return 0.0
    named = any(name in text for name in _NAMED)
    signs = named and (b'"trajectory"' in text or b'"submission"' in text)
    own = text.startswith(_OWN_START) and b'"rationale":' in text
    return 0.7 if signs or own else None
