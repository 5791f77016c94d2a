"""The beginning of a file: its format, or what it is and what to try where no reader knows it."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from gradestack.api import Input, Inputs, Reader
from gradestack.errors import ConfigError, first_of, reading
from gradestack.grading.input_files import read_ends
from gradestack.grading.reading import records_of, shards_of
from gradestack.jsonio.files import encoding_problem
from gradestack.jsonio.records import Element, Head, is_cut_off
from gradestack.jsonio.values import JsonProblem, compact, loads
from gradestack.model import Sample
from gradestack.patterns import compile_later
from gradestack.records import RecordReader
from gradestack.regular_files import open_regular
from gradestack.report import header_of
from gradestack.suites.document import yaml_data

_HEAD = 64 * 1024
"""Bytes of a beginning that is not the whole file."""
_TRIED = 10
"""Samples that a command has to read before it is proposed."""
_KEYS, _CHARACTERS = 12, 60
"""Keys of a record, and characters of a line, that are shown."""
_EVENT = compile_later(rb"(?:data|event|id|retry): ")
"""How a line of a stream of server-sent events begins."""
_NO_TABLE = compile_later(rb"[{\[]|" + _EVENT.pattern)
"""How a text begins whose lines are no rows of a table."""
_KINDS = {
    dict: "objects",
    list: "lists",
    str: "texts",
    int: "numbers",
    float: "numbers",
    bool: "truth values",
}
_OF_A_SUITE = {"graders", "target", "gate", "gates"}
OWN_FORM = "a record is an object; `gradestack schema sample` prints a form that is read"


class Recognition(msgspec.Struct, frozen=True):
    """A file's format, or else the nearest one and a command to try."""

    format: str | None
    """The name of the reader that is surest of it; None where no reader knows it."""
    confidence: float = 0.0
    """How sure that reader is, 0 to 1."""
    nearest: str | None = None
    """The reader that nearly knows it."""
    difference: str = ""
    """Why that reader refuses it."""
    command: str = ""
    """A command that was seen to read the first records, or else in words what to do."""


class Beginning:
    """The first 64 KiB of a file, and the records in them, decoded once."""

    def __init__(self, path: Path) -> None:
        """Read the first bytes of a file, without a byte order mark; a directory has none."""
        self.path = path
        self.head = Head(b"")
        if not path.is_dir():
            with reading(path), open_regular(path) as file:
                self.head = Head(file.read(_HEAD))
        head = self.head.removeprefix(b"\xef\xbb\xbf")
        self.text = head.lstrip()
        self.is_list = self.text.startswith(b"[")
        self.is_whole = len(self.head) < _HEAD

    @property
    def records(self) -> list[tuple[Element, bytes]]:
        """The first records, each with its text."""
        return self.head.records

    @cached_property
    def values(self) -> list[Any]:
        """The values of the first records that can be decoded."""
        return [element.value for element, _ in self.records if element.problem is None]


def ask_reader(method: Callable[..., Any], *arguments: Any, otherwise: Any = None) -> Any:
    """Return the answer of a reader to a question about a file that may be of another format.

    One that stumbles over it has none.
    """
    try:
        return method(*arguments)
    except Exception:  # noqa: BLE001 - whatever it stumbles over
        return otherwise


def recognise_file(
    beginning: Beginning, readers: Mapping[str, type[Reader]], *, explain: bool = False
) -> Recognition:
    """Return the format of a file by its beginning, as the surest reader has it.

    Args:
        beginning: The beginning of the file.
        readers: The readers that are asked, by name.
        explain: Whether to say what is nearest where no reader knows it.

    Raises:
        ConfigError: Two readers are equally sure.
    """
    path, head = beginning.path, beginning.head
    confidences: dict[str, float] = {}
    for name, reader in readers.items():
        confidences[name] = ask_reader(reader.sniff, path, head, otherwise=0.0)
    highest = max(confidences.values(), default=0.0)
    if highest <= 0.0:
        if explain:
            return _explain(beginning, readers)
        return Recognition(None)
    surest = [name for name, confidence in confidences.items() if confidence == highest]
    if len(surest) > 1:
        raise ConfigError(f"{path}: could be {' or '.join(surest)}; name the format with --reader")
    return Recognition(surest[0], highest)


