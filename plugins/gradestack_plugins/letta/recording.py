"""What stands beside recorded results: the suite they are of, its metrics and gates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from gradestack import DataError, Input, Inputs, read_records
from gradestack.jsonio import JsonProblem, as_list, as_map, as_text, is_number, loads, read_regular
from gradestack_plugins.letta.files import RESULTS, SUITE, result_files, unwrapped

REWARD = "reward"
_FIRST = 1000
"""Results of each input that are looked at where no summary names the metrics."""
_OPERATORS = ("gt", "gte", "lt", "lte", "eq")
_LONGEST_NAME = 200


class Folder(msgspec.Struct, frozen=True):
    """A folder with results: the content of its two other files, {} of one that is no object."""

    header: Mapping[str, Any]
    summary: Mapping[str, Any]

    @property
    def metrics(self) -> list[str]:
        """Metrics of the summary, in the order of the suite's graders."""
        names = as_map(as_map(self.summary.get("metrics")).get("by_metric"))
        components = map(as_map, as_list(self.header.get("components")))
        order = [str(each.get("key")) for each in components if each.get("kind") == "grader"]
        for content in (self.summary, self.header):  # gradestack's graders stand sorted by key
            order = order or list(as_map(as_map(content.get("config")).get("graders")))
        return list(dict.fromkeys([*(name for name in order if name in names), *names]))

    @property
    def gates(self) -> dict[str, Any]:
        """The suite's gates, as its entries, without what is null in them."""
        for content in (self.summary, self.header):
            config = as_map(content.get("config"))
            gates = {
                name: config[name]
                for name, kind in (("gate", Mapping), ("gates", list))
                if isinstance(config.get(name), kind)
            }
            if gates:
                return dict(json.loads(json.dumps(gates), object_pairs_hook=_without_null))
        return {}


def _without_null(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value is not None}


def read_object(file: Path) -> Mapping[str, Any]:
    """Return a JSON object; {} where the file holds none: results can be read without it."""
    try:
        return as_map(loads(read_regular(file)))
    except (OSError, JsonProblem):
        return {}


def folders_of(given: Input) -> list[Folder]:
    """Return the folders of an input's results."""
    files = [file.path for file in result_files(given.path) if file.path.name == RESULTS]
    folders = dict.fromkeys(file.parent for file in files)
    names = ("header.json", "summary.json")
    return [Folder(*[read_object(folder / name) for name in names]) for folder in folders]


def metrics_of(inputs: Inputs) -> list[str]:
    """Return the metrics of recordings, the recorded suite's first one first."""
    found: dict[str, None] = {}
    for given in inputs.data:
        metrics = chain.from_iterable(folder.metrics for folder in folders_of(given))
        found |= dict.fromkeys(metrics) or dict.fromkeys(_metrics_of_results(given))
    return list(found)


def _metrics_of_results(given: Input) -> list[str]:
    """Return the keys under ``grades``; a reward composed of them stands before them."""
    names: dict[str, None] = {}
    rewarded = False
    for result in _first_results(given):
        names |= dict.fromkeys(graded_metrics(result))
        rewarded = rewarded or result.get(REWARD) is not None
    return [REWARD, *names] if rewarded else list(names)


def _first_results(given: Input) -> Iterator[Mapping[str, Any]]:
    files = [given.below(file.relative) for file in result_files(given.path)]
    records = chain.from_iterable(read_records(file, layout="lines") for file in files)
    results = (unwrapped(record.value) for record in islice(records, _FIRST))
    return (result for result in results if isinstance(result, Mapping))


def graded_metrics(recorded: Mapping[str, Any]) -> list[str]:
    """Return the metrics of which there is a grade."""
    return [name for name, grade in as_map(recorded.get("grades")).items() if grade is not None]


def names_graders(inputs: Inputs) -> bool:
    """Return whether any of the first results has grades under the names of graders."""
    return any(map(graded_metrics, chain.from_iterable(map(_first_results, inputs.data))))


def _is_usable(gate: Any, metrics: frozenset[str]) -> bool:
    written = as_map(gate)
    if isinstance(conditions := written.get("conditions"), list):
        return bool(conditions) and all(_is_usable(part, metrics) for part in conditions)
    named: list[Any] = list(as_map(written.get("weights"))) or [written.get("metric_key")]
    is_known = all(name in (None, *metrics) for name in named)
    return is_known and written.get("op") in _OPERATORS and is_number(written.get("value"))


def gates_of(folders: Iterable[Folder], metrics: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the gates the recordings went by, and what is wrong with them."""
    found = [folder.gates for folder in folders if folder.gates]
    if any(gates != found[0] for gates in found):
        return {}, ["the recordings went by different gates; none of them is applied"]
    entries, known = found[0] if found else {}, frozenset(metrics)
    gates = [*as_list(entries.get("gates")), *([entries["gate"]] if "gate" in entries else [])]
    if all(_is_usable(gate, known) for gate in gates):
        return entries, []
    why = "is not understood, or about a metric the recording lacks; it is not applied"
    return {}, [f"the recorded gate {why}"]


def _suite_name(inputs: Inputs, folders: Iterable[Folder]) -> dict[str, Any]:
    """Return the name of the recorded suite, as a suite's entry; nothing where it is not one."""
    contents = [content for folder in folders for content in (folder.header, folder.summary)]
    contents += [read_object(given.path / SUITE) for given in inputs.data]
    named = [as_text(content.get(key)) for content in contents for key in ("suite_name", "suite")]
    names = {name for name in named if name.strip() and len(name) <= _LONGEST_NAME}
    return {"name": names.pop()} if len(names) == 1 else {}


def stack(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: a grader for each recorded metric, and the gate the recording went by."""
    suite: dict[str, Any] = {"headline": {"letta": True}}
    metrics, folders = [], list[Folder]()
    if inputs is not None:
        folders = list(chain.from_iterable(map(folders_of, inputs.data)))
        suite |= _suite_name(inputs, folders)
        with suppress(DataError):  # the reader will say so
            metrics = metrics_of(inputs)
    if not metrics:
        return {**suite, "graders": {"recorded": {"kind": "recorded"}}, "outcome": "recorded"}
    graders = {
        name: {"kind": "recorded", **({"metric": name} if len(metrics) > 1 else {})}
        for name in metrics
    }
    gates, warnings = gates_of(folders, metrics)
    return {**suite, "graders": graders, **gates, "warnings": warnings}
