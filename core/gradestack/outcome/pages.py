"""What others read of a run.

Native files, and pages, which may be written again from a run directory alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from gradestack.api import Exporter, ExportSummary, GraderSummary, Input, Inputs, Reader, Shard
from gradestack.copies.files import original, readable
from gradestack.errors import (
    ConfigError,
    DataError,
    GradestackError,
    PluginError,
    error_text,
    guarded,
    storage_failed,
    writing,
)
from gradestack.grading.merging import Merging
from gradestack.grading.metrics import in_all
from gradestack.grading.plan import Stage, named_graders
from gradestack.grading.reading import MIXED, Mixed, records_of, separated, shards_of
from gradestack.interpreter import collected_seldom
from gradestack.jsonio.values import as_map, json_data, loads
from gradestack.model import Sample, Source, Status
from gradestack.registry import Registry
from gradestack.regular_files import open_regular
from gradestack.report import Report, Reporter, is_run
from gradestack.rows.read import Row
from gradestack.rows.write import encode, trajectory_of
from gradestack.rundir.place import filling, reserve
from gradestack.suites.spec import Suite
from gradestack.suites.strict import Problems, structure

# key of a row whose trajectory could not be read again: one sentence that says why
GONE: Final = "trajectory_gone"
_PART = 500  # rows looked up at a time; their trajectories are held in memory

_CHUNK = 1 << 20
Chunks = Mapping[tuple[str, str], list[Path]]
Say = Callable[[str], None]


def write_native(suite: Suite, run: Merging, chunks: Chunks, place: Path) -> None:
    """Join native parts and let every exporter finish, once per input."""
    merged = run.merged
    several = len(suite.inputs.data) > 1
    for stage in suite.exporters:
        for given in suite.inputs.data:
            if not merged.table.of_input(given.name) or stage.name in merged.broken:
                continue
            out = place / "native" / (given.name if several else "")
            try:
                _write_native(suite, run, chunks, stage, given, out)
            except (
                Exception,
                SystemExit,
            ) as error:  # a native file is a convenience; the run is not lost for it
                if storage_failed(error):
                    raise
                merged.broken.setdefault(stage.name, error_text(error).replace(f"{place}/", ""))


def _write_native(
    suite: Suite, run: Merging, chunks: Chunks, stage: Stage, given: Input, out: Path
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    exporter: Exporter = stage.component
    rows = run.merged.table.of_input(given.name)
    aggregates, counts = run.figures(rows), run.counts(rows)
    summary = ExportSummary(
        input=given,
        reader=suite.reader.component,
        profile=suite.profile,
        dataset=suite.inputs.dataset,
        max_samples=suite.max_samples or None,
        graders={
            name: GraderSummary(
                key=each.key,
                grader=each.component,
                states=in_all(counts[each.key].values()).states,
                aggregates=aggregates[each.key],
            )
            for name, each in named_graders(exporter, suite.graders).items()
        },
    )
    for (owner, artefact), parts in sorted(chunks.items()):
        exporter_name, _, file_name = artefact.partition("/")
        if (owner, exporter_name) == (given.name, stage.name):
            head, tail = exporter.frame(file_name, summary)
            with (out / Path(file_name).name).open("wb") as to:
                to.write(head.encode("utf-8", "surrogatepass"))
                for number, part in enumerate(parts):
                    to.write(exporter.separator.encode() if number else b"")
                    with part.open("rb") as file:
                        shutil.copyfileobj(file, to, _CHUNK)
                to.write(tail.encode("utf-8", "surrogatepass"))
    for file_name, text in exporter.finish(summary).items():
        (out / Path(file_name).name).write_text(
            text, encoding="utf-8", newline="", errors="surrogatepass"
        )


def with_trajectories(report: Report, made: Reader | Registry, say: Say) -> Report:
    """Return a report whose ``rows_at`` reads the trajectories of a slim run again.

    Any other report as it is.
    """
    if report.has_trajectories or not isinstance(report.header.get("recording"), dict):
        return report
    return attrs.evolve(report, completed=_Recording(report.header, made, say).completed)


_Place = tuple[str, int, int | None, str, str | None, int | str | None]
"""What tells a sample from all others of a run: file, ordinal, line, id, model, run."""


class _Recording:
    """What a slim run was graded from.

    Nothing fails for it: a row that cannot be completed says why.
    """

    def __init__(self, header: Mapping[str, Any], made: Reader | Registry, say: Say) -> None:
        recording = header["recording"]
        self._reader = made if isinstance(made, Reader) else partial(_reader, recording, made)
        self._digests = {Path(each["path"]): each["sha256"] for each in header.get("inputs", ())}
        self._inputs = [_input(each) for each in recording["inputs"]]
        self._dataset = _input(recording["dataset"]) if recording["dataset"] else None
        self._damage, self._say = cache(self._damage_of), cache(say)  # once each

    def completed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows with their ``trajectory``, or with ``trajectory_gone``."""
        rows = iter(rows)
        while part := list(islice(rows, _PART)):
            places = {
                id(row): _place_of(row) for row in part if row.get("status") != Status.MISSING
            }
            wanted: dict[str, set[_Place]] = {}
            for place in filter(None, places.values()):
                wanted.setdefault(place[0], set()).add(place)
            found, why = dict[_Place, Any](), dict[str, str]()
            for file, there in wanted.items():
                try:
                    self._find(file, there, found)
                except (GradestackError, OSError) as error:
                    why[file] = str(error)
            for row in part:
                if id(row) not in places:
                    yield {**row, "trajectory": []}
                elif (at := places[id(row)]) is None:
                    yield {**row, GONE: self._gone("the row has no place in its input")}
                elif at in found:
                    yield {**row, "trajectory": found[at]}
                else:
                    yield {
                        **row,
                        GONE: self._gone(why.get(at[0], f"{at[0]} is read otherwise than before")),
                    }

    def _gone(self, why: str) -> str:
        self._say(f"warning: rows are slim, and conversations cannot be read again: {why}")
        return (
            "The conversation was not kept with the results (rows: slim) and cannot be read "
            f"again: {why}."
        )

    def _find(self, file: str, wanted: set[_Place], found: dict[_Place, Any]) -> None:
        """Add the trajectories of samples of one file, reading no more of it than needed."""
        given = next(
            (each for each in self._inputs if f"{file}/".startswith(f"{each.shown.rstrip('/')}/")),
            None,
        )
        if given is None:
            raise DataError(f"{file} is not among the inputs on record")
        if damage := self._damage(given) or (self._dataset and self._damage(self._dataset)):
            raise DataError(damage)
        reader, shards, index = self._plan
        # first the shards that begin right before the ordinals; some formats may have a record in
        # any shard
        begun = [(first.ordinal, shard) for first, shard in self._beginnings if first.file == file]
        ordinals = {bisect_right(begun, place[1], key=lambda each: each[0]) - 1 for place in wanted}
        likely = [begun[at][1] for at in sorted(ordinals) if at >= 0]
        left = set(wanted)
        for shard in [*likely, *sorted(shards, key=lambda shard: shard.input.name != given.name)]:
            for record in records_of(reader, shard, index):
                if isinstance(record, Sample) and (place := _place(record)) in left:
                    found[place] = _as_read(record)
                    left.discard(place)
                    if not left:
                        return

    @cached_property
    def _beginnings(self) -> list[tuple[Source, Shard]]:
        """The place of each shard's first record; the other shards hold no sample."""
        reader, shards, index = self._plan
        first = ((next(records_of(reader, shard, index), None), shard) for shard in shards)
        return [
            (record.source, shard)
            for record, shard in first
            if record is not None and record.source
        ]

    def _damage_of(self, given: Input) -> str:
        path = original(given.path).resolve()
        own = [
            (file, digest) for file, digest in self._digests.items() if file.is_relative_to(path)
        ]
        for file, digest in own:
            shown = (
                given.shown
                if file == path
                else f"{given.shown}/{file.relative_to(path).as_posix()}"
            )
            try:
                with open_regular(file) as opened:
                    same = hashlib.file_digest(opened, "sha256").hexdigest() == digest
            except OSError:
                return f"{shown} is gone"
            if not same:
                return f"{shown} has changed since"
        for place, _, names in os.walk(path):
            for name in names:
                if Path(place, name).resolve() not in self._digests:
                    return f"{given.shown} holds files that were not graded"
        return "" if own else f"{given.shown} is gone"

    @cached_property
    def _plan(self) -> tuple[Reader, list[Shard], Any]:
        """The reader of the run, its shards of the inputs that are as they were, and its index."""
        reader = self._reader if isinstance(self._reader, Reader) else self._reader()
        there = tuple(_readable(each) for each in self._inputs if not self._damage(each))
        dataset = None if self._dataset is None else _readable(self._dataset)
        inputs = Inputs(data=there, dataset=dataset)
        shards, index = shards_of(reader, inputs)
        return reader, shards, separated(reader, inputs, shards, index)


