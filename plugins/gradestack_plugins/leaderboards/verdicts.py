"""VerdictReader: files of verdicts, one or many a file, with what is recorded beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from gradestack import DataError, Input, Inputs, RecordFile, Usage, replace
from gradestack.jsonio import JsonProblem, as_map, loads, read_regular
from gradestack_plugins.readers.chat.usage import count_of, usage_of
from gradestack_plugins.readers.runs import RunReader

SURE: Final = 0.96
_BESIDE: Final = 0.99
"""How sure it is of a file that belongs to another one of the format."""
_LARGEST: Final = 64 * 1024 * 1024


class VerdictReader(RunReader):
    """Base of readers of verdicts.

    A file that belongs to a run of another file, such as its trajectory, is read with that one:
    ``main_of`` says which it is.
    """

    stack = "scores"
    records_are_runs = True
    needs_words = False

    @classmethod
    @override
    def is_own(cls, record: Any) -> bool:
        return True

    @classmethod
    def main_of(cls, path: Path) -> Path | None:
        """Return the file whose runs a file tells more of; None where it stands by itself."""
        return None

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        main = cls.main_of(path)
        if main is not None and main.is_file():
            return _BESIDE
        return super().sniff(path, head)

    @override
    def files(self, inputs: Inputs, index: Any) -> Iterator[RecordFile]:
        known = {given.path.resolve() for given in inputs.data}
        own: list[Input] = []
        for given in inputs.data:
            main = self.main_of(given.path)
            if main is None or not main.is_file():
                own.append(given)
            elif main.resolve() not in known:
                what = f"{given.shown}: tells more of the runs in {main.name}"
                raise DataError(what, f"name {main.name} too, or the folder that holds both")
        yield from super().files(replace(inputs, data=tuple(own)), index)


@lru_cache(maxsize=64)
def document_at(path: Path) -> Any:
    """Return what a small JSON file holds; None where it cannot be read."""
    with suppress(OSError, JsonProblem, ValueError):
        if path.stat().st_size <= _LARGEST:
            return loads(read_regular(path))
    return None


def spent(amounts: Any, seconds: Any = None) -> Usage | None:
    """Return tokens and seconds as they are recorded; None where neither is."""
    found = usage_of(dict(as_map(amounts)))
    time = float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else None
    if found is None:
        return None if time is None else Usage(seconds=time)
    return replace(found, requests=None, seconds=time)


def tokens(record: Mapping[str, Any], asked: str, answered: str) -> Usage | None:
    """Return the tokens that stand under two keys; None where neither is a number."""
    read, written = count_of(record.get(asked)), count_of(record.get(answered))
    if read is None and written is None:
        return None
    return Usage(input_tokens=read, output_tokens=written)


def is_true(value: Any) -> bool:
    """Return whether a verdict is true; one that is null, or missing, is not."""
    return value is True or (isinstance(value, int | float) and value == 1)


def only(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are known."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def texts_of(values: Any) -> str | None:
    """Return a list of texts as one; None where there is none."""
    words: Iterable[Any] = values if isinstance(values, list) else []
    return ", ".join(word for word in words if isinstance(word, str)) or None
