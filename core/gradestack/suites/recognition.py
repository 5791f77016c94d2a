"""From paths as written to named inputs and the reader that knows them.

Of one that none knows, what it looks like.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gradestack.api import Input, Inputs, Reader
from gradestack.copies.files import (
    MAGIC,
    STANDARD_INPUT,
    Folder,
    copied,
    fetched,
    is_address,
    local_files,
    original,
    path_of,
    readable,
    standard_input,
)
from gradestack.errors import ConfigError, DataError, GradestackError, reading, suggest
from gradestack.grading.plan import Stage
from gradestack.grading.reading import Mixed
from gradestack.jsonio.files import encoding_problem
from gradestack.jsonio.records import Element, Head, first_records
from gradestack.jsonio.values import JsonProblem, compact, loads
from gradestack.records import RecordReader
from gradestack.registry import Registry, discover
from gradestack.regular_files import files_below, open_regular, real_paths
from gradestack.report import header_of
from gradestack.rows.packed import ROWS
from gradestack.suites.components import Resolver, Target, made_stage
from gradestack.suites.options import Location

_NEIGHBOURS = 1000
"""Names of a directory that are compared with one that is not there."""


def expand(
    texts: Iterable[str], base: Folder | None = None, registry: Registry | None = None
) -> list[Path]:
    """Return the paths meant, those of copies of what is packed, remote or standard input.

    One may come twice.
    """
    found: list[Path] = []
    known: dict[str, Path] = {}
    for text in texts:
        if not text:
            raise DataError("an empty path was given; name result files or directories")
        if text == STANDARD_INPUT:
            found.append(standard_input())
        elif there := local_files(text, base):
            found += map(readable, there)
        elif is_address(text):
            found += fetched(text, known, registry or discover())
        else:
            path, pattern = path_of(text, base), MAGIC & set(text)
            why = (
                "the pattern matches no file"
                if pattern
                else f"no such file or directory{_nearly(path)}"
            )
            raise DataError(f"{path}: {why}")
    return found


def _nearly(path: Path) -> str:
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _NEIGHBOURS)]
            names = [name for name in names if name != path.name]  # a link that leads nowhere
    except OSError:
        return ""
    near = [
        name for name in names if suggest(path.stem, [Path(name).stem], cutoff=0.75)
    ]  # suffixes are alike anyway
    return suggest(path.name, near)


def name_inputs(paths: Sequence[Path]) -> tuple[Input, ...]:
    """Give every path a short unique name (its stem) and a short unique way to show it (as few
    parts as needed).
    """
    called: dict[Path, None] = {}
    for name, given in zip(map(copied, paths), paths, strict=True):
        path = given if name is None else Path("stdin" if name == STANDARD_INPUT else name)
        number, each = 1, path
        while each in called:  # they differ only in the query of their address, which is not shown
            number += 1
            each = path.with_name(f"{path.name} ({number})")
        called[each] = None
    tails = cache(lambda length: Counter(each.parts[-length:] for each in called))
    stems = [path.stem if path.is_file() else (path.name or path.resolve().name) for path in paths]
    total, seen = Counter(stems), Counter[str]()
    taken = {stem for stem in stems if total[stem] == 1}
    inputs = []
    for path, known, stem in zip(paths, called, stems, strict=True):
        lengths = range(1, len(known.parts))
        length = next(
            (each for each in lengths if tails(each)[known.parts[-each:]] == 1), len(known.parts)
        )
        name = stem
        while total[stem] > 1 and (name == stem or name in taken):
            seen[stem] += 1
            name = f"{stem}-{seen[stem]}"
        taken.add(name)
        shown = "/".join(known.parts[-length:]) if known.name else known.resolve().name
        inputs.append(Input(path=path, name=name, shown=shown))
    return tuple(inputs)


_HEAD = 64 * 1024
"""Bytes of a beginning that is not the whole file."""
_RECORDS = 100
"""Records looked at."""
_KEYS, _CHARACTERS = 12, 60
_EVENT = re.compile(rb"(?:data|event|id|retry): ")
"""How a line of a stream of server-sent events begins."""
"""Keys of a record, and characters of a line, that are shown."""
_SURE = 0.5
"""How sure a reader has to be of a record to be named beside another."""
_KINDS = {
    dict: "objects",
    list: "lists",
    str: "texts",
    int: "numbers",
    float: "numbers",
    bool: "truth values",
}
_LONG = "it is one JSON object; point to its list of records: --records PATH"
_LOOKED_INTO = 20
"""Files that are looked at for what is odd about them."""


class Recognised(NamedTuple):
    """What the given paths hold."""

    reader: str
    paths: list[Path]
    ignored: list[str]
    remarks: list[tuple[Path, str]]
    """What is odd about a path.

    That it was given more than once, or something in it, with its line in front.
    """


def target_of(resolver: Resolver) -> Target:
    """Return what the suite grades, each path read by its own reader, else by the suite's, else as
    it is recognised.
    """
    data, target = resolver.document.data, resolver.document.data.get("target")
    kind = target.get("kind") if isinstance(target, Mapping) else None
    if isinstance(kind, str) and kind != "recorded":
        advice = (
            "name recordings with `kind: recorded` and `paths`, or re-grade a recorded run "
            "with --cached DIR"
        )
        resolver.add_problem(
            ("target", "kind"), f"{kind!r} is a live target, gradestack grades recordings; {advice}"
        )
        data["target"] = target = {}
    written = target.get("paths") or [] if isinstance(target, Mapping) else []
    entries = written if isinstance(written, list) else [written]
    named = [
        _named(resolver, each, ("target", "paths", number)) for number, each in enumerate(entries)
    ]
    reference, outer = (
        target.get("reader") if isinstance(target, Mapping) else None,
        data.get("reader"),
    )
    place: Location = ("reader",) if reference is None else ("target", "reader")
    if reference is None:
        reference = {} if outer is None else outer
    elif (
        isinstance(outer, Mapping) and "kind" not in outer
    ):  # options set beside it, say on the command line
        reference = {
            **(reference if isinstance(reference, Mapping) else {"kind": reference}),
            **outer,
        }
    options = reference if isinstance(reference, Mapping) else {"kind": reference}
    several = any(isinstance(each, dict) for each in entries)
    reader = (
        resolver.stage("reader", "reader", options, place)
        if "kind" in options and not several
        else None
    )
    late: GradestackError | None = None
    found, dataset, dataset_reader = None, None, None
    try:
        if several:
            reader, found = _together(resolver, named, options, place)
        else:
            texts = [each[0] for each in named if each is not None]
            texts = texts if len(texts) == len(named) else []
            reader, found = _read_with(resolver, reader, texts, options, place, "reader")
        if reader is not None and isinstance(given := data.get("dataset"), str | dict):
            dataset, dataset_reader = _dataset(resolver, reader, given)
    except OSError as error:
        late = DataError(f"{error.filename or 'input'}: cannot be read: {error.strerror or error}")
    except GradestackError as error:
        late = error
    if late is not None and not data.get("graders"):
        raise late
    if late is not None or found is None:
        return Target(Inputs(data=()), reader, late=late)
    inputs = name_inputs(found.paths)
    ignored = [f"{path}: not recognised, left out" for path in found.ignored]
    shown = {given.path: given.shown for given in inputs}
    remarks = [f"{shown[path]}{what}" for path, what in found.remarks]
    return Target(Inputs(data=inputs, dataset=dataset), reader, dataset_reader, ignored, remarks)


def _named(resolver: Resolver, given: Any, place: Location) -> tuple[str, Any] | None:
    """Return the path and the reader that an entry names; None with its problem."""
    named = given if isinstance(given, dict) else {"path": given}
    text, own = named.get("path"), named.get("reader")
    if (
        not isinstance(text, str)
        or not isinstance(own, str | dict | None)
        or named.keys() - {"path", "reader"}
    ):
        resolver.add_problem(
            place, "expected the path of a file, or {path: FILE, reader: NAME or {kind: NAME, …}}"
        )
        return None
    at = (*place, "path") if isinstance(given, dict) else place
    if is_address(text):
        return (text, own) if resolver.may_read(text, at) else None
    try:
        path_of(text, resolver.base)
    except ConfigError as error:
        resolver.add_problem(at, error)
        return None
    return text, own


def _read_with(
    resolver: Resolver,
    reader: Stage | None,
    texts: Sequence[str],
    options: Mapping[str, Any],
    place: Location,
    key: str,
) -> tuple[Stage | None, Recognised | None]:
    """Return the reader of paths, recognised where the options name none, and what they hold."""
    if not texts or ("kind" in options and reader is None):
        return reader, None
    found = recognise(
        expand(texts, resolver.base, resolver.registry),
        resolver.registry,
        None if reader is None else reader.name,
    )
    return reader or resolver.stage("reader", key, {**options, "kind": found.reader}, place), found


def _together(
    resolver: Resolver,
    named: Sequence[tuple[str, Any] | None],
    options: Mapping[str, Any],
    default: Location,
) -> tuple[Stage | None, Recognised | None]:
    """Return the readers that paths name for themselves as the one of a run, and all that they
    read.
    """
    stages, several, known = list[Stage](), list[Recognised](), dict[Path, int]()
    for number, (text, own) in (
        (number, each) for number, each in enumerate(named) if each is not None
    ):
        place: Location = ("target", "paths", number)
        at = default if own is None else (*place, "reader")
        asked = options if own is None else {"kind": own} if isinstance(own, str) else own
        key = f"reader {number + 1}"
        stage = resolver.stage("reader", key, asked, at) if "kind" in asked else None
        stage, found = _read_with(resolver, stage, [text], asked, at, key)
        for path in found.paths if found is not None else ():
            if (first := known.setdefault(path.resolve(), number)) != number:
                resolver.add_problem(
                    place, f"{path.name} is one of target.paths[{first}], too; name each file once"
                )
        if stage is not None and found is not None:
            stages.append(stage)
            several.append(found)
    if len(stages) < len(named):
        return None, None
    name = " + ".join(dict.fromkeys(stage.name for stage in stages))
    whole = Recognised(name, [], [], [])
    for found in several:
        whole.paths.extend(found.paths)
        whole.ignored.extend(found.ignored)
        whole.remarks.extend(found.remarks)
    paths_of = tuple(frozenset(found.paths) for found in several)
    reader = Mixed(tuple(stage.component for stage in stages), paths_of)
    stage = made_stage("reader", "reader", reader, name)
    stage = msgspec.structs.replace(stage, options={}, parts=tuple(stages))
    return stage, whole


def _dataset(
    resolver: Resolver, reader: Stage, given: str | dict[str, Any]
) -> tuple[Input | None, Stage | None]:
    """Return the dataset and, when the reader does not join it itself, the reader it is
    read with.
    """
    if (named := _named(resolver, given, ("dataset",))) is None:
        return None, None
    text, own = named
    path = expand([text], resolver.base, resolver.registry)[0]
    dataset = name_inputs([path])[0]
    if reader.component.takes_dataset:
        if own is not None:
            why = f"the format {reader.name!r} reads its dataset itself; leave the reader out"
            resolver.add_problem(("dataset", "reader"), why)
        return dataset, None
    if own is None or (isinstance(own, dict) and "kind" not in own):
        try:
            own = {**(own or {}), "kind": recognise([path], resolver.registry, None).reader}
        except DataError as error:
            advice = "name it with dataset: {path: FILE, reader: NAME}"
            raise DataError(
                str(error.args[0]).partition("; name it")[0], *error.problems[:1], advice
            ) from error
    return dataset, resolver.stage("reader", "dataset", own, ("dataset", "reader"))


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    with reading(path), open_regular(path) as file:
        return file.read(_HEAD)


def _ask(method: Callable[..., Any], *given: Any, otherwise: Any) -> Any:
    """Return what a reader says.

    One that stumbles over a file or record of another format has nothing to say of it.
    """
    try:
        return method(*given)
    except Exception:  # noqa: BLE001 - whatever it stumbles over
        return otherwise


class _Certainty(NamedTuple):
    """The reader that is surest of a file, and how sure it is."""

    reader: str
    certainty: float


def _surest(path: Path, head: Head, readers: Mapping[str, type[Reader]]) -> _Certainty | None:
    scores = {name: _ask(each.sniff, path, head, otherwise=0.0) for name, each in readers.items()}
    top = max(scores.values(), default=0.0)
    winners = [name for name, score in scores.items() if score == top]
    if top <= 0.0:
        return None
    if len(winners) > 1:
        raise ConfigError(f"{path}: could be {' or '.join(winners)}; name the format with --reader")
    return _Certainty(winners[0], top)


class _Recognition:
    """Files whose reader is asked for, each of many that are alike only once among all readers.

    Of a file like an earlier one the reader of that one alone is asked. It has to be as sure again.
    """

    def __init__(self, readers: Mapping[str, type[Reader]]) -> None:
        self._readers = readers
        self._known: dict[Any, _Certainty] = {}

    def reader_of(self, path: Path) -> str | None:
        """Return the name of the reader that is surest of a path; None where none knows it."""
        head = Head(_head(path))
        likeness = _likeness(path, head)
        known = self._known.get(likeness)
        if known is not None:
            sniff = self._readers[known.reader].sniff
            if _ask(sniff, path, head, otherwise=0.0) == known.certainty:
                return known.reader
        found = _surest(path, head, self._readers)
        if found is None:
            return None
        if likeness is not None and len(self._known) < _MOST_LIKENESSES:
            self._known[likeness] = found
        return found.reader


_MOST_LIKENESSES = 1000
_DEEP = 6
"""Levels of a record at which keys are compared."""
_ITEMS = 20
"""Items of a list that are compared."""
_TELLING = frozenset({"role", "type", "object", "kind", "version", "schema_version"})
"""Keys whose texts tell formats apart."""
_NUMBERED = re.compile(r"[0-9a-f-]*\d[0-9a-f-]*")
"""A number or a hexadecimal id in a file's name."""


