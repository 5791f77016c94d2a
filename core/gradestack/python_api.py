"""The Python API: run a suite, grade files, grade samples, one by one too.

The command line uses nothing else.
"""

from __future__ import annotations

import copy
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import attrs
import msgspec

from gradestack.api import Grader, Inputs, Profile
from gradestack.copies.files import (
    Folder,
    folder_of_runs,
    local_path_of,
    named_as_given,
    run_name,
)
from gradestack.errors import ConfigError, GradestackError
from gradestack.grading.plan import Metric, needs_of_figures
from gradestack.grading.progress import ProgressCallback
from gradestack.metrics.computed import compute_figures, select_grades
from gradestack.model import JSON, BadRecord, Grade, Key, Sample
from gradestack.output import terminal_line
from gradestack.registry import Registry, discover
from gradestack.report import Report, is_run
from gradestack.runner import grade_suite, run_suite
from gradestack.streaming import stream_grades
from gradestack.suites.code import RECORDS, Graders, Samples, by_key, key_of
from gradestack.suites.components import Resolver, samples_of, stack_for
from gradestack.suites.document import Document, read_yaml, typed_texts
from gradestack.suites.options import Problems, structure
from gradestack.suites.resolve import resolve as resolve_document
from gradestack.suites.spec import Rows, RunOptions, Suite
from gradestack.table import Table

Columns = Mapping[str, str] | Sequence[str] | None
"""Field -> column; or texts such as ``id=task``."""
AnySuite = str | Path | Mapping[str, Any] | Report
"""The path of a YAML file, its content, or a finished run, of which the rows are graded again."""
resolve = named_as_given()(resolve_document)


def unknown_plugin(name: str) -> str:
    """Return the warning about a name in ``GRADESTACK_PLUGINS`` that nothing installed has."""
    return f"GRADESTACK_PLUGINS names {name}, no installed plugin is called that"


def installed(stacklevel: int = 3) -> Registry:
    """Return all installed plugins; of names GRADESTACK_PLUGINS has too many is warned."""
    registry = discover()
    for name in registry.unknown:
        warnings.warn(unknown_plugin(name), stacklevel=stacklevel)
    return registry


class RunArguments(TypedDict, total=False):
    """Further arguments of ``run``, ``load_suite`` and ``grade_files``, which all have
    a default.
    """

    output: str | Path | None
    """Report directory; default ``gradestack-runs/NAME/UTC-TIME``.

    An earlier run there is replaced whole.
    """
    overrides: Iterable[str]
    """``PATH=VALUE`` assignments, as ``--set`` takes them."""
    allow_code: bool
    """Import Python code that the suite names, and connect its engine to the address it names."""
    allow_outside: bool
    """Open files of the suite that lie outside its folder; ``allow_code`` implies it."""
    allow_remote: bool
    """Open addresses that the suite names; those among the overrides are always opened."""
    strict: bool
    """Stop at the first bad record or raising grader instead of recording it."""
    rows: Rows | bool | None
    """What is kept of samples, whatever the suite says.

    ``full`` (or True), results.jsonl; ``compressed``, results.jsonl.zst; or ``none`` (or False),
    figures, native files and pages without samples.
    """
    exporters: Sequence[str]
    """Exporters by name, besides those the suite names and those of the format's own plugin."""
    engine: str | None
    """Engine by name, whatever the suite says."""
    workers: int | None
    """Number of its workers."""
    resume: bool
    """Continue the unfinished run of this place, if there is one."""
    registry: Registry | None
    """Plugins to use; default: all installed ones."""
    progress: ProgressCallback | None
    """Called, often, with a ``Progress``."""
    echo: Callable[[str], None]
    """Called with what people should know about an unfinished run that was found."""


