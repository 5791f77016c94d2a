"""The configuration as summary.json shows it: as written, but plain JSON, and nothing depends on where files lie."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from gradestack.api import Inputs
from gradestack.grading.plan import Metric, Stage
from gradestack.jsonio.values import json_data
from gradestack.model import JSON
from gradestack.suites.in_file import short


def jsonable(value: Any) -> JSON:
    """Return an option's value as JSON data; what has no JSON form is named by its type, paths by their last part."""
    return json_data(value, _named)


def _named(value: Any) -> JSON:
    if isinstance(value, Path):
        return value.name
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(map(jsonable, value), key=str)
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else f"({type(value).__qualname__})"


def _entry(written: Any, stage: Stage) -> Any:
    """Return a component reference with files and path options cut to their last part."""
    entry = short(written)
    if not isinstance(written, Mapping) or not attrs.has(type(stage.component)):
        return entry
    for field in attrs.fields(type(stage.component)):
        value = getattr(stage.component, field.name)
        several = isinstance(value, tuple) and any(isinstance(each, Path) for each in value)
        if field.name in entry and (several or isinstance(value, Path)):
            entry[field.name] = jsonable(value)
    return entry


def published(
    data: Mapping[str, Any], inputs: Inputs, reader: Stage, graders: Mapping[str, Stage], metrics: Iterable[Metric]
) -> dict[str, Any]:
    """Return the configuration for summary.json."""
    config = dict(data)
    target = {key: value for key, value in dict(config.get("target") or {}).items() if key != "reader"}
    config["target"] = {**target, "paths": [each.shown for each in inputs.data]}
    inherited = ("profile", data.get("profile", "documented"))
    options = {key: value for key, value in reader.options.items() if (key, value) != inherited}
    config["reader"] = _entry({**options, "kind": reader.name}, reader)
    named: dict[str, Mapping[str, Stage]] = {"graders": graders, "metrics": {e.stage.key: e.stage for e in metrics}}
    for section, stages in named.items():
        if isinstance(written := config.get(section), Mapping):
            config[section] = {
                str(key): _entry(entry, stages[str(key)]) if str(key) in stages else entry
                for key, entry in written.items()
            }
    if inputs.dataset is not None:
        config["dataset"] = inputs.dataset.shown
    for section in ("reports", "exporters"):
        if isinstance(written := config.get(section), list):
            config[section] = [short(each) for each in written]
    if "plugins" in config:
        config["plugins"] = [Path(each).name for each in config["plugins"]]
    for key in ("engine", "rows"):  # results do not depend on them
        config.pop(key, None)
    return jsonable(config)  # type: ignore[no-any-return]
