"""Numbers of native files, which gates may name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gradestack.errors import ConfigError, hint_of
from gradestack.gates.paths import figure_at, split_key
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

    def number_at(self, path: str) -> tuple[float, str]:
        """Return a number of a native file, and whose program computed it.

        Args:
            path: Name of the file without its ending, then keys and positions in it.

        Raises:
            ConfigError: No native file has such a number.
        """
        files = {}
        for name in self._names():
            stem = name.removesuffix(".json")
            files[stem.replace("/", ".")] = name
        key, below = split_key(path, files)
        if not key:
            word = path.partition(".")[0]
            hint = hint_of(word, files)
            raise ConfigError(f"native.{path}: no such native file{hint}")
        name = files[key]
        document = self._document(name)
        figure = figure_at(document, below, (), f"native.{key}")
        number = as_number(figure.value)
        if number is None:
            raise ConfigError(f"native.{path}: {name} has no number there")
        return number, self.programs.get(name, f"{key}'s exporter")

    def _names(self) -> Iterable[str]:
        names = [*self.texts]
        if self.folder is not None:
            for file in sorted(self.folder.rglob("*.json")):
                names.append(file.relative_to(self.folder).as_posix())
        return names

    def _document(self, name: str) -> Any:
        if name in self.texts:
            return loads(self.texts[name])
        path = (self.folder or Path()) / name
        with open_regular(path) as file:
            return loads(file.read())