def run_options(
    *,
    registry: Registry | None = None,
    output: str | Path | None = None,
    overrides: Iterable[str] = (),
    exporters: str | Sequence[str] = (),
    rows: Rows | bool | None = None,
    **more: Any,
) -> RunOptions:
    """Build the options of a run from arguments that callers may write in several ways.

    True for rows is ``full``, False ``none``.
    """
    if isinstance(rows, bool):
        rows = "full" if rows else "none"
    try:
        structure(rows, Rows | None)  # type: ignore[arg-type]
    except Problems as problems:
        raise ConfigError(f"rows: {problems}") from problems
    if isinstance(exporters, str):
        exporters = (exporters,)
    out = None if output is None else Path(output)
    return RunOptions(
        registry=registry or installed(stacklevel=4),
        output=out,
        overrides=tuple(overrides),
        exporters=tuple(exporters),
        rows=rows,
        **more,
    )


def run(
    suite: AnySuite, *, cached: str | Path | None = None, **options: Unpack[RunArguments]
) -> Report:
    """Run a suite and return its report.

    Args:
        suite: Path of a YAML file, its content as a mapping, or a report whose rows are graded
            again. Paths in a mapping are taken from the working directory.
        cached: A recorded letta-evals (or gradestack) report directory to grade instead of the
            suite's target.
        **options: Those of ``RunArguments``.

    Returns:
        The report; ``report.passed`` is the gates' verdict, ``report.rows()`` iterates over the
        samples.

    Raises:
        ConfigError: The suite or the output directory cannot be used.
        DataError: No record could be read.
        PluginError: A plugin it uses is broken.

    Examples:
        >>> report = gradestack.run("suite.yaml", output="out")  # doctest: +SKIP
        >>> report.metrics["avg_score_attempted"]  # doctest: +SKIP
        0.596
    """
    chosen = run_options(**options)
    return run_suite(read_suite(suite, chosen, cached), chosen)


def load_suite(
    suite: AnySuite, *, cached: str | Path | None = None, **options: Unpack[RunArguments]
) -> Suite:
    """Return a suite, checked and resolved, without running it.

    ``output``, ``resume`` and ``progress`` change nothing.

    Raises:
        ConfigError: Everything that is wrong, each with file, line and path.
        DataError: An input does not exist or is of no known format.
        PluginError: A plugin it uses is broken.
    """
    return read_suite(suite, run_options(**options), cached)


_OF_INPUT = (
    "dataset",
    "duplicates",
    "filter",
    "max_samples",
    "reader",
    "sample_tags",
    "target",
    "tasks",
)
_RESULTS = (".jsonl", ".csv", ".tsv", ".txt", ".html", ".parquet", ".gz", ".zst")
"""Endings of files of results, of which one may be given in a suite's place."""
_KEYS_OF_A_SUITE = {"target", "graders", "stack"}


def _suite_of(report: Report) -> dict[str, Any]:
    """Return the suite of a finished run, without its inputs."""
    config = report.summary["config"]
    suite = {name: value for name, value in config.items() if name not in _OF_INPUT}
    figures = report.summary["headline"]["figures"]
    by_label = {figure["label"]: figure["figure"] for figure in figures}
    headline = config.get("headline", {})
    suite["headline"] = {**headline, "figures": by_label}
    outcome = report.summary.get("outcome")
    suite["outcome"] = "none" if outcome is None else outcome["grader"]
    return suite


def read_suite(
    suite: AnySuite,
    options: RunOptions,
    cached: str | Path | None = None,
    more_graders: Mapping[str, Any] | None = None,
) -> Suite:
    """Resolve a suite from a YAML file, a mapping or a report, ready to run.

    For a report it is the report's suite over its rows, with more graders if there are any.
    """
    texts = typed_texts(options.overrides)
    is_open = options.allow_outside or options.allow_code
    folder: Folder | None = None
    origin: Path | None = None
    if isinstance(suite, Report):
        cached = suite.path
        data = _suite_of(suite)
        graders = data.get("graders", {})
        data["graders"] = {**graders, **(more_graders or {})}
        document = document_of(data, str(suite.path))
    elif isinstance(suite, Mapping):
        document = document_of(suite, "suite")
    else:
        origin = local_path_of(str(suite))
        document = _read_suite_file(origin)
    unused: list[str] = []
    if cached is not None:
        local_path = local_path_of(str(cached))
        path = str(local_path.absolute())
        unused = _set_cached(document, path)
        texts |= {path}
    if isinstance(suite, Report):
        folder = folder_of_runs(is_open=is_open, typed=texts)
    elif origin is not None:
        folder = Folder(origin.parent, is_open, texts)
    resolved = resolve(document, options, folder)
    warnings = (*resolved.warnings, *unused)
    same_inputs = cached is not None
    return msgspec.structs.replace(
        resolved, same_inputs=same_inputs, origin=origin, warnings=warnings
    )


