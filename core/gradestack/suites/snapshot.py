"""The configuration of a run for summary.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gradestack.api import Inputs
from gradestack.grading.plan import Metric, Stage
from gradestack.suites.code import InFile
from gradestack.suites.options import jsonable

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
    target = dict(config.get("target") or {})
    target.pop("reader", None)
    shares = [
        (_entry({**stage.options, "kind": stage.name}, stage), own.data)
        for stage, own in reader.shares(inputs)
    ]
    if reader.parts:
        config.pop("reader", None)
        target["paths"] = paths = list[Any]()
        for entry, own in shares:
            paths += [{"path": given.shown, "reader": entry} for given in own]
    else:
        config["reader"], own = shares[0]
        target["paths"] = [given.shown for given in own]
    config["target"] = target
    aggregators = {metric.stage.key: metric.stage for metric in metrics}
    for section, stages in (("graders", graders), ("metrics", aggregators)):
        written = config.get(section)
        if isinstance(written, Mapping):
            entries = {str(key): entry for key, entry in written.items()}
            config[section] = {
                key: _entry(entry, stages.get(key)) for key, entry in entries.items()
            }
    if inputs.dataset is not None:
        config["dataset"] = inputs.dataset.shown
    for section in ("reports", "exporters"):
        if isinstance(config.get(section), list):
            config[section] = [_entry(written) for written in config[section]]
    if isinstance(config.get("tasks"), str):
        config["tasks"] = Path(config["tasks"]).name
    if "plugins" in config:
        config["plugins"] = [Path(file).name for file in config["plugins"]]
    return config


def _entry(written: Any, stage: Stage | None = None) -> Any:
    """Return a component reference with files and path options cut to their last part."""
    if not isinstance(written, Mapping):
        in_file = InFile.parse(written)
        return written if in_file is None else in_file.shown
    entry = dict(written)
    for name, part in written.items():
        value = getattr(stage and stage.component, name, None)
        first = next(iter(value), None) if isinstance(value, tuple) else value
        if name in ("kind", "extractor", "function"):
            entry[name] = _entry(part)
        elif isinstance(first, Path):
            entry[name] = jsonable(value)
    return entry
