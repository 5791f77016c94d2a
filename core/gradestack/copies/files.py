"""Paths and addresses as they are written, and copies of what is not a plain local file, made once.

Readers cut files.

Addresses of remote files are shown without passwords and signatures, and most kinds are never
opened.
"""

from __future__ import annotations

import atexit
import importlib
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import msgspec

from gradestack.errors import ConfigError, DataError, GradestackError, TimedOut, reading
from gradestack.grading.input_files import FileState
from gradestack.interpreter import work_limit
from gradestack.patterns import compile_later
from gradestack.regular_files import ZSTD, files_below, open_regular

if TYPE_CHECKING:
    from gradestack.registry import Registry

_LIKE_ONE: Final = compile_later(r"[\s\x00-\x1f]*[^\W\d_][\w+.-]+:|[^/\\]*::|.*://", re.DOTALL)
"""What people, or a library, may take for an address; C:\\ is the letter of a disk."""
_PARTS: Final = compile_later(
    r"(?:([^/?#]*)@)?([\w.-]+(?::\d{1,5})?|\[[\da-fA-F:.]+\](?::\d{1,5})?)(/[^?#]*|)(?:[?#].*)?",
    re.DOTALL,
)
"""What stands behind ``://``: userinfo, host or bucket, path; a query or fragment is dropped."""
_LONGEST: Final = 60
"""Characters that are shown of a malformed one."""


def is_address(text: str) -> bool:
    """Return whether a text looks like an address, of whatever kind, rather than like the name of a
    local file.
    """
    return _LIKE_ONE.match(text) is not None


def shown_address(text: str) -> str:
    """Return an address without userinfo, query and fragment, which may be secret.

    Of a malformed one only its kind.
    """
    protocol, separator, rest = text.partition("://")
    parts = None
    if protocol.isalnum():
        parts = _PARTS.fullmatch(rest)
    if parts is not None:
        return f"{protocol}{separator}{parts[2]}{parts[3]}"
    if len(text) <= _LONGEST and not separator and not set("@?#") & set(text):
        return text
    return f"{text.partition(':')[0].strip()[:_LONGEST]}:…"


def protocol_of(text: str, registry: Registry) -> str:
    """Return the protocol of an address that may be opened, as it has a component ``address``.

    Others stand for local files, archives or commands, and no library ever sees them.
    """
    protocol, _, rest = text.partition("://")
    parts = _PARTS.fullmatch(rest)
    protocols = registry.names("address")
    is_odd = "::" in text or not text.isprintable() or any(map(str.isspace, text))
    if protocol in protocols and parts is not None and not is_odd:
        user = parts[1]
        holds_key = protocol in {"s3", "gs"} or (protocol == "az" and ":" in (user or ""))
        if user is None or not holds_key:
            return protocol
    absent = ", and there is no file of this name"
    if "://" in text:
        absent = ""
    beginnings = ", ".join(f"{kind}://" for kind in protocols)
    rule = f"only addresses that begin with one of {beginnings}, and a host or bucket, are opened"
    condition = "without ::, spaces or the key of a bucket"
    raise ConfigError(f"{shown_address(text)}: {rule}, {condition}{absent}")


MAGIC = frozenset("*?[")
"""Characters of a pattern."""


class OutsideError(ConfigError):
    """A suite names a file that does not lie below its folder."""


class Folder(NamedTuple):
    """The folder of a suite. What the suite names lies below it, unless the command line says so.

    A link counts by where it leads. Files that a command line or a caller in Python names have no
    such folder.
    """

    path: Path
    is_open: bool = False
    """Whether the suite may name any file (``--allow-outside``)."""
    typed: frozenset[str] = frozenset()
    """Texts of the command line."""
    name: str = "the suite's folder; pass --allow-outside if you trust this suite"
    """What messages call it, and what to do about it."""

    def require_below(self, path: Path, text: str) -> None:
        """Refuse a path that leads out of the folder, unless the command line names ``text``.

        Raises:
            OutsideError: It does.
        """
        if self.is_open or text in self.typed:
            return
        try:
            target = os.path.realpath(path)
            root = os.path.realpath(self.path)
        except OSError:  # opening it will say so
            return
        if not Path(target).is_relative_to(root):
            raise OutsideError(f"{text} leads out of {self.name}")

    def require_all_below(self, path: Path, text: str) -> None:
        """Refuse a path, and a directory with links, that lead out of the folder."""
        self.require_below(path, text)
        if self.is_open or text in self.typed:
            return
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                entry = Path(folder, name)
                if entry.is_symlink():
                    self.require_below(entry, f"{Path(text, entry.relative_to(path))}")


