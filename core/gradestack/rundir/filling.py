"""Files written into a directory that anybody may have filled: a run, a comparison or a folder of runs from a stranger.

A name in such a directory may be a link to any file of the user's, so nothing in it is opened for writing. Files are
written into a new directory, whose name nobody knows beforehand, and renamed: that replaces a link, a pipe or a device
itself, never what it leads to.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath


@contextmanager
def filling(place: Path, earlier: Iterable[str] = ()) -> Iterator[Path]:
    """Yield an empty directory; at the end its files are moved into ``place``, after a failure they are removed.

    A link in ``place`` is replaced, also one that leads to a directory. Errors name files as if they lay in ``place``.
    """
    new = Path(tempfile.mkdtemp(prefix=".gradestack-", dir=place))
    try:
        yield new
        left = [path for pattern in earlier for path in _left(new, place, PurePath(pattern))]
        _move(new, place)
        for path in left:
            path.unlink()
            with contextlib.suppress(OSError):  # holds something else
                path.parent.rmdir()
    except Exception as error:
        error.args = tuple(_named(each, new, place) if isinstance(each, str) else each for each in error.args)
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = _named(os.fsdecode(error.filename), new, place)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _named(text: str, new: Path, place: Path) -> str:
    return text.replace(str(new), str(place))


def _left(new: Path, place: Path, pattern: PurePath) -> list[Path]:
    folder = place / pattern.parent
    if folder.is_symlink():  # what it leads to is somebody's own
        return []
    found = (path for path in folder.glob(pattern.name) if path.is_symlink() or not path.is_dir())
    return [path for path in found if not (new / path.relative_to(place)).exists()]


def _move(new: Path, place: Path) -> None:
    """Move files, those of folders before the pages that load them."""
    for path in sorted(new.iterdir(), key=lambda each: (not each.is_dir(), each.name)):
        to = place / path.name
        if path.is_symlink() or not path.is_dir():
            path.replace(to)
            continue
        if to.is_symlink():
            to.unlink()
        to.mkdir(exist_ok=True)
        _move(path, to)
