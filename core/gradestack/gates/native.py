"""Numbers of native files, which gates may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from gradestack.errors import ConfigError, suggest
from gradestack.jsonio.values import as_number, loads
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
        shown = ".".join(["native", *path])
        steps_of = {name: PurePosixPath(name).with_suffix("").parts for name in self._names()}
        fitting = [name for name, steps in steps_of.items() if path[: len(steps)] == steps]
        if not fitting:
            written = ", ".join(steps_of) or "none was written"
            hint = suggest(path[0], [steps[-1] for steps in steps_of.values()])
            raise ConfigError(f"{shown}: no such native file ({written}){hint}")
        name = max(fitting, key=lambda name: len(steps_of[name]))
        value = _value_at(self._document(name), path[len(steps_of[name]) :])
        number = as_number(value)
        if number is None:
            what = "nothing" if value is None else "no number"
            raise ConfigError(f"{shown}: {name} has {what} there")
        return number, self.programs.get(name, f"{path[0]}'s exporter")

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
    value = document
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
