"""The Python API: run a suite, grade files, grade samples. The command line uses nothing else."""

from __future__ import annotations

import copy
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Grader, Input, Inputs, Profile, Reader, Shard
from gradestack.errors import ConfigError
from gradestack.grading.progress import ProgressCallback
from gradestack.grading.stream import stream_grades
from gradestack.model import BadRecord, Grade, Sample
from gradestack.registry import Registry, discover
from gradestack.report import Report
from gradestack.runner import grade_suite, run_suite
from gradestack.suites.document import Document, read_yaml
from gradestack.suites.resolve import resolve, resolve_samples
from gradestack.suites.spec import Suite


def load_suite(
    suite: str | Path | Mapping[str, Any],
    *,
    overrides: Iterable[str] = (),
    cached: str | Path | None = None,
    allow_code: bool = False,
    engine: str | None = None,
    workers: int | None = None,
    registry: Registry | None = None,
) -> Suite:
    """Return a suite, checked and resolved, without running it.

    Args:
        suite: Path of a YAML file, or its content as a mapping (paths in it are then taken from the working directory).
        overrides: ``PATH=VALUE`` assignments, as ``--set`` takes them.
        cached: A recorded letta-evals (or gradestack) run directory to grade instead of the suite's target.
        allow_code: Let graders import Python code that the suite names.
        engine: Engine by name, whatever the suite says.
        workers: Number of its workers.
        registry: Plugins to use; default: all installed ones.

    Raises:
        ConfigError: Everything that is wrong, each with file, line and path.
        DataError: An input does not exist or is of no known format.
        PluginError: A plugin it uses is broken.
    """
    if isinstance(suite, Mapping):
        document, base = Document(data=copy.deepcopy(dict(suite)), origin="suite"), None
    else:
        path = Path(suite)
        document, base = read_yaml(path), path.parent
    said: list[str] = []
    if cached is not None:
        said = _unused_target(document.data.get("target"))
        document.data["target"] = {"paths": [str(Path(cached).absolute())], "reader": "letta"}
    registry = registry or discover()
    _name_engine(document, registry, engine)
    resolved = resolve(document, registry, base=base, overrides=overrides, allow_code=allow_code, workers=workers)
    origin = None if isinstance(suite, Mapping) else Path(suite)
    warnings = (*resolved.warnings, *said)
    return attrs.evolve(resolved, same_inputs=cached is not None, origin=origin, warnings=warnings)


def _name_engine(document: Document, registry: Registry, engine: str | None) -> None:
    """Put the engine asked for beside the suite in the suite's place; options of the same one stay."""
    written = document.data.get("engine")
    named = written.get("kind") if isinstance(written, Mapping) else written
    if engine is not None and engine != named:
        registry.find("engine", engine)
        document.data["engine"] = {"kind": engine}


def _unused_target(target: Any) -> list[str]:
    """Return what a re-graded suite's target asks for that a recording cannot give, one warning each."""
    models = ("model_configs", "model_handles")
    named = [key for key in models if isinstance(target, Mapping) and target.get(key)]
    return [f"target.{key} is not used with --cached: every model of the recording is graded" for key in named]