def document_of(suite: Mapping[str, Any], origin: str, name: str = "suite") -> Document:
    """Return the document of a suite that is a mapping."""
    data = copy.deepcopy(dict(suite))
    return Document(data=data, origin=origin, default_name=name)


def _read_suite_file(path: Path) -> Document:
    """Return the document of a suite file; results, and parts of a run, are refused by name."""
    results = path.parent if is_run(path.parent) else path
    what = "a result file"
    if path.is_dir():
        what = "a directory"
    command = shlex.join(["gradestack", "grade", str(results)])
    no_suite = f"{path}: not a suite; to grade {what}: {command}"
    if path.is_dir() or (path.suffix in _RESULTS and path.is_file()):
        raise ConfigError(no_suite)
    document = read_yaml(path)
    if path.suffix == ".json" and _KEYS_OF_A_SUITE.isdisjoint(document.data):
        raise ConfigError(no_suite)
    return document


def _set_cached(document: Document, path: str) -> list[str]:
    """Set a recorded run as the target of a suite; return which keys are not used with it."""
    target = document.data.get("target")
    document.data["target"] = {"paths": [path], "reader": "letta"}
    unused = []
    for key in ("model_configs", "model_handles"):
        if isinstance(target, Mapping) and target.get(key):
            why = "is not used with --cached: every model of the recording is graded"
            unused.append(f"target.{key} {why}")
    return unused


def grade_files(
    paths: str | Path | Sequence[str | Path],
    *,
    graders: Sequence[str] = (),
    stack: str | None = None,
    reader: str | None = None,
    columns: Mapping[str, str] | None = None,
    records: str | None = None,
    ids: str | None = None,
    dataset: str | Path | None = None,
    profile: Profile | None = None,
    **options: Unpack[RunArguments],
) -> Report:
    """Grade result files without a suite and return the report; what ``gradestack grade`` does.

    ``paths`` are files or directories, all of one format: ``reader``, by default recognised.
    ``graders`` are names of installed ones or ``FILE.py:NAME``; by default those of ``stack``, and
    that is by default the format's own. ``columns`` maps each field to its column or path, and
    selects the reader ``records``. ``{"id": PLACE}`` alone is for any reader. ``ids`` is the field
    or path of the task id, or ``input`` for ids made of the first question and the tools.
    ``records`` is the path to the list of records in one JSON document. ``dataset`` is a file with
    expectations, joined by id; ``profile`` is ``documented`` (default) or ``upstream``. All other
    options are those of ``run``.

    Raises:
        ConfigError: Options or output that are wrong.
        DataError: No record could be read.
        PluginError: A plugin it uses is broken.
    """
    entries: dict[str, Any] = {
        "stack": stack,
        "reader": reader,
        "ids": ids,
        "dataset": dataset,
        "profile": profile,
    }
    chosen = run_options(**options)
    suite = files_suite(paths, chosen, graders=graders, columns=columns, records=records, **entries)
    return run_suite(suite, chosen)


def load_files_suite(
    paths: str | Path | Sequence[str | Path],
    *,
    judged: Mapping[str, str | Path | None] | None = None,
    reader: str | None = None,
    records: str | None = None,
    ids: str | None = None,
    dataset: str | Path | None = None,
    **options: Unpack[RunArguments],
) -> Suite:
    """Return the suite that ``grade_files`` would run.

    With ``judged`` its grader is a judge's ``rubric`` with its ``judgements``.
    """
    inputs: dict[str, Any] = {"records": records, "reader": reader, "ids": ids, "dataset": dataset}
    return files_suite(paths, run_options(**options), judged=judged, **inputs)