def folder_of_runs(*, is_open: bool = False, typed: frozenset[str] = frozenset()) -> Folder:
    """Return the folder below which lies what a report directory names: the working directory."""
    name = (
        "the working directory, and a report directory names it; call this from a folder above it"
    )
    return Folder(Path.cwd(), is_open, typed, name)


def path_of(text: str, base: Folder | None = None) -> Path:
    """Return a path, ``~`` expanded, a relative one taken from the folder ``base``.

    Raises:
        ConfigError: It is no path, or leads out of the folder.
    """
    if "\0" in text:
        raise ConfigError("a path holds no NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ConfigError(f"{text!r} is no path: it holds half of a surrogate pair") from error
    path = Path(text)
    with suppress(RuntimeError):  # no such user: a file may be called ~x
        path = path.expanduser()
    if base is None:
        return path
    path = base.path / path
    base.require_below(path, text)
    return path


class AddressGivenError(ConfigError):
    """An address stands where a local file is wanted."""


def local_path_of(text: str, base: Folder | None = None) -> Path:
    """Return a path as ``path_of`` does, of a file that is never fetched from elsewhere.

    Raises:
        AddressGivenError: It is an address.
        ConfigError: It is no path; or it, or a link below it, leads out of the folder.
    """
    if is_address(text) and not _is_there(text, base):
        why = "here a local file is wanted; only inputs and datasets may be remote"
        raise AddressGivenError(f"{shown_address(text)} is an address; {why}")
    path = path_of(text, base)
    if base is not None:
        base.require_all_below(path, text)
    return path


def _is_there(text: str, base: Folder | None) -> bool:
    try:
        return path_of(text, base).exists()
    except (OSError, ConfigError):  # a name too long, a NUL character
        return False


def local_files(text: str, base: Folder | None) -> list[Path]:
    """Return the local files and directories that a text means.

    The one it names, or those its pattern matches.

    Raises:
        OutsideError: One of them, or a link below it, leads out of the folder.
        DataError: It cannot be looked for, or is neither a file nor a directory.
    """
    try:
        path = path_of(text, base)
        exists = path.exists()
    except OutsideError:
        raise
    except (OSError, ConfigError) as error:
        # a name too long, a directory that may not be entered, a NUL character
        if is_address(text):
            return []
        why = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else error
        raise DataError(f"{text if base is None else base.path / text}: {why}") from error
    paths = [path] if exists else _matching_paths(path, text)
    for match in paths:
        if not match.is_file() and not match.is_dir():
            # a pipe would be used up by looking at its head
            advice = "write it to a file first, or pipe it to -"
            raise DataError(f"{match}: neither a file nor a directory; {advice}")
        if base is not None:
            base.require_all_below(match, text)
    return paths


PATTERN_SECONDS: Final = 10.0
"""Seconds of work that matching a pattern with the names of files may take."""


def _matching_paths(path: Path, text: str) -> list[Path]:
    """Return the paths that a pattern matches, as shells do: ``*`` leaves hidden files alone."""
    if not MAGIC & set(text):
        return []
    import glob  # noqa: PLC0415 - where a pattern is given

    # ** behind ** matches the same paths again, once more for each folder
    runs = groupby(path.parts)
    parts = [name for part, same in runs for name in ([part] if part == "**" else same)]
    try:
        with work_limit(PATTERN_SECONDS):
            names = glob.glob(str(Path(*parts)), recursive=True)  # noqa: PTH207
    except TimedOut as error:
        raise DataError(f"{text}: matching this pattern {error}; name the files") from error
    return sorted(set(map(Path, names)))


STANDARD_INPUT: Final = "-"


class _Origin(msgspec.Struct, frozen=True):
    name: str  # an absolute path, an address or `-`
    spelled: str  # how it was written last
    state: FileState | None = None  # of a packed file, its state when it was unpacked


_origins: dict[Path, _Origin] = {}  # copy -> what it was made of
_folders: list[Path] = []
_owner: list[int] = []  # the process that has made the folder, and removes it


def _new_folder() -> Path:
    if not _folders:
        _folders.append(Path(tempfile.mkdtemp(prefix="gradestack-")).resolve())
        _owner.append(os.getpid())
        atexit.register(remove_copies)
    return Path(tempfile.mkdtemp(dir=_folders[0]))


def remove_copies() -> None:
    """Remove all copies, as is done anyway when the interpreter comes to its end."""
    if os.getpid() in _owner:  # no forked worker
        for folder in _folders:
            shutil.rmtree(folder, ignore_errors=True)


def _note(copy: Path, path: Path, state: FileState | None = None) -> Path:
    spelled = _origins[path].spelled if path in _origins else str(path)
    _origins[copy] = _Origin(copied(path) or str(path.absolute()), spelled, state)
    return copy


def _note_address(copy: Path, address: str) -> Path:
    spelled = "stdin" if address == STANDARD_INPUT else address
    _origins[copy] = _Origin(address, spelled)
    return copy


def check_original(path: Path) -> None:
    """Refuse a copy of a packed local file that is no longer what was unpacked.

    OSError: it is gone.
    """
    origin = _origins.get(path)
    if origin is not None and origin.state is not None and not is_fetched(path):
        name_path = Path(origin.name)
        _check_state(name_path, origin.spelled, origin.state)


def _check_state(path: Path, shown: str, state: FileState) -> None:
    if FileState.of(path.stat()) != state:
        advice = "grade it again when nothing writes to it"
        raise DataError(f"{shown}: has changed while it was read; {advice}")


def is_fetched(path: Path) -> bool:
    """Return whether a path is a copy of what cannot be read again.

    Standard input, or a remote file.
    """
    name = copied(path)
    return name is not None and not Path(name).is_absolute()


def original(path: Path) -> Path:
    """Return the local file or directory a path is a copy of; of anything else the path itself."""
    name = copied(path)
    if name is None or is_fetched(path):
        return path
    return Path(name)


def name_of(path: Path) -> str:
    """Return the name of an input for people.

    Its absolute path, its address, or ``-`` for standard input.
    """
    return copied(path) or str(path.resolve())


def copied(path: Path) -> str | None:
    """Return the absolute path, address, or ``-`` that a path is a copy of, or lies in
    a copy of.
    """
    for parent in (path, *path.parents) if _origins else ():
        if parent in _origins:
            name = _origins[parent].name
            if parent == path:
                return name
            return f"{name}/{path.relative_to(parent).as_posix()}"
    return None


@contextmanager
def named_as_given() -> Iterator[None]:
    """Raise errors with the names of inputs in place of those of their copies."""
    try:
        yield
    except GradestackError as error:
        error.args = tuple(map(_rename_copies, error.args))
        error.problems = tuple(map(_rename_copies, error.problems))
        raise


def _rename_copies(text: Any) -> Any:
    """Put the names of inputs in place of those of their copies."""
    if isinstance(text, str) and _folders and str(_folders[0]) in text:
        for copy in sorted(_origins, key=lambda path: -len(str(path))):
            text = text.replace(str(copy), _origins[copy].spelled)
    return text


SUFFIXES: Final = frozenset({".gz", ".zst"})
_PIECE: Final = 1 << 20
_LARGEST_COPY: Final = 1 << 32
"""Bytes that any packed file may come to; beyond, a small one shall not fill the disk."""
_MOST_TIMES: Final = 200
_PACKED: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x50\x2a\x4d\x18": "zstd",  # a frame to be skipped comes first
}

