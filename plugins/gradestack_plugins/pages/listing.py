"""The list of all samples as a page carries it: columns over dictionaries, compressed, so that 100,000 stay small."""

from __future__ import annotations

import base64
import json
from array import array
from collections.abc import Mapping
from typing import Any

import msgspec

from gradestack_plugins.pages.chunks import packed
from gradestack_plugins.pages.index import RowIndex, name_of, names_of, verdict
from gradestack_plugins.pages.text import brief

VERDICTS = ("error", "lost", "graded", "missing", "skipped", "passed")
"""Worst first; a row says which by its place here."""
_LONGEST = 80
_MOST_GRADERS = 8
"""Other graders whose verdicts are in the list."""
_PLACES = {"passed": "passed", "part": "passed", "lost": "lost", "failed": "error", "skipped": "skipped"}


class _Numbers(dict[str, int]):
    """Names and their numbers, in the order they are first asked for."""

    def __missing__(self, name: str) -> int:
        self[name] = found = len(self)
        return found


def listing(index: RowIndex, words: Mapping[str, str], more: Mapping[str, Any]) -> str:
    """Return all samples of an index as base64 of gzipped JSON; the same bytes for the same index."""
    return island({**_columns(index, words), **more})


def island(data: Mapping[str, Any]) -> str:
    """Return data as a page carries it: base64 of gzipped JSON."""
    return _packed_text(json.dumps(data, separators=(",", ":")).encode())


def island_of_texts(data: Mapping[str, str]) -> str:
    """Return the same of texts, in less time where they are long."""
    try:
        return _packed_text(msgspec.json.encode(data))
    except UnicodeEncodeError:  # a lone surrogate
        return island(data)


def _packed_text(text: bytes) -> str:
    return base64.b64encode(packed(text)).decode()


def verdicts_by(index: RowIndex, outcome: str) -> list[tuple[str, str]]:
    """Return what graders beside the outcome grader say of each sample, a digit for each as in ``VERDICTS``."""
    digits = [VERDICTS.index(_PLACES.get(state, "missing")) for state, _ in index.verdicts.marks]
    known = bytes(48 + digit for digit in digits).ljust(256, b"3")
    others = [(key, marks) for key, marks in index.verdicts.by_grader.items() if key != outcome]
    return [(name_of(key), marks.translate(known).decode()) for key, marks in others[:_MOST_GRADERS]]


def _columns(index: RowIndex, words: Mapping[str, str]) -> dict[str, Any]:
    """Return ids, models, runs, kinds of reasons and sets of these as dictionaries, and a column for each over rows."""
    models, runs, sets = _Numbers(), _Numbers(), dict[tuple[int, ...], int]()
    ids, numbers = list[str](), array("q", [-1]) * len(index.names)  # no mapping: there are as many ids as samples
    names = names_of(index.names)
    for task in index.tasks:
        if numbers[task] < 0:
            numbers[task] = len(ids)
            ids.append(names[task])
    place = {name: str(number) for number, name in enumerate(VERDICTS)}
    entries = index.entries
    return {
        "i": [numbers[task] for task in index.tasks],
        "m": [models[entry.model] for entry in entries],
        "r": [runs[entry.run] for entry in entries],
        "v": "".join([place[verdict(entry)] for entry in entries]),
        "s": [None if entry.score is None else round(entry.score, 3) for entry in entries],
        "k": [sets.setdefault(kinds, len(sets)) for kinds in index.given.given],
        "ids": ids,
        "models": [name_of(name) for name in models],
        "runs": [name_of(name) for name in runs],
        "sets": list(map(list, sets)),
        "kinds": [[brief(part, _LONGEST) for part in kind] for kind in index.given.kinds],
        "words": [words[name] for name in VERDICTS],
    }
