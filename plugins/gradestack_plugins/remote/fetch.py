"""Components ``address``: copies of what an address names, by fsspec.

Errors never say more of an address than ``shown_address`` does: libraries put all of it into theirs.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from gradestack import ConfigError, DataError, GradestackError, shown_address

CONNECT, SILENCE = 20.0, 60.0
"""Seconds in which a server must have been connected to, and for which it may send nothing."""
_WEB: Final = frozenset({"http", "https"})
_NO_NAME: Final = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]|^\.\.+|^\.$')
"""What no name of a copy holds.

It leads to another folder, or some system makes something else of it.
"""
_LONGEST_NAME: Final = 200  # bytes of the name of a copy; file systems take 255


def open_address(address: str) -> Iterator[tuple[str, Callable[[Path], Path]]]:
    """Yield each file or directory that an address names, and what copies it into a folder.

    Args:
        address: A file, a directory of a bucket, or files by a pattern.
    """
    protocol, shown = address.partition("://")[0], shown_address(address)
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError as error:
        bucket = {"s3": " s3fs", "gs": " gcsfs", "az": " adlfs"}.get(protocol, "")
        wanted = f"pip install 'fsspec[http]>=2026.9'{bucket} (extra 'remote')"
        raise ConfigError(f"{shown}: remote files are read by fsspec: {wanted}") from error
    with _saying(shown):
        system, place = fsspec.core.url_to_fs(address, protocol=protocol, **_limits(protocol))
        named = list(_meant(system, place, address))
    for place, each in named:
        yield each, partial(_copy, system, place, each, shown)


@contextmanager
def _saying(shown: str) -> Iterator[None]:
    """Raise what goes wrong as an error that names the address as it is shown."""
    try:
        yield
    except GradestackError:
        raise
    except KeyboardInterrupt:
        _end_tasks()
        raise
    except ImportError as error:  # a kind of address that wants a package more
        raise ConfigError(f"{shown}: cannot be read: {error}") from error
    # libraries of others: no connection, no right to read, an odd answer
    except Exception as error:  # noqa: BLE001
        # not from the error: what libraries say holds the address with all that is secret about it
        raise DataError(f"{shown}: cannot be read: {_reason(error)}") from None


def _end_tasks() -> None:
    """End what is being fetched, which goes on in a thread of the library.

    It would complain when the process ends.
    """
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
    """Return the options for a library that would end any reading after five minutes.

    Others wait as we do.
    """
    if protocol not in _WEB | {"gs"}:
        return {}
    timeout = importlib.import_module("aiohttp").ClientTimeout(
        total=None, connect=CONNECT, sock_read=SILENCE
    )
    return {"session_kwargs" if protocol == "gs" else "client_kwargs": {"timeout": timeout}}


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    said = " ".join(shown_address(word) if "://" in word else word for word in text.split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _meant(system: Any, place: str, address: str) -> Iterator[tuple[str, str]]:
    protocol = address.partition("://")[0]
    web = protocol in _WEB
    path = (
        "".join(shown_address(address).split("/", 3)[3:]) if web else place
    )  # a host may be [0:0:0:0:0:0:0:1]
    if not set("*[") & set(path):  # ? is no sign of a pattern
        yield place, address
        return
    names = sorted(
        name
        for name in system.glob(place)
        if not web or not (set("?#") & set(name) or name.endswith("/"))
    )
    if not names:
        raise DataError(f"{shown_address(address)}: the pattern matches no file")
    for name in names:
        yield name, name if web else f"{protocol}://{name}"


def _copy(system: Any, place: str, address: str, asked: str, folder: Path) -> Path:
    with _saying(asked):
        shown = shown_address(address)
        copy = folder / (_name_of(shown.rstrip("/")) or "remote")
        if address.partition("://")[0] not in _WEB and system.isdir(place):
            _copy_directory(system, place, copy, shown)
        else:
            system.get_file(place, str(copy))
        return copy


def _copy_directory(system: Any, place: str, copy: Path, shown: str) -> None:
    start = f"{place.rstrip('/')}/"
    copy.mkdir()
    for name in sorted(
        each for each in system.find(place) if f"{each}/" != start and not each.endswith("/")
    ):
        parts = name.removeprefix(start).split("/")
        if not name.startswith(start) or any(not part or _name_of(part) != part for part in parts):
            why = "which no local file can be called; name the files to grade by a pattern"
            raise DataError(f"{shown}: holds {name!r}, {why}")
        to = copy.joinpath(*parts)
        to.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(name, str(to))


def _name_of(place: str) -> str:
    name = _NO_NAME.sub("_", place.rpartition("/")[2])
    return name.encode(errors="replace")[-_LONGEST_NAME:].decode(errors="ignore")
