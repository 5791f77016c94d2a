"""Components ``address``: copies of files that an address names, by fsspec.

Errors never show more of an address than ``shown_address`` does: those of libraries show all of it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from gradestack import ConfigError, DataError, GradestackError, compile_later, shown_address

CONNECT = 20.0
"""Seconds in which a server must have been connected to."""
SILENCE = 60.0
"""Seconds for which a server may send nothing."""
_WEB: Final = frozenset({"http", "https"})
_NO_NAME: Final = compile_later(r'[\x00-\x1f\x7f/\\:*?"<>|]|^\.\.+|^\.$')
"""Characters and names that lead to another folder, or mean something else to some system."""
_WEB_FILE: Final = compile_later(r"[^?#]*[^?#/]")
"""The address of a file of a web server that a pattern may match."""
_LONGEST_NAME: Final = 200
"""Bytes of the name of a copy; file systems take 255."""
_BUCKETS: Final = {"s3": " s3fs", "gs": " gcsfs", "az": " adlfs"}
"""Protocol -> the library of its buckets."""


def open_address(address: str) -> Iterator[tuple[str, Callable[[Path], Path]]]:
    """Yield each file or directory that an address names, and the function that copies it.

    Args:
        address: A file, a directory of a bucket, or files by a pattern.
    """
    protocol = address.partition("://")[0]
    shown = shown_address(address)
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError as error:
        wanted = f"pip install 'fsspec[http]>=2026.9'{_BUCKETS.get(protocol, '')} (extra 'remote')"
        raise ConfigError(f"{shown}: remote files are read by fsspec: {wanted}") from error
    with _naming(shown):
        limits = _limits(protocol)
        system, path = fsspec.core.url_to_fs(address, protocol=protocol, **limits)
        files = list(_files_of(system, path, address))
    for file, name in files:
        yield name, partial(_copy, system, file, name, shown)


@contextmanager
def _naming(shown: str) -> Iterator[None]:
    """Raise any problem as an error that names the address as it is shown."""
    try:
        yield
    except GradestackError:
        raise
    except KeyboardInterrupt:
        _end_tasks()
        raise
    except ImportError as error:  # a kind of address that needs another package
        raise ConfigError(f"{shown}: cannot be read: {error}") from error
    # libraries of others: no connection, no right to read, an odd answer
    except Exception as error:  # noqa: BLE001
        # not from the error: messages of libraries hold the address with its secrets
        raise DataError(f"{shown}: cannot be read: {_reason(error)}") from None


def _end_tasks() -> None:
    """End downloads, which go on in a thread of the library.

    They would complain when the process ends.
    """
    import asyncio  # noqa: PLC0415 - slow to import, and fsspec has it anyway

    async def end() -> None:
        all_tasks = asyncio.all_tasks()
        tasks = all_tasks - {asyncio.current_task()}
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
    aiohttp = importlib.import_module("aiohttp")
    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT, sock_read=SILENCE)
    option = "session_kwargs" if protocol == "gs" else "client_kwargs"
    return {option: {"timeout": timeout}}


def _reason(error: Exception) -> str:
    """Return why an address could not be fetched, without the secrets that addresses hold."""
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    words = (shown_address(word) if "://" in word else word for word in text.split())
    kind = type(error).__name__
    message = " ".join(words)
    return f"{kind}: {message}" if message else kind


def _files_of(system: Any, path: str, address: str) -> Iterator[tuple[str, str]]:
    """Yield the files of an address, or of its pattern, each with its own address."""
    protocol = address.partition("://")[0]
    is_web = protocol in _WEB
    pattern = path
    if is_web:  # without the host, which may be [0:0:0:0:0:0:0:1]
        pattern = "".join(shown_address(address).split("/", 3)[3:])
    if not set("*[") & set(pattern):  # ? is no sign of a pattern
        yield path, address
        return
    names = sorted(system.glob(path))
    if is_web:
        names = [name for name in names if _WEB_FILE.fullmatch(name)]
    if not names:
        raise DataError(f"{shown_address(address)}: the pattern matches no file")
    for name in names:
        yield name, name if is_web else f"{protocol}://{name}"


def _copy(system: Any, path: str, address: str, named: str, folder: Path) -> Path:
    """Copy a file or directory into a folder, and return the copy."""
    with _naming(named):
        shown = shown_address(address)
        copy = folder / (_name_of(shown.rstrip("/")) or "remote")
        if address.partition("://")[0] not in _WEB and system.isdir(path):
            _copy_directory(system, path, copy, shown)
        else:
            system.get_file(path, str(copy))
        return copy


def _copy_directory(system: Any, path: str, copy: Path, shown: str) -> None:
    """Copy a remote directory; refuse it if a name in it would leave the copy."""
    start = f"{path.rstrip('/')}/"
    copy.mkdir()
    for name in sorted(system.find(path)):
        if f"{name}/" == start or name.endswith("/"):
            continue
        parts = name.removeprefix(start).split("/")
        are_names = all(part and _name_of(part) == part for part in parts)
        if not name.startswith(start) or not are_names:
            why = "which no local file can be called; name the files to grade by a pattern"
            raise DataError(f"{shown}: holds {name!r}, {why}")
        to = copy.joinpath(*parts)
        to.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(name, str(to))


def _name_of(path: str) -> str:
    name = _NO_NAME.sub("_", path.rpartition("/")[2])
    return name.encode(errors="replace")[-_LONGEST_NAME:].decode(errors="ignore")