_made: dict[tuple[Any, ...], Path] = {}
"""What a copy was made of, with its state -> the copy; one file given twice is unpacked once."""


def readable(path: Path) -> Path:
    """Return a path that readers can open.

    Itself, or a copy where it is packed, or holds files that are.
    """
    if path.is_dir():
        return _directory(path)
    with open_regular(path) as file:
        with reading(path):
            kind = _packed(file)
        if kind is None:
            return path
        state = FileState.of(os.fstat(file.fileno()))
        key = (str(path.resolve()), state)
        if key not in _made:
            copy = _new_folder() / (path.stem if path.suffix.lower() in SUFFIXES else path.name)
            _unpack(path, file, kind, copy)
            _made[key] = copy
        return _note(_made[key], path, state)


def _packed(file: BinaryIO) -> str | None:
    """Return the kind of packing of a file, by its beginning; None where it is not packed."""
    head = file.read(4)
    file.seek(0)
    return next((kind for first, kind in _PACKED.items() if head.startswith(first)), None)


def _unpack(path: Path, file: BinaryIO, kind: str, copy: Path) -> FileState:
    """Unpack a file into a copy; return the state (size, time) of the packed file."""
    state = FileState.of(os.fstat(file.fileno()))
    library = importlib.import_module("gzip" if kind == "gzip" else ZSTD)
    broken: tuple[type[Exception], ...] = (EOFError, ValueError)
    if kind == "gzip":
        reader = library.GzipFile(fileobj=file)
        broken = (*broken, library.BadGzipFile, zlib.error)
    else:
        reader = library.ZstdFile(file)
        broken = (*broken, library.ZstdError)
    try:
        with copy.open("xb") as target:
            try:
                _copy_bounded(path, reader, target, max(_LARGEST_COPY, _MOST_TIMES * state.size))
            except broken as error:
                done = f"{target.tell():,} bytes were unpacked before"
                raise DataError(f"{path}: cannot be unpacked ({kind}): {error}; {done}") from error
        _check_state(path, str(path), state)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return state


