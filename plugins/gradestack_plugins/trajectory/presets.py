"""Presets: the rule of another tool under its name, in the version it was taken from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradestack import suggest


def with_version(preset: str, versions: Mapping[str, str]) -> str:
    """Return a preset as ``NAME@VERSION``.

    Args:
        preset: Its name, with or without the version.
        versions: The presets there are, each with its version.

    Raises:
        ValueError: There is none of that name, or not in that version.
    """
    name, at, version = preset.partition("@")
    if name not in versions:
        hint = suggest(name, versions) or f"; there are: {', '.join(versions)}"
        raise ValueError(f"unknown preset {name!r}{hint}")
    if at and version != versions[name]:
        raise ValueError(f"preset {name!r} is there in version {versions[name]} only, not in {version!r}")
    return f"{name}@{versions[name]}"


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
