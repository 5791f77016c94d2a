"""Standard input and remote files, copied once into a temporary directory."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gradestack.copies.addresses import protocol_of, shown_address
from gradestack.copies.names import STANDARD_INPUT, new_folder, note_address
from gradestack.copies.packed import readable
from gradestack.copies.surroundings import SUFFIXES
from gradestack.errors import ConfigError, DataError, GradestackError

_PIECE: Final = 1 << 20
CONNECT, SILENCE = 20.0, 60.0
"""Seconds in which a server must have been connected to, and for which it may send nothing."""
_WEB: Final = frozenset({"http", "https"})
_NO_NAME: Final = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]|^\.\.+|^\.$')
"""What no name of a copy holds: it leads to another folder, or some system makes something else of it."""
_LONGEST_NAME: Final = 200
"""Bytes of the name of a copy; file systems take 255."""
_read: dict[str, Path] = {}
"""Standard input, which can be read once."""


def run_name(text: str) -> str:
    """Return how a run is called whose first input was given so: the last part of its name, without suffixes of it."""
    if text == STANDARD_INPUT:
        text = "stdin"
    elif "://" in text:
        text = shown_address(text).rstrip("/")
    path = Path(text.replace("\0", "")).resolve()  # with one it is refused when it is opened
    return Path(path.stem).stem if path.suffix.lower() in SUFFIXES else path.stem


def standard_input() -> Path:
    """Return a copy of standard input."""
    try:
        if STANDARD_INPUT not in _read:
            _read[STANDARD_INPUT] = note_address(readable(_standard_input()), STANDARD_INPUT)
    except OSError as error:
        raise DataError(f"{STANDARD_INPUT}: cannot be read: {error.strerror or error}") from error
    return _read[STANDARD_INPUT]


def _standard_input() -> Path:
    if sys.stdin is None:
        raise DataError(f"{STANDARD_INPUT}: there is no standard input")
    copy = new_folder() / "stdin"
    with copy.open("xb") as to:
        shutil.copyfileobj(sys.stdin.buffer, to, _PIECE)
    return note_address(copy, STANDARD_INPUT)


def fetched(address: str, known: dict[str, Path]) -> list[Path]:
    """Return copies of what an address names: a file, a directory of a bucket, or files by a pattern."""
    protocol, shown = protocol_of(address), shown_address(address)
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError as error:
        raise ConfigError(f"{shown}: remote files are read by fsspec: pip install 'gradestack[remote]'") from error
    try:
        system, place = fsspec.core.url_to_fs(address, protocol=protocol, **_limits(protocol))
        return [_copy(system, *each, known, web=protocol in _WEB) for each in _meant(system, place, address)]
    except GradestackError:
        raise
    except KeyboardInterrupt:
        _end_tasks()
        raise
    except ImportError as error:  # a kind of address that wants a package more
        raise ConfigError(f"{shown}: cannot be read: {error}") from error
    except Exception as error:  # noqa: BLE001 - libraries of others: no connection, no right to read, an odd answer
        raise DataError(
            f"{shown}: cannot be read: {_reason(error)}"
        ) from None  # what libraries say holds the address with all that is secret about it


def _end_tasks() -> None:
    """End what is being fetched, which goes on in a thread of the library: it would complain when the process ends."""
    import asyncio  # noqa: PLC0415 - takes its time, and fsspec has it anyway

    async def end() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=1) if tasks else None

    library = sys.modules.get("fsspec.asyn")
    if library is not None and (loop := library.loop[0]) is not None:
        with suppress(Exception):  # it does not end in time, or has ended
            asyncio.run_coroutine_threadsafe(end(), loop).result(timeout=2)


def _limits(protocol: str) -> dict[str, Any]:
    """Return the options for a library that would end any reading after five minutes; others wait as we do."""
    if protocol not in _WEB | {"gs"}:
        return {}
    timeout = importlib.import_module("aiohttp").ClientTimeout(total=None, connect=CONNECT, sock_read=SILENCE)
    return {"session_kwargs" if protocol == "gs" else "client_kwargs": {"timeout": timeout}}


def _reason(error: Exception) -> str:
    """Return what went wrong as a sentence, addresses in it without what is secret."""
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    said = " ".join(shown_address(word) if "://" in word else word for word in text.split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _meant(system: Any, place: str, address: str) -> Iterator[tuple[str, str]]:
    """Yield what a place on a file system means, each with its address: itself, or what its pattern matches."""
    protocol = address.partition("://")[0]
    web = protocol in _WEB
    path = "".join(shown_address(address).split("/", 3)[3:]) if web else place  # a host may be [0:0:0:0:0:0:0:1]
    if not set("*[") & set(path):  # ? is no sign of a pattern
        yield place, address
        return
    names = sorted(name for name in system.glob(place) if not web or not (set("?#") & set(name) or name.endswith("/")))
    if not names:
        raise DataError(f"{shown_address(address)}: the pattern matches no file")
    for name in names:
        yield name, name if web else f"{protocol}://{name}"


def _copy(system: Any, place: str, address: str, known: dict[str, Path], *, web: bool) -> Path:
    """Return a copy of a file, or of a directory of a bucket; on the web whatever has an address is a file."""
    if address in known:
        return known[address]
    shown = shown_address(address)
    copy = new_folder() / (_name_of(shown.rstrip("/")) or "remote")
    if not web and system.isdir(place):
        _copy_directory(system, place, copy, shown)
    else:
        system.get_file(place, str(copy))
    known[address] = note_address(readable(note_address(copy, shown)), shown)
    return known[address]


def _copy_directory(system: Any, place: str, copy: Path, shown: str) -> None:
    """Copy the files below a place; what stands for a directory itself, as an empty file of its name, is none."""
    start = f"{place.rstrip('/')}/"
    copy.mkdir()
    for name in sorted(each for each in system.find(place) if f"{each}/" != start and not each.endswith("/")):
        parts = name.removeprefix(start).split("/")
        if not name.startswith(start) or any(not part or _name_of(part) != part for part in parts):
            raise DataError(
                f"{shown}: holds {name!r}, which no local file can be called; name the files to grade by a pattern"
            )
        to = copy.joinpath(*parts)
        to.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(name, str(to))


def _name_of(place: str) -> str:
    """Return what the copy of a remote file is called: the last part of its name, which leads to no other folder."""
    name = _NO_NAME.sub("_", place.rpartition("/")[2])
    return name.encode(errors="replace")[-_LONGEST_NAME:].decode(errors="ignore")
