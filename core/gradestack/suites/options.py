"""How a suite is loaded and run, whatever it says itself: what the Python API and the command line take beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from gradestack.grading.progress import ProgressCallback
from gradestack.registry import Registry


@attrs.frozen(kw_only=True)
class RunOptions:
    """The options of :func:`gradestack.run`, which describes them, and one of the command line alone."""

    registry: Registry
    overrides: Sequence[str] = ()
    allow_code: bool = False
    engine: str | None = None
    workers: int | None = None
    output: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    strict: bool = False
    rows: bool = True
    resume: bool = False
    progress: ProgressCallback | None = None
    say: Callable[[str], None] = lambda _: None
    debug: bool = False
    """Say the traceback of the first error every grader raised."""
