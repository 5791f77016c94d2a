"""Places of runs: where a run may be written, the directory it is written in meanwhile, and who
holds it.

A name in a directory that anybody may have filled may be a link to any file of the user's, so
nothing in it is opened for writing. Files are written into a new directory, whose name nobody knows
beforehand, and renamed: that replaces a link, a pipe or a device itself, never what it leads to.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from gradestack.errors import ConfigError, writing
from gradestack.jsonio.values import dumps, loads
from gradestack.regular_files import real_paths
from gradestack.report import HEADER, header_of, is_run
from gradestack.rows.packed import PACKED_ROWS, ROWS

JOURNAL = "journal.jsonl"
PATIENCE = 5.0
"""Seconds to wait for a directory another process has.

Workers of a killed run end within a second after it.
"""
_MOST_NAME = 100
_OF_DESKTOPS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
"""What file managers leave in a directory that somebody looks at."""
UNFINISHED, _NEW, _PARTS, _OLD = ".unfinished", ".gradestack-", "parts-", "old"


def _folder_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:_MOST_NAME] or "run"


def default_place(name: str, now: datetime) -> Path:
    """Return ``gradestack-runs/NAME/UTC-TIME``, numbered when there is one of that time already."""
    time_text = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    run_folder = Path("gradestack-runs") / _folder_name(name) / time_text
    number = 1
    # two runs within a second: the first one stays
    while run_folder.exists() or unfinished(run_folder).exists():
        number += 1
        run_folder = run_folder.with_name(f"{time_text}-{number}")
    return run_folder


def check_place(path: Path) -> None:
    """Refuse an output path unless it is free, an empty directory or an earlier run."""
    with writing(path):
        folder = path.absolute()
        directory = Path.cwd()
        if directory.is_relative_to(folder) or directory.is_relative_to(os.path.realpath(path)):
            why = "holds the working directory, and a report directory is replaced whole"
            raise _refusal(path, why)
        if path.is_dir() and any(path.iterdir()) and not is_run(path):
            raise _refusal(path, "the directory is not empty and not a gradestack run")
        foreign = _foreign_files(path)
        if foreign:
            raise _refusal(path, f"holds {min(foreign)}, which gradestack did not write")
        check_directory(path, folder.parent)


def _refusal(path: Path, why: str, advice: str = "name another with -o") -> ConfigError:
    return ConfigError(f"{path}: {why}; {advice}")


def _file_names(path: Path) -> set[str]:
    """Return the names of the files in a report directory, those being written left out."""
    names = set()
    for file in path.rglob("*"):
        name = file.relative_to(path).as_posix()
        if not file.is_symlink() and not file.is_dir() and not name.startswith(_NEW):
            names.add(os.fsencode(name).decode("utf-8", "backslashreplace"))
    return names


def _listed_files(path: Path) -> set[str] | None:
    """Return the files that a run's header lists; None where it lists none."""
    files = header_of(path).get("files")
    return set(map(str, files)) if isinstance(files, list) else None


def _foreign_files(path: Path) -> set[str]:
    """Return the files in a report directory that its header does not list."""
    listed = _listed_files(path)
    if listed is None:
        return set()
    known = set(listed)
    for run in [PurePath(name).parent for name in listed if name.endswith(f"/{HEADER}")]:
        listed_files = _listed_files(path / run)
        known |= {f"{run.as_posix()}/{name}" for name in listed_files or ()}
    names = _file_names(path) - known
    return {name for name in names if PurePath(name).name not in _OF_DESKTOPS}


def list_folder(run_folder: Path, name: str) -> None:
    """List the files of a folder in a run's header: a new run at the place may replace them."""
    if _listed_files(run_folder) is None:
        return
    path = run_folder / name
    names = {f"{name}/{file}" for file in _file_names(path)}
    with filling(run_folder) as staged:
        _list_files(run_folder, staged, names)


def _list_files(run_folder: Path, staged: Path, names: Iterable[str]) -> None:
    """Write a new header of a run, which also lists some files, to be moved into the run."""
    head = header_of(run_folder)
    head["files"] = sorted({*(_listed_files(run_folder) or ()), *names, HEADER})
    text = dumps(head, indent=2) + "\n"
    (staged / HEADER).write_text(text, encoding="utf-8", newline="\n")