def files_suite(
    paths: str | Path | Sequence[str | Path],
    options: RunOptions,
    *,
    graders: Sequence[str] | Mapping[str, Any] = (),
    columns: Columns = None,
    records: str | None = None,
    guess: bool | None = None,
    no_merge: bool = False,
    judged: Mapping[str, str | Path | None] | None = None,
    **entries: str | Path | None,
) -> Suite:
    """Return the suite that grades files with no YAML.

    With ``guess`` columns are recognised beside those mapped.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    if not paths:
        raise ConfigError("no file to grade: name result files or directories")
    ids = entries.pop("ids", None)
    data: dict[str, Any] = {key: str(value) for key, value in entries.items() if value is not None}
    data["target"] = {"paths": [str(path) for path in paths]}
    mapping = _parse_columns(columns)
    if ids is None and mapping.keys() == {"id"} and data.get("reader") != RECORDS:
        ids = mapping.pop("id")  # for any reader
    merge = False if no_merge else None
    options_of_reader = {
        "records": records,
        "ids": ids,
        "columns": mapping or None,
        "guess": guess if mapping else None,
        "merge": merge,
    }
    _set_reader(data, options_of_reader)
    keyed = keyed_graders(graders)
    if judged is not None:
        if graders or "stack" in data:
            what = "a rubric takes the place of graders and stack"
            raise ConfigError(f"{what}; add others with --set graders.KEY=NAME")
        keyed = _judged_grader(judged)
    if keyed:
        data["graders"] = keyed
    if keyed and "stack" in data:
        what = f"graders take the place of a stack's; leave out the stack {data['stack']!r}"
        raise ConfigError(f"{what}, or add a grader to it with --set graders.KEY=NAME")
    options = msgspec.structs.replace(options, allow_remote=True)  # the caller names all files
    name = run_name(str(paths[0]))
    document = Document(data=data, origin="command line", default_name=name)
    return resolve(document, options)


def _set_reader(data: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Set options of the reader of a suite; those about columns are for ``records`` alone."""
    written = {name: value for name, value in options.items() if value is not None}
    reader = data.get("reader")
    for name, what in (("columns", "mapping of columns"), ("records", "path")):
        if name in written and reader not in {None, RECORDS}:
            why = f"the reader {reader!r} takes none, leave one of them out"
            raise ConfigError(f"a {what} is for the reader {RECORDS!r}; {why}")
        if name in written:
            reader = RECORDS
    if written:
        data["reader"] = {"kind": reader, **written} if reader is not None else written


def keyed_graders(graders: Any) -> dict[str, Any]:
    """Return the graders of files by key."""
    if isinstance(graders, Mapping):
        return dict(graders)
    several = graders if isinstance(graders, list | tuple) else [graders]
    for grader in several:
        if not isinstance(grader, str):
            what = "graders of files are names or FILE.py:NAME"
            raise ConfigError(f"{what}, got {grader!r}; gradestack.stream takes objects, too")
    advice = "give one of them another key with --set graders.KEY=NAME instead"
    return by_key(((key_of(grader), grader) for grader in several), advice)


def _judged_grader(judged: Mapping[str, str | Path | None]) -> dict[str, Any]:
    """Return the grader of a rubric, by the rubric's name."""
    options = {key: str(value) for key, value in judged.items() if value is not None}
    name = "judged"
    with suppress(GradestackError):  # the grader says what is wrong with a rubric
        rubric = read_yaml(local_path_of(options["rubric"]))
        name = str(rubric.data.get("name") or name)
    return {name: {"kind": "judged", **options}}


def _parse_columns(columns: Columns) -> dict[str, str]:
    """Return a mapping of fields to columns, written as one or as texts ``FIELD=COLUMN``."""
    if isinstance(columns, Mapping):
        return dict(columns)
    mapping: dict[str, str] = {}
    for text in columns or ():
        field, equals, column = text.partition("=")
        if equals and field in mapping:
            raise ConfigError(f"--map {text}: {field} is mapped twice")
        if not (field and column):
            raise ConfigError(f"--map {text}: expected FIELD=COLUMN, such as --map id=task")
        mapping[field] = column
    return mapping


