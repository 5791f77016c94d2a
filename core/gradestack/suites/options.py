"""How a suite is loaded and run, whatever it says itself: what the Python API and the command line take beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import attrs

from gradestack.errors import ConfigError, suggest
from gradestack.progress import ProgressCallback
from gradestack.registry import Registry

Rows = Literal["full", "slim", "none"]
"""What is kept of samples: whole rows, rows without their trajectory, or none."""
RECORDED: Mapping[Rows, bool | str] = {"full": True, "slim": "slim", "none": False}
"""How header.json says it."""


def as_rows(value: object) -> Rows | None:
    """Return what is to be kept; True is ``full``, False is ``none``, None leaves it to the suite."""
    if value is None or isinstance(value, bool):
        return None if value is None else "full" if value else "none"
    for word in get_args(Rows):
        if value == word:
            return word  # type: ignore[no-any-return]
    raise ConfigError(
        f"rows: expected one of {', '.join(get_args(Rows))}; got {value!r}{suggest(value, get_args(Rows))}"
    )


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


@attrs.frozen(kw_only=True)
class RunOptions:
    """The options of :func:`gradestack.run`, which describes them, and one of the command line alone."""

    registry: Registry
    overrides: Sequence[str] = ()
    allow_code: bool = False
    allow_remote: bool = False
    engine: str | None = None
    workers: int | None = None
    output: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    strict: bool = False
    exporters: Sequence[str] = attrs.field(default=(), converter=_several)
    rows: Rows | None = attrs.field(default=None, converter=as_rows)
    resume: bool = False
    progress: ProgressCallback | None = None
    say: Callable[[str], None] = lambda _: None
    debug: bool = False
    """Say the traceback of the first error every grader raised."""
