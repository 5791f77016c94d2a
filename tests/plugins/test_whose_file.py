"""Readers of tau2-bench and BFCL take their own files and nobody else's."""

import os
from pathlib import Path

import pytest

from gradestack_plugins.bfcl.reader import Bfcl
from gradestack_plugins.tau2_bench.reader import Tau2
from tests.core.outcomes import data

CASES = data(__file__, "whose_file.yaml")

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
MIXED = {"hostile", "reports", "truth"}
"""Folders of published data with files of many formats in one folder."""
READERS = {"tau2": Tau2, "bfcl": Bfcl}


def files():
    roots = [EXAMPLES]
    if DATA:
        data_path = Path(DATA)
        paths = data_path.iterdir()
        roots += [path for path in paths if path.name not in MIXED]
    return [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("name", READERS)
def test_no_file_of_another_format_is_taken(name):
    """Files and directories outside a folder of the format are not recognised."""
    paths = files()
    recognised = [
        path for path in paths if READERS[name].sniff(path, path.read_bytes()[: 64 * 1024]) > 0
    ]
    parents = {path.parent for path in paths}
    folders = [path for path in parents if READERS[name].sniff(path, b"") > 0]
    assert [path for path in (*recognised, *folders) if name not in path.parts] == []


@pytest.mark.parametrize("text", CASES["what_only_looks_alike_is_not_taken"])
def test_what_only_looks_alike_is_not_taken(text, tmp_path):
    """A few keys of the same name are not enough."""
    path = tmp_path / "log.json"
    path.write_text(text)
    readers = READERS.items()
    names = [name for name, reader in readers if reader.sniff(path, text.encode()) > 0]
    assert names == []
