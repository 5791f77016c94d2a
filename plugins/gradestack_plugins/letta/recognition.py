"""How sure it is that a file, or a directory, holds results."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gradestack.jsonio import JsonProblem, loads
from gradestack_plugins.letta.layout import SUITE, result_files, unwrapped

_HEAD = 64 * 1024
_FAR = 16 * 1024 * 1024
"""What is read of a file whose usual head ends within the first lines that count: conversations are long."""
_CUT = 60_000
"""A head shorter than this is the whole file."""
_LINES = 100
"""Lines looked at: a header may stand first, or a damaged line."""
_BEHIND_OTHERS = 0.3
_PERHAPS = 0.05
_SIGNS = frozenset({"trajectory", "grades", "submissions", "reward", "submission", "error"})
_OWN_START = b'{"agent_id":'
"""How gradestack's own rows begin: their keys are sorted."""
_NAMED = (b'"sample"', b'"sample_id"')


def certainty(path: Path, head: bytes) -> float:
    """Return how sure it is that a file holds result lines, from 0 to 1.

    The first line that looks like a result decides. Lines before it that cannot be read are passed over, so that a
    damaged one hides nothing; behind objects of another form a result counts little. Where the head ends within the
    first line that counts, more of the file is read.
    """
    return _decided(path, head) or 0.0


def directory_certainty(path: Path) -> float:
    """Return how sure it is that a directory is one of letta-evals' (or gradestack's) outputs.

    It is when any of its result files is one: a run that is empty or begins with a damaged line is part of it. Without
    one, ``suite.json`` with its samples speaks for it, or, where no line can be read, a header.
    """
    files = result_files(path)
    best, undecided, named = 0.0, True, False
    for file in files:
        try:
            with file.path.open("rb") as opened:
                head = opened.read(_HEAD)
        except OSError:  # reading it will say so
            continue
        found = _decided(file.path, head)
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
        content = loads(suite.read_bytes())
    except (OSError, JsonProblem):
        return False
    return isinstance(content, Mapping) and isinstance(content.get("samples"), list | Mapping)


def _decided(path: Path, head: bytes) -> float | None:
    """Return what the lines of a file say, None when none of them can be read."""
    lines, rest = _lines(head, _CUT)
    found = _among(lines)
    if found is not None or not rest:
        return found
    try:
        with path.open("rb") as file:
            lines, rest = _lines(file.read(_FAR), _FAR)
    except OSError:
        return _cut(rest)
    found = _among(lines)
    return _cut(rest) if found is None and rest else found


def _lines(head: bytes, least: int) -> tuple[list[bytes], bytes]:
    """Return the whole lines of a file's beginning, and the object it breaks off in, b"" when in none.

    What is shorter than ``least`` is a whole file.
    """
    lines = [line.strip() for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    cut = len(head) >= least and lines[-1].startswith(b"{")
    return (lines[:-1], lines[-1]) if cut else (lines, b"")


def _among(lines: list[bytes]) -> float | None:
    """Return what the first line that looks like a result says, 0.0 when others can be read, None when none can."""
    others = False
    for line in islice((line for line in lines if line.startswith(b"{") and b'"' in line), _LINES):
        if others and not any(name in line for name in _NAMED):
            continue
        try:
            result = unwrapped(loads(line))
        except JsonProblem:
            continue
        if found := _looks(result):
            return min(found, _BEHIND_OTHERS) if others else found
        others = others or isinstance(result, Mapping)
    return 0.0 if others else None


def _looks(result: Any) -> float:
    if not isinstance(result, Mapping):
        return 0.0
    sample, error = result.get("sample"), result.get("error")
    if isinstance(sample, Mapping) and ("id" in sample or "sample_id" in result):
        return 0.95 if {"trajectory", "grade", "grades", "submission"} & set(result) else 0.0
    if "sample_id" not in result:
        return 0.0
    if len(_SIGNS & set(result)) > 1:
        return 0.9
    # Null fields are dropped: of a run that failed, little but the error may be left.
    return 0.8 if isinstance(error, Mapping) and {"category", "exception_type"} & set(error) else 0.0


def _cut(line: bytes) -> float:
    """Judge a line longer than what was read of it."""
    named = any(name in line for name in _NAMED)
    signs = named and (b'"trajectory"' in line or b'"submission"' in line)
    own = line.startswith(_OWN_START) and b'"agent_usage"' in line
    return 0.7 if signs or own else 0.0