def _explain(beginning: Beginning, readers: Mapping[str, type[Reader]]) -> Recognition:
    """Return the format nearest to a file of no known one, and a command to try."""
    path = beginning.path
    if _is_suite(beginning):
        command = shlex.join(["gradestack", "run", str(path)])
        return Recognition(None, command=f"try: {command}")
    if header_of(path.parent):
        parent = str(path.parent)
        command = shlex.join(["gradestack", "grade", parent])
        return Recognition(None, command=f"it is a part of a finished run; try: {command}")
    objects = _objects_in(beginning.values)
    if not objects:
        objects = _objects_in([ask_reader(loads, beginning.text)])
    if not objects and _NO_TABLE.match(beginning.text):
        return Recognition(None)
    nearest, difference = _nearest_format(objects[:1], readers)
    command = ""
    for name, reader in readers.items():
        if not hasattr(reader, "advice"):
            continue
        advice = ask_reader(reader.advice, path, beginning.head, objects)
        if not advice:
            continue
        why, remedy, columns = advice
        command = _working_command(beginning, name, reader, columns)
        if why or nearest is None:  # else the nearest one says what to do
            command = command or remedy
        if why or (columns is not None and nearest is None):
            nearest, difference = name, why or "no column is mapped"
    return Recognition(None, nearest=nearest, difference=difference, command=command)


def _nearest_format(
    records: Sequence[Mapping[str, Any]], readers: Mapping[str, type[Reader]]
) -> tuple[str | None, str]:
    """Return the first reader that nearly knows a record, and why it refuses the record."""
    for name, reader in readers.items():
        for record in records if issubclass(reader, RecordReader) else ():
            why = ask_reader(reader.complaint, record)  # type: ignore[attr-defined]
            if why:
                return name, why
    return None, ""


def _objects_in(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if value and isinstance(value, dict)]


def _is_suite(beginning: Beginning) -> bool:
    """Return whether a file holds a suite in YAML."""
    if beginning.path.suffix.lower() not in {".yaml", ".yml"}:
        return False
    head = beginning.head.decode(errors="replace")
    data = ask_reader(yaml_data, head)
    return isinstance(data, dict) and not _OF_A_SUITE.isdisjoint(data)


def _working_command(
    beginning: Beginning,
    name: str,
    reader: Callable[..., Reader],
    columns: Mapping[str, str] | None,
) -> str:
    """Return a command with which a reader grades the file, without a mapping or with ``columns``.

    It is empty where neither reads all first records.
    """
    for mapping in () if columns is None else ({}, columns):
        make_reader = partial(reader, columns=mapping) if mapping else reader
        if _reads_first_records(beginning, make_reader):
            flags = [f"--map={field}={column}" for field, column in mapping.items()]
            command = ["gradestack", "grade", str(beginning.path)]
            command += flags or ["--reader", name]
            return f"try: {shlex.join(command)}"
    return ""


