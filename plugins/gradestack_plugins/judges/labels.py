"""Verdicts of people, by which a judge is calibrated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path

from gradestack import ConfigError, Sample
from gradestack_plugins.statistics.agreement import label_rows

Labels = Mapping[tuple[str, str | None, str | None, str | None], str]
"""By id, model, run and criterion; None is any model and run, and the whole sample."""


def read_verdicts(path: Path | None, criteria: Collection[str] | None = None) -> Labels:
    """Return the labels of a file, none of none; refused is any other word, and a criterion that is not known."""
    found = {}
    for line, row in label_rows(path) if path is not None else ():
        at, criterion = f"{path.name}:{line}" if path else "", row.get("criterion") or None
        if row["label"] not in ("pass", "fail"):
            raise ConfigError(f"{at}: a label is pass or fail, found {row['label'][:60]!r}")
        if criteria is not None and criterion is not None and criterion not in criteria:
            raise ConfigError(f"{at}: the rubric has no criterion {criterion[:60]!r}; it has {', '.join(criteria)}")
        place = row["id"], row.get("model") or None, row.get("run") or None, criterion
        if place in found:
            raise ConfigError(f"{at}: the id {place[0][:80]!r} has a label already")
        found[place] = row["label"]
    if path is not None and not found:
        raise ConfigError(f"{path.name}: holds no label; expected lines of id and label")
    return found


def verdict_of_people(labels: Labels, sample: Sample, criterion: str | None = None) -> str | None:
    """Return the label of a sample, or of a criterion of it; the one that names model and run before any other."""
    if not labels:
        return None
    run = None if sample.run is None else str(sample.run)
    places = product((sample.model, None), (run, None))
    return next((found for place in places if (found := labels.get((sample.id, *place, criterion)))), None)
