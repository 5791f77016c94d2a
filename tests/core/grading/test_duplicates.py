"""Repeated records are found in the columns of the table, and their places looked up afterwards in
the rows.
"""

import random

import pytest

from gradestack import Grade, Sample, Status
from gradestack.table import Table, Wanted


def naive(samples):
    """List the positions of repeated samples with one set of identities."""
    identities = set()
    duplicates = []
    for position, sample in enumerate(samples):
        identity = (sample.id, sample.model, sample.run)
        if sample.status is not Status.MISSING and identity in identities:
            duplicates.append(position)
        if sample.status is not Status.MISSING:
            identities.add(identity)
    return duplicates


class Name(str):
    """A text of a class of its own, as some libraries return them."""

    __slots__ = ()


def some(seed, number=2_000):
    """Draw samples whose ids, models and runs often repeat or look alike."""
    choose = random.Random(seed)  # noqa: S311 - a seed is wanted
    ids = ["a", Name("a"), "\ud800", 'a", null', *map(str, range(300))]
    runs = [None, None, 0, 1, "1", 2**64, -(10**30)]
    samples = []
    for _ in range(number):
        identifier = choose.choice(ids)
        model = choose.choice([None, "", "m", "a"])
        run = choose.choice(runs)
        status = choose.choice([Status.OK, Status.OK, Status.FAILED, Status.MISSING])
        sample = Sample(id=identifier, model=model, run=run, status=status)
        samples.append(sample)
    return samples


@pytest.mark.parametrize("seed", range(3))
def test_repeated_ones_in_input_order(seed):
    samples = some(seed)
    is_missing = [sample.status is Status.MISSING for sample in samples]
    wanted = Wanted(parts={"g": ()})
    table = Table.of(wanted, samples, {"g": [Grade(score=1.0)] * len(samples)}, is_missing)
    repeated = table.repeated()
    assert repeated == naive(samples)
    repeated_count = len(table.repeated())
    assert repeated_count > 100


@pytest.mark.parametrize("rows", [True, False])
def test_duplicates_are_listed_by_their_places_or_without_rows_by_their_ids(
    record, rows, registry, write_lines, tmp_path
):
    import gradestack

    records = []
    for number in range(2_000):
        records.append(record(str(number % 700), 1.0))
    path = write_lines(records)
    paths = [str(path)]
    suite = {
        "name": "t",
        "target": {"paths": paths},
        "graders": {"q": "toy"},
        "reports": [],
        "reader": "jsonl",
    }
    output = tmp_path / "out"
    report = gradestack.run(suite, output=output, registry=registry, rows=rows)
    duplicates = report.summary["duplicates"]
    assert duplicates["count"] == 1_300
    at = [f"runs.jsonl:{line}" for line in range(701, 1_701)]
    if rows:
        expected = at
    else:
        expected = [f"task {number % 700}" for number in range(700, 1_700)]
    assert duplicates["listed"] == expected