def _reads_first_records(beginning: Beginning, make_reader: Callable[[], Reader]) -> bool:
    """Return whether a reader gives a sample with an answer for each of the first records."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, beginning.path.name)
        path.write_bytes(_first_lines(beginning))
        copied = Input(path=path, name=path.stem, shown=path.name)
        inputs = Inputs(data=(copied,))
        samples = ask_reader(_first_samples, make_reader, inputs)
    return bool(samples) and all(map(_has_answer, samples))


def _first_lines(beginning: Beginning) -> bytes:
    """Return the first whole records of a file as a file of their own."""
    if beginning.is_whole:
        return beginning.head
    if beginning.is_list:
        return "\n".join(map(compact, beginning.values)).encode(errors="replace")
    return beginning.head.rpartition(b"\n")[0]


def _first_samples(make_reader: Callable[[], Reader], inputs: Inputs) -> list[Any]:
    reader = make_reader()
    shards, index = shards_of(reader, inputs)
    readings = (records_of(reader, shard, index) for shard in shards)
    return list(islice(chain.from_iterable(readings), _TRIED))


def _has_answer(record: Any) -> bool:
    if not isinstance(record, Sample):
        return False
    answers = (record.calls, record.text, record.label, record.turns or None)
    return any(answer is not None for answer in answers)


def describe(beginning: Beginning) -> str:
    """Describe a file of no known format; a last line that is cut off comes first."""
    looks = text_problem(beginning.head) or _json_form(beginning)
    if _ends_cut_off(beginning):
        return f"its last line is cut off; {looks}"
    return looks


def _ends_cut_off(beginning: Beginning) -> bool:
    """Return whether the last line of a file begins as JSON and does not end."""
    _, tail = read_ends(beginning.path)
    _, newline, last_line = tail.rstrip().rpartition(b"\n")
    is_line = bool(newline) or beginning.is_whole
    return is_line and is_cut_off(last_line.strip())


def text_problem(head: bytes) -> str:
    """Return why the beginning of a file is not text; "" where it is text."""
    if problem := encoding_problem(head):
        return f"it {problem}"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # the head ends within a character
            line = head.count(b"\n", 0, error.start) + 1
            where = f"line {line}, byte {error.start} of the file"
            return f"it is not UTF-8 text ({where}): save it as UTF-8"
    if b"\0" in head:
        return "it is a binary file (NUL bytes)"
    return ""


def _json_form(beginning: Beginning) -> str:
    """Describe the layout of the records in a text, with the keys of the first."""
    text = beginning.text
    if not beginning.records:
        if beginning.is_list and text.rstrip().endswith(b"]"):
            return "it is an empty JSON list"
        if beginning.is_list:
            return "it is a JSON list"
        return "it has blank lines only"
    first, line = beginning.records[0]
    if first.problem is None:
        layout = "a JSON list" if beginning.is_list else "JSON Lines"
        kind = "empty objects" if first.value == {} else _KINDS.get(type(first.value), "nulls")
        keys = _keys_of(first.value)
        return f"it is {layout} of {kind}{keys}"
    if _EVENT.match(text):
        return "it is a stream of events, pieces of answers: record whole answers"
    beginning_of_line = line.strip()[: 2 * _CHARACTERS]
    start = beginning_of_line.decode(errors="replace")[:_CHARACTERS]
    if not beginning.is_whole and beginning.head.find(b"\n") < 0:
        return f"its first line is longer than {_HEAD >> 10} KB and begins with {start!r}"
    if not start.startswith(("{", "[")):
        return f"it is neither JSON Lines nor a JSON list: it begins with {start!r}"
    if not beginning.is_whole:
        return "it is one JSON object; point to its list of records: --records PATH"
    try:
        return f"it is one JSON object over several lines{_keys_of(loads(text))}"
    except JsonProblem as problem:
        why = str(problem).removeprefix("not JSON: ")
        return f"it is not valid JSON: {why}"


def _keys_of(record: Any) -> str:
    if not isinstance(record, dict) or not record:
        return ""
    keys = [key[:_CHARACTERS] for key in sorted(record)]
    return f" with the keys {first_of(keys, _KEYS)}"


def repeated_keys(beginning: Beginning) -> Iterator[str]:
    """Yield that a key stands twice in an object, of the first, with its line in front."""
    for element, text in beginning.records[:1] if beginning.is_list else beginning.records:
        objects: list[list[tuple[str, Any]]] = []
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=objects.append)
        for pairs in objects:
            counts = Counter(key for key, _ in pairs)
            for key in counts:
                if counts[key] > 1:
                    where = "" if beginning.is_list else f":{element.line}"
                    what = f"the key {key[:_CHARACTERS]!r} occurs twice in one object"
                    yield f"{where}: {what}; the last one counts"
                    return
