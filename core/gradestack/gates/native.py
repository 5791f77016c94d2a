"""Numbers of native files, which gates may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from gradestack.errors import ConfigError, suggest
from gradestack.jsonio.values import loads
from gradestack.regular_files import open_regular


class NativeFiles(msgspec.Struct, frozen=True):
    """The native files of an evaluation."""

    texts: Mapping[str, str] = {}
    """Path below ``native/`` -> text, of what programs wrote."""
    folder: Path | None = None
    """Where exporters wrote theirs."""
    programs: Mapping[str, str] = {}
    """Path below ``native/`` -> whose program wrote it."""

    def number_at(self, path: tuple[str, ...]) -> tuple[float, str]:
        """Return a number of a native file, and whose program computed it.

        Args:
            path: Name of the file without its ending, then keys and positions in it.

        Raises:
            ConfigError: No native file has such a number.
        """
        names = list(self._names())
        for name in names:
            steps = PurePosixPath(name).with_suffix("").parts
            if path[: len(steps)] != steps:
                continue
            found = _value_at(self._document(name), path[len(steps) :])
            if isinstance(found, int | float) and not isinstance(found, bool):
                return found, self.programs.get(name, f"{path[0]}'s exporter")
            what = "no number" if found is not None else "nothing"
            raise ConfigError(f"native.{'.'.join(path)}: {name} has {what} there")
        written = ", ".join(names) or "none was written"
        hint = suggest(path[0], [PurePosixPath(name).with_suffix("").name for name in names])
        raise ConfigError(f"native.{'.'.join(path)}: no such native file ({written}){hint}")

    def _names(self) -> Iterator[str]:
        yield from self.texts
        if self.folder is not None and self.folder.is_dir():
            for file in sorted(self.folder.rglob("*.json")):
                name = file.relative_to(self.folder).as_posix()
                if name not in self.texts:
                    yield name

    def _document(self, name: str) -> Any:
        if name in self.texts:
            return loads(self.texts[name])
        assert self.folder is not None  # noqa: S101 - names come from there
        with open_regular(self.folder / name) as file:
            return loads(file.read())


def _value_at(document: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at a path of keys and positions; None where there is none."""
    found = document
    for step in steps:
        if isinstance(found, Mapping):
            found = found.get(step)
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found