def _reader(recording: Mapping[str, Any], registry: Registry) -> Reader:
    name, options = recording["reader"], recording["options"]
    if MIXED in name:
        names = (frozenset(given["name"] for given in each["inputs"]) for each in options["parts"])
        return Mixed(tuple(_reader(each, registry) for each in options["parts"]), tuple(names))
    try:
        reader: Reader = structure(options, registry.load("reader", name))
    except Problems as problems:
        raise DataError(f"the reader {name!r} does not take the options of this run") from problems
    return reader


def _input(recorded: Mapping[str, str]) -> Input:
    return Input(path=Path(recorded["path"]), name=recorded["name"], shown=recorded["shown"])


def _readable(given: Input) -> Input:
    """Return an input that readers can open; only called of files known to be those graded."""
    return msgspec.structs.replace(given, path=readable(given.path))


def _place_of(row: Row) -> _Place | None:
    found = (
        row.get("source"),
        as_map(row.get("sample")).get("id"),
        row.get("model_name"),
        row.get("run"),
    )
    try:
        source, name, model, run = msgspec.convert(
            found, tuple[Source, str | int, str | None, int | str | None]
        )
    except msgspec.ValidationError:  # the row has no place in its input
        return None
    return source.file, source.ordinal, source.line, str(name), model, run


