"""Standard input and remote files, copied once into a temporary directory."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gradestack.copies.names import STANDARD_INPUT, new_folder, note_address
from gradestack.copies.packed import readable
from gradestack.copies.surroundings import SUFFIXES
from gradestack.errors import ConfigError, DataError, GradestackError

_PIECE: Final = 1 << 20
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")
"""A protocol, or protocols one in the other (``zip::s3://…``)."""
_read: dict[str, Path] = {}
"""Standard input, which can be read once."""


def is_remote(text: str) -> bool:
    """Return whether a text is the address of a remote file (``s3://bucket/log.jsonl``), or ``-``."""
    return text == STANDARD_INPUT or _ADDRESS.match(text) is not None


def run_name(text: str) -> str:
    """Return how a run is called whose first input was given so: the last part of its name, without suffixes of it."""
    if is_remote(text):
        text = "stdin" if text == STANDARD_INPUT else text.partition("?")[0].rstrip("/")
    path = Path(text).resolve()
    return Path(path.stem).stem if path.suffix.lower() in SUFFIXES else path.stem


def fetched(text: str) -> list[Path]:
    """Return copies of standard input, or of what an address names: a file, a directory, or files by a pattern.

    Raises:
        ConfigError: The address is of a kind that what is installed cannot read.
        DataError: It cannot be read.
    """
    try:
        if text == STANDARD_INPUT:
            if text not in _read:
                _read[text] = note_address(readable(_standard_input()), text)
            return [_read[text]]
        return list(_remote(text))
    except OSError as error:
        msg = f"{text}: cannot be read: {error.strerror or error}"
        raise DataError(msg) from error


def _standard_input() -> Path:
    """Return a copy of standard input.

    Raises:
        DataError: There is none: it is closed.
    """
    if sys.stdin is None:
        msg = f"{STANDARD_INPUT}: there is no standard input"
        raise DataError(msg)
    copy = new_folder() / "stdin"
    with copy.open("xb") as to:
        shutil.copyfileobj(sys.stdin.buffer, to, _PIECE)
    return note_address(copy, STANDARD_INPUT)


def _meant(system: Any, place: str, text: str) -> list[str]:
    """Return what a place on a file system means: itself, or what its pattern matches; ? is no sign of one."""
    names = sorted(system.glob(place)) if set("*[") & set(place) else [place]
    if not names:
        msg = f"{text}: the pattern matches no file"
        raise DataError(msg)
    return names


def _remote(text: str) -> Iterator[Path]:
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError as error:
        msg = f"{text}: remote files are read by fsspec: pip install 'gradestack[remote]'"
        raise ConfigError(msg) from error
    try:
        system, place = fsspec.core.url_to_fs(text)
        for name in _meant(system, place, text):
            copy = new_folder() / (name.rstrip("/").rpartition("/")[2].partition("?")[0] or "remote")
            address = text if name == place else system.unstrip_protocol(name)
            system.get(name, str(copy), recursive=system.isdir(name))
            yield note_address(readable(note_address(copy, address)), address)
    except (ImportError, ValueError) as error:  # a kind of address nobody reads, or one that wants a package more
        msg = f"{text}: cannot be read: {error}"
        raise ConfigError(msg) from error
    except (GradestackError, OSError):
        raise
    except Exception as error:  # of a library of its own: no connection, no right to read
        msg = f"{text}: cannot be read: {type(error).__name__}: {error}"
        raise DataError(msg) from error
