"""Memory the table of grades would need, checked before it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gradestack.api import Shard
from gradestack.errors import ConfigError
from gradestack.grading.result import ShardResult

_SHARE = 0.8
"""Of the memory that is free, what metrics may take: the rest is for pages, workers and their shards."""
_UNPACKED = 3
"""Times the bytes of columns that they take when they are joined."""
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # not there, or "max"
        return None


def _lines(path: Path) -> dict[str, int]:
    """Return ``name number`` lines, kilobytes as bytes."""
    found = {}
    try:
        for line in path.read_text(encoding="ascii", errors="replace").splitlines():
            name, number, *unit = line.replace(":", " ").split()
            found[name] = int(number) * (1024 if unit else 1)
    except (OSError, ValueError):
        return found
    return found


def _group() -> int | None:
    """Return what the process's control group leaves, files it keeps for speed not counted; None without a limit."""
    places = [_GROUPS]
    try:
        entry = (_PROC / "self/cgroup").read_text(encoding="utf-8").splitlines()[-1]
    except (OSError, IndexError):
        entry = ""
    if entry.startswith("0::/"):
        inner = _GROUPS / entry[4:]
        places += [inner, *(parent for parent in inner.parents if parent.is_relative_to(_GROUPS))]
    left = []
    for place in places:
        limit, used = _number(place / "memory.max"), _number(place / "memory.current")
        if limit is not None and used is not None:
            left.append(limit - used + _lines(place / "memory.stat").get("inactive_file", 0))
    return min(left, default=None)


def free_memory() -> int | None:
    """Return the bytes of memory that can still be had; None where the system does not say."""
    found = [each for each in (_lines(_PROC / "meminfo").get("MemAvailable"), _group()) if each is not None]
    return min(found, default=None)


def give_back_memory() -> None:
    """Have the C library give memory that was let go of back to the system, where it can.

    Else it is kept: hundreds of megabytes that were texts of tasks, where small objects of Python are never put.
    """
    import ctypes  # noqa: PLC0415 - only here

    with suppress(OSError, AttributeError, TypeError):  # no such function, or no library to ask
        ctypes.CDLL(None).malloc_trim(0)


class MemoryGuard:
    """Looks at the columns of finished shards, which the table of grades holds to the end, and extrapolates."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._all = sum(shard.size() for shard in shards) if len(shards) > 1 else 0
        self._done = self._samples = self._due = self._bytes = 0

    def look(self, result: ShardResult, shard: Shard) -> None:
        """Refuse to go on when the rest of the input would not fit into memory; looks at 1, 2, 4, ... shards."""
        if not self._all or not result.samples:
            return
        self._done += shard.size()
        self._samples += result.samples
        self._bytes += _UNPACKED * len(result.table)
        if self._done < self._due:
            return
        self._due = 2 * self._done
        room, rest = free_memory(), max(0, self._all - self._done) / self._done
        if room is not None and rest * self._bytes > _SHARE * room:
            samples, need = (1 + rest) * self._samples, rest * self._bytes
            raise ConfigError(
                f"the grades of about {samples:,.0f} samples need {_shown(need)} more memory for their figures, and "
                f"{_shown(room)} are free",
                "do without the metrics that look at items, reasons or metadata (gradestack plugins describe METRIC)",
                "or split the input into several runs, or take the first tasks only: --set max_samples=N",
            )


def _shown(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.2f} MiB"