def _likeness(path: Path, head: Head) -> Any:
    """Return what two files have in common that one reader reads: folder, name but for numbers,
    and the keys and kinds of values in all records.

    None of a file that is not JSON throughout, or longer than its beginning.
    """
    if not head or len(head) >= _HEAD:
        return None
    begins = head[:_FIRST_BYTES].lstrip()[:1]
    try:
        shapes = {_shape(loads(head), _DEEP)}
    except JsonProblem:
        elements = [element for element, _ in first_records(head, _RECORDS)]
        if len(elements) == _RECORDS or any(each.problem is not None for each in elements):
            return None
        shapes = {_shape(each.value, _DEEP) for each in elements}
    return path.parent, _NUMBERED.sub("#", path.name), begins, frozenset(shapes)


_FIRST_BYTES = 100


def _shape(value: Any, depth: int) -> Any:
    """Return the keys and kinds of values of JSON data, down to a depth."""
    if isinstance(value, dict) and depth:
        return frozenset((key, _shape_below(key, item, depth - 1)) for key, item in value.items())
    if isinstance(value, list) and depth:
        items = frozenset(_shape(item, depth - 1) for item in value[:_ITEMS])
        return list, len(value) > 1, len(value) > _ITEMS, items
    if isinstance(value, str):
        return str, value.lstrip()[:1] in {"", "{", "["} and value[:1]
    return type(value)


