"""Free memory, by what Linux says of the machine and of a container."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def free_memory() -> int | None:
    """Return the bytes of memory that can still be had; None where the system does not say."""
    amounts = []
    path = _PROC / "meminfo"
    available = _read_amounts(path).get("MemAvailable:")
    if available is not None:
        amounts.append(available)
    for group in _groups_of_process():
        memory_path = group / "memory.max"
        limit = _read_amounts(memory_path).get("")
        used = _read_amounts(group / "memory.current").get("")
        if limit is not None and used is not None:
            reclaimable = _read_amounts(group / "memory.stat").get("inactive_file", 0)
            amounts.append(limit - used + reclaimable)
    return min(amounts, default=None)


def _groups_of_process() -> list[Path]:
    """Return the control groups that limit this process."""
    groups, entry = [_GROUPS], ""
    with suppress(OSError, IndexError):
        cgroup_folder = _PROC / "self/cgroup"
        text = cgroup_folder.read_text(encoding="utf-8")
        entry = text.splitlines()[-1]
    if entry.startswith("0::/"):
        inner = _GROUPS / entry[4:]
        groups += [inner, *(parent for parent in inner.parents if parent.is_relative_to(_GROUPS))]
    return groups


def _read_amounts(path: Path) -> dict[str, int]:
    """Return the amounts that the system has in a file, by name, one alone as "".

    An amount that is "max", as one that cannot be read, is left out.
    """
    amounts = {}
    with suppress(OSError, ValueError):
        text = path.read_text(encoding="ascii", errors="replace")
        for line in text.splitlines():
            *name, number = line.removesuffix(" kB").split()
            amounts["".join(name)] = int(number) * (1024 if line.endswith(" kB") else 1)
    return amounts
