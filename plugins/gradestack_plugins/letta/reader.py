"""Reader ``letta``: recorded letta-evals results, and gradestack's own.

Their files, metrics, gate and stack.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    ABSENT,
    BadRecord,
    ConfigError,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    is_run,
    load_report,
    read_records,
)
from gradestack.jsonio import (
    JsonProblem,
    Layout,
    as_list,
    as_map,
    loads,
    open_regular,
    read_regular,
)
from gradestack_plugins.letta.records import (
    KEPT,
    Context,
    identity,
    is_own,
    model_of,
    run_of,
    sample_of,
)

RESULTS, SUITE = "results.jsonl", "suite.json"
_RUN = re.compile(r"run_(\d{1,18})")


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of result lines."""

    path: Path
    relative: str = ""
    """Path below the directory given; "" when the file itself was given."""
    run: int | None = None
    """From ``run_N`` in the folder's or file's name."""
    model: str | None = None
    """From the file's or folder's name, where the layout names files by model."""


def run_number(path: Path) -> int | None:
    """Return N of a file ``run_N.jsonl`` or of one in a folder ``run_N``, else None."""
    for name in (path.stem, path.absolute().parent.name):
        if found := _RUN.fullmatch(name):
            return int(found[1])
    return None


def result_files(path: Path) -> list[ResultFile]:
    """Return the files of result lines of an output directory (or the file itself), runs in numeric
    order.
    """
    if not path.is_dir():
        parent = path.absolute().parent
        by_model = _RUN.fullmatch(path.stem) is not None and (parent.parent / SUITE).is_file()
        beside = path.name != RESULTS and (parent / SUITE).is_file()
        model = parent.name if by_model else path.stem if beside else None
        return [
            ResultFile(path=path, run=run_number(path), model=None if model == "default" else model)
        ]
    if (path / SUITE).is_file():
        return _by_model(path)
    there = (path / RESULTS).is_file()
    several = path.glob(f"run_*/{RESULTS}") if not (there and is_run(path)) else ()
    found = [
        ResultFile(path=each, relative=f"{each.parent.name}/{RESULTS}", run=run_number(each))
        for each in several
        if _RUN.fullmatch(each.parent.name)
    ]
    single = ResultFile(path=path / RESULTS, relative=RESULTS, run=run_number(path / RESULTS))
    return sorted(found, key=_by_run) or ([single] if there else [])


def check_rows(path: Path) -> None:
    """Refuse a run of ours that lost rows, or got some, or whose rows hold no conversation."""
    run = path if path.is_dir() else path.parent
    try:
        report = load_report(run) if is_run(run) else None
    except DataError:  # whatever is missing or damaged beside the rows is not needed
        report = None
    if report is None or not report.has_rows:
        return
    if report.header.get("rows") == "slim":
        raise DataError(
            f"{path}: its rows hold no conversation (rows: slim, of an earlier gradestack)",
            "grade the input of that run instead",
        )
    if path.is_dir():
        deque(report.lines(), maxlen=0)  # which counts them


def _by_run(file: ResultFile) -> tuple[int, str]:
    return (file.run or 0, file.relative)


def _by_model(path: Path) -> list[ResultFile]:
    named = [
        ResultFile(path=each, relative=each.name, model=each.stem)
        for each in sorted(path.glob("*.jsonl"))
    ]
    for folder in sorted(each for each in path.iterdir() if each.is_dir()):
        runs = [
            ResultFile(
                path=each,
                relative=f"{folder.name}/{each.name}",
                run=run_number(each),
                model=folder.name,
            )
            for each in folder.glob("run_*.jsonl")
            if _RUN.fullmatch(each.stem)
        ]
        named += sorted(runs, key=_by_run)
    return [
        msgspec.structs.replace(each, model=None) if each.model == "default" else each
        for each in named
    ]