def check_directory(path: Path, parent: Path | None = None) -> None:
    """Refuse what is no directory, and one that cannot be made or written to."""
    advice = "name another place with -o"
    if not path.is_dir() and (path.exists() or path.is_symlink()):
        raise _refusal(path, "exists and is not a directory", advice)
    parent = parent or path.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise _refusal(path, f"{parent} is not a directory that can be written to", advice)


def keep_inputs(output: Path, paths: Iterable[Path]) -> None:
    """Refuse an output that holds a file the run reads, or is one.

    A rerun replaces the directory whole.
    """
    run_folder, real_path = output.resolve(), real_paths()
    for path in paths:
        if real_path(path).is_relative_to(run_folder):
            why = f"holds {path}, which this run reads and would replace"
            raise _refusal(output, why, "name another place with -o")


def unfinished(run_folder: Path) -> Path:
    """Return the hidden directory beside a report directory that holds it until it is complete."""
    return run_folder.absolute().parent / f".{run_folder.name}{UNFINISHED}"


def can_continue(run_folder: Path) -> bool:
    """Return whether an unfinished run of a place is on record."""
    return (unfinished(run_folder) / JOURNAL).is_file()


def newest_unfinished(name: str, patience: float) -> Path | None:
    """Return the default place of a suite whose run was begun last and is not finished.

    None when there is none.
    """
    places = []
    for folder in (Path("gradestack-runs") / _folder_name(name)).glob(f".*{UNFINISHED}"):
        if (folder / JOURNAL).is_file():
            places.append(folder.with_name(folder.name[1 : -len(UNFINISHED)]))
    for run_folder in sorted(places, key=_begun_at, reverse=True):
        descriptor = lock(unfinished(run_folder), patience)
        if descriptor is not None:
            os.close(descriptor)
            return run_folder
    return None


def _begun_at(run_folder: Path) -> list[int]:
    matches = re.findall(r"\d+", run_folder.name)
    return [*map(int, matches)]


def synchronise(path: Path) -> None:
    """Force the content of a file, or the entries of a directory, to the disk (fsync)."""
    if os.name != "posix" and path.is_dir():
        return  # only files can be opened there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(directory: Path, patience: float = PATIENCE) -> int | None:
    """Return a descriptor that keeps a directory for this process until it ends.

    None when another one has it.
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


@contextmanager
def reserve(run_folder: Path) -> Iterator[None]:
    """Keep a directory, into which pages are written, for this process alone.

    A run that is being written into it, and another writer of pages, are waited for a little.

    Raises:
        ConfigError: Another process has the directory.
    """
    directory = unfinished(run_folder.resolve() if run_folder.is_symlink() else run_folder)
    was_there = directory.exists()
    descriptor = None
    if was_there or os.access(directory.parent, os.W_OK):  # else no run can begin there either
        descriptor = lock(directory, PATIENCE)
        if descriptor is None:
            raise in_use(run_folder, directory)
    try:
        yield
    finally:
        if descriptor is not None:
            if not was_there:
                with contextlib.suppress(OSError):
                    directory.rmdir()
            os.close(descriptor)


def in_use(run_folder: Path, directory: Path) -> ConfigError:
    """Return the refusal of a directory that another process writes into."""
    why = f"another run is writing it ({directory})"
    return ConfigError(
        f"{run_folder}: {why}", "wait until it has ended, or name another place with -o"
    )


def link_latest(run_folder: Path) -> None:
    """Point ``latest`` beside a default report directory at it.

    Where links are not possible, do nothing.
    """
    link = run_folder.parent / "latest"
    with contextlib.suppress(OSError):
        if link.is_symlink():
            link.unlink()
        if not link.exists():
            link.symlink_to(run_folder.name)


@contextmanager
def filling(run_folder: Path, earlier: Iterable[str] = ()) -> Iterator[Path]:
    """Yield an empty directory whose files are moved into ``run_folder`` at the end.

    After a failure they are removed. A link in ``run_folder`` is replaced, also one that leads to a
    directory. Errors name files as if they lay in ``run_folder``. ``earlier`` has patterns of files
    that are removed if they are not written anew.
    """
    staged = Path(tempfile.mkdtemp(prefix=_NEW, dir=run_folder))
    try:
        yield staged
        outdated = [path for pattern in earlier for path in _outdated(staged, run_folder, pattern)]
        listed = _listed_files(run_folder)
        if listed is not None and not _file_names(staged) <= listed:
            _list_files(run_folder, staged, _file_names(staged))
        _move(staged, run_folder)
        for path in outdated:
            path.unlink()
            with contextlib.suppress(OSError):  # holds something else
                path.parent.rmdir()
    except Exception as error:
        _rename_in_error(error, str(staged), str(run_folder))
        raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _rename_in_error(error: Exception, path: str, shown: str) -> None:
    """Replace a path in an error's texts and file name by the one to be shown."""
    texts = [text.replace(path, shown) if isinstance(text, str) else text for text in error.args]
    error.args = tuple(texts)
    if isinstance(error, OSError) and error.filename is not None:
        error.filename = os.fsdecode(error.filename).replace(path, shown)