def grade(
    samples: Any,
    graders: Graders | Sequence[Graders] | Mapping[str, Graders | Mapping[str, Any]] | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    name: str = "samples",
    profile: Profile = "documented",
    metrics: Mapping[str, Any] | None = None,
    gate: Mapping[str, Any] | None = None,
    min_graded: float | str | None = None,
    limits: Mapping[str, Any] | None = None,
    reports: Sequence[str] = (),
    output: str | Path | None = None,
    allow_code: bool = False,
    strict: bool = False,
    registry: Registry | None = None,
) -> Report:
    """Grade samples held in memory (or made one by one) and return the report.

    Args:
        samples: ``Sample`` objects, or mappings in the form of the ``jsonl`` format (``{"id": ...,
            "expected": ..., "predicted": ...}``). A data frame (of pandas, polars or pyarrow) is
            read as the reader ``records`` reads a table.
        graders: Names, objects, classes without options, functions of a sample, or
            ``FILE.py:NAME``; in a list, the key of each is its name. The first is the main one,
            whose grade is the row's own. Default: those that a file of these samples would have;
            where none of the first 1,000 expects anything, those of the stack ``trajectory``, which
            need no reference.
        columns: Field -> column or path, of a data frame or of mappings of any form; without it,
            columns of a data frame that are named like fields are taken.
        name: Name of the run.
        profile: ``documented``; samples in memory have no original program, which reads files.
        metrics: Further aggregators, as in a suite.
        gate: Gate, as in a suite.
        min_graded: The least share of the runs that must be graded for the gate to pass, as in a
            suite: 0.5 or ``"50%"``.
        limits: Limits, as in a suite: ``{"seconds_per_grade": 5}``.
        reports: Reporters to run, such as ``("html",)``; without ``output`` their pages go into a
            temporary directory, removed by ``report.close()`` or on leaving ``with report:``.
        output: Report directory; default: nothing is written, figures and rows are held by the
            report.
        allow_code: Import Python files that are named.
        strict: Stop at the first bad record or raising grader.
        registry: Plugins to use; default: all installed ones.

    Raises:
        ConfigError: A grader, metric or gate that is wrong.
        DataError: There was no sample.
        PluginError: A plugin in use is broken.

    Examples:
        >>> report = gradestack.grade(samples, graders=["tau_partial"])  # doctest: +SKIP
        >>> report.metrics["avg_score_attempted"]  # doctest: +SKIP
        0.75
    """
    from gradestack.suites import python_inputs  # noqa: PLC0415 - for what stands in no file

    registry = registry or installed()
    data: dict[str, Any] = {
        "name": name,
        "profile": profile,
        "metrics": dict(metrics or {}),
        "reports": list(reports),
    }
    optional = {"gate": gate, "min_graded": min_graded, "limits": limits}
    for key, value in optional.items():
        if value is not None:
            data[key] = dict(value) if isinstance(value, Mapping) else value
    options = run_options(registry=registry, output=output, allow_code=allow_code, strict=strict)
    rows = python_inputs.as_samples(samples, registry, columns)
    reader = python_inputs.MemoryReader(samples=rows)
    stack: Mapping[str, Any] = {}
    if graders is None:
        stack = stack_for(registry, "auto", samples=lambda: samples_of(reader, Inputs(data=())))
        graders = stack["graders"]
        data |= {key: stack[key] for key in ("outcome", "headline")}
    data["graders"] = python_inputs.graders_by_key(graders, registry)
    document = Document(data=data, origin="grade()")
    suite = resolve(document, options, samples=reader)
    stack_notes = stack.get("notes", ())
    stack_warnings = stack.get("warnings", ())
    notes = (*suite.notes, *stack_notes)
    warnings = (*suite.warnings, *stack_warnings)
    suite = msgspec.structs.replace(suite, notes=notes, warnings=warnings)
    if output is not None:
        return run_suite(suite, options)
    if reports:
        return _run_with_temporary_pages(suite, options)
    return grade_suite(suite, options)


