"""Lines of warnings, where the same is found of many graders in one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_MOST = 5
"""Graders with one finding that have a line each."""
_NAMED = 3
_OF_A_GRADER = re.compile(r"grader ('[^']*')(.*)", re.DOTALL)


def warning_lines(warnings: Iterable[str]) -> Iterator[str]:
    """Yield the lines of warnings in their order; what holds of more than five graders is one line, at the first."""
    graders: dict[str, list[str]] = {}
    parts = [(text, _OF_A_GRADER.fullmatch(text)) for text in warnings]
    for _, part in parts:
        if part:
            graders.setdefault(part[2], []).append(part[1])
    for text, part in parts:
        keys = graders[part[2]] if part else []
        if part is None or len(keys) <= _MOST:
            yield f"Warning: {text}"
        elif part[1] == keys[0]:
            named = f"{', '.join(keys[:_NAMED])}, …"
            yield f"Warning: {len(keys)} graders ({named}){part[2]}; all {len(keys)} under warnings in summary.json"
