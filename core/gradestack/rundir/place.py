"""Places of runs: where a run may be written, what an unfinished one has left beside its place, who holds it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from gradestack.errors import ConfigError
from gradestack.report import is_run

JOURNAL = "journal.jsonl"
PATIENCE = 5.0
"""Seconds to wait for a directory another process has: workers of a killed run end within a second after it."""
UNFINISHED = ".unfinished"


def _safe(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:100] or "run"


def default_place(name: str, now: datetime) -> Path:
    """Return ``gradestack-runs/NAME/UTC-TIME``, numbered when there is one of that time already."""
    second = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    place, number = Path("gradestack-runs") / _safe(name) / second, 1
    while place.exists() or unfinished(place).exists():  # two runs within a second: the first one stays
        number += 1
        place = place.with_name(f"{second}-{number}")
    return place


def check_place(path: Path) -> None:
    """Refuse a place that holds anything but nothing or an earlier run."""
    try:
        _check_place(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error


def _check_place(path: Path) -> None:
    if Path.cwd().is_relative_to(path.absolute()) or Path.cwd().is_relative_to(path.resolve()):
        raise ConfigError(
            f"{path}: holds the working directory, and a run directory is replaced whole; name another with -o"
        )
    if path.is_dir() and any(path.iterdir()) and not is_run(path):
        raise ConfigError(f"{path}: the directory is not empty and not a gradestack run; name another with -o")
    check_directory(path, path.absolute().parent)


def check_directory(path: Path, parent: Path | None = None) -> None:
    """Refuse what is no directory, and one that cannot be made or written to."""
    if not path.is_dir() and (path.exists() or path.is_symlink()):
        raise ConfigError(f"{path}: exists and is not a directory; name another place with -o")
    parent = parent or path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ConfigError(f"{path}: {parent} is not a directory that can be written to; name another place with -o")


def keep_inputs(output: Path, paths: Iterable[Path]) -> None:
    """Refuse an output that holds a file the run reads, or is one: a rerun replaces the directory whole."""
    place = output.resolve()
    for path in paths:
        if path.resolve().is_relative_to(place):
            raise ConfigError(
                f"{output}: holds {path}, which this run reads and would replace; name another place with -o"
            )


def unfinished(place: Path) -> Path:
    """Return the hidden directory in which the run of a place is written."""
    return place.absolute().parent / f".{place.name}{UNFINISHED}"


def can_continue(place: Path) -> bool:
    """Return whether an unfinished run of a place is on record."""
    return (unfinished(place) / JOURNAL).is_file()


def newest_unfinished(name: str, patience: float) -> Path | None:
    """Return the default place of a suite whose run was begun last and is not finished; None when there is none."""
    found = (Path("gradestack-runs") / _safe(name)).glob(f".*{UNFINISHED}")
    places = [path.with_name(path.name[1 : -len(UNFINISHED)]) for path in found if (path / JOURNAL).is_file()]
    for place in sorted(places, key=lambda place: _age(place.name), reverse=True):
        descriptor = lock(unfinished(place), patience)
        if descriptor is not None:
            os.close(descriptor)
            return place
    return None


def _age(name: str) -> tuple[str, int]:
    time, _, number = name.partition("-")
    return time, int(number) if number.isdecimal() else 1


def synchronise(path: Path) -> None:
    """Have a file's content, or a directory's entries, on the disk before returning."""
    if os.name != "posix" and path.is_dir():
        return  # only files can be opened there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(directory: Path, patience: float = PATIENCE) -> int | None:
    """Return a descriptor that keeps a directory for this process, or None when another one has it.

    The system lets go of it when the process ends, however it ends. Its workers end within a second after it.
    """
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        return os.open(os.devnull, os.O_RDONLY)
    deadline = time.monotonic() + patience
    while True:
        directory.mkdir(exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if directory.exists() and os.path.samestat(directory.stat(), os.fstat(descriptor)):
                return descriptor
        except BlockingIOError:
            pass
        except OSError:  # a file system without locks
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.05)


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
