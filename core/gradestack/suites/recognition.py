"""From paths as written to named inputs and the reader that knows them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count, islice
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
from gradestack.errors import ConfigError, DataError, GradestackError, suggest
from gradestack.grading.plan import Stage
from gradestack.jsonio.files import encoding_problem
from gradestack.jsonio.values import compact
from gradestack.registry import Registry, discover
from gradestack.regular_files import files_below, real_paths
from gradestack.report import HEADER, header_of
from gradestack.rows.packed import ROWS
from gradestack.suites.beginnings import (
    OWN_FORM,
    Beginning,
    Recognition,
    describe,
    recognise_file,
    repeated_keys,
    text_problem,
)
from gradestack.suites.components import Resolver, Target, made_stage
from gradestack.suites.options import Location

_NEIGHBOURS = 1000
"""Names of a directory that are compared with one that is not there."""
_LOOKED_INTO = 20
"""Files that are looked at for what is odd about them."""


def expand(
    texts: Iterable[str], base: Folder | None = None, registry: Registry | None = None
) -> list[Path]:
    """Return the files that path texts name; packed, remote or standard input as local copies.

    One may come twice.
    """
    paths: list[Path] = []
    known: dict[str, Path] = {}
    for text in texts:
        if not text:
            raise DataError("an empty path was given; name result files or directories")
        if text == STANDARD_INPUT:
            paths.append(standard_input())
        elif local := local_files(text, base):
            paths += map(readable, local)
        elif is_address(text):
            paths += fetched(text, known, registry or discover())
        else:
            path = path_of(text, base)
            why = f"no such file or directory{_similar_name(path)}"
            if MAGIC & set(text):
                why = "the pattern matches no file"
            raise DataError(f"{path}: {why}")
    return paths


def _similar_name(path: Path) -> str:
    """Return " (did you mean 'x'?)" with a name in the same directory, or ""."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in islice(entries, _NEIGHBOURS)]
    except OSError:
        return ""
    # suffixes are alike anyway; a link that leads nowhere has the name itself
    stem = path.stem
    near = [name for name in names if suggest(stem, [Path(name).stem], cutoff=0.75)]
    known = [name for name in near if name != path.name]
    return suggest(path.name, known)


def name_inputs(paths: Sequence[Path]) -> tuple[Input, ...]:
    """Give every path a short unique name (its stem) and a short unique way to show it (as few
    parts as needed).
    """
    distinct = _distinct_paths(paths)

    @cache
    def count_ends(length: int) -> Counter[tuple[str, ...]]:
        return Counter(path.parts[-length:] for path in distinct)

    inputs = []
    for path, name, distinct_path in zip(paths, _unique_stems(paths), distinct, strict=True):
        parts = distinct_path.parts or distinct_path.resolve().parts[-1:]
        length = 1
        end = parts[-length:]
        while length < len(parts) and count_ends(length)[end] > 1:
            length += 1
            end = parts[-length:]
        shown = "/".join(end)
        inputs.append(Input(path=path, name=name, shown=shown))
    return tuple(inputs)


def _distinct_paths(paths: Sequence[Path]) -> list[Path]:
    """Return the names of inputs for messages, numbered where two would look the same.

    Addresses may differ only in their query, which is not shown.
    """
    totals = Counter[Path]()
    distinct = []
    for path in paths:
        source = copied(path)
        if source == STANDARD_INPUT:
            source = "stdin"
        shown = path if source is None else Path(source)
        totals[shown] += 1
        number = totals[shown]
        if number > 1:
            shown = shown.with_name(f"{shown.name} ({number})")
        distinct.append(shown)
    return distinct


