"""The configuration of a run for summary.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gradestack.api import Inputs
from gradestack.grading.plan import Metric, Stage
from gradestack.suites.code import InFile
from gradestack.suites.options import jsonable, key_text

_NO_RESULT_DEPENDS_ON = ("engine", "rows")


def config_snapshot(
    data: Mapping[str, Any],
    inputs: Inputs,
    reader: Stage,
    graders: Mapping[str, Stage],
    metrics: Iterable[Metric],
) -> dict[str, Any]:
    """Return the configuration for summary.json.

    Input paths by their short names, others cut to their last part.
    """
    config = {key: data[key] for key in data if key not in _NO_RESULT_DEPENDS_ON}
    _set_inputs(config, inputs, reader)
    aggregators = {metric.stage.key: metric.stage for metric in metrics}
    for section, stages in (("graders", graders), ("metrics", aggregators)):
        written = config.get(section)
        if isinstance(written, Mapping):
            entries = config[section] = {}
            for key, entry in written.items():
                name = key_text(key)
                stage = stages.get(name)
                entries[name] = _entry(entry, stage)
    if inputs.dataset is not None:
        config["dataset"] = inputs.dataset.shown
    for section in ("reports", "exporters"):
        if isinstance(config.get(section), list):
            config[section] = [_entry(entry) for entry in config[section]]
    if isinstance(config.get("tasks"), str):
        tasks_path = Path(config["tasks"])
        config["tasks"] = tasks_path.name
    if "plugins" in config:
        config["plugins"] = [Path(file).name for file in config["plugins"]]
    return config


def _set_inputs(config: dict[str, Any], inputs: Inputs, reader: Stage) -> None:
    """Set the paths by their short names, and the reader as it was made."""
    paths: list[Any] = []
    for stage, share in reader.shares(inputs):
        entry = _entry({**stage.options, "kind": stage.name}, stage)
        shown = [file.shown for file in share.data]
        if reader.parts:
            config.pop("reader", None)
            paths += [{"path": path, "reader": entry} for path in shown]
        else:
            config["reader"] = entry
            paths += shown
    target = {**(config.get("target") or {}), "paths": paths}
    target.pop("reader", None)
    config["target"] = target


def _entry(written: Any, stage: Stage | None = None) -> Any:
    """Return a component reference with files and path options cut to their last part."""
    if not isinstance(written, Mapping):
        in_file = InFile.parse(written)
        if in_file is None:
            return written
        return in_file.shown
    entry = dict(written)
    for name, part in written.items():
        value = getattr(stage and stage.component, name, None)
        first = next(iter(value), None) if isinstance(value, tuple) else value
        if name in ("kind", "extractor", "function"):
            entry[name] = _entry(part)
        elif isinstance(first, Path):
            entry[name] = jsonable(value)
    return entry
