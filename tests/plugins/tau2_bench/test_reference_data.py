"""The example of the format; skipped unless GRADESTACK_REFERENCE_DATA names the data."""

import json
import os
from pathlib import Path

import pytest

from gradestack_plugins.tau2_bench.reader import Tau2
from tests.plugins.described_samples import agrees, described, read

DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="GRADESTACK_REFERENCE_DATA is not set")


def test_the_example_gives_the_samples_expected_of_it():
    """Results of tau2-bench's own models read as expected.json says."""
    folder = Path(DATA) / "formats" / "tau2"
    for name, about in json.loads((folder / "expected.json").read_text(encoding="utf-8")).items():
        path = folder / name
        assert Tau2.sniff(path, path.read_bytes()[: 64 * 1024]) > 0.9
        found = read(Tau2(), path)
        for sample, wanted in zip(found, about["samples"], strict=True):
            assert agrees(sample, wanted), described(sample, wanted)