def _shape_below(key: str, value: Any, depth: int) -> Any:
    return value if key in _TELLING and isinstance(value, str) else _shape(value, depth)


def recognise(paths: Sequence[Path], registry: Registry, reader: str | None) -> Recognised:  # noqa: C901
    """Return the reader of the given paths, directories replaced by their files unless the reader
    takes them whole.
    """
    every = cache(
        lambda: registry.sound("reader")
    )  # of no use where the reader is named and all is in order
    readers = {reader: registry.load("reader", reader)} if reader else every()
    recognition, real_path = _Recognition(readers), real_paths()
    found: dict[str, dict[Path, Path]] = {}  # reader -> real path of a file -> path as given
    times = Counter[Path]()
    ignored: list[str] = []
    for path in paths:
        real = real_path(path)
        times[real] += 1
        if times[real] > 1:
            continue
        if reader and (not path.is_dir() or readers[reader].takes_directories):
            name: str | None = reader
        else:
            name = recognition.reader_of(path)
        if name is not None:
            found.setdefault(name, {})[real] = path
            continue
        inside = files_below(path, hidden=False) if path.is_dir() else []
        if not inside:
            raise _unknown(path, registry, every(), reader)
        for file in inside:
            if name := recognition.reader_of(file):
                real = real_path(file)
                found.setdefault(name, {}).setdefault(real, file)
                times[real] += 1
            else:
                ignored.append(original(file).relative_to(original(path).parent).as_posix())
    if not found:
        raise _unknown(paths[0], registry, every(), reader)
    if len(found) > 1:
        raise _several_formats({name: [*files.values()] for name, files in found.items()})
    ((name, files),) = found.items()
    remarks = [
        (path, f": given {times[real]} times; it is read once")
        for real, path in files.items()
        if times[real] > 1
    ]
    for path in filter(Path.is_file, [*files.values()][:_LOOKED_INTO]):
        remarks += [(path, what) for what in _oddities(_head(path), name, readers[name], every)]
    return Recognised(name, [*files.values()], ignored, remarks)


