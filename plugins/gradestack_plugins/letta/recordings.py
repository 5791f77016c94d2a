"""Recordings as a whole: their files, the metrics they hold, in order, the gate they went by, and their stack."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from gradestack import ABSENT, DataError, Input, Inputs, Sample, is_run, load_report, read_records
from gradestack.jsonio import JsonProblem, loads, read_regular
from gradestack_plugins.letta.records import KEPT

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
    """Return the files of result lines of an output directory (or the file itself), runs in numeric order.

    A directory with ``suite.json`` has ``MODEL.jsonl`` and ``MODEL/run_N.jsonl``. One of gradestack's own has all runs
    in ``results.jsonl``; any other has ``run_N/results.jsonl`` or ``results.jsonl``.
    """
    if not path.is_dir():
        parent = path.absolute().parent
        by_model = _RUN.fullmatch(path.stem) is not None and (parent.parent / SUITE).is_file()
        beside = path.name != RESULTS and (parent / SUITE).is_file()
        model = parent.name if by_model else path.stem if beside else None
        return [ResultFile(path=path, run=run_number(path), model=None if model == "default" else model)]
    if (path / SUITE).is_file():
        return _by_model(path)
    single = [ResultFile(path=path / RESULTS, relative=RESULTS, run=run_number(path / RESULTS))]
    if (path / RESULTS).is_file() and is_run(path):
        return single
    several = [each for each in path.glob(f"run_*/{RESULTS}") if _RUN.fullmatch(each.parent.name)]
    if several:
        found = [
            ResultFile(path=each, relative=f"{each.parent.name}/{RESULTS}", run=run_number(each)) for each in several
        ]
        return sorted(found, key=_by_run)
    return single if (path / RESULTS).is_file() else []


def check_rows(path: Path) -> None:
    """Refuse a run directory of gradestack's own that has lost rows since, or got some.

    Without its summary, and as a file alone, results are taken as they are.
    """
    if not (path.is_dir() and is_run(path)):
        return
    try:
        report = load_report(path)
    except DataError:  # whatever is missing or damaged beside the rows is not needed
        return
    if report.has_rows:
        deque(report.lines(), maxlen=0)  # which counts them


def place_of(given: Input, relative: str) -> Input:
    """Return a file of an input, by its path below the directory given."""
    if not relative:
        return given
    return Input(path=given.path / relative, name=given.name, shown=f"{given.shown}/{relative}")


def _by_run(file: ResultFile) -> tuple[int, str]:
    return (file.run or 0, file.relative)


def _by_model(path: Path) -> list[ResultFile]:
    named = [ResultFile(path=each, relative=each.name, model=each.stem) for each in sorted(path.glob("*.jsonl"))]
    for folder in sorted(each for each in path.iterdir() if each.is_dir()):
        files = [each for each in folder.glob("run_*.jsonl") if _RUN.fullmatch(each.stem)]
        runs = [
            ResultFile(path=each, relative=f"{folder.name}/{each.name}", run=run_number(each), model=folder.name)
            for each in files
        ]
        named += sorted(runs, key=_by_run)
    return [msgspec.structs.replace(each, model=None) if each.model == "default" else each for each in named]


def suite_samples(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the samples of a ``suite.json`` by id, for results that only name theirs; {} where there is none."""
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
    samples = content.get("samples") if isinstance(content, Mapping) else None
    if isinstance(samples, Mapping):
        return {str(key): each for key, each in samples.items() if isinstance(each, Mapping)}
    entries = samples if isinstance(samples, list) else []
    return {str(each.get("id", each.get("sample_id"))): each for each in entries if isinstance(each, Mapping)}


def unwrapped(record: Any) -> Any:
    """Return the result of a line: ``result`` of ``{"type": "result", "result": ...}``, else the line itself.

    ABSENT for a line of another type, such as a header or a summary.
    """
    if isinstance(record, Mapping) and isinstance(record.get("type"), str):
        return record.get("result") if record["type"] == "result" else ABSENT
    return record


_FIRST = 1000
"""Results of each input that are looked at where no summary names the metrics."""
REWARD = "reward"
_OPERATORS = ("gt", "gte", "lt", "lte", "eq")


def _content(file: Path) -> Mapping[str, Any]:
    """Return a JSON object's content; {} where the file holds none: results can be read without it."""
    try:
        found = loads(read_regular(file))
    except (OSError, JsonProblem):
        return {}
    return found if isinstance(found, Mapping) else {}


