"""What stands beside recorded results: the suite they are of, its metrics and gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradestack import DataError, Inputs, Sample
from gradestack.jsonio import JsonProblem, as_list, as_map, as_text, is_number, loads, read_regular
from gradestack_plugins.letta.files import RESULTS, SUITE, result_files
from gradestack_plugins.readers.recorded import recorded_metrics

_OPERATORS = ("gt", "gte", "lt", "lte", "eq")
_LONGEST_NAME = 200
_REWARD = "reward"

Document = Mapping[str, Any]


def stack(
    inputs: Inputs | None = None, samples: Callable[[], Iterable[Sample]] = tuple
) -> dict[str, Any]:
    """Return the stack: a grader for each recorded metric, and the gate the recording went by."""
    documents = [] if inputs is None else list(_documents(inputs))
    suite = {"headline": {"letta": True}, **_suite_name(documents)}
    metrics = list(dict.fromkeys(name for document in documents for name in _metrics_of(document)))
    if not metrics:
        with suppress(DataError):  # the reader will say so
            graded, scored = recorded_metrics(samples())
            metrics = [name for name in scored if name == _REWARD] + graded
    if not metrics:
        return {**suite, "graders": {"recorded": {"kind": "recorded"}}, "outcome": "recorded"}
    graders = {name: {"kind": "recorded"} for name in metrics}
    if len(metrics) > 1:
        graders = {name: {"kind": "recorded", "metric": name} for name in metrics}
    return {**suite, "graders": graders, **_gates(documents, metrics)}


def _documents(inputs: Inputs) -> Iterator[Document]:
    """Yield for each folder with results what its summary says, and its header where that does not.

    Of the later layout it is the suite.
    """
    folders: dict[Path, None] = {}
    for given in inputs.data:
        files = [file.path for file in result_files(given.path)]
        folders |= dict.fromkeys(file.parent for file in files if file.name == RESULTS)
        yield _read_object(given.path / SUITE)
    for folder in folders:
        yield {**_read_object(folder / "header.json"), **_read_object(folder / "summary.json")}


def _read_object(file: Path) -> Document:
    """Return a JSON object; {} where the file holds none: results can be read without it."""
    try:
        return as_map(loads(read_regular(file)))
    except (OSError, JsonProblem):
        return {}


def _metrics_of(document: Document) -> list[str]:
    """Return the metrics of a summary, in the order of the suite's graders."""
    names = as_map(as_map(document.get("metrics")).get("by_metric"))
    # in gradestack's own summaries they are sorted; its header has its graders in order
    components = map(as_map, as_list(document.get("components")))
    keys = [str(component.get("key")) for component in components]
    return list(dict.fromkeys([*(key for key in keys if key in names), *names]))


def _suite_name(documents: Iterable[Document]) -> dict[str, str]:
    """Return the name of the recorded suite, as a suite's entry; nothing where it is not one."""
    texts = [as_text(each.get("suite_name", each.get("suite"))) for each in documents]
    names = {text for text in texts if text.strip() and len(text) <= _LONGEST_NAME}
    return {"name": names.pop()} if len(names) == 1 else {}


def _gates(documents: Iterable[Document], metrics: list[str]) -> dict[str, Any]:
    """Return the gates the recordings went by, or a warning why none is applied."""
    configs = [as_map(document.get("config")) for document in documents]
    recorded = [
        {name: _without_null(config[name]) for name in ("gate", "gates") if config.get(name)}
        for config in configs
    ]
    found = [gates for gates in recorded if gates]
    if not found:
        return {}
    if any(gates != found[0] for gates in found):
        why = "the recordings went by different gates; none of them is applied"
        return {"warnings": [why]}
    gates = [*as_list(found[0].get("gates", [])), found[0].get("gate")]
    if all(_is_usable(gate, metrics) for gate in gates if gate is not None):
        return found[0]
    why = "is not understood, or about a metric the recording lacks; it is not applied"
    return {"warnings": [f"the recorded gate {why}"]}


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(each) for key, each in value.items() if each is not None}
    return list(map(_without_null, value)) if isinstance(value, list) else value


def _is_usable(gate: Any, metrics: list[str]) -> bool:
    written = as_map(gate)
    if conditions := as_list(written.get("conditions")):
        return all(_is_usable(condition, metrics) for condition in conditions)
    named = written.get("weights") or [written.get("metric_key", metrics[0])]
    is_known = all(name in metrics for name in named)
    return is_known and written.get("op") in _OPERATORS and is_number(written.get("value"))
