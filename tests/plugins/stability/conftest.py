"""Helpers for the stability tests: sweeps read, and graded without the kernel."""

from __future__ import annotations

import json

import pytest

from gradestack import BadRecord, Input, Inputs, Key
from gradestack_plugins.stability.grader import StabilityLabel
from gradestack_plugins.stability.reader import StabilityReader
from tests.plugins.stability.stability_records import stability


@pytest.fixture
def write(tmp_path):
    def _write(name, records, *, as_list=False):
        path = tmp_path / name
        if as_list:
            path.write_text(json.dumps(records, indent=2))
        else:
            lines = [each if isinstance(each, str) else json.dumps(each) for each in records]
            path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return _write


def _input(path):
    return Input(path=path, name=path.stem, shown=path.name)


@pytest.fixture
def read(write):
    """Read a sweep (a path, or records) joined with a dataset (the same), and return samples and bad records."""

    def _read(records, dataset=None, **options):
        paths = []
        for name, given in (("runs.jsonl", records), ("dataset.jsonl", dataset)):
            paths.append(write(name, given) if isinstance(given, list) else given)
        inputs = Inputs(data=(_input(paths[0]),), dataset=_input(paths[1]) if paths[1] is not None else None)
        reader = StabilityReader(**options)
        index = reader.index(inputs)
        shards = list(reader.plan(inputs, index))
        assert [shard.ordinal for shard in shards] == list(range(len(shards)))
        return [each for shard in shards for each in reader.read(shard, index)]

    return _read


@pytest.fixture
def keyed(read):
    def _keyed(records, dataset=None, *, profile="documented"):
        samples = [each for each in read(records, dataset, profile=profile) if not isinstance(each, BadRecord)]
        grader = StabilityLabel(profile=profile)
        return [
            (Key(id=each.id, model=each.model, run=each.run, ordinal=n, facets=each.facets), grader.grade(each))
            for n, each in enumerate(samples)
        ]

    return _keyed


@pytest.fixture
def evaluate(keyed):
    """Read and grade a sweep, and return the metrics."""

    def _evaluate(records, dataset=None, *, profile="documented", **options):
        return stability(keyed(records, dataset, profile=profile), profile=profile, **options)

    return _evaluate
