"""What recordings say of themselves as a whole: the metrics they hold, in order, and the gate they went by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from gradestack import Input, Inputs, Sample, read_records
from gradestack.jsonio import JsonProblem, loads, read_regular
from gradestack_plugins.letta.layout import RESULTS, ResultFile, place_of, result_files, unwrapped
from gradestack_plugins.letta.records import KEPT

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

    Raises:
        DataError: Results cannot be read.
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
    """Return whether any of the first results has grades under the names of graders.

    Raises:
        DataError: Results cannot be read.
    """
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
    """Return the gates the recordings went by, as a suite's entries, and what is wrong with them.

    Args:
        inputs: The recordings.
        metrics: What they hold; a gate that is about something else is left out.
    """
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