def _place(sample: Sample) -> _Place:
    source = sample.source or Source(file="")
    return source.file, source.ordinal, source.line, sample.id, sample.model, sample.run


def _as_read(sample: Sample) -> Any:
    """Return a trajectory as it would be read back from its row.

    One that cannot be written was not kept either.
    """
    try:
        return loads(encode(json_data(trajectory_of(sample, []))))
    except (RecursionError, TypeError, ValueError):
        return []


PAGES_MISSING = "interrupted: all samples are graded, report pages are missing"
"""What a summary says of a run that was interrupted while its pages were written."""


class Pages(msgspec.Struct):
    """What the reporters of a run wrote, relative to the run directory, and which of them failed
    with what.
    """

    written: list[Path] = msgspec.field(default_factory=list)
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    """Reporters that could not write with what the suite gave them, such as a template of its own,
    and why.
    """
    told: list[str] = msgspec.field(default_factory=list)  # what reporters have to say of the pages
    interrupted: bool = False


def write_pages(stages: Iterable[Stage], report: Report, out: Path) -> Pages:
    """Let every reporter write into the run directory ``out``.

    A failure costs its page, never the results.
    """
    pages = Pages()
    for stage in stages:
        name = f"reporter {stage.name} ({stage.distribution})"
        try:
            pages.written += _written(stage.component, report, out, name)
        except KeyboardInterrupt:
            pages.interrupted = True
            break
        except ConfigError as error:
            pages.refused[f"reporter {stage.name}"] = str(error)
        except (Exception, SystemExit) as error:  # the results are worth more than a page
            if storage_failed(error):  # nothing else could be written either
                raise
            text = (
                error.line.removeprefix(f"{name} raised ")
                if isinstance(error, PluginError)
                else error_text(error)
            )
            pages.broken[f"reporter {stage.name}"] = text.replace(f"{out}/", "")
    pages.told += dict.fromkeys(report.told)
    return pages