def _several_formats(files: Mapping[str, Sequence[Path]]) -> ConfigError:
    """Return that inputs are of several formats, with a file of each and how they are graded."""
    formats, paths = [], []
    for name, own in files.items():
        formats.append(f"{name} ({len(own):,} of them, such as {original(own[0])})")
        paths.append(f"{{path: {compact(str(original(own[0])))}, reader: {name}}}")
    return ConfigError(
        f"the inputs are of several formats: {', '.join(formats)}; name files of one format, or "
        "read all as one with --reader NAME, or name the reader of each in a suite: "
        f"target: {{paths: [{', '.join(paths)}]}}"
    )


def _unknown(
    path: Path, registry: Registry, readers: Mapping[str, type[Reader]], reader: str | None
) -> DataError:
    """Return that a path is of no format that is known, what it looks like, and what to do."""
    if path.is_file() and not path.stat().st_size:
        return DataError(f"{path}: the file is empty")
    files = files_below(path, hidden=False)
    if not files:
        return DataError(f"{path}: the directory holds no file")
    if header_of(path) and not (path / ROWS).is_file():
        lost = "not a regular file" if (path / ROWS).exists() else "gone"
        why = "rows: none" if header_of(path).get("rows") is False else f"{ROWS} is {lost}"
        return DataError(
            f"{path}: a run without rows ({why}): there is nothing in it to grade again"
        )
    if reader is not None:  # a directory: files are read with the reader named, whatever is in them
        return DataError(
            f"{path}: {reader} recognises nothing in this directory; name the files it shall read"
        )
    head, alone = _head(files[0]), not path.is_dir()
    which = "" if alone else f"; of {len(files)} files, the first is {files[0].relative_to(path)}"
    asked = (
        each.advice(path, head) for each in readers.values() if alone and hasattr(each, "advice")
    )
    advice: tuple[str, ...] = next(
        filter(None, asked), ()
    )  # of readers that take files of any form
    if alone and (problem := encoding_problem(head)):
        return DataError(f"{path}: {problem}", *advice)
    records = list(first_records(head, _RECORDS))
    what = [_looks(head, records)]
    first = next((element.value for element, _ in records if element.problem is None), None)
    for name, each in readers.items() if isinstance(first, dict) else ():
        if issubclass(each, RecordReader) and (why := _ask(each.complaint, first, otherwise=None)):
            what.append(f"the nearest is {name}: {why}")
    naming = (
        "name it with --reader, in a suite as target.reader (known: "
        f"{', '.join(registry.names('reader'))})"
    )
    records = [(each, text) for each, text in records if each.problem is not None or each.value]
    if advice and any(
        each.problem is not None or isinstance(each.value, dict | list) for each, _ in records
    ):
        return DataError(f"{path}: the format is not recognised: {'; '.join(what)}", *advice)
    if not any(each.problem is None and isinstance(each.value, dict | list) for each, _ in records):
        naming = "a record is an object; `gradestack schema sample` prints a form that is read"
    return DataError(f"{path}: the format is not recognised{which}: {'; '.join(what)}; {naming}")


