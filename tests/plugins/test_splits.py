"""Whatever the size of a shard, a reader gives the same samples: a law over every case."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import gradestack_plugins
from gradestack import GradestackError, Input, Inputs, testing
from gradestack.copies.files import Folder
from gradestack.suites.options import structure
from gradestack.suites.recognition import expand, name_inputs
from gradestack.testing.case_files import _file_text
from tests.plugins.test_published_forms import REGISTRY

CASES = testing.cases(Path(__file__).parents[1] / "cases")
NAMES = [
    name for _, name, _ in pkgutil.walk_packages(gradestack_plugins.__path__, "gradestack_plugins.")
]

SPLIT = {"bfcl", "deepfabric", "jsonl", "openai", "stability", "tau2", "tau_bench", "when2call"}
"""Readers whose files are known to be cut between records."""


def reader_of(case):
    """Return name and options of a case's reader."""
    reader = case.data.get("reader", "jsonl")
    if isinstance(reader, str):
        options = {"kind": reader}
    else:
        options = dict(reader)
    return options.pop("kind"), options


def write_files(case, folder):
    """Write the files of a case; return its inputs."""
    files = dict(case.data.get("files") or {"records.jsonl": case.data["records"]})
    dataset = case.data.get("dataset")
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file_text = _file_text(name, content)
        path.write_text(file_text, encoding="utf-8")
    names = [name for name in files if name != dataset]
    target = case.data.get("target", {})
    paths = target.get("paths", names)
    texts = [str(folder / path) for path in paths]
    paths_given = [Path(path) for path in expand(texts)]
    side = folder / str(dataset)
    side_input = None
    if side.is_file():
        side_input = Input(path=side, name=side.stem, shown=side.name)
    return Inputs(data=name_inputs(paths_given), dataset=side_input)


def read(case, folder, inputs):
    """Read the inputs; return a text of every record, and the number of shards.

    Places of traces are left out: in a document read in pieces they are those of the pieces.
    """
    kind, options = reader_of(case)
    registry = REGISTRY.load("reader", kind)
    reader = structure(options, registry, Folder(folder))
    index = reader.index(inputs)
    shards = list(reader.plan(inputs, index))
    expected = list(range(len(shards)))
    ordinals = [shard.ordinal for shard in shards]
    assert ordinals == expected
    parts = [list(reader.read(shard, index)) for shard in shards]
    for shard, part, later in zip(shards, parts, shards[1:], strict=False):
        assert shard.position + len(part) <= later.position
    texts = [repr(record) for part in parts for record in part]
    if kind == "otel":
        texts = [re.sub(r"source=Source\(.*?\)", "", text) for text in texts]
    return texts, len(shards)


@pytest.fixture
def small_shards(monkeypatch):
    """Return a function that makes a shard of every record from now on."""

    def patch():
        for name in ["gradestack.jsonio.records", *NAMES]:
            module = importlib.import_module(name)
            if hasattr(module, "SHARD_BYTES"):
                monkeypatch.setattr(module, "SHARD_BYTES", 1)

    return patch


@pytest.mark.parametrize("kind", sorted({reader_of(case)[0] for case in CASES}))
def test_any_split_reads_the_same(tmp_path, small_shards, kind):
    readings = []
    for number, case in enumerate(case for case in CASES if reader_of(case)[0] == kind):
        folder = tmp_path / str(number)
        try:
            inputs = write_files(case, folder)
            readings.append((case, folder, inputs, *read(case, folder, inputs)))
        except GradestackError:  # a case of a refusal
            continue
    small_shards()
    several = 0
    for case, folder, inputs, samples, count in readings:
        texts, shards = read(case, folder, inputs)
        assert texts == samples, case
        several += shards > count
    assert several or kind not in SPLIT