def _outdated(staged: Path, run_folder: Path, pattern: str) -> list[Path]:
    """Return the files of a pattern in a place that are not among the new ones."""
    folder = run_folder / PurePath(pattern).parent
    if folder.is_symlink():  # what it leads to is somebody's own
        return []
    paths = folder.glob(PurePath(pattern).name)
    return [
        path
        for path in paths
        if (path.is_symlink() or not path.is_dir())
        and not (staged / path.relative_to(run_folder)).exists()
    ]


def _move(staged: Path, run_folder: Path) -> None:
    """Move files into a report directory, those of folders before the pages that load them."""
    for path in sorted(staged.iterdir(), key=lambda path: (not path.is_dir(), path.name)):
        target = run_folder / path.name
        if path.is_symlink() or not path.is_dir():
            path.replace(target)
            continue
        if target.is_symlink():
            target.unlink()
        target.mkdir(exist_ok=True)
        _move(path, target)


class GrowingFile:
    """A file that is written at its end; ``size`` bytes of it are whole.

    Attributes:
        path: The file.
        size: Bytes of it that are whole.
        ahead: Bytes behind them, of which nobody has said yet that they are.
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path, self.size, self.ahead = path, size, 0
        self._to = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        self.trim()

    def append(self, part: Path) -> int:
        """Move the content of a file to the end and return its size; drop what is ahead."""
        if self.ahead:
            self.trim()
        size = self.copy(part)
        part.unlink()
        return size

    def copy(self, part: Path) -> int:
        """Add the content of a file and return its size."""
        with part.open("rb", buffering=0) as file:
            return self.write(iter(partial(file.read, 1 << 20), b""))

    def write(self, pieces: Iterable[bytes | memoryview]) -> int:
        """Add bytes, whole or not at all, and return how many."""
        self.write_ahead(pieces)
        return self.accept()

    def accept(self) -> int:
        """Take what was written ahead for whole, and return how many bytes these are."""
        accepted, self.ahead = self.ahead, 0
        self.size += accepted
        return accepted

    def write_ahead(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Add bytes that count once they are accepted."""
        try:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:  # a file without a buffer may take a part at a time
                    rest = rest[os.write(self._to, rest) :]
                self.ahead += len(piece)
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise

    def trim(self) -> None:
        """Cut off what was not added to its end."""
        os.ftruncate(self._to, self.size)
        os.lseek(self._to, self.size, os.SEEK_SET)
        self.ahead = 0

    def synchronise(self) -> None:
        """Force everything added so far to the disk (fsync)."""
        os.fsync(self._to)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._to)


