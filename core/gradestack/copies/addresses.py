"""Paths and addresses as they are written: which are local files or patterns, which remote, and how those are shown."""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from gradestack.errors import ConfigError, DataError

PROTOCOLS: Final = ("http", "https", "s3", "gs", "az")
"""What is opened. Others stand for local files, archives or commands, and no library ever sees them."""
_LIKE_ONE: Final = re.compile(r"[\s\x00-\x1f]*[^\W\d_][\w+.-]+:|[^/\\]*::|.*://", re.DOTALL)
"""What people, or a library, may take for an address; C:\\ is the letter of a disk."""
_PLACE: Final = re.compile(
    r"(?:([^/?#]*)@)?([\w.-]+(?::\d{1,5})?|\[[\da-fA-F:.]+\](?::\d{1,5})?)(/[^?#]*|)(?:[?#].*)?", re.DOTALL
)
"""What stands behind ``://``: userinfo, host or bucket, path; a query or fragment is dropped."""
_LONGEST: Final = 60
"""Characters that are shown of a malformed one."""


def is_address(text: str) -> bool:
    """Return whether a text looks like an address, of whatever kind, rather than like the name of a local file."""
    return _LIKE_ONE.match(text) is not None


def shown_address(text: str) -> str:
    """Return an address without userinfo, query and fragment, which may be secret; of a malformed one only its kind."""
    protocol, separator, rest = text.partition("://")
    place = _PLACE.fullmatch(rest) if protocol.isalnum() else None
    if place is None:
        whole = len(text) <= _LONGEST and not separator and not set("@?#") & set(text)
        return text if whole else f"{text.partition(':')[0].strip()[:_LONGEST]}:…"
    return f"{protocol}{separator}{place[2]}{place[3]}"


def protocol_of(text: str) -> str:
    """Return the protocol of an address that may be opened."""
    protocol, _, rest = text.partition("://")
    place = _PLACE.fullmatch(rest)
    user = place and place[1]
    keys = user is not None and (protocol in {"s3", "gs"} or (protocol == "az" and ":" in user))
    odd = "::" in text or not text.isprintable() or any(map(str.isspace, text))
    if protocol not in PROTOCOLS or place is None or keys or odd:
        absent = "" if "://" in text else ", and there is no file of this name"
        *first, last = (f"{each}://" for each in PROTOCOLS)
        kinds = f"{', '.join(first)} or {last} and a host or bucket"
        what = f"only addresses that begin with {kinds} are opened, without ::, spaces or the key of a bucket"
        raise ConfigError(f"{shown_address(text)}: {what}{absent}")
    return protocol


MAGIC = frozenset("*?[")
"""Characters of a pattern."""


def path_of(text: str, base: Path | None = None) -> Path:
    """Return a path, ``~`` expanded, a relative one taken from ``base``."""
    if "\0" in text:
        raise ValueError("a path holds no NUL character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{text!r} is no path: it holds half of a surrogate pair") from error
    path = Path(text)
    with suppress(RuntimeError):  # no such user: a file may be called ~x
        path = path.expanduser()
    return path if base is None else base / path


class AddressGivenError(ValueError):
    """An address stands where a local file is wanted."""


def local_path_of(text: str, base: Path | None = None) -> Path:
    """Return a path as ``path_of`` does, of a file that is never fetched from elsewhere."""
    path = path_of(text, base)
    if is_address(text):
        with suppress(OSError):  # a name too long
            if path.exists():
                return path
        raise AddressGivenError(
            f"{shown_address(text)} is an address; here a local file is wanted; only inputs and datasets may be remote"
        )
    return path


def is_remote(text: str, base: Path | None = None) -> bool:
    """Return whether a text is taken for an address: one like it that no local file is called."""
    return is_address(text) and not local_files(text, base)


def local_files(text: str, base: Path | None) -> list[Path]:
    """Return the local files and directories that a text means: the one it names, or those its pattern matches."""
    try:
        path = path_of(text, base)
        there = path.exists()
    except (OSError, ValueError) as error:  # a name too long, a directory that may not be entered, a NUL character
        if is_address(text):
            return []
        why = f"cannot be read: {error.strerror or error}" if isinstance(error, OSError) else error
        raise DataError(f"{text if base is None else base / text}: {why}") from error
    if not there:
        # As shells do it: * leaves hidden files alone, which Path.glob does not.
        return sorted(map(Path, glob.glob(str(path), recursive=True))) if MAGIC & set(text) else []  # noqa: PTH207
    if not path.is_file() and not path.is_dir():  # a pipe would be used up by looking at its head
        raise DataError(f"{path}: neither a file nor a directory; write it to a file first, or pipe it to -")
    return [path]