def _looks(head: bytes, records: Sequence[tuple[Element, bytes]]) -> str:  # noqa: C901
    if problem := encoding_problem(head):
        return f"it {problem}"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # the head ends within a character
            line = head.count(b"\n", 0, error.start) + 1
            return (
                f"it is not UTF-8 text (line {line}, byte {error.start} of the file): save it "
                "as UTF-8"
            )
    if b"\0" in head:
        return "it is a binary file (NUL bytes)"
    listed = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    if listed and not records:
        return "it is an empty JSON list" if head.rstrip().endswith(b"]") else "it is a JSON list"
    if not records:
        return "it has blank lines only"
    first, text = records[0]
    if first.problem is None:
        kind = "empty objects" if first.value == {} else _KINDS.get(type(first.value), "nulls")
        return f"it is {'a JSON list' if listed else 'JSON Lines'} of {kind}{_keys(first.value)}"
    try:
        return f"it is one JSON object over several lines{_keys(loads(head))}"
    except JsonProblem as problem:
        start = text.strip()[: 2 * _CHARACTERS].decode(errors="replace")[:_CHARACTERS]
        if len(head) >= _HEAD and b"\n" not in head:
            return f"its first line is longer than {_HEAD >> 10} KB and begins with {start!r}"
        if _EVENT.match(head.removeprefix(b"\xef\xbb\xbf").lstrip()):
            return "it is a stream of events, pieces of answers: log the whole answers"
        if start.startswith(("{", "[")):
            return f"it is not valid JSON ({problem})" if len(head) < _HEAD else _LONG
        return f"it is neither JSON Lines nor a JSON list: it begins with {start!r}"


