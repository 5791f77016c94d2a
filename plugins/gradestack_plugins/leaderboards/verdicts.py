"""VerdictReader: files of verdicts, one or many a file, with the records beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from gradestack import DataError, Input, Inputs, RecordFile, Usage, replace
from gradestack.jsonio import JsonProblem, as_amount, as_list, as_map, loads, read_regular
from gradestack_plugins.readers.chat.usage import usage_of
from gradestack_plugins.readers.runs import RunReader

SURE: Final = 0.96
_BESIDE: Final = 0.99
"""How sure a reader is of a file that belongs to another one of the format."""
_LARGEST: Final = 64 * 1024 * 1024


class VerdictReader(RunReader):
    """Base of readers of verdicts.

    A file that belongs to a run of another file, such as its trajectory, is read with the file that
    ``main_of`` names.
    """

    stack = "scores"
    records_are_runs = True
    needs_words = False

    @classmethod
    def main_of(cls, path: Path) -> Path | None:
        """Return the file to whose runs a file belongs; None where it stands by itself."""
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
        known = {input_file.path.resolve() for input_file in inputs.data}
        main_files: list[Input] = []
        for input_file in inputs.data:
            main = self.main_of(input_file.path)
            if main is None or not main.is_file():
                main_files.append(input_file)
            elif main.resolve() not in known:
                what = f"{input_file.shown}: tells more of the runs in {main.name}"
                raise DataError(what, f"name {main.name} too, or the folder that holds both")
        yield from super().files(replace(inputs, data=tuple(main_files)), index)


@lru_cache(maxsize=64)
def document_at(path: Path) -> Any:
    """Return the content of a small JSON file; None where it cannot be read."""
    with suppress(OSError, JsonProblem, ValueError):
        if path.stat().st_size <= _LARGEST:
            return loads(read_regular(path))
    return None


def usage_in(amounts: Any, seconds: Any = None) -> Usage | None:
    """Return tokens and seconds as they are recorded; None where neither is."""
    usage = usage_of(dict(as_map(amounts)))
    time = as_amount(seconds)
    if usage is None and time is None:
        return None
    return replace(usage or Usage(), requests=None, seconds=time)


def is_true(value: Any) -> bool:
    """Return whether a verdict is true; one that is null, or missing, is not."""
    return value is True or value in (1, 1.0)


def known_values(**values: Any) -> dict[str, Any]:
    """Return the values that are known."""
    return {name: value for name, value in values.items() if value not in (None, "")}


def join_texts(values: Any) -> str | None:
    """Return a list of texts as one; None where there is none."""
    texts = [text for text in as_list(values) if isinstance(text, str)]
    return ", ".join(texts) or None
