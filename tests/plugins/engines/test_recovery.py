"""Finding the records that end workers, apart from how workers are run."""

from pathlib import Path
from types import SimpleNamespace

import attrs
import pytest

from gradestack import Input, Limits, PluginError, Shard
from gradestack_plugins.engines import lost
from gradestack_plugins.engines.lost import MOST_KILLERS, grade_lost
from gradestack_plugins.engines.processes import out_of_memory

SHARD = Shard(
    ordinal=4, input=Input(path=Path("x"), name="x", shown="runs.jsonl"), start=70, first_row=100
)
UNLIMITED = SimpleNamespace(limits=Limits())


@attrs.frozen
class Work:
    """A thousand records, of which some end a worker."""

    deadly: frozenset = frozenset()
    positions: range | None = None
    faults: dict = attrs.field(factory=dict)
    strict: bool = False
    plan: SimpleNamespace = UNLIMITED
    count: int = 1000

    def limited(self, positions):
        return attrs.evolve(self, positions=positions)

    def without(self, ordinal, position, fault):
        faults = {**self.faults, (ordinal, position): fault.code}
        return attrs.evolve(self, faults=faults)


class Attempts:
    """Attempts at a shard; ``dies`` says whether one of them ends its worker."""

    def __init__(self, dies=None, why=None):
        self.dies = dies
        self.why = why
        self.made = 0

    def __call__(self, work, shard):
        self.made += 1
        if work.positions is None:
            graded = range(work.count)
        else:
            graded = work.positions
        keys = work.faults.keys()
        alive = {(shard.ordinal, position) for position in graded} - keys
        if self.dies:
            ends = self.dies(self.made)
        else:
            ats = {at for _, at in alive}
            ends = ats & work.deadly
        if ends:
            return False, self.why
        left_out = work.count - len(graded)
        return True, SimpleNamespace(faults=work.faults, left_out=left_out)


@pytest.mark.parametrize("deadly", [{0}, {999}, {2, 3, 900}, {0, 1, 2, 998, 999}])
def test_only_the_records_that_end_workers_are_left_out(deadly):
    attempt = Attempts()
    killers = []
    work = Work(frozenset(deadly))
    result = grade_lost(work, SHARD, attempt, killers)
    expected = {(4, position): "worker_died" for position in deadly}
    assert result.faults == expected
    assert len(killers) == len(deadly)
    workers_a_record = 13  # one that reads, ten halvings, one for the record, one for the rest
    assert attempt.made <= workers_a_record * len(deadly)


def test_one_record_too_many_ends_the_evaluation():
    """Whichever shards they are in."""
    killers = ["another record"] * (MOST_KILLERS - 1)
    work = Work(frozenset({5}))
    result = grade_lost(work, SHARD, Attempts(), killers)
    assert result.faults == {(4, 5): "worker_died"}
    with pytest.raises(PluginError, match=r"more than 5 records .*\n.*grading record 105 ends"):
        grade_lost(Work(frozenset({5})), SHARD, Attempts(), killers)


def test_a_death_elsewhere_is_nobodys_fault():
    faults = grade_lost(Work(), SHARD, Attempts(lambda made: made in (3, 5)), []).faults
    assert faults == {}


@pytest.mark.parametrize("count", [0, 10])
def test_deaths_all_over_the_place_end_the_run(count):
    """A worker that dies of a whole shard, but of no record alone."""

    def attempt(work, shard):
        survived = work.positions is not None and len(work.positions) < max(2, count)
        return survived, SimpleNamespace(left_out=count)

    with pytest.raises(PluginError, match="die at ever different records"):
        grade_lost(Work(), SHARD, attempt, [])


def test_reading_that_ends_workers():
    with pytest.raises(PluginError, match="reading the range from byte 70 ends every worker"):
        grade_lost(Work(), SHARD, Attempts(lambda _: True), [])


def test_a_strict_run_ends_with_the_record():
    with pytest.raises(PluginError, match=r"runs\.jsonl: grading record 105 ends its worker"):
        grade_lost(Work(frozenset({5}), strict=True), SHARD, Attempts(), [])


def test_work_that_cannot_be_limited():
    with pytest.raises(PluginError, match="ends every worker process"):
        grade_lost(len, SHARD, Attempts(), [])


def test_what_is_known_of_the_deaths_is_told():
    """Memory that runs out around the graders is not blamed on reading, nor on a record."""
    memory = 64 << 20
    why = out_of_memory(SHARD, memory)
    cramped = Attempts(lambda _: True, why)
    expected = (
        r"range from byte 70 does not fit into a worker's memory \(64 MiB\)\n  - give workers"
    )
    for work in (Work(), Work(strict=True), len):
        with pytest.raises(PluginError, match=expected):
            grade_lost(work, SHARD, cramped, [], why=why)


def test_a_record_that_took_too_long(monkeypatch):
    """It has kept its worker for the time of a grade and the grace it has."""
    limits = Limits(seconds_per_grade=60.0)
    limited = SimpleNamespace(limits=limits)
    times = iter([0.0, 71.0, 100.0, 171.0])
    monkeypatch.setattr(lost.time, "monotonic", lambda: next(times))
    work = Work(frozenset({5}), plan=limited)
    assert grade_lost(work, SHARD, Attempts(), []).faults == {(4, 5): "timed_out"}
    with pytest.raises(PluginError, match="took longer than 60 s"):
        grade_lost(attrs.evolve(work, strict=True), SHARD, Attempts(), [])
