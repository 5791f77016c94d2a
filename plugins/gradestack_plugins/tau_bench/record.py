"""A record of tau-bench as its reader hands it on."""

from __future__ import annotations

from typing import Any

import msgspec


class TauRecord(msgspec.Struct, frozen=True):
    """A record as read from the file, for the grader and the exporter of this family."""

    record: Any
    problem: str | None = None
    """Why its calls, made or expected, cannot be read."""