def _written(reporter: Reporter, report: Report, out: Path, name: str) -> list[Path]:
    """Return a reporter's pages relative to ``out``."""
    with filling(out, reporter.beside) as new, guarded(name):
        return [page.relative_to(new) for page in reporter.write(report, new)]


def rewrite_pages(
    report: Report,
    registry: Registry,
    formats: Iterable[str],
    out: Path,
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the pages of a finished run again, by the reporters named, else those it had, with
    their options.
    """
    chosen: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in formats]
    used = report.header.get("components", ())
    chosen = chosen or [
        (each["name"], each.get("options", {})) for each in used if each["kind"] == "reporter"
    ]
    written: list[Path] = []
    report = attrs.evolve(with_trajectories(report, registry, say), registry=registry)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with reserve(out), writing(out):
        if not is_run(out):
            keep_foreign(out / "report.html", out / "report.md")
        for name, options in chosen or [("html", {}), ("markdown", {})]:
            target = registry.load("reporter", name)
            with collected_seldom(), guarded(f"reporter {name}"):
                try:
                    reporter = structure(options, target) if options else target()
                except Problems as problems:
                    raise PluginError(
                        f"reporter {name!r} does not take the options of this run; name it with "
                        "--format",
                        *(f"{place}: {text}" for place, text in problems.found),
                    ) from problems
                written += [
                    out / page for page in _written(reporter, report, out, f"reporter {name}")
                ]
        for text in dict.fromkeys(report.told):
            say(f"warning: {text}")
    return written


def with_broken_pages(summary: dict[str, Any], pages: Pages, *, strict: bool) -> dict[str, Any]:
    """Return a summary that tells what pages lack, and why.

    Where it is ``strict``, what is left out is broken, too.
    """
    told = [
        f"{name} is broken, its page is missing: {text}"
        for name, text in sorted(pages.broken.items())
    ]
    told += [f"{name} has written no page: {text}" for name, text in sorted(pages.refused.items())]
    found = {**summary, "warnings": [*summary["warnings"], *told, *pages.told]}
    if broken := pages.broken | ({"panels": pages.told[0]} if strict and pages.told else {}):
        found["broken"] = summary.get("broken", {}) | broken
    if pages.refused:
        found["refused"] = pages.refused
    if pages.interrupted:
        found.setdefault("incomplete", PAGES_MISSING)
    return found


COMPARISON, COMPARISON_PARTS = "comparison.json", "comparison_data/*.js"
"""The data of a comparison, and what its page may have beside it."""
_MARKS = {
    ".html": b'<meta name="generator" content="gradestack',
    ".json": b'{"baseline":',
    ".md": b" gradestack ",
}
"""What stands near the beginning of a page, and of a comparison."""
_BEGINNING = 8192


def keep_foreign(*pages: Path) -> None:
    """Refuse to write where a file of somebody else's stands."""
    for page in filter(Path.exists, pages):
        if not page.is_file():
            raise _in_the_way(page)
        with open_regular(page) as file:
            if _MARKS[page.suffix] not in file.read(_BEGINNING):
                raise _in_the_way(page)


def publish(out: Path, pages: Mapping[str, str]) -> None:
    """Write pages into a directory that anybody may have filled.

    Links there are replaced, pages of others are not.

    Args:
        out: The directory.
        pages: File name -> text.

    Raises:
        ConfigError: A page of that name is there and was not written by gradestack.
        OSError: It cannot be written.
    """
    keep_foreign(*(out / name for name in pages))
    with filling(out) as new:
        for name, text in pages.items():
            (new / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")


def keep_foreign_comparison(out: Path) -> None:
    """Refuse to write a comparison where a file of somebody else's stands.

    A text alone is, as it has no mark.
    """
    data, page, text = (out / f"comparison.{ending}" for ending in ("json", "html", "md"))
    keep_foreign(data if data.exists() else page)
    if text.exists() and not data.exists() and not page.exists():
        raise _in_the_way(text)


def _in_the_way(page: Path) -> ConfigError:
    return ConfigError(f"{page}: is there already and was not written by gradestack; move it away")
