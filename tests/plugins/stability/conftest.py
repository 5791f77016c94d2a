"""Helpers for the stability tests: sweeps read, and graded without the kernel."""

import pytest

from gradestack import BadRecord, Key
from gradestack_plugins.stability.aggregators import StabilityLabel
from gradestack_plugins.stability.reader import StabilityReader
from tests.plugins.stability.stability_records import stability


@pytest.fixture
def read(read_joined):
    """Read a sweep joined with a dataset."""
    return lambda records, dataset=None: read_joined(StabilityReader(), records, dataset)


@pytest.fixture
def evaluate(read):
    """Read and grade a sweep, and return the metrics."""

    def _evaluate(records, dataset=None, **options):
        samples = [record for record in read(records, dataset) if not isinstance(record, BadRecord)]
        graded = []
        for n, sample in enumerate(samples):
            key = Key(
                id=sample.id,
                model=sample.model,
                run=sample.run,
                ordinal=n,
                facets=sample.facets,
            )
            graded.append(
                (
                    key,
                    StabilityLabel().grade(sample),
                )
            )
        return stability(graded, **options)

    return _evaluate
