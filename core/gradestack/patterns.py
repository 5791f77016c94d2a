"""Regular expressions that are compiled when they are first used.

Python takes up to half a millisecond for one, and most runs need few of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Later:
    """Stands for a pattern and has what a compiled one has."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        member = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, member)  # so that the next use finds it without asking here
        return member


def compile_later(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression that is compiled when it is first used.

    For patterns of a module that many runs import and few use.
    """
    return cast("re.Pattern[AnyStr]", _Later(pattern, flags))
