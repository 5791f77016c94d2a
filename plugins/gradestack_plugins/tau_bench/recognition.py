"""Recognising tau-bench result files from their first bytes."""

from __future__ import annotations

import re

_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(?P<colon>\s*:)?|[\[\]{}]|"', re.DOTALL)
"""Strings, each with the colon that makes it a key; brackets; the quote of a string that is cut off."""
_QUOTE = '"'
_RECORDS = 5
"""Records looked at, the first that looks right decides."""


def looks_like_results(head: bytes) -> float:
    """Return how sure it is that ``head`` begins a tau-bench result file.

    A list whose first objects have ``task_id``, ``reward`` and at least one of ``info`` and ``traj`` among the
    top-level keys that lie within ``head``. Records of runs that ended in an error have them too.
    """
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    if not text.startswith("["):
        return 0.0
    best = 0.0
    for keys, complete in _first_keys(text):
        if {"task_id", "reward"} <= keys and keys & {"info", "traj"}:
            return 0.95
        if not complete and "traj" in keys and keys <= {"task_id", "reward", "info", "traj", "trial"}:
            best = 0.4  # a long conversation stands before the other keys
    return best


def _first_keys(text: str) -> list[tuple[set[str], bool]]:
    """Return the top-level keys of the first objects of a list, each with whether the object ends within ``text``."""
    found: list[tuple[set[str], bool]] = []
    keys: set[str] = set()
    depth = 0
    for match in _STRUCTURE.finditer(text):
        token = match.group()
        if token in {"{", "["}:
            depth += 1
            if depth == 2:
                keys = set()
        elif token in {"}", "]"}:
            depth -= 1
            if depth == 1:
                found.append((keys, True))
                keys = set()
            if depth < 1 or len(found) == _RECORDS:
                return found
        elif token == _QUOTE:
            break
        elif depth == 2 and match["colon"]:
            keys.add(token[1 : token.rindex(_QUOTE)])
    found.append((keys, False))
    return found