def _map(content: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at a path of keys, {} where there is none."""
    for key in path:
        below = content.get(key)
        content = below if isinstance(below, Mapping) else {}
    return content


def _folders(files: Iterable[ResultFile]) -> dict[Path, None]:
    """Return the folders whose summary and header belong to result files."""
    return {file.path.parent: None for file in files if file.path.name == RESULTS}


def metrics_of(inputs: Inputs) -> list[str]:
    """Return the metrics of recordings, the recorded suite's first one first.

    Of each input those that summary.json lists under ``by_metric``, else those of its first 1,000 results.
    """
    return list(dict.fromkeys(chain.from_iterable(map(_metrics_of, inputs.data))))


def _metrics_of(given: Input) -> Iterable[str]:
    files = result_files(given.path)
    found: dict[str, None] = {}
    for folder in _folders(files):
        names = _map(_content(folder / "summary.json"), "metrics", "by_metric")
        found |= dict.fromkeys([*(name for name in _order(folder) if name in names), *names])
    return found or _names(_results(given, files))


def _order(folder: Path) -> list[str]:
    """Return the keys of the recorded suite's graders in its order, as far as a header or a summary has it."""
    header = _content(folder / "header.json")
    listed = header.get("components")
    own = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    if own:  # gradestack's, whose objects are sorted by key
        return [str(each.get("key")) for each in own if each.get("kind") == "grader"]
    return list(_map(_content(folder / "summary.json"), "config", "graders") or _map(header, "config", "graders"))


def _results(given: Input, files: Iterable[ResultFile]) -> Iterator[Mapping[str, Any]]:
    records = chain.from_iterable(read_records(place_of(given, file.relative), layout="lines") for file in files)
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
    results = chain.from_iterable(_results(given, result_files(given.path)) for given in inputs.data)
    return any(map(_graded, results))


def recorded_scores(samples: Iterable[Sample]) -> list[str]:
    """Return the metrics of samples of any format: what stands under ``grades``, else every score by its name."""
    graded: dict[str, None] = {}
    scores: dict[str, None] = {}
    for sample in samples:
        graded |= dict.fromkeys(_graded(sample.recorded))
        scores |= {name: None for name, value in sample.recorded.items() if name not in _NO_SCORES and _scored(value)}
    return list(graded or scores)


_NO_SCORES = frozenset({"grade", "grades", *KEPT})


def _scored(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (isinstance(value, Mapping) and "score" in value)


def gates_of(inputs: Inputs, metrics: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the gates the recordings went by, as a suite's entries, and what is wrong with them."""
    folders = [folder for given in inputs.data for folder in _folders(result_files(given.path))]
    found = [gates for folder in folders if (gates := _gates(folder))]
    if any(gates != found[0] for gates in found):
        return {}, ["the recordings went by different gates; none of them is applied"]
    known = frozenset(metrics)
    entries = found[0] if found else {}
    listed = chain.from_iterable(each if name == "gates" else [each] for name, each in entries.items())
    if all(_usable(gate, known) for gate in listed):
        return entries, []
    return {}, ["the recorded gate is not understood, or about a metric the recording lacks; it is not applied"]


def _gates(folder: Path) -> dict[str, Any]:
    """Return the gates of a recorded suite's configuration; null entries say nothing."""
    configured = (_map(_content(folder / name), "config") for name in ("summary.json", "header.json"))
    for config in configured:
        gates = {
            name: config[name]
            for name, kind in (("gate", Mapping), ("gates", list))
            if isinstance(config.get(name), kind)
        }
        if gates:
            return {name: _without_null(gate) for name, gate in gates.items()}
    return {}


def _without_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        entries = {}
        for key, each in value.items():  # a comprehension is a call more before Python 3.12: half the levels
            if each is not None:
                entries[key] = _without_null(each)
        return entries
    if not isinstance(value, list):
        return value
    items = []
    for each in value:
        items.append(_without_null(each))  # noqa: PERF401 - likewise
    return items


def _usable(gate: Any, metrics: frozenset[str]) -> bool:
    """Return whether a gate compares figures of these metrics."""
    if not isinstance(gate, Mapping):
        return False
    conditions = gate.get("conditions")
    if isinstance(conditions, list):
        return bool(conditions) and all(_usable(each, metrics) for each in conditions)
    value, weights, key = gate.get("value"), gate.get("weights"), gate.get("metric_key")
    about = metrics.issuperset(weights) if isinstance(weights, Mapping) else key in (None, *metrics)
    return about and gate.get("op") in _OPERATORS and isinstance(value, int | float) and not isinstance(value, bool)


def stack(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: a grader for each recorded metric, by its name, and the gate the recording went by.

    A recording that names no metric has one grade, ``recorded``. The console prints the results block of letta-evals'
    guide.
    """
    try:
        metrics = metrics_of(inputs) if inputs is not None else []
    except DataError:  # the reader will say so
        metrics = []
    if inputs is None or not metrics:
        return {"graders": {"recorded": {"kind": "recorded"}}, "outcome": "recorded", "headline": {"letta": True}}
    gates, warnings = gates_of(inputs, metrics)
    graders = {name: {"kind": "recorded", **({"metric": name} if len(metrics) > 1 else {})} for name in metrics}
    return {"graders": graders, **gates, "headline": {"letta": True}, "warnings": warnings}
