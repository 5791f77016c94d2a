"""Presets: the rule of another tool, whose options stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def refuse(preset: str, given: Mapping[str, Any]) -> None:
    """Refuse options that contradict a preset.

    Args:
        preset: The preset.
        given: Option -> its value; None and empty ones were not given.

    Raises:
        ValueError: One was given.
    """
    names = [name for name, value in given.items() if value is not None and value != () and value is not False]
    if names:
        raise ValueError(f"the preset {preset} leaves no choice for {', '.join(names)}; leave out either")
