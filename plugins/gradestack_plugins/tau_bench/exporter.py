"""Exporter ``tau_bench``: the files the partial scoring script writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    Exporter,
    ExportSummary,
    Grade,
    Outcome,
    Sample,
    Shard,
    terminal_line,
)
from gradestack_plugins.tau_bench.reader import TauRecord

STATISTICS = "tau_statistics.txt"
_CLOSED = object()


@attrs.frozen(kw_only=True)
class TauBenchExporter(Exporter):
    """Writes ``<input>_partial.json`` and ``tau_statistics.txt``.

    The first holds the records of the input with ``partial_score`` added, byte for byte as
    ``json.dump(records, indent=2)`` writes them; a record without a score (failed, or skipped by
    ``no_expected: skip``) has null there, a record that could be parsed but is no result record
    stands unchanged, one that could not be parsed is left out. The second holds the statistics
    block (``gradestack_plugins.tau_bench.exporter.statistics_block``).
    """

    reader: ClassVar[str] = "tau_bench"
    graders: ClassVar[tuple[str, ...]] = ("tau_partial",)
    separator: ClassVar[str] = ",\n"

    @override
    def row(
        self, record: Sample | BadRecord, grades: Mapping[str, Grade], shard: Shard
    ) -> Iterator[tuple[str, str]]:
        if not isinstance(record.native, TauRecord):
            return
        raw = record.native.record
        if isinstance(record, Sample):
            grade = grades.get("tau_partial")
            score = grade.score if grade is not None and grade.outcome is Outcome.GRADED else None
            raw = {**raw, "partial_score": score}
        yield partial_name(shard.input.path.name), f"  {indented(raw, 1)}"

    @override
    def frame(self, artefact: str, summary: ExportSummary) -> tuple[str, str]:
        return ("[\n", "\n]")

    @override
    def finish(self, summary: ExportSummary) -> Mapping[str, str]:
        graded = summary.graders.get("tau_partial")
        figures = graded.aggregates.get("partial_statistics") if graded is not None else None
        return (
            {}
            if figures is None or "average" not in figures
            else {STATISTICS: statistics_block(figures)}
        )


def partial_name(name: str) -> str:
    """Return the output file name of an input.

    Every ".json" replaced, or the ending added where there is none.
    """
    return name.replace(".json", "_partial.json") if ".json" in name else f"{name}_partial.json"


def indented(value: Any, level: int = 0) -> str:
    """Return exactly what ``json.dumps(value, indent=2)`` gives, as it stands ``level`` levels deep
    in a document.
    """
    try:
        text = msgspec.json.format(json.dumps(value), indent=2)
    except (ValueError, RecursionError):  # NaN, or nested deeply
        return _indented_slowly(value, level)
    return text.replace("\n", "\n" + "  " * level)


def _indented_slowly(value: Any, level: int) -> str:
    """Return the same without recursion.

    The library's writer fails on deeply nested values its own reader has read.
    """
    out: list[str] = []
    todo: list[tuple[str, Any, int]] = [("", value, level)]
    while todo:
        before, item, depth = todo.pop()
        out.append(before)
        if item is _CLOSED:
            continue
        if not isinstance(item, dict | list) or not item:
            out.append(json.dumps(item))
            continue
        keyed, pad = isinstance(item, dict), "\n" + "  " * (depth + 1)
        keys = [f"{json.dumps(key)}: " for key in item] if keyed else [""] * len(item)
        values = list(item.values() if isinstance(item, dict) else item)
        todo.append((f"\n{'  ' * depth}{'}' if keyed else ']'}", _CLOSED, depth))
        for place in range(len(values) - 1, -1, -1):
            comma = "," if place else "{" if keyed else "["
            todo.append((f"{comma}{pad}{keys[place]}", values[place], depth + 1))
    return "".join(out)


def statistics_block(figures: Mapping[str, Any]) -> str:
    """Return the statistics block for the figures of ``partial_statistics``, beginning with an
    empty line.
    """
    n, binary = figures["n"], figures["binary"]
    lines = ["", "=== SCORING STATISTICS ===", f"Total tasks: {n}"]
    lines += [f"Not scored: {figures['failed']}"] * bool(figures["failed"])
    lines += [f"Without reward: {n - binary['n']}"] * (n > binary["n"])
    success = f"{binary['successes']}/{binary['n']}"
    lines += [
        "",
        "Binary Scoring:",
        f"  Success rate: {success} ({_percent(binary['successes'], binary['n'])})",
    ]
    lines += [f"  Average: {_number(binary['average'])}", "", "Partial Scoring:"]
    lines += [
        f"  {name.capitalize()}: {_number(figures[name])}" for name in ("average", "min", "max")
    ]
    lines += ["", "Partial Score Distribution:"]
    for entry in figures["histogram"]:
        lower, upper, count = entry["lower"], entry["upper"], entry["count"]
        name = f"[{lower:.1f}]" if lower == upper else f"[{lower:.1f}-{upper:.1f})"
        lines.append(f"  {name}: {count:3d} tasks ({_percent(count, n, 5)})")
    lines += ["", "Interesting Cases:"]
    lines += _cases("Binary fail but partial > 0.7", figures["binary_fail_high_partial"])
    lines += _cases("Binary success but partial < 0.8", figures["binary_success_low_partial"])
    return "\n".join(lines) + "\n"


def _percent(count: int, total: int, width: int = 0) -> str:
    return f"{count / total * 100:{width}.1f}%" if total else "n/a"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _cases(title: str, cases: Mapping[str, Any]) -> list[str]:
    if not cases["total"]:
        return []
    shown = [
        terminal_line(f"    Task {case['id']}: partial={case['score']:.2f}")
        for case in cases["first"]
    ]
    return [f"  {title}: {cases['total']} tasks", *shown]