def _run_with_temporary_pages(suite: Suite, options: RunOptions) -> Report:
    """Run a suite in a temporary directory, which the report removes when it is closed."""
    folder = Path(tempfile.mkdtemp(prefix="gradestack-"))
    try:
        output = folder / "run"
        options = msgspec.structs.replace(options, output=output)
        report = run_suite(suite, options)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return attrs.evolve(report, temporary=folder)


def stream(
    data: Samples | str | Path | Sequence[str | Path],
    graders: Graders | Sequence[Graders] | Mapping[str, Graders | Mapping[str, Any]],
    *,
    reader: str | None = None,
    columns: Columns = None,
    records: str | None = None,
    ids: str | None = None,
    no_merge: bool = False,
    dataset: str | Path | None = None,
    overrides: Iterable[str] = (),
    allow_code: bool = False,
    strict: bool = False,
    bad: Callable[[BadRecord], None] | None = None,
    registry: Registry | None = None,
) -> Iterator[tuple[Sample, Mapping[str, Grade]]]:
    """Grade samples one after the other and yield each with its grades, keeping nothing.

    Memory stays constant.

    Grading is serial, at most a block of samples ahead of the caller, and nothing is written. Files
    are closed when the caller leaves the loop.

    Args:
        data: Samples, or mappings in the form of the ``jsonl`` format; or the path of a result file
            or directory, or several of one format.
        graders: As for ``grade``.
        reader: Name of the files' format; default: recognised.
        columns: Field -> column or path; columns that are not named are recognised.
        records: Path to the list of records in one JSON document.
        ids: Field or path of the task id.
        no_merge: Take each logged model call separately.
        dataset: File with expectations, joined by id; its rows that no record answers come last, as
            missing.
        overrides: ``PATH=VALUE`` assignments for files, as ``--set`` takes them.
        allow_code: Import Python files that are named.
        strict: Raise at the first bad record or raising grader.
        bad: Called with every record no sample could be made of; default: a warning each.
        registry: Plugins to use; default: all installed ones.

    Returns:
        Each sample with its grades by grader key, in input order.

    Raises:
        ConfigError: A grader that is wrong.
        DataError: An input that cannot be read, or holds no sample.
        PluginError: A plugin in use is broken.

    Examples:
        >>> graded = gradestack.stream("results.json", ["tau_partial"])  # doctest: +SKIP
        >>> for sample, grades in graded:  # doctest: +SKIP
        ...     print(sample.id, grades["tau_partial"].score)
    """
    from gradestack.suites import python_inputs  # noqa: PLC0415 - for what stands in no file

    registry = registry or installed()
    options = RunOptions(
        overrides=tuple(overrides), allow_code=allow_code, strict=strict, registry=registry
    )
    keyed = python_inputs.graders_by_key(graders, registry)
    paths = python_inputs.paths_of(data)
    if paths is None:
        samples = cast("Samples", data)
        rows = python_inputs.as_samples(samples, registry)
        memory = python_inputs.MemoryReader(samples=rows)
        document = Document(data={"name": "samples", "graders": keyed}, origin="stream()")
        suite = resolve(document, options, samples=memory)
    else:
        suite = files_suite(
            paths,
            options,
            graders=keyed,
            columns=columns,
            records=records,
            guess=True,
            no_merge=no_merge,
            reader=reader,
            ids=ids,
            dataset=dataset,
        )
    plan = msgspec.structs.replace(suite.bare(), metrics=(), exporters=(), table=False)
    on_bad = bad or _warn
    return stream_grades(plan, on_bad, strict=strict)


def stream_suite(
    suite: Suite,
    graders: Mapping[str, Grader],
    *,
    bad: Callable[[BadRecord], None] | None = None,
) -> Iterator[tuple[Sample, Mapping[str, Grade]]]:
    """Yield the samples of a suite as ``stream`` does, graded by graders of the caller's.

    Args:
        suite: What ``load_suite`` returns.
        graders: Key of a grader of the suite -> what grades in its place; the others are left out.
        bad: Called with every record no sample could be made of; default: a warning each.
    """
    stages = tuple(
        msgspec.structs.replace(stage, component=graders[stage.key])
        for stage in suite.graders
        if stage.key in graders
    )
    plan = msgspec.structs.replace(
        suite.bare(),
        graders=stages,
        main=stages[0].key,
        metrics=(),
        exporters=(),
        table=False,
    )
    return stream_grades(plan, bad or _warn)