class Staging:
    """An unfinished report directory, in a hidden directory beside its place that it locks.

    ``path`` becomes the report directory. Beside it are the pieces not yet joined, the journal
    that a later ``--resume`` reads, and while an earlier run is replaced, that run.

    ``parts`` is for pieces, a new one for every attempt: workers of an attempt that was killed may
    still write.
    """

    def __init__(self, run_folder: Path, *, resume: bool = False) -> None:
        """Lock the place of a report directory; create or resume its unfinished directory."""
        self.replaced = self.committed = False
        self._lock: int | None = None
        with writing(run_folder):
            check_place(run_folder)
            # what a link leads to is replaced, not the link
            self.run_folder = run_folder.resolve() if run_folder.is_symlink() else run_folder
            self.run_folder.absolute().parent.mkdir(parents=True, exist_ok=True)
            self.base = unfinished(self.run_folder)
            self.path = self.base / "run"
            try:
                self._enter(resume=resume)
            except BaseException:
                self.leave()
                raise
            self.parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=self.base))

    def _enter(self, *, resume: bool) -> None:
        """Lock the hidden directory, and remove what is not needed to continue."""
        if self.base.is_symlink():
            why = "is a link, and an unfinished run is a directory of its own"
            raise _refusal(self.base, why, "move it away")
        self.base.mkdir(exist_ok=True)
        self._lock = lock(self.base)
        if self._lock is None:
            raise in_use(self.run_folder, self.base)
        earlier = self.base / _OLD
        if earlier.is_dir() and not self.run_folder.exists():  # killed while it was being replaced
            earlier.rename(self.run_folder)
        saved: tuple[str, ...] = ()
        if resume and self.journal.is_file():
            saved = (JOURNAL, _PARTS, "run")
            self._require_own_files()
        self._remove_all_but(saved)
        self.path.mkdir(exist_ok=True)
        for path in list(self.path.iterdir()):
            if path.name not in (ROWS, PACKED_ROWS):
                _remove(path)

    def _remove_all_but(self, saved: tuple[str, ...]) -> None:
        """Remove the entries of the hidden directory whose names do not begin like these."""
        paths = list(self.base.iterdir())
        for path in paths:
            if not path.name.startswith((JOURNAL, _PARTS, "run", _OLD)):
                why = f"holds {path.name}, which is not ours"
                raise _refusal(self.base, why, "move the directory away")
        for path in paths:
            if not saved or not path.name.startswith(saved):
                self.replaced |= path.name == JOURNAL
                _remove(path)

    def _require_own_files(self) -> None:
        """Refuse to continue in files that lie elsewhere, too.

        What is written here would be written there.
        """
        for path in self.base.rglob("*"):
            status = path.lstat()
            is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink < 2
            if not is_plain and not stat.S_ISDIR(status.st_mode):
                why = "is a link or no plain file, which no unfinished run of ours has"
                raise ConfigError(f"{path}: {why}", "run without --resume to start anew")

    @property
    def journal(self) -> Path:
        """Where finished ranges are recorded."""
        return self.base / JOURNAL

    def write_json(self, name: str, value: Any) -> Any:
        """Write one of our JSON files: sorted keys, indent 2, one newline at the end.

        Return it as a reader sees it.
        """
        text = dumps(value, indent=2) + "\n"
        new = self.base / "run.json"
        new.write_text(text, encoding="utf-8", newline="\n")
        new.replace(self.path / name)
        return loads(text)

    def commit(self, *, durable: bool = False) -> Path:
        """Move the directory into its place, replacing an earlier run whole, and return
        the place.
        """
        run_folder = self.run_folder
        earlier = self.base / _OLD
        paths = self.path.rglob(HEADER)
        for run in [path.parent for path in paths if is_run(path.parent)]:
            _list_files(run, run, _file_names(run))
        if durable:
            for path in [*self.path.rglob("*"), self.path]:
                synchronise(path)
        if run_folder.exists():
            run_folder.rename(earlier)
        self.path.rename(run_folder)
        if durable:
            synchronise(run_folder.absolute().parent)
        shutil.rmtree(earlier, ignore_errors=True)
        self.path, self.committed = run_folder, True
        return run_folder

    def discard(self) -> None:
        """Remove everything that is not in its place, and let other runs have it."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Let other runs have the hidden directory, as it is."""
        # an attempt that was refused leaves nothing behind
        with contextlib.suppress(OSError, AttributeError):
            self.parts.rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