def suite_samples(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the samples of a ``suite.json`` by id, for results that only name theirs.

    {} where there is none.
    """
    folder = path if path.is_dir() else path.absolute().parent
    places = [folder] if path.is_dir() else [folder, folder.parent]
    file = next((place / SUITE for place in places if (place / SUITE).is_file()), None)
    if file is None:
        return {}
    try:
        content = loads(read_regular(file))
    except (OSError, JsonProblem) as error:
        if not path.is_dir():  # it need not belong to the file at all
            return {}
        raise DataError(f"{file}: cannot be read: {error}") from error
    samples = as_map(content).get("samples")
    if isinstance(samples, Mapping):
        return {str(key): each for key, each in samples.items() if isinstance(each, Mapping)}
    entries = (each for each in as_list(samples) if isinstance(each, Mapping))
    return {str(each.get("id", each.get("sample_id"))): each for each in entries}


def unwrapped(record: Any) -> Any:
    """Return the result of a line.

    ``result`` of ``{"type": "result", "result": ...}``, else the line itself.
    """
    if isinstance(record, Mapping) and isinstance(record.get("type"), str):
        return record.get("result") if record["type"] == "result" else ABSENT
    return record


_FIRST = 1000
"""Results of each input that are looked at where no summary names the metrics."""
REWARD = "reward"
_OPERATORS = ("gt", "gte", "lt", "lte", "eq")


def _content(file: Path) -> Mapping[str, Any]:
    """Return a JSON object's content.

    {} where the file holds none: results can be read without it.
    """
    try:
        return as_map(loads(read_regular(file)))
    except (OSError, JsonProblem):
        return {}


def _map(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    for key in path:
        content = as_map(content.get(key))
    return content


def _folders(files: Iterable[ResultFile]) -> dict[Path, None]:
    return {file.path.parent: None for file in files if file.path.name == RESULTS}


def metrics_of(inputs: Inputs) -> list[str]:
    """Return the metrics of recordings, the recorded suite's first one first."""
    return list(dict.fromkeys(chain.from_iterable(map(_metrics_of, inputs.data))))


def _metrics_of(given: Input) -> Iterable[str]:
    files = result_files(given.path)
    found: dict[str, None] = {}
    for folder in _folders(files):
        names = _map(_content(folder / "summary.json"), "metrics", "by_metric")
        found |= dict.fromkeys([*(name for name in _order(folder) if name in names), *names])
    return found or _names(_results(given, files))


def _order(folder: Path) -> list[str]:
    header = _content(folder / "header.json")
    own = [each for each in as_list(header.get("components")) if isinstance(each, Mapping)]
    if own:  # gradestack's, whose objects are sorted by key
        return [str(each.get("key")) for each in own if each.get("kind") == "grader"]
    return list(
        _map(_content(folder / "summary.json"), "config", "graders")
        or _map(header, "config", "graders")
    )


def _results(given: Input, files: Iterable[ResultFile]) -> Iterator[Mapping[str, Any]]:
    records = chain.from_iterable(
        read_records(given.below(file.relative), layout="lines") for file in files
    )
    found = (unwrapped(each.value) for each in islice(records, _FIRST))
    return (result for result in found if isinstance(result, Mapping))


def _names(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys under ``grades``; a reward composed of them stands before them."""
    found: dict[str, None] = {}
    rewarded = False
    for result in results:
        found |= dict.fromkeys(_graded(result))
        rewarded = rewarded or result.get(REWARD) is not None
    return [*([REWARD] if rewarded else []), *(name for name in found if name != REWARD)]


def _graded(recorded: Mapping[str, Any]) -> list[str]:
    return [name for name, grade in _map(recorded, "grades").items() if grade is not None]


def names_graders(inputs: Inputs) -> bool:
    """Return whether any of the first results has grades under the names of graders."""
    results = chain.from_iterable(
        _results(given, result_files(given.path)) for given in inputs.data
    )
    return any(map(_graded, results))


def recorded_scores(samples: Iterable[Sample]) -> list[str]:
    """Return the metrics of samples of any format.

    What stands under ``grades``, else every score by its name.
    """
    graded: dict[str, None] = {}
    scores: dict[str, None] = {}
    for sample in samples:
        graded |= dict.fromkeys(_graded(sample.recorded))
        for name, value in sample.recorded.items():
            scored = isinstance(value, bool | int | float) or "score" in as_map(value)
            scores |= {name: None} if scored and name not in _NO_SCORES else {}
    return list(graded or scores)


_NO_SCORES = frozenset({"grade", "grades", *KEPT})


def gates_of(inputs: Inputs, metrics: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the gates the recordings went by, as a suite's entries, and what is wrong
    with them.
    """
    folders = [folder for given in inputs.data for folder in _folders(result_files(given.path))]
    found = [gates for folder in folders if (gates := _gates(folder))]
    if any(gates != found[0] for gates in found):
        return {}, ["the recordings went by different gates; none of them is applied"]
    known = frozenset(metrics)
    entries = found[0] if found else {}
    listed = chain.from_iterable(
        each if name == "gates" else [each] for name, each in entries.items()
    )
    if all(_usable(gate, known) for gate in listed):
        return entries, []
    return {}, [
        (
            "the recorded gate is not understood, or about a metric the recording lacks; it is not "
            "applied"
        )
    ]


def _gates(folder: Path) -> dict[str, Any]:
    configured = (
        _map(_content(folder / name), "config") for name in ("summary.json", "header.json")
    )
    for config in configured:
        gates = {
            name: config[name]
            for name, kind in (("gate", Mapping), ("gates", list))
            if isinstance(config.get(name), kind)
        }
        if gates:
            text = json.dumps(gates)
            return dict(
                json.loads(
                    text, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if v is not None}
                )
            )
    return {}


def _usable(gate: Any, metrics: frozenset[str]) -> bool:
    if not isinstance(gate, Mapping):
        return False
    conditions = gate.get("conditions")
    if isinstance(conditions, list):
        return bool(conditions) and all(_usable(each, metrics) for each in conditions)
    value, weights, key = gate.get("value"), gate.get("weights"), gate.get("metric_key")
    about = metrics.issuperset(weights) if isinstance(weights, Mapping) else key in (None, *metrics)
    return (
        about
        and gate.get("op") in _OPERATORS
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    )


def stack(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack.

    A grader for each recorded metric, by its name, and the gate the recording went by.
    """
    try:
        metrics = metrics_of(inputs) if inputs is not None else []
    except DataError:  # the reader will say so
        metrics = []
    named = {} if inputs is None else _suite_name(inputs)
    if inputs is None or not metrics:
        return {
            **named,
            "graders": {"recorded": {"kind": "recorded"}},
            "outcome": "recorded",
            "headline": {"letta": True},
        }
    gates, warnings = gates_of(inputs, metrics)
    graders = {
        name: {"kind": "recorded", **({"metric": name} if len(metrics) > 1 else {})}
        for name in metrics
    }
    headline = {"letta": True}
    return {**named, "graders": graders, **gates, "headline": headline, "warnings": warnings}


_LONGEST_NAME = 200


def _suite_name(inputs: Inputs) -> dict[str, Any]:
    """Return the name of the recorded suite, as a suite's entry; nothing where it is not one."""
    folders = [folder for given in inputs.data for folder in _folders(result_files(given.path))]
    contents = [_content(folder / "header.json") for folder in folders]
    contents += [_content(folder / "summary.json") for folder in folders]
    contents += [_content(given.path / SUITE) for given in inputs.data]
    names = {
        name
        for content in contents
        for name in (content.get("suite_name"), content.get("suite"))
        if isinstance(name, str) and name.strip() and len(name) <= _LONGEST_NAME
    }
    return {"name": names.pop()} if len(names) == 1 else {}


_SEVERAL = 2


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """What the results of one recording say of their models."""

    named: tuple[str, ...] = ()
    """At most two: more are told apart no further."""
    unnamed: int = 0
    """Results that name none."""
    first: str = ""
    """Where the first of these stands."""


def _model(record: Any) -> str | None:
    """Return the model a line names, "" for none.

    None for a line that is no result, or one of gradestack's own.
    """
    result = unwrapped(record)
    if identity(result) is None or is_own(result):
        return None
    return model_of(result, Context()) or ""


def only_model(given: Input) -> str | None:
    """Return the model of a recording's results that name none: the only one the others name.

    None where none does.
    """
    found = models_of(given)
    if not found.unnamed or not found.named:
        return None
    if len(found.named) > 1:
        names = " and ".join(map(repr, found.named))
        raise ConfigError(
            f"{found.first}: the result names no model, and others name several, such as {names}",
            "say whose such results are with --set reader.model=NAME, or name it in the file",
        )
    return found.named[0]


def models_of(given: Input) -> Models:
    """Return what a recording says of its models.

    None of a layout whose files are named by model.
    """
    if given.path.is_dir() and (given.path / SUITE).is_file():
        return Models()
    files = tuple(file for file in result_files(given.path) if file.model is None)
    return _models_in(given, files, tuple(map(_stamp, files)))


def _stamp(file: ResultFile) -> tuple[int, ...]:
    try:
        stat = file.path.stat()
    except OSError:  # reading it says so
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=256)
def _models_in(
    given: Input,
    files: tuple[ResultFile, ...],
    stamps: tuple[tuple[int, ...], ...],  # noqa: ARG001
) -> Models:
    """Return what files say.

    Asked for before grading and again by the reader, they are read once.
    """
    named: dict[str, None] = {}
    unnamed, first = 0, ""
    for file in files:
        place = given.below(file.relative)
        for each in read_records(place, layout="lines"):
            model = None if each.problem is not None else _model(each.value)
            if model == "":
                unnamed, first = unnamed + 1, first or f"{place.shown}:{each.line}"
            elif model is not None and len(named) < _SEVERAL:
                named[model] = None
    return Models(named=tuple(named), unnamed=unnamed, first=first)


_HEAD = 64 * 1024
_BEHIND_OTHERS = 0.3
_PERHAPS = 0.05
_SIGNS = frozenset({"trajectory", "grades", "submissions", "reward", "submission", "error"})
_OWN_START = b'{"grade":{'
"""How gradestack's own rows begin: with what graders say."""
_NAMED = (b'"sample"', b'"sample_id"')


def directory_certainty(path: Path, recognised: Callable[[Path, bytes], float | None]) -> float:
    """Return how sure it is that a directory is one of letta-evals' (or gradestack's) outputs."""
    files = result_files(path)
    best, undecided, named = 0.0, True, False
    for file in files:
        try:
            with open_regular(file.path) as opened:
                head = opened.read(_HEAD)
        except OSError:  # reading it will say so
            continue
        found = recognised(file.path, head)
        undecided = undecided and found is None
        named = named or any(name in head for name in _NAMED)
        best = max(best, found or 0.0)
        if best > _BEHIND_OTHERS:
            return best
    if files and isinstance(_content(path / SUITE).get("samples"), list | Mapping):
        return 0.9
    if files and undecided and ((path / "header.json").is_file() or (path / SUITE).is_file()):
        return 0.5
    return best or (_PERHAPS if undecided and named else 0.0)


def looks_like(record: Any) -> float | None:
    """Return how much a line looks like a result.

    None for one of another type, and for what holds nothing.
    """
    result = unwrapped(record)
    if not result or not isinstance(result, Mapping):
        return None
    sample, error = result.get("sample"), result.get("error")
    if isinstance(sample, Mapping) and ("id" in sample or "sample_id" in result):
        return 0.95 if {"trajectory", "grade", "grades", "submission"} & set(result) else 0.0
    if "sample_id" not in result:
        return 0.0
    if len(_SIGNS & set(result)) > 1:
        return 0.9
    # Null fields are dropped: of a run that failed, little but the error may be left.
    return (
        0.8 if isinstance(error, Mapping) and {"category", "exception_type"} & set(error) else 0.0
    )


def complaint(record: dict[str, Any]) -> str | None:
    """Return what is missing from a result that names its sample."""
    result = unwrapped(record)
    sample = result.get("sample") if isinstance(result, Mapping) else None
    named = isinstance(sample, Mapping) and "id" in sample
    return (
        "none of trajectory, grade, grades and submission is there"
        if named and not looks_like(record)
        else None
    )


def begins_like(text: bytes) -> float | None:
    """Return how much a line that breaks off looks like a result; 0.0 where it is no object."""
    if not text.startswith(b"{"):
        return 0.0
    named = any(name in text for name in _NAMED)
    signs = named and (b'"trajectory"' in text or b'"submission"' in text)
    own = text.startswith(_OWN_START) and b'"rationale":' in text
    return 0.7 if signs or own else None


class LettaIndex(msgspec.Struct, frozen=True, kw_only=True):
    """What is known before the results are read."""

    samples: dict[str, dict[str, Mapping[str, Any]]] = msgspec.field(default_factory=dict)
    """Input name -> samples by id, for results that only name theirs."""
    models: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Input name -> model of its results that name none."""
    apart: bool = False
    """Whether two inputs hold results of the same sample, model and run."""


@attrs.frozen(kw_only=True)
class Letta(RecordReader):
    """Reads letta-evals output directories (or their ``results.jsonl``), one sample per result
    line.

    Directories: ``results.jsonl``; ``run_N/results.jsonl`` (runs in numeric order); and, of later
    versions, ``suite.json`` with ``MODEL.jsonl`` or ``MODEL/run_N.jsonl``. Header and summary are
    not needed. A line is a bare result or ``{"type": "result", "result": ...}``; lines of other
    types are passed over.

    ``id`` is the sample's id as text, ``model`` the recorded model name (None when none is named),
    ``run`` the number of the run's folder, else 1. Results that name no model beside others that do
    are those of the only one named; where several are, ``model`` must say whose they are. When
    several inputs are given and repeat each other's runs, the input's name is put before it.
    ``turns`` are the trajectory's: letta messages by their ``message_type``, or chat messages;
    calls are paired with their returns. ``ground_truth`` becomes ``expected.text``, and
    ``expected.label`` where it is one text.

    A result is a failed run when it has an ``error`` record, a null ``agent_id`` or an empty
    trajectory. A judge's or extractor's error does not fail the run, whose conversation is whole,
    and neither does an empty trajectory beside a submission. Recorded grades, submissions, costs
    and times are kept in ``recorded``, also of failed runs.

    gradestack's own run directories are read without loss of what rows hold: predictions,
    references, runs, facets, states. Tools come back by name only. A row that was changed into
    another form is a bad record.

    Attributes:
        model: Model of results that name none.
    """

    version: ClassVar[str] = "3"
    provides: ClassVar[frozenset[str]] = frozenset(
        {
            "model",
            "run",
            "input",
            "turns",
            "calls",
            "label",
            "text",
            "plan",
            "tools",
            "expected",
            "recorded",
            "status",
        }
        | {"error", "agent_id", "agent_usage", "facets", "remarks", "source"}
    )
    stack: ClassVar[str | None] = "letta"
    layout: ClassVar[Layout] = "lines"
    sniffed: ClassVar[int] = 100
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "last"

    model: str | None = None

    looks_like = staticmethod(looks_like)
    begins_like = staticmethod(begins_like)
    complaint = staticmethod(complaint)

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        return (
            directory_certainty(path, cls.recognised)
            if path.is_dir()
            else super().sniff(path, head)
        )

    @override
    def index(self, inputs: Inputs) -> LettaIndex:
        samples = {each.name: suite_samples(each.path) for each in inputs.data}
        models = {each.name: self.model or only_model(each) for each in inputs.data}
        apart = len(inputs.data) > 1 and self._repeats(inputs, models)
        return LettaIndex(samples=samples, models=models, apart=apart)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield a warning for each input with results that name no model.

        They are taken as those of the only one that is named.
        """
        for given in inputs.data:
            check_rows(given.path)
        for given in inputs.data if self.model is None else ():
            if (model := only_model(given)) is not None:
                whose = (
                    f"{models_of(given).unnamed} result(s) name no model, the first at "
                    f"{models_of(given).first}"
                )
                yield (
                    f"{given.shown}: {whose}; they are taken as those of {model!r}, the only "
                    "one named"
                )

    def _repeats(self, inputs: Inputs, models: Mapping[str, str | None]) -> bool:
        seen: set[int] = set()
        for given in inputs.data:
            own: set[int] = set()
            for file in _files(given):
                context = Context(run=file.run, model=file.model, unnamed=models[given.name])
                for found in read_records(given.below(file.relative), layout=self.layout):
                    result = unwrapped(found.value)
                    if identity(result) is not None:
                        own.add(
                            hash(
                                (
                                    str(identity(result)),
                                    model_of(result, context),
                                    run_of(result, context),
                                )
                            )
                        )
            if seen & own:
                return True
            seen |= own
        return False

    def files(self, inputs: Inputs, index: LettaIndex) -> Iterator[RecordFile]:
        """Yield every file of results, runs in numeric order."""
        for given in inputs.data:
            for file in _files(given):
                extra = {"relative": file.relative, "run": file.run, "model": file.model}
                yield RecordFile(input=given, file=given.below(file.relative), extra=extra)

    @override
    def read(self, shard: Shard, index: LettaIndex) -> Iterator[Sample | BadRecord]:
        given, extra = shard.input, shard.extra
        context = Context(
            run=extra["run"],
            apart=given.name if index.apart else None,
            model=extra["model"],
            unnamed=index.models.get(given.name),
            samples=index.samples.get(given.name, {}),
        )

        def samples_of(record: Any, source: Source) -> Iterator[Sample | BadRecord]:
            result = unwrapped(record)
            if result is not ABSENT:
                yield sample_of(result, source, context)

        return self.samples(shard, samples_of, given.below(extra["relative"]))


def _files(given: Input) -> list[ResultFile]:
    found = result_files(given.path)
    if not found:
        raise DataError(f"{given.path}: holds neither results.jsonl nor run_N/results.jsonl")
    return found
