"""Documents beside recorded results: the suite they are of, its metrics and gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gradestack import Inputs, Sample
from gradestack.jsonio import JsonProblem, as_list, as_map, as_text, is_number, loads, read_regular
from gradestack_plugins.letta.files import SUITE, result_files
from gradestack_plugins.readers.recorded import recorded_metrics

_OPERATORS = ("gt", "gte", "lt", "lte", "eq")
_LONGEST_NAME = 200
_REWARD = "reward"
_BESIDE = (SUITE, "header.json", "summary.json")

Document = Mapping[str, Any]


def stack(
    inputs: Inputs | None = None, samples: Callable[[], Iterable[Sample]] = tuple
) -> dict[str, Any]:
    """Return the stack: a grader for each recorded metric, and the gate the recording went by."""
    if inputs is None:
        documents = []
    else:
        documents = list(_documents(inputs))
    suite = {"headline": {"letta": True}, **_suite_name(documents)}
    graded, scored = recorded_metrics(samples())
    names = [name for name in scored if name == _REWARD]
    metrics = names + graded
    if not metrics:
        return {**suite, "graders": {"recorded": {"kind": "recorded"}}, "outcome": "recorded"}
    graders = {name: {"kind": "recorded", "metric": name} for name in metrics}
    return {**suite, "graders": graders, **_gates(documents, metrics)}


def _documents(inputs: Inputs) -> Iterator[Document]:
    """Yield for each folder with results what stands beside them; the summary comes first."""
    folders: dict[Path, None] = {}
    for source in inputs.data:
        folders[source.path] = None
        files = result_files(source.path)
        parents = [file.path.parent for file in files]
        folders |= dict.fromkeys(parents)
    for folder in folders:
        suite, header, summary = [_read_object(folder / name) for name in _BESIDE]
        yield {**suite, **header, **summary}


def _read_object(file: Path) -> Document:
    """Return a JSON object; {} where the file holds none: results can be read without it."""
    try:
        return as_map(loads(read_regular(file)))
    except (OSError, JsonProblem):
        return {}


def _suite_name(documents: Iterable[Document]) -> dict[str, str]:
    """Return the name of the recorded suite, as a suite's entry; nothing where it is not one."""
    texts = [as_text(document.get("suite_name", document.get("suite"))) for document in documents]
    names = {text for text in texts if text.strip() and len(text) <= _LONGEST_NAME}
    if len(names) == 1:
        return {"name": names.pop()}
    return {}


_NOT_APPLIED = (
    "the recorded gate differs between recordings, is not understood, or is about a metric that "
    "they lack; it is not applied"
)


def _gates(documents: Iterable[Document], metrics: list[str]) -> dict[str, Any]:
    """Return the gates the recordings went by, or a warning why none is applied."""
    configs = [as_map(document.get("config")) for document in documents]
    entries = [{name: config.get(name) for name in ("gate", "gates")} for config in configs]
    recorded = [_without_null(entry) for entry in entries if any(entry.values())]
    if not recorded:
        return {}
    first: dict[str, Any] = recorded[0]
    gates = [*as_list(first.get("gates")), *([first["gate"]] if "gate" in first else [])]
    is_usable = all(_is_usable(gate, metrics) for gate in gates)
    is_same = all(entry == first for entry in recorded)
    return first if is_usable and is_same else {"warnings": [_NOT_APPLIED]}


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(value[key]) for key in value if value[key] is not None}
    if isinstance(value, list):
        return list(map(_without_null, value))
    return value


def _is_usable(gate: Any, metrics: list[str]) -> bool:
    written = as_map(gate)
    if conditions := as_list(written.get("conditions")):
        return all(_is_usable(condition, metrics) for condition in conditions)
    weights = written.get("weights")
    named = weights or [written.get("metric_key", metrics[0])]
    is_known = all(name in metrics for name in named)
    return is_known and written.get("op") in _OPERATORS and is_number(written.get("value"))
