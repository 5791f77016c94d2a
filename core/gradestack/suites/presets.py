"""Presets of components: the rule of another tool under its name, in the version it was taken from."""

from __future__ import annotations

from collections.abc import Mapping

from gradestack.errors import suggest


def preset_version(preset: str | None, versions: Mapping[str, str]) -> str | None:
    """Return a preset as ``NAME@VERSION``, None for none.

    Args:
        preset: Its name, with or without the version.
        versions: The presets there are, each with its version.

    Raises:
        ValueError: There is none of that name, or not in that version.
    """
    if preset is None:
        return None
    name, at, version = preset.partition("@")
    if name not in versions:
        hint = suggest(name, versions) or f"; there are: {', '.join(versions)}"
        raise ValueError(f"unknown preset {name!r}{hint}")
    if at and version != versions[name]:
        raise ValueError(f"preset {name!r} is there in version {versions[name]} only, not in {version!r}")
    return f"{name}@{versions[name]}"