def _keys(record: Any) -> str:
    if not isinstance(record, dict) or not record:
        return ""
    keys = sorted(record)
    more = f" and {len(keys) - _KEYS} more" if len(keys) > _KEYS else ""
    return f" with the keys {', '.join(key[:_CHARACTERS] for key in keys[:_KEYS])}{more}"


def _oddities(
    head: bytes, name: str, reader: type[Reader], every: Callable[[], Mapping[str, type[Reader]]]
) -> Iterator[str]:
    """Yield what is odd about a file, once each.

    A key that stands twice in an object, a record of another format.
    """
    records = [
        (element, text)
        for element, text in first_records(head, _RECORDS)
        if element.problem is None
    ]
    if issubclass(reader, RecordReader):
        # one of which the reader can tell nothing (None) is not of another format either
        unlike = [
            each for each, _ in records if _ask(reader.looks_like, each.value, otherwise=0.0) == 0.0
        ]
        others = (
            {key: kind for key, kind in every().items() if issubclass(kind, RecordReader)}
            if unlike
            else {}
        )
        sure = (
            (each.line, other)
            for each in unlike
            for other, kind in others.items()
            if kind is not reader
            and (_ask(kind.looks_like, each.value, otherwise=0.0) or 0.0) >= _SURE
        )
        for line, other in islice(sure, 1):
            yield f":{line}: looks like {other}; read as {name}, as the file is"
    listed = len({id(text) for _, text in records}) == 1 < len(records)
    for element, text in records[:1] if listed else records:
        objects: list[list[tuple[str, Any]]] = []
        with suppress(ValueError, RecursionError):
            json.loads(text, object_pairs_hook=objects.append)
        counts = (Counter(key for key, _ in pairs).most_common(1) for pairs in objects)
        if key := next((key for ((key, times),) in filter(None, counts) if times > 1), None):
            place = "" if listed else f":{element.line}"
            yield (
                f"{place}: the key {key[:_CHARACTERS]!r} stands twice in one object; the last "
                "one counts"
            )
            return
