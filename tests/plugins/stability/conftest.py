"""Helpers for the stability tests: sweeps read, and graded without the kernel."""

import pytest

from gradestack import BadRecord, Key
from gradestack_plugins.stability.aggregators import StabilityLabel
from gradestack_plugins.stability.reader import StabilityReader
from tests.plugins.stability.stability_records import stability


@pytest.fixture
def read(read_joined):
    """Read a sweep joined with a dataset."""
    return lambda records, dataset=None, **options: read_joined(
        StabilityReader(**options), records, dataset
    )


@pytest.fixture
def keyed(read):
    def _keyed(records, dataset=None, *, profile="documented"):
        samples = [
            each
            for each in read(records, dataset, profile=profile)
            if not isinstance(each, BadRecord)
        ]
        grader = StabilityLabel(profile=profile)
        return [
            (
                Key(id=each.id, model=each.model, run=each.run, ordinal=n, facets=each.facets),
                grader.grade(each),
            )
            for n, each in enumerate(samples)
        ]

    return _keyed


@pytest.fixture
def evaluate(keyed):
    """Read and grade a sweep, and return the metrics."""

    def _evaluate(records, dataset=None, *, profile="documented", **options):
        return stability(keyed(records, dataset, profile=profile), profile=profile, **options)

    return _evaluate
