"""Files of other formats for benchmarks.

Each is recognised by its reader, and every record of it is a sample.
"""

from pathlib import Path

import pytest

from gradestack import Input, Inputs, Sample, Status, discover
from tests.core.outcomes import data, some_of
from tests.core.test_growth import MOST, grows

DATA = data(__file__, "formats.yaml")

SCRIPT = Path(__file__).parents[2] / "benchmarks/formats.py"
FORMATS = DATA["formats"]
RECORDS = 40


def samples(name, files):
    reader = discover().load("reader", name)()
    dataset = files.dataset and Input(path=files.dataset, name="dataset", shown="dataset")
    inputs = Inputs(data=(Input(path=files.data, name="data", shown="data"),), dataset=dataset)
    index = reader.index(inputs)
    shards = reader.plan(inputs, index)
    return [sample for shard in shards for sample in reader.read(shard, index)]


def written(bench, name, folder, seed=5):
    folder.mkdir()
    formats = bench("formats").FORMATS
    return formats[name](folder, RECORDS, seed)


def test_every_reader_of_a_family_has_files(bench):
    """A format that is left out would never be measured."""
    formats = list(bench("formats").FORMATS)
    assert formats == FORMATS


@pytest.mark.parametrize("name", some_of(FORMATS, 5))
def test_every_record_is_a_sample(bench, name, tmp_path):
    """None is bad, and few failed (DeepFabric's where a reply's arguments are no JSON).

    That would be read faster.
    """
    folder = tmp_path / "files"
    files = written(bench, name, folder)
    samples_read = samples(name, files)
    assert len(samples_read) == RECORDS
    count = sum(sample.status is Status.OK for sample in samples_read)
    assert count >= 0.9 * RECORDS
    assert len({(sample.id, sample.model, sample.run) for sample in samples_read}) == RECORDS
    if name not in {"when2call", "letta_dataset"}:
        assert any(sample.calls for sample in samples_read)


@pytest.mark.parametrize("name", some_of(FORMATS, 5))
def test_the_same_seed_gives_the_same_files(bench, name, tmp_path):
    """Every byte depends on the seed only."""

    def contents(folder, seed):
        paths = written(bench, name, tmp_path / folder, seed).all()
        return [path.read_bytes() for path in paths]

    first = contents("first", 5)
    assert contents("again", 5) == first
    assert contents("other", 6) != first


def test_a_file_of_another_format_is_not_measured(bench, tmp_path):
    """Its records would be bad, and cost little."""
    readers = bench("readers")
    formats = bench("formats")
    wrong = tmp_path / "results.json"
    wrong.write_text('[{"reward": 1}]', encoding="utf-8")
    with pytest.raises(ValueError, match="task_id is missing"):
        readers.read(readers.discover().load("reader", "tau_bench")(), formats.Files(wrong))
    files = formats.Files(wrong)
    assert readers.parsed(files) == 1


def test_copies_of_a_case_are_runs_of_their_own(bench, tmp_path):
    """Nothing in them is bad, and no run is counted as the copy of another.

    A file that is one session stays one, and has the sub-agents of all copies.
    """
    writers = bench("case_files").WRITERS
    keys = writers.keys()
    assert {"claude_code", "bedrock", "langsmith", "weave"} <= keys
    for name, write in writers.items():
        counts = []
        for copies in (1, 3):
            folder = tmp_path / f"{name}-{copies}"
            folder.mkdir()
            files = write(folder, copies, 5)
            runs = samples(name, files)
            assert all(isinstance(run, Sample) for run in runs), name
            counts.append(len(runs))
        one, three = counts
        expected = {one, 3 * one, 1 + 3 * (one - 1)}
        assert three in expected, name


@pytest.mark.proof  # measures time, which others at work disturb
def test_files_of_sessions_and_traces_are_read_in_time_by_their_size(bench, tmp_path):
    """Twice the runs in one file, twice the work, whichever reader reads them."""
    readers = bench("readers")
    writers = bench("case_files").WRITERS
    assert len(writers) > 10
    slow = {}
    for name, write in writers.items():
        reader = discover().load("reader", name)()
        files = {}
        for size in (600, 1200):
            folder = tmp_path / f"{name}-{size}"
            folder.mkdir()
            files[size] = write(folder, size, 1)

        def read_copies(size, reader=reader, files=files):
            readers.read(reader, files[size])

        ratio = grows(read_copies, 600)
        if ratio >= MOST:
            slow[name] = ratio
    assert slow == {}