def run(
    suite: str | Path | Mapping[str, Any],
    *,
    output: str | Path | None = None,
    overrides: Iterable[str] = (),
    cached: str | Path | None = None,
    allow_code: bool = False,
    strict: bool = False,
    rows: bool = True,
    engine: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    registry: Registry | None = None,
    progress: ProgressCallback | None = None,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Run a suite and return its report.

    Args:
        suite: Path of a YAML file, or its content as a mapping.
        output: Run directory; default ``gradestack-runs/NAME/UTC-TIME``. An earlier run there is replaced whole.
        overrides: ``PATH=VALUE`` assignments.
        cached: A recorded run directory to grade instead of the suite's target.
        allow_code: Let graders import Python code that the suite names.
        strict: Stop at the first bad record or raising grader instead of recording it.
        rows: Keep results.jsonl; False keeps figures, native files and pages without samples.
        engine: Engine by name, whatever the suite says.
        workers: Number of its workers.
        resume: Continue the unfinished run of this place, if there is one.
        registry: Plugins to use; default: all installed ones.
        progress: Called, often, with a :class:`~gradestack.Progress`.
        say: Called with what people should know about an unfinished run that was found.

    Returns:
        The report; ``report.passed`` is the gates' verdict, ``report.rows()`` iterates over the samples.

    Raises:
        ConfigError: The suite or the output directory cannot be used.
        DataError: No record could be read.
        PluginError: A plugin it uses is broken.

    Example:
        >>> report = gradestack.run("suite.yaml", output="out")  # doctest: +SKIP
        >>> report.metrics["avg_score_attempted"]  # doctest: +SKIP
        0.596
    """
    resolved = load_suite(
        suite,
        overrides=overrides,
        cached=cached,
        allow_code=allow_code,
        engine=engine,
        workers=workers,
        registry=registry,
    )
    place = Path(output) if output is not None else None
    return run_suite(resolved, place, strict=strict, rows=rows, resume=resume, progress=progress, say=say)


def files_suite(
    paths: Sequence[str | Path],
    *,
    stack: str | None = None,
    reader: str | None = None,
    dataset: str | Path | None = None,
    profile: Profile | None = None,
    overrides: Iterable[str] = (),
    engine: str | None = None,
    workers: int | None = None,
    registry: Registry | None = None,
) -> Suite:
    """Return the suite that grades files with no YAML: sniffed format, that format's default stack.

    Raises:
        ConfigError: Options that cannot be honoured, or inputs of several formats.
        DataError: An input does not exist or is of no known format.
        PluginError: A plugin it uses is broken.
    """
    if isinstance(paths, str | Path):
        paths = [paths]
    if not paths:
        msg = "no file to grade: name result files or directories"
        raise ConfigError(msg)
    data: dict[str, Any] = {
        "name": Path(paths[0]).resolve().stem,
        "target": {"paths": [str(path) for path in paths]},
    }
    given = {"stack": stack, "reader": reader, "dataset": dataset and str(dataset), "profile": profile}
    data |= {key: value for key, value in given.items() if value is not None}
    document, registry = Document(data=data, origin="command line"), registry or discover()
    _name_engine(document, registry, engine)
    return resolve(document, registry, overrides=overrides, workers=workers)


def grade_files(
    paths: Sequence[str | Path],
    *,
    output: str | Path | None = None,
    stack: str | None = None,
    reader: str | None = None,
    dataset: str | Path | None = None,
    profile: Profile | None = None,
    overrides: Iterable[str] = (),
    strict: bool = False,
    rows: bool = True,
    engine: str | None = None,
    workers: int | None = None,
    resume: bool = False,
    registry: Registry | None = None,
    progress: ProgressCallback | None = None,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Grade result files with a metric stack and return the report; what ``gradestack grade`` does.

    Args:
        paths: Files or directories, all of one format.
        output: Run directory; default ``gradestack-runs/NAME/UTC-TIME``.
        stack: Named stack; default: the format's own.
        reader: Name of the format; default: sniffed.
        dataset: File with expectations, joined by id.
        profile: ``documented`` (default) or ``upstream``.
        overrides: ``PATH=VALUE`` assignments.
        strict: Stop at the first bad record or raising grader.
        rows: Keep results.jsonl; False keeps figures, native files and pages without samples.
        engine: Engine by name, whatever the suite says.
        workers: Number of its workers.
        resume: Continue the unfinished run of this place, if there is one.
        registry: Plugins to use; default: all installed ones.
        progress: Called, often, with a :class:`~gradestack.Progress`.
        say: Called with what people should know about an unfinished run that was found.

    Raises:
        ConfigError: Options or output that cannot be honoured.
        DataError: No record could be read.
        PluginError: A plugin it uses is broken.
    """
    suite = files_suite(
        paths,
        stack=stack,
        reader=reader,
        dataset=dataset,
        profile=profile,
        overrides=overrides,
        engine=engine,
        workers=workers,
        registry=registry,
    )
    place = Path(output) if output is not None else None
    return run_suite(suite, place, strict=strict, rows=rows, resume=resume, progress=progress, say=say)


@attrs.frozen(kw_only=True)
class _Memory(Reader):
    """Samples that are already objects, as one shard."""

    samples: Iterable[Sample | BadRecord] = attrs.field(repr=False)

    def plan(self, inputs: Inputs, index: Any) -> Iterable[Shard]:
        return [Shard(ordinal=0, input=Input(path=Path("memory"), name="memory", shown="memory"))]

    def read(self, shard: Shard, index: Any) -> Iterator[Sample | BadRecord]:
        return iter(self.samples)


def grade(
    samples: Iterable[Sample | Mapping[str, Any]],
    graders: Sequence[str | Grader] | Mapping[str, str | Grader | Mapping[str, Any]],
    *,
    name: str = "samples",
    profile: Profile = "documented",
    metrics: Mapping[str, Any] | None = None,
    gate: Mapping[str, Any] | None = None,
    reports: Sequence[str] = (),
    output: str | Path | None = None,
    strict: bool = False,
    registry: Registry | None = None,
) -> Report:
    """Grade samples held in memory (or made one by one) and return the report.

    Args:
        samples: :class:`~gradestack.Sample` objects, or mappings in the form of the ``jsonl`` format
            (``{"id": ..., "expected": ..., "predicted": ...}``).
        graders: Grader names or objects; in a list, the key of each is its name. The first is the headline.
        name: Name of the run.
        profile: Inherited by graders and aggregators given by name.
        metrics: Further aggregators, as in a suite.
        gate: Gate, as in a suite.
        reports: Reporters to run, such as ``("html",)``; without ``output`` their pages go into a temporary directory,
            removed by ``report.close()`` or on leaving ``with report:``.
        output: Run directory; default: nothing is written, figures and rows are held by the report.
        strict: Stop at the first bad record or raising grader.
        registry: Plugins to use; default: all installed ones.

    Raises:
        ConfigError: A grader, metric or gate that cannot be honoured.
        DataError: There was no sample.
        PluginError: A plugin in use is broken.

    Example:
        >>> report = gradestack.grade(samples, graders=["tau_partial"])  # doctest: +SKIP
        >>> report.metrics["avg_score_attempted"]  # doctest: +SKIP
        0.75
    """
    registry = registry or discover()
    if not isinstance(graders, Mapping):
        graders = _by_name([graders] if isinstance(graders, str | Grader) else graders)
    data: dict[str, Any] = {"name": name, "profile": profile, "metrics": dict(metrics or {}), "reports": list(reports)}
    if gate is not None:
        data["gate"] = dict(gate)
    reader = _Memory(samples=_as_samples(samples, registry))
    suite = resolve_samples(Document(data=data, origin="grade()"), registry, reader, graders)
    if output is not None:
        return run_suite(suite, Path(output), strict=strict)
    if not reports:
        return grade_suite(suite, strict=strict)
    folder = Path(tempfile.mkdtemp(prefix="gradestack-"))
    try:
        return attrs.evolve(run_suite(suite, folder / "run", strict=strict), temporary=folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _by_name(graders: Iterable[str | Grader]) -> dict[str, str | Grader]:
    found: dict[str, str | Grader] = {}
    for each in graders:
        name = each if isinstance(each, str) else type(each).__name__
        if name in found:
            msg = f"two graders are called {name!r}; give a mapping of keys to graders"
            raise ConfigError(msg)
        found[name] = each
    return found


def _as_samples(samples: Iterable[Sample | Mapping[str, Any]], registry: Registry) -> Iterator[Sample | BadRecord]:
    parse = None
    for ordinal, each in enumerate(samples):
        if isinstance(each, Sample):
            yield each
            continue
        parse = parse or registry.load("reader", "jsonl")().record
        yield parse(each, file="memory", ordinal=ordinal)


def stream(
    data: Iterable[Sample | Mapping[str, Any]] | str | Path | Sequence[str | Path],
    graders: Sequence[str | Grader] | Mapping[str, str | Grader | Mapping[str, Any]],
    *,
    profile: Profile = "documented",
    reader: str | None = None,
    strict: bool = False,
    bad: Callable[[BadRecord], None] | None = None,
    registry: Registry | None = None,
) -> Iterator[tuple[Sample, Mapping[str, Grade]]]:
    """Grade samples one after the other and yield each with its grades, keeping nothing: memory stays constant.

    Grading is serial, at most a block of samples ahead of the caller, and nothing is written. Files are closed when
    the caller leaves the loop.

    Args:
        data: Samples, or mappings in the form of the ``jsonl`` format; or the path of a result file or directory, or
            several of one format.
        graders: Grader names or objects; in a list, the key of each is its name.
        profile: Inherited by reader and graders given by name.
        reader: Name of the files' format; default: sniffed.
        strict: Raise at the first bad record or raising grader.
        bad: Called with every record no sample could be made of; default: a warning each.
        registry: Plugins to use; default: all installed ones.

    Yields:
        Each sample with its grades by grader key, in input order.

    Raises:
        ConfigError: A grader that cannot be honoured.
        DataError: An input that cannot be read, or holds no sample.
        PluginError: A plugin in use is broken.

    Example:
        >>> for sample, grades in gradestack.stream("results.json", graders=["tau_partial"]):  # doctest: +SKIP
        ...     print(sample.id, grades["tau_partial"].score)
    """
    registry = registry or discover()
    if not isinstance(graders, Mapping):
        graders = _by_name([graders] if isinstance(graders, str | Grader) else graders)
    document = Document(data={"name": "stream", "profile": profile}, origin="stream()")
    suite = resolve_samples(document, registry, _Memory(samples=_as_samples(data, registry)), graders)
    yield from stream_grades(attrs.evolve(suite.bare(), metrics=()), bad or _warn, strict=strict)


def _warn(record: BadRecord) -> None:
    warnings.warn(f"{record.source}: {record.reason}", stacklevel=4)
