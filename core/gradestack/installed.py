"""Installed plugins, read from the entry points of the distributions on ``sys.path``."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gradestack.hooks import NAME
from gradestack.patterns import compile_later

_METADATA_FOLDERS = (".dist-info", "egg-info")
_OUR_REQUIREMENT = compile_later(
    r"gradestack\s*(?:\[[^]]*\])?\s*\(?([^;)]*)\)?.*", re.IGNORECASE
)  # its last part: environment markers


class EntryPoint(NamedTuple):
    """One line of a distribution's entry points in the group ``gradestack``."""

    name: str
    distribution: str
    version: str
    target: str
    """Module, or module and attribute, of the plugin: ``package.module:NAME``."""
    requires: str
    """Releases of gradestack that the distribution asks for, ``>=0.2,<1``; "" for any."""


def installed_entry_points() -> list[EntryPoint]:
    """Return the plugins of every installed distribution, sorted by distribution and name.

    Where two distributions of one name are on the path, the first counts: it is the one that is
    imported. The files are read as they stand, since ``importlib.metadata`` as a whole takes a
    quarter of the time of ``--help``; it is asked for archives on the path alone.
    """
    first: dict[tuple[str, str], EntryPoint] = {}
    for path in dict.fromkeys(sys.path):
        entries = _entries_of_archive(path) if os.path.isfile(path) else _entries_of_folder(path)
        for entry in entries:
            distribution = entry.distribution.lower()
            first.setdefault((distribution, entry.name), entry)
    return sorted(first.values())


def _entries_of_folder(folder: str) -> Iterator[EntryPoint]:
    with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
        names = sorted(entry.name for entry in entries)
        for name in names:
            if name.lower().endswith(_METADATA_FOLDERS):
                yield from _entries_of_distribution(os.path.join(folder, name))


def _entries_of_distribution(folder: str) -> Iterator[EntryPoint]:
    """Yield the plugins that a distribution's ``.dist-info`` folder declares as entry points."""
    targets = _targets(_read(f"{folder}/entry_points.txt"))
    if targets:
        headers = _headers(_read(f"{folder}/METADATA") or _read(f"{folder}/PKG-INFO"))
        name = headers.get("name", ["unknown"])[0]
        version = headers.get("version", ["0"])[0]
        requires = _our_releases(headers.get("requires-dist", ()))
        for plugin, target in targets.items():
            yield EntryPoint(plugin, name, version, target, requires)


def _entries_of_archive(path: str) -> Iterator[EntryPoint]:
    """Yield the plugins that distributions inside a zip archive declare as entry points."""
    from importlib.metadata import distributions  # noqa: PLC0415 - takes long to import

    for distribution in distributions(path=[path]):
        requires = _our_releases(distribution.requires or ())
        for entry in distribution.entry_points.select(group=NAME):
            name = distribution.metadata["Name"]
            version = distribution.metadata["Version"]
            yield EntryPoint(entry.name, str(name), str(version), entry.value, requires)


def _read(path: str) -> str:
    """Return the text of a file, "" where there is none or it is no text."""
    with contextlib.suppress(OSError, UnicodeError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


def _targets(entry_points: str) -> dict[str, str]:
    """Return name and target of each line in the section ``[gradestack]``."""
    targets, is_ours = {}, False
    for line in map(str.strip, entry_points.splitlines()):
        if line.startswith("["):
            is_ours = line == f"[{NAME}]"
        elif is_ours and not line.startswith(("#", ";")):
            name, equals, target = line.partition("=")
            if equals:
                targets[name.strip()] = target.strip()
    return targets


def _headers(metadata: str) -> dict[str, list[str]]:
    """Return the values of each header of a distribution's metadata by its name, lower case."""
    headers: dict[str, list[str]] = {}
    for line in metadata.splitlines():
        if not line:  # the description follows
            break
        key, _, value = line.partition(":")
        headers.setdefault(key.lower(), []).append(value.strip())
    return headers


def _our_releases(requirements: Iterable[str]) -> str:
    matches = map(_OUR_REQUIREMENT.fullmatch, requirements)
    releases = [match[1].strip() for match in matches if match]
    return ",".join(filter(None, releases))
