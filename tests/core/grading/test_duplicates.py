"""Repeated records are found from eight bytes per sample, and their places looked up afterwards."""

import random
from array import array

import attrs
import pytest

from gradestack import BadRecord, DataError, Input, Reader, Sample, Shard, Source, Status
from gradestack.grading import selection
from gradestack.grading.selection import Identities, Selection, places_in_input
from gradestack.jsonio import dumps
from gradestack.rundir.recorder import places_in_rows


def packed(numbers):
    return array("Q", numbers).tobytes()


def naive(numbers):
    seen, found = set(), []
    for position, number in enumerate(numbers):
        if number in seen:
            found.append(position)
        seen.add(number)
    return found


@pytest.fixture(params=[1 << 20, 0], ids=["in one piece", "in 256 pieces"])
def pieces(request, monkeypatch):
    monkeypatch.setattr(selection, "_WHOLE", request.param)


def filled(numbers, size=7):
    found = Identities()
    for ordinal, start in enumerate(range(0, len(numbers), size)):
        found.add(packed(numbers[start : start + size]), ordinal)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_repeated_ones_in_input_order(pieces, seed):
    choose = random.Random(seed)  # noqa: S311 - a seed is wanted
    few = [choose.getrandbits(64) for _ in range(300)]
    numbers = [choose.choice(few) if choose.random() < 0.3 else choose.getrandbits(64) for _ in range(2_000)]
    expected = naive(numbers)
    assert len(expected) > 100
    for most in (1, 50, 10_000):
        assert filled(numbers).repeated(most) == (len(expected), expected[:most])


def test_nothing_repeats(pieces):
    for numbers in ([], [5], [0, 1, 2**64 - 1, 2**63]):
        assert filled(numbers).repeated(10) == (0, [])
        assert filled(numbers).last_of_repeated() == {}


def test_the_last_of_every_repeated_one(pieces):
    numbers = [1, 2, 3, 1, 2**60, 1, 2**60, 9]
    assert filled(numbers, 3).last_of_repeated() == {1: (1, 2), 2**60: (2, 0)}


def test_a_repetition_is_seen_early():
    """Not only at the end: whenever the number of samples has doubled."""
    found = Identities()
    for ordinal in range(64):
        found.add(packed([ordinal if ordinal != 40 else 3]), ordinal)
        if found.early():
            break
    assert ordinal == 63  # looked at 1, 2, 4, ... 64 samples
    assert filled([1, 1]).early()


def test_a_sample_costs_eight_bytes():
    """Ten million fit into 80 MB."""
    found = filled(list(range(1_000)), 100)
    assert isinstance(found.digests, array)
    assert found.digests.itemsize * len(found.digests) == 8_000


def rows_of(path, samples):
    with path.open("w") as file:
        for sample in samples:
            source = sample.source and {"file": sample.source.file, "ordinal": sample.source.ordinal, "line": None}
            file.write(dumps({"status": str(sample.status), "source": source, "sample": {"id": sample.id}}) + "\n")


@attrs.frozen(kw_only=True)
class Held(Reader):
    """Reads what it holds."""

    records: dict[int, list]

    def plan(self, inputs, index):
        return []

    def read(self, shard, index):
        for record in self.records[shard.ordinal]:
            if record is None:
                raise DataError("gone")
            yield record


def test_places_from_rows_and_from_the_input(tmp_path):
    """Missing samples have no digest, samples without a source are named by their id, bad records do not count."""
    place = Source(file="f", ordinal=7)
    first = [Sample(id="a"), Sample(id="gone", status=Status.MISSING), Sample(id="b", source=place)]
    second = [Sample(id="c"), Sample(id="b")]
    rows_of(tmp_path / "rows", first)
    offset = (tmp_path / "rows").stat().st_size
    with (tmp_path / "rows").open("a") as file:
        rows_of(tmp_path / "more", second)
        file.write((tmp_path / "more").read_text())
    found = Identities()
    found.add(packed([1, 2]), 4, 3, 0)
    found.add(b"", 5)
    found.add(packed([3, 2]), 6, 2, offset)
    wanted = found.wanted([1, 3])
    with (tmp_path / "rows").open("rb") as rows:
        assert places_in_rows(rows, wanted) == ["f record 7", "b"]
    shards = {n: Shard(ordinal=n, input=Input(path=tmp_path, name="x", shown="x")) for n in (4, 5, 6)}
    bad = BadRecord(source=place, reason="bad")
    reader = Held(records={4: [bad, *first], 6: second})
    assert places_in_input(reader, shards, None, wanted, None) == ["f record 7", "b"]
    reader = Held(records={4: first, 6: [Sample(id="left out", facets={"tags": "no"}), *second]})
    chosen = Selection(ids=frozenset("abc"))
    assert places_in_input(reader, shards, None, wanted, chosen.takes) == ["f record 7", "b"]
    reader = Held(records={4: first, 6: [None]})
    assert places_in_input(reader, shards, None, wanted, None) == ["f record 7"]


@pytest.mark.parametrize("rows", [True, False])
def test_duplicates_are_listed_with_and_without_rows(
    run_lines, record, rows, monkeypatch, registry, write_lines, tmp_path
):
    import gradestack

    path = write_lines([record(str(number % 700), 1.0) for number in range(2_000)])
    suite = {"name": "t", "target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": [], "reader": "jsonl"}
    report = gradestack.run(suite, output=tmp_path / "out", registry=registry, rows=rows)
    found = report.summary["duplicates"]
    assert found["count"] == 1_300
    assert found["listed"] == [f"runs.jsonl:{line}" for line in range(701, 1_701)]
