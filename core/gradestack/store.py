"""Run directories: written under a temporary name beside their place, moved there whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gradestack.errors import ConfigError
from gradestack.jsontext import dumps

GENERATOR = "gradestack"
HEADER, ROWS, SUMMARY = "header.json", "results.jsonl", "summary.json"


def is_run(path: Path) -> bool:
    """Return whether a directory is a gradestack run directory."""
    try:
        header = json.loads((path / HEADER).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("generator") == GENERATOR


def default_place(name: str, now: datetime) -> Path:
    """Return ``gradestack-runs/NAME/UTC-TIME``, numbered when there is one of that time already."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:100] or "run"
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    place, number = Path("gradestack-runs") / safe / time, 1
    while place.exists():  # two runs within a second: the first one stays
        number += 1
        place = place.with_name(f"{time}-{number}")
    return place


def check_place(path: Path) -> None:
    """Refuse a place that holds anything but nothing or an earlier run.

    Raises:
        ConfigError: A file, a directory that is not ours, or one that cannot be written.
    """
    try:
        _check_place(path)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror or error}"
        raise ConfigError(msg) from error


def _check_place(path: Path) -> None:
    if Path.cwd().is_relative_to(path.absolute()) or Path.cwd().is_relative_to(path.resolve()):
        msg = f"{path}: holds the working directory, and a run directory is replaced whole; name another with -o"
        raise ConfigError(msg)
    if path.is_dir():
        if any(path.iterdir()) and not is_run(path):
            msg = f"{path}: the directory is not empty and not a gradestack run; name another with -o"
            raise ConfigError(msg)
    elif path.exists() or path.is_symlink():
        msg = f"{path}: exists and is not a directory; name another place with -o"
        raise ConfigError(msg)
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        msg = f"{path}: {parent} is not a directory that can be written to; name another place with -o"
        raise ConfigError(msg)


def keep_inputs(output: Path, paths: Iterable[Path]) -> None:
    """Refuse an output that holds a file the run reads, or is one: a rerun replaces the directory whole.

    Raises:
        ConfigError: Naming the file that would be lost.
    """
    place = output.resolve()
    for path in paths:
        if path.resolve().is_relative_to(place):
            msg = f"{output}: holds {path}, which this run reads and would replace; name another place with -o"
            raise ConfigError(msg)


class Staging:
    """A run directory in the making.

    Attributes:
        path: Where files are written until :meth:`commit`.
    """

    def __init__(self, place: Path | None) -> None:
        self.place = place
        try:
            if place is None:
                self.path = Path(tempfile.mkdtemp(prefix="gradestack-"))
            else:
                check_place(place)
                if place.is_symlink():  # to a directory: what it leads to is replaced, not the link
                    self.place = place = place.resolve()
                place.absolute().parent.mkdir(parents=True, exist_ok=True)
                self.path = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.absolute().parent))
                self.path.chmod(0o755)
            self.parts.mkdir()
        except OSError as error:
            msg = f"{place or tempfile.gettempdir()}: cannot be written: {error.strerror or error}"
            raise ConfigError(msg) from error

    @property
    def parts(self) -> Path:
        """Directory for pieces; gone when the run is committed."""
        return self.path / ".parts"

    def write_json(self, name: str, value: Any) -> None:
        """Write one of our JSON files: sorted keys, indent 2, one newline at the end."""
        (self.path / name).write_text(dumps(value, indent=2) + "\n", encoding="utf-8", newline="\n")

    def commit(self) -> Path:
        """Move the directory into its place, replacing an earlier run whole, and return the place."""
        shutil.rmtree(self.parts, ignore_errors=True)
        if self.place is None:
            return self.path
        place = self.place
        if place.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{place.name}.old.", dir=place.absolute().parent))
            place.rename(old / "run")
            self.path.rename(place)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self.path.rename(place)
        self.path = place
        return place

    def discard(self) -> None:
        """Remove everything written so far."""
        shutil.rmtree(self.path, ignore_errors=True)


def link_latest(place: Path) -> None:
    """Point ``latest`` beside a default run directory at it; where links are not possible, do nothing."""
    link = place.parent / "latest"
    try:
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(place.name)
    except OSError:
        return
