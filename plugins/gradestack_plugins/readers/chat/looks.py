"""Looks at the beginning of a file, taken once as long as the file stays as it is.

A run asks for the same several times: to recognise columns, to choose a stack, to plan, to put
steps together. In a folder of thousands of files that is most of what a run takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from gradestack import Input

_MOST: Final = 1 << 14
"""Answers that are remembered."""

ReaderT = TypeVar("ReaderT")
AnswerT = TypeVar("AnswerT")


def once_per_file(
    look: Callable[[ReaderT, Input], AnswerT],
) -> Callable[[ReaderT, Input], AnswerT]:
    """Have a reader's method of one input answer again what it said, while the file is the same.

    The answer has to be small, and to depend on the reader's options and the file alone.
    """
    answers: dict[Any, AnswerT] = {}

    @wraps(look)
    def answer(reader: ReaderT, given: Input) -> AnswerT:
        try:
            status = given.path.stat()
        except OSError:  # looking says so
            return look(reader, given)
        state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        key = (type(reader), repr(reader), given, state)
        if key not in answers:
            found = look(reader, given)
            if len(answers) >= _MOST:
                del answers[next(iter(answers))]
            answers[key] = found
        return answers[key]

    return answer