def _copy_bounded(path: Path, reader: Any, target: BinaryIO, most: int) -> None:
    """Write what a reader gives; DataError: it is more than so many bytes."""
    while piece := reader.read(_PIECE):
        target.write(piece)
        if target.tell() > most:
            why = f"it is {_MOST_TIMES} times as large unpacked, or more"
            raise DataError(f"{path}: {why}: unpack it first")


def _directory(path: Path) -> Path:
    """Return a directory, or where it holds packed files a copy in which they are not."""
    files = files_below(path)
    if not any(_has_packed_suffix(file) for file in files):
        return path
    key = (str(path.resolve()), *((file, FileState.of(file.stat())) for file in files))
    if key in _made:
        return _made[key]
    copy = _new_folder() / path.resolve().name
    names = {file.relative_to(path) for file in files}
    for file in files:
        relative_path = file.relative_to(path)
        _copy_into(copy, file, relative_path, names)
    _made[key] = _note(copy, path)
    return copy


def _has_packed_suffix(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def _copy_into(copy: Path, path: Path, name: Path, names: set[Path]) -> None:
    """Link a file into a copy of its directory, or unpack it there under a name that is free."""
    with open_regular(path) as file:
        kind = None
        if _has_packed_suffix(path):
            kind = _packed(file)
        if kind is not None and name.stem.strip(".") and name.with_name(name.stem) not in names:
            name = name.with_name(name.stem)
        names.add(name)
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind is None:
            target.symlink_to(path.resolve())
        else:
            state = _unpack(path, file, kind, target)
            _note(target, path, state)


_read: dict[str, Path] = {}  # standard input, which can be read once


def run_name(text: str) -> str:
    """Return the name of a run by the text of its first input.

    The last part of its name, without suffixes of it.
    """
    if text == STANDARD_INPUT:
        text = "stdin"
    elif "://" in text:
        text = shown_address(text).rstrip("/")
    # with a NUL, as a loop of links, it is refused when opened
    path = Path(os.path.realpath(text.replace("\0", "")))
    if _has_packed_suffix(path):
        return Path(path.stem).stem
    return path.stem


def standard_input() -> Path:
    """Return a copy of standard input."""
    if sys.stdin is None:
        raise DataError("stdin: there is no standard input")
    with reading(STANDARD_INPUT):
        if STANDARD_INPUT not in _read:
            stdin_folder = _new_folder() / "stdin"
            copy = _note_address(stdin_folder, STANDARD_INPUT)
            with copy.open("xb") as target:
                shutil.copyfileobj(sys.stdin.buffer, target, _PIECE)
            _read[STANDARD_INPUT] = _note_address(readable(copy), STANDARD_INPUT)
    return _read[STANDARD_INPUT]


def fetched(address: str, known: dict[str, Path], registry: Registry) -> list[Path]:
    """Copy the files that an address names, by its protocol's component ``address``.

    A file, a directory of a bucket, or files by a pattern. ``known`` has those made before.
    """
    copies = []
    protocol = protocol_of(address, registry)
    fetch = registry.load("address", protocol)
    for file, copy_into in fetch(address):
        if file not in known:
            shown = shown_address(file)
            copy = _note_address(copy_into(_new_folder()), shown)
            known[file] = _note_address(readable(copy), shown)
        copies.append(known[file])
    return copies
