"""The example of the format; skipped unless GRADESTACK_REFERENCE_DATA names the data."""

import json
import os
from pathlib import Path

import pytest

from gradestack_plugins.bfcl.reader import Bfcl
from tests.plugins.described_samples import agrees, described, read

DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="GRADESTACK_REFERENCE_DATA is not set")


def test_the_example_gives_the_samples_expected_of_it():
    """A result file, and the directory it stands in, read as expected.json says."""
    folder = Path(DATA) / "formats" / "bfcl"
    for name, about in json.loads((folder / "expected.json").read_text(encoding="utf-8")).items():
        for path in (folder / each for each in (name, *about["alternatives"])):
            head = b"" if path.is_dir() else path.read_bytes()[: 64 * 1024]
            assert Bfcl.sniff(path, head) > 0.9
            found = read(Bfcl(), path)
            for sample, wanted in zip(found, about["samples"], strict=True):
                assert agrees(sample, wanted), described(sample, wanted)


def test_the_published_answers_are_understood():
    """Every possible answer of three categories is a list of calls with names and arguments."""
    folder = Path(DATA) / "bfcl"
    for name, number in (("simple_python", 400), ("multiple", 200), ("parallel", 200)):
        file = f"BFCL_v4_{name}.json"
        found = read(Bfcl(), folder / file, folder / "possible_answer" / file)
        assert len(found) == number
        assert all(sample.expected.calls and sample.tools and not sample.remarks for sample in found)