def _unique_stems(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the stem of each path, with a number behind it where several have it."""
    stems = [_stem_of(path) for path in paths]
    totals = Counter(stems)
    names = set(stems)
    numbers = {stem: count(1) for stem in stems}
    for stem in stems:
        name = stem
        while totals[stem] > 1 and name in names:
            name = f"{stem}-{next(numbers[stem])}"
        names.add(name)
        yield name


def _stem_of(path: Path) -> str:
    if path.is_file():
        return path.stem
    return path.name or path.resolve().name


class Recognised(msgspec.Struct, frozen=True):
    """The files of the given paths, and their reader."""

    reader: str
    paths: list[Path]
    ignored: list[str]
    remarks: list[tuple[Path, str]]
    """Path -> a remark: that it was given more than once, or about a line of it."""


class _Group(NamedTuple):
    """Paths that one reader reads."""

    key: str
    """Key of its reader."""
    texts: list[str]
    options: Mapping[str, Any]
    """The kind and options of the reader, as far as they are named."""
    location: Location
    """Where the options stand."""


def target_of(resolver: Resolver) -> Target:
    """Return the inputs of a suite, each path read by its own reader, else by the suite's, else as
    it is recognised.
    """
    data = resolver.document.data
    target = _recorded_target(resolver)
    written = target.get("paths") or []
    entries = written if isinstance(written, list) else [written]
    options, location = _reader_options(data, target)
    groups: list[_Group] = []
    for number, entry in enumerate(entries):
        path = ("target", "paths", number)
        group = _group(resolver, f"reader {number + 1}", entry, path)
        if group is not None:
            groups.append(group)
    is_sound = len(groups) == len(entries)
    is_mixed = any(isinstance(entry, dict) for entry in entries)
    if is_mixed:
        groups = [
            group if group.options else group._replace(options=options, location=location)
            for group in groups
        ]
    else:
        texts = [text for group in groups for text in group.texts] if is_sound else []
        groups = [_Group("reader", texts, options, location)]
    reader, dataset, dataset_reader = None, None, None
    try:
        parts = [_read_group(resolver, group) for group in groups]
        reader, files = _mixed(resolver, parts) if is_mixed else parts[0]
        dataset_entry = data.get("dataset")
        if reader is not None and isinstance(dataset_entry, str | dict):
            dataset, dataset_reader = _dataset(resolver, reader, dataset_entry)
    except (OSError, GradestackError) as error:
        data_error = _data_error(error) if isinstance(error, OSError) else error
        if not data.get("graders"):
            raise data_error from error
        return Target(Inputs(data=()), reader, error=data_error)
    if files is None or not is_sound:
        return Target(Inputs(data=()), reader)
    named = name_inputs(files.paths)
    ignored = [f"{path}: not recognised, left out" for path in files.ignored]
    shown = {file.path: file.shown for file in named}
    remarks = [f"{shown[path]}{remark}" for path, remark in files.remarks]
    inputs = Inputs(data=named, dataset=dataset)
    return Target(inputs, reader, dataset_reader, ignored, remarks)


def _data_error(error: OSError) -> DataError:
    name = error.filename or "input"
    problem = error.strerror or error
    return DataError(f"{name}: cannot be read: {problem}")


def _recorded_target(resolver: Resolver) -> Mapping[str, Any]:
    """Return the suite's target, an empty one where it is live or none."""
    data = resolver.document.data
    target = data.get("target")
    if not isinstance(target, Mapping):
        return {}
    kind = target.get("kind")
    if not isinstance(kind, str) or kind == "recorded":
        return target
    advice = (
        "name recordings with `kind: recorded` and `paths`, or re-grade a recorded run "
        "with --cached DIR"
    )
    what = f"{kind!r} is a live target, gradestack grades recordings; {advice}"
    resolver.add_problem(("target", "kind"), what)
    data["target"] = {}
    return {}


def _reader_options(
    data: Mapping[str, Any], target: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Location]:
    """Return the suite's own reader, or options of one, and where they stand."""
    outer = _options_of(data.get("reader"))
    inner = target.get("reader")
    if inner is None:
        return outer, ("reader",)
    # options set beside it, say on the command line, count as well
    more = {} if "kind" in outer else outer
    return {**_options_of(inner), **more}, ("target", "reader")


def _options_of(reader: Any) -> Mapping[str, Any]:
    """Return a reader as a suite names it as its kind and options."""
    if reader is None:
        return {}
    if isinstance(reader, Mapping):
        return reader
    return {"kind": reader}


def _group(resolver: Resolver, key: str, entry: Any, location: Location) -> _Group | None:
    """Return the path and the reader that an entry names; None with its problem."""
    named = entry if isinstance(entry, dict) else {"path": entry}
    text = named.get("path")
    reader = named.get("reader")
    at = (*location, "path") if isinstance(entry, dict) else location
    has_other_keys = bool(named.keys() - {"path", "reader"})
    is_reader = isinstance(reader, str | dict | None)
    if has_other_keys or not is_reader or not isinstance(text, str):
        what = "expected the path of a file, or {path: FILE, reader: NAME or {kind: NAME, …}}"
        resolver.add_problem(location, what)
        return None
    if is_address(text):
        is_sound = resolver.may_read(text, at)
    else:
        is_sound = False
        with resolver.refusals(at):
            path_of(text, resolver.base)
            is_sound = True
    if is_sound:
        return _Group(key, [text], _options_of(reader), (*location, "reader"))
    return None


def _read_group(
    resolver: Resolver, group: _Group, remedy: str = ""
) -> tuple[Stage | None, Recognised | None]:
    """Return the reader of a group of paths, named or recognised, and the files of the group."""
    key, texts, options, location = group
    reader, is_named = None, "kind" in options
    if is_named:
        reader = resolver.stage("reader", key, options, location)
    has_problem = is_named and reader is None
    if has_problem or not texts:
        return reader, None
    registry = resolver.registry
    paths = expand(texts, resolver.base, registry)
    name = None if reader is None else reader.name
    files = recognise(paths, registry, name, remedy)
    if reader is None:
        reader = resolver.stage("reader", key, {**options, "kind": files.reader}, location)
    return reader, files


def _mixed(
    resolver: Resolver, parts: Sequence[tuple[Stage | None, Recognised | None]]
) -> tuple[Stage | None, Recognised | None]:
    """Return the readers that paths name for themselves as the one of a run, and all that they
    read.
    """
    stages: list[Stage] = []
    recognised_files: list[Recognised] = []
    first_numbers: dict[Path, int] = {}
    for number, (stage, files) in enumerate(parts):
        if stage is None or files is None:
            return None, None
        for file in files.paths:
            first_number = first_numbers.setdefault(file.resolve(), number)
            if first_number != number:
                why = (
                    f"{file.name} is one of target.paths[{first_number}], too; name each file once"
                )
                resolver.add_problem(("target", "paths", number), why)
        stages.append(stage)
        recognised_files.append(files)
    names = dict.fromkeys(stage.name for stage in stages)
    together = Recognised(" + ".join(names), [], [], [])
    for files in recognised_files:
        together.paths.extend(files.paths)
        together.ignored.extend(files.ignored)
        together.remarks.extend(files.remarks)
    from gradestack.grading.mixed import Mixed  # noqa: PLC0415 - few runs have several formats

    components = tuple(stage.component for stage in stages)
    reader = Mixed(components, tuple(frozenset(files.paths) for files in recognised_files))
    mixed = made_stage("reader", "reader", reader, together.reader)
    return msgspec.structs.replace(mixed, options={}, parts=tuple(stages)), together


def _dataset(
    resolver: Resolver, reader: Stage, entry: str | dict[str, Any]
) -> tuple[Input | None, Stage | None]:
    """Return the dataset and, when the reader does not join it itself, the reader it is
    read with.
    """
    group = _group(resolver, "dataset", entry, ("dataset",))
    if group is None:
        return None, None
    if not reader.component.takes_dataset:
        remedy = "name it with dataset: {path: FILE, reader: NAME}"
        stage, files = _read_group(resolver, group, remedy)
        if files is None:
            return None, stage
        return name_inputs(files.paths)[0], stage
    if group.options:
        why = f"the format {reader.name!r} reads its dataset itself; leave the reader out"
        resolver.add_problem(group.location, why)
    paths = expand(group.texts, resolver.base, resolver.registry)
    return name_inputs(paths[:1])[0], None


def recognise(
    paths: Sequence[Path], registry: Registry, reader: str | None, remedy: str = ""
) -> Recognised:
    """Recognise the format of paths; return its reader and the files to read.

    Directories are replaced by their files unless the reader takes them whole.

    Args:
        paths: What ``expand`` returns.
        registry: The readers there are.
        reader: The one that reads them; None: whichever knows them.
        remedy: What to do about a file that no reader knows; default: a command to try.
    """
    readers = {reader: registry.load("reader", reader)} if reader else registry.sound("reader")
    real_path = real_paths()
    files: dict[str, dict[Path, Path]] = {}  # reader -> real path of a file -> path as given
    times = Counter[Path]()
    ignored: list[str] = []
    for path in paths:
        times[real_path(path)] += 1
        if times[real_path(path)] > 1:
            continue
        recognitions = _recognitions(path, readers, reader)
        for file, recognition in recognitions.items():
            if recognition.format is not None:
                real = real_path(file)
                files.setdefault(recognition.format, {}).setdefault(real, file)
                times[real] += file != path
            elif file == path:
                raise _refusal(path, recognition, remedy)
            else:
                folder = original(path).parent
                relative_path = original(file).relative_to(folder)
                ignored.append(relative_path.as_posix())
        if not recognitions:
            raise _directory_refusal(path, reader)
    if not files:
        raise _directory_refusal(paths[0], reader)
    if len(files) > 1:
        raise _several_formats({name: [*of.values()] for name, of in files.items()})
    ((name, paths_by_real),) = files.items()
    remarks = list(_remarks_on(paths_by_real, times))
    return Recognised(name, [*paths_by_real.values()], ignored, remarks)


def _remarks_on(
    paths_by_real: Mapping[Path, Path], times: Mapping[Path, int]
) -> Iterator[tuple[Path, str]]:
    """Yield paths that were given more than once, and keys that stand twice in an object."""
    for real, path in paths_by_real.items():
        if times[real] > 1:
            yield path, f": given {times[real]} times; it is read once"
    first_paths = islice(paths_by_real.values(), _LOOKED_INTO)
    for path in filter(Path.is_file, first_paths):
        for remark in repeated_keys(Beginning(path)):
            yield path, remark


def _recognitions(
    path: Path, readers: Mapping[str, type[Reader]], reader: str | None
) -> dict[Path, Recognition]:
    """Return the format of a path by itself, or else of each file below it."""
    if reader and (not path.is_dir() or readers[reader].takes_directories):
        return {path: Recognition(reader)}
    is_file = not path.is_dir()
    recognition = recognise_file(Beginning(path), readers, explain=is_file)
    if is_file or recognition.format is not None:
        return {path: recognition}
    files = files_below(path, hidden=False)
    below = _outside_reports(path, files)
    return {file: recognise_file(Beginning(file), readers) for file in below}


def _outside_reports(folder: Path, files: list[Path]) -> list[Path]:
    """Leave out what earlier evaluations wrote below a folder, unless nothing else is there."""
    parents = {file.parent for file in files if file.name == HEADER}
    folders = parents - {folder}
    reports = {path for path in folders if header_of(path)}
    others = [file for file in files if reports.isdisjoint(file.parents)]
    return others or files


def _several_formats(files: Mapping[str, Sequence[Path]]) -> ConfigError:
    """Return the error for inputs of several formats: an example of each, and how to grade them."""
    formats, paths = [], []
    for name, of_format in files.items():
        example = str(original(of_format[0]))
        number = f"{len(of_format):,} of them"
        formats.append(f"{name} ({number}, such as {example})")
        paths.append(f"{{path: {compact(example)}, reader: {name}}}")
    return ConfigError(
        f"the inputs are of several formats: {', '.join(formats)}",
        "name files of one format, or read all as one with --reader NAME",
        f"or name the reader of each in a suite: target: {{paths: [{', '.join(paths)}]}}",
    )


def _refusal(path: Path, recognition: Recognition, remedy: str) -> DataError:
    """Return that a file is of no format that is known, what it looks like, and what to do."""
    beginning = Beginning(path)
    if not beginning.head:
        return DataError(f"{path}: the file is empty")
    encoding = encoding_problem(beginning.head)
    what = encoding or f"the format is not recognised: {describe(beginning)}"
    if recognition.nearest is not None:
        nearest = f"{recognition.nearest}: {recognition.difference}"
        what += f"; the nearest is {nearest}"
    remedy = remedy or recognition.command
    if remedy:
        return DataError(f"{path}: {what}", remedy)
    if not encoding and not text_problem(beginning.head):  # else no form of JSON helps
        what += f"; {OWN_FORM}"
    return DataError(f"{path}: {what}")


def _directory_refusal(path: Path, reader: str | None) -> DataError:
    """Return the error for a directory that no reader reads."""
    files = files_below(path, hidden=False)
    header = header_of(path)
    if not files:
        why = "the directory holds no file"
    elif header and not (path / ROWS).is_file():
        state = f"{ROWS} is gone"
        if header.get("rows") is False:
            state = "rows: none"
        elif (path / ROWS).exists():
            state = f"{ROWS} is not a regular file"
        why = f"a run without rows ({state}): there is nothing in it to grade again"
    elif reader is not None:  # files are read with the reader named, whatever is in them
        why = f"{reader} recognises nothing in this directory; name the files it shall read"
    else:
        name = files[0].relative_to(path)
        listing = f"of {len(files)} files, the first is {name}"
        looks = describe(Beginning(files[0]))
        why = f"the format is not recognised; {listing}: {looks}; {OWN_FORM}"
    return DataError(f"{path}: {why}")