def _warn(record: BadRecord) -> None:
    text = f"{record.source}: {record.reason}"
    warnings.warn(terminal_line(text), stacklevel=3)


_GRADER = "grader"
_COLUMNS = ("task", "run", "model", "grade")

GradedRow = tuple[str | int, str | int | None, str | None, Grade | float] | Mapping[str, Any]
"""Task, run, model and grade (or score): a tuple, or a mapping with these keys."""


def figures(
    metrics: Mapping[str, str | Mapping[str, Any]],
    rows: Iterable[GradedRow],
    *,
    registry: Registry | None = None,
) -> dict[str, Mapping[str, JSON]]:
    """Return the figures of aggregators over grades at hand.

    Args:
        metrics: Aggregators by key: ``{"mean": {}}``,
            ``{"k": {"kind": "pass_hat_k", "trials": 4}}``; without a kind the key is one.
        rows: Task, run, model and ``Grade`` (or a score) of every sample: a tuple, or a mapping
            with these four as keys. A mapping may have ``facets``, and ``cluster`` where that is
            not the task. Run and model may be None. Of several rows of one task, model and named
            run the last counts.
        registry: Plugins to use; default: all installed ones.

    Returns:
        Key of the metric -> its figures.

    Raises:
        ConfigError: An unknown aggregator or option, or a row that is none.

    Examples:
        >>> from gradestack import figures
        >>> rows = [("a", 0, None, 1.0), ("b", 0, None, 0.0)]
        >>> figures({"mean": {}}, rows)["mean"]["mean"]
        0.5
    """
    document = Document(data={}, origin="figures()")
    resolver = Resolver(document, registry or discover(), None)
    chosen = []
    for key, written in metrics.items():
        entry = {"kind": written} if isinstance(written, str) else {"kind": key, **written}
        stage = resolver.stage("aggregator", key, entry, ("metrics", key))
        if stage is not None:
            chosen.append(Metric(of=_GRADER, stage=stage))
    if resolver.problems:
        resolver.finish()
    graded_rows = [_graded_row(row, ordinal) for ordinal, row in enumerate(rows)]
    table = _table_of(graded_rows, chosen)
    results: dict[str, Mapping[str, JSON]] = {}
    for metric in chosen:
        aggregator = metric.stage.component
        grades = select_grades(aggregator, table, _GRADER, metric.name)
        results[metric.stage.key] = compute_figures(aggregator, grades)
    return results


def _table_of(rows: Sequence[tuple[Key, Grade]], metrics: Sequence[Metric]) -> Table:
    """Return rows as a table; of several of one task, model and named run the last counts."""
    last = {(key.id, key.model, key.run): key.ordinal for key, _ in rows}
    keys, grades = [], []
    for key, grade in rows:
        is_last = last[key.id, key.model, key.run] == key.ordinal
        if key.run is None or is_last:
            keys.append(key)
            grades.append(grade)
    return Table.of(needs_of_figures([_GRADER], metrics), keys, {_GRADER: grades})


def _graded_row(row: GradedRow, ordinal: int) -> tuple[Key, Grade]:
    """Return the key and the grade of a row, which the caller wrote as a tuple or a mapping."""
    fields: Mapping[str, Any]
    fields = row if isinstance(row, Mapping) else dict(zip(_COLUMNS, row, strict=False))
    grade = fields.get("grade")
    cluster = fields.get("cluster")
    if isinstance(grade, int | float):
        grade = Grade(score=float(grade))
    has_task = fields.get("task") is not None
    if not has_task or not isinstance(grade, Grade):
        expected = "task, run, model and a grade or score"
        raise ConfigError(f"row {ordinal}: expected {expected}, got {row!r:.200}")
    task = str(fields["task"])
    facets = fields.get("facets") or {}
    cluster = None if cluster is None else str(cluster)
    run = fields.get("run")
    model = fields.get("model")
    key = Key(id=task, cluster=cluster, run=run, model=model, ordinal=ordinal, facets=facets)
    return key, grade
