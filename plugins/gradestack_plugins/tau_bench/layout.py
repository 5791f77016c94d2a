"""Text forms of the partial scoring script: indented JSON, the statistics block, the output file's name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

import msgspec

from gradestack import terminal_line

JSON = Any
_END = object()
_CONSTANTS = {None: "null", True: "true", False: "false"}
_SUFFIX = ".json"
_NEW_SUFFIX = "_partial.json"


def partial_name(name: str) -> str:
    """Return the output file name of an input: every ".json" replaced, or the ending added where there is none."""
    return name.replace(_SUFFIX, _NEW_SUFFIX) if _SUFFIX in name else name + _NEW_SUFFIX


def indented(value: JSON, level: int = 0) -> str:
    """Return exactly what ``json.dumps(value, indent=2)`` gives, as it stands ``level`` levels deep in a document.

    What the library writes in one line is laid out by msgspec, in a quarter to three fifths of the time its own
    indenting takes.
    """
    try:
        text = msgspec.json.format(json.dumps(value), indent=2)
    except (ValueError, RecursionError):  # NaN, or nested deeply
        return _indented_slowly(value, level)
    return text.replace("\n", "\n" + "  " * level)


def _indented_slowly(value: JSON, level: int) -> str:
    """Return the same without recursion: the library's writer fails on deeply nested values its own reader has read."""
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    out: list[str] = []
    stack: list[tuple[Iterator[Any], bool, str]] = []
    entry: Any
    keyed, entries = _entries(value)
    pad = "\n" + "  " * (level + 1)
    before = "{" if keyed else "["
    while True:
        entry = next(entries, _END)
        if entry is _END:
            out.append(pad[:-2] + ("}" if keyed else "]"))
            if not stack:
                return "".join(out)
            entries, keyed, pad = stack.pop()
            before = ","
            continue
        out.append(f"{before}{pad}{encode_basestring_ascii(entry[0])}: " if keyed else before + pad)
        item = entry[1] if keyed else entry
        before = ","
        if isinstance(item, str):
            out.append(encode_basestring_ascii(item))
        elif isinstance(item, dict | list) and item:
            stack.append((entries, keyed, pad))
            keyed, entries = _entries(item)
            pad += "  "
            before = "{" if keyed else "["
        else:
            out.append(_scalar(item))


def _scalar(value: Any) -> str:
    """Return a number, a constant or an empty list as JSON; what the library sets up for it takes ten times as long."""
    kind = type(value)
    if kind is int or (kind is float and isfinite(value)):
        return repr(value)
    return _CONSTANTS[value] if value is None or kind is bool else json.dumps(value)


def _entries(value: dict[str, Any] | list[Any]) -> tuple[bool, Iterator[Any]]:
    return (True, iter(value.items())) if isinstance(value, dict) else (False, iter(value))


def statistics_block(figures: Mapping[str, Any]) -> str:
    """Return the statistics block for the figures of ``partial_statistics``, beginning with an empty line.

    Character for character what the original prints, wherever it prints at all. Where some records could not be scored
    (the original stops there) the block covers the others, and lines below the total say how many were left out. A
    figure of nothing is "n/a".
    """
    n, binary = figures["n"], figures["binary"]
    lines = ["", "=== SCORING STATISTICS ===", f"Total tasks: {n}"]
    lines += [f"Not scored: {figures['failed']}"] * bool(figures["failed"])
    lines += [f"Without reward: {n - binary['n']}"] * (n > binary["n"])
    success = f"{binary['successes']}/{binary['n']}"
    lines += ["", "Binary Scoring:", f"  Success rate: {success} ({_percent(binary['successes'], binary['n'])})"]
    lines += [f"  Average: {_number(binary['average'])}", "", "Partial Scoring:"]
    lines += [f"  {name.capitalize()}: {_number(figures[name])}" for name in ("average", "min", "max")]
    lines += ["", "Partial Score Distribution:"]
    lines += [
        f"  {_bin(entry)}: {entry['count']:3d} tasks ({_percent(entry['count'], n, 5)})"
        for entry in figures["histogram"]
    ]
    lines += ["", "Interesting Cases:"]
    lines += _cases("Binary fail but partial > 0.7", figures["binary_fail_high_partial"])
    lines += _cases("Binary success but partial < 0.8", figures["binary_success_low_partial"])
    return "\n".join(lines) + "\n"


def _bin(entry: Mapping[str, Any]) -> str:
    lower, upper = entry["lower"], entry["upper"]
    return f"[{lower:.1f}]" if lower == upper else f"[{lower:.1f}-{upper:.1f})"


def _percent(count: int, total: int, width: int = 0) -> str:
    return f"{count / total * 100:{width}.1f}%" if total else "n/a"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _cases(title: str, cases: Mapping[str, Any]) -> list[str]:
    if not cases["total"]:
        return []
    shown = [terminal_line(f"    Task {case['id']}: partial={case['score']:.2f}") for case in cases["first"]]
    return [f"  {title}: {cases['total']} tasks", *shown]
