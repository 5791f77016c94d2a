"""Words of numbers, in any medium."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 task``, ``1,200 tasks``.

    >>> counted(1, "task"), counted(0, "run"), counted(1200, "task")
    ('1 task', '0 runs', '1,200 tasks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
