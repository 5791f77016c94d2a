"""Numbers in words and digits, in any medium."""

from __future__ import annotations

_MOST_DECIMALS = 17


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 task``, ``1,200 tasks``.

    >>> counted(1, "task"), counted(0, "run"), counted(1200, "task")
    ('1 task', '0 runs', '1,200 tasks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def distinguishing_decimals(number: float, threshold: float, decimals: int = 2) -> str:
    """Return a number with as many decimals as show on which side of a threshold it is.

    Args:
        number: A finite number.
        threshold: What it is compared with.
        decimals: The fewest there are; a whole number that needs none has none.

    Returns:
        ``0.8999`` beside 0.9 and ``0.80`` beside 0.75: rounded, it compares to the threshold as it does itself.
    """
    for places in range(0 if isinstance(number, int) else decimals, _MOST_DECIMALS):
        text = f"{number:.{places}f}"
        if _side(float(text), threshold) == _side(number, threshold):
            return text
    return repr(number)


def _side(number: float, threshold: float) -> int:
    return (number > threshold) - (number < threshold)
