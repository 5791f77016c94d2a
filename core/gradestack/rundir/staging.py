"""A run directory in the making."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

from gradestack.errors import ConfigError, DataError, storage_failed
from gradestack.jsonio.values import dumps, loads
from gradestack.report import ROWS
from gradestack.rundir.place import JOURNAL, check_place, lock, synchronise, unfinished

_PARTS, _OLD = "parts-", "old"


class Staging:
    """A run directory in the making, in a hidden directory beside its place that no other run may use meanwhile.

    ``path`` becomes the run directory; beside it there are the pieces not yet joined, the journal a later ``--resume``
    reads, and while an earlier run is replaced, that run.

    Attributes:
        path: Where files are written until :meth:`commit`.
        parts: Directory for pieces, a new one for every attempt: workers of an attempt that was killed may still write.
        replaced: True when what an unfinished run had left was removed.
    """

    def __init__(self, place: Path, *, resume: bool = False) -> None:
        self.replaced = False
        self._lock: int | None = None
        try:
            check_place(place)
            self.place = place.resolve() if place.is_symlink() else place  # what a link leads to is replaced, not it
            self.place.absolute().parent.mkdir(parents=True, exist_ok=True)
            self.base = unfinished(self.place)
            self.path = self.base / "run"
            try:
                self._enter(resume=resume)
            except BaseException:
                self.leave()
                raise
            self.parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=self.base))
        except OSError as error:
            raise (DataError if storage_failed(error) else ConfigError)(
                f"{place}: cannot be written: {error.strerror or error}"
            ) from error

    def _enter(self, *, resume: bool) -> None:
        """Take the hidden directory for this run alone; keep in it what a resumed run needs."""
        if self.base.is_symlink():
            raise ConfigError(f"{self.base}: is a link, and an unfinished run is a directory of its own; move it away")
        self.base.mkdir(exist_ok=True)
        self._lock = lock(self.base)
        if self._lock is None:
            raise ConfigError(f"{self.place}: another run is writing it ({self.base})")
        old = self.base / _OLD
        if old.is_dir() and not self.place.exists():  # killed while it was being replaced
            old.rename(self.place)
        kept = (JOURNAL, _PARTS, "run") if resume and (self.base / JOURNAL).is_file() else ()
        if kept:
            self._check_own()
        for path in self.base.iterdir():
            if not path.name.startswith((JOURNAL, _PARTS, "run", _OLD)):
                raise ConfigError(f"{self.base}: holds {path.name}, which is not ours; move the directory away")
        for path in list(self.base.iterdir()):
            if not kept or not path.name.startswith(kept):
                self.replaced |= path.name == JOURNAL
                _remove(path)
        self.path.mkdir(exist_ok=True)
        for path in list(self.path.iterdir()):
            if path.name != ROWS:
                _remove(path)

    def _check_own(self) -> None:
        """Refuse to continue in files that lie elsewhere, too: what is written here would be written there."""
        for place, folders, files in os.walk(self.base):
            paths = (Path(place, name) for name in (*folders, *files))
            if other := next((path for path in paths if not _own(path)), None):
                raise ConfigError(
                    f"{other}: is a link or no plain file, which no unfinished run of ours has",
                    "run without --resume to start anew",
                )

    @property
    def journal(self) -> Path:
        """Where finished ranges are recorded."""
        return self.base / JOURNAL

    def write_json(self, name: str, value: Any) -> Any:
        """Write one of our JSON files: sorted keys, indent 2, one newline at the end. Return it as a reader sees it."""
        text = dumps(value, indent=2) + "\n"
        (self.path / name).write_text(text, encoding="utf-8", newline="\n")
        return loads(text)

    def commit(self, *, durable: bool = False, keep: bool = False) -> Path:
        """Move the directory into its place, replacing an earlier run whole, and return the place."""
        place, old = self.place, self.base / _OLD
        if durable:
            for path in [*self.path.rglob("*"), self.path]:
                synchronise(path)
        if place.exists():
            place.rename(old)
        self.path.rename(place)
        if durable:
            synchronise(place.absolute().parent)
        if keep:
            shutil.rmtree(old, ignore_errors=True)
            self.leave()
        else:
            self.discard()
        self.path = place
        return place

    def discard(self) -> None:
        """Remove everything that is not in its place."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Let other runs have the hidden directory, as it is."""
        with contextlib.suppress(OSError, AttributeError):  # an attempt that was refused leaves nothing behind
            self.parts.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _own(path: Path) -> bool:
    """Return whether a path is a directory, or a file of no other name."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink < 2)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
