"""Finding the records that end workers, apart from how workers are run."""

from pathlib import Path

import attrs
import pytest

from gradestack import Input, PluginError, Shard
from gradestack_plugins.engines.processes import alone, full

SHARD = Shard(
    ordinal=4, input=Input(path=Path("x"), name="x", shown="runs.jsonl"), start=70, first_row=100
)


@attrs.frozen
class Work:
    """Ten records; dies at some unless they are poison."""

    deadly: frozenset = frozenset()
    poison: dict = attrs.field(factory=dict)
    strict: bool = False
    reached: list = attrs.field(factory=list)
    watching: bool = False
    step: str = ""

    def watched(self):
        return attrs.evolve(self, watching=True)

    def last_note(self, shard):
        return self.reached[-1], 0.0, self.step

    def isolated(self, ordinal, position, fault):
        return attrs.evolve(self, poison={**self.poison, (ordinal, position): fault.code})


def attempt(work, shard):
    assert work.watching
    for position in range(10):
        work.reached.append(position)
        if position in work.deadly and (shard.ordinal, position) not in work.poison:
            return False, None
    return True, work.poison


def test_only_the_records_that_end_workers_are_left_out():
    expected = dict.fromkeys([(4, 2), (4, 3), (4, 9)], "worker_died")
    assert alone(Work(frozenset({2, 3, 9})), SHARD, attempt) == expected
    assert alone(Work(), SHARD, attempt) == {}


@pytest.mark.parametrize(("certain", "deaths"), [(1, 1), (2, 2)])
def test_a_record_is_blamed_when_it_is_certain(certain, deaths):
    """Where a single attempt says little, it takes a second one."""
    work = Work(frozenset({5}))
    alone(work, SHARD, attempt, certain=certain)
    assert work.reached.count(0) == deaths + 1


def test_a_death_elsewhere_is_nobodys_fault():
    """A worker killed from outside once leaves no record ungraded."""
    chance = iter([3, 8, None])

    def unlucky(work, shard):
        at = next(chance)
        if at is None:
            return True, work.poison
        work.reached.append(at)
        return False, None

    assert alone(Work(), SHARD, unlucky) == {}


def test_deaths_all_over_the_place_end_the_run():
    """There is something wrong with the machine, not with a record."""
    places = iter(range(100))

    def doomed(work, shard):
        work.reached.append(next(places))
        return False, None

    with pytest.raises(
        PluginError, match=r"runs\.jsonl: workers on the range from byte 70 die at ever different"
    ):
        alone(Work(), SHARD, doomed)


def test_a_record_whose_reading_kills():
    """It cannot be left out by not grading it."""

    def reading(work, shard):
        work.reached.append(6)
        return False, None

    with pytest.raises(
        PluginError, match=r"byte 70 ends every worker process \(record 6 of it\)\n  - a path"
    ):
        alone(Work(), SHARD, reading)
    with pytest.raises(
        PluginError,
        match=r"worker process \(record 6 of it\), in reader acme: read\n  - it crashes",
    ):
        alone(Work(step="reader acme: read"), SHARD, reading)


def test_a_strict_run_ends_with_the_record():
    with pytest.raises(
        PluginError, match=r"runs\.jsonl: grading record 105 ends its worker process"
    ):
        alone(Work(frozenset({5}), strict=True), SHARD, attempt)


def test_work_that_cannot_be_watched():
    with pytest.raises(PluginError, match=r"ends every worker process\n  - a path"):
        alone(len, SHARD, attempt)


def test_what_is_known_of_the_deaths_is_told():
    """Memory that runs out around the graders is not blamed on reading, nor on the machine."""
    why = full(SHARD, 64 << 20)

    def cramped(work, shard):
        work.reached.append(6)
        return False, why

    expected = (
        r"runs\.jsonl: the range from byte 70 does not fit into a worker's memory \(64 "
        r"MiB\)\n  - give workers"
    )
    for work in (Work(), Work(strict=True)):
        with pytest.raises(PluginError, match=expected):
            alone(work, SHARD, cramped)
    with pytest.raises(PluginError, match=expected):
        alone(len, SHARD, cramped, why=why)


def test_a_death_while_the_position_is_noted():
    """Such a note says nothing: the range is tried again, and not for ever."""

    @attrs.frozen
    class Hasty(Work):
        def last_note(self, shard):
            return int(self.reached[-1]), 0.0, ""

    def at(*notes):
        left = iter(notes)

        def attempt(work, shard):
            work.reached.append(next(left, None))
            return (True, work.poison) if work.reached[-1] is None else (False, None)

        return attempt

    assert alone(Hasty(), SHARD, at("", "", 3, "", 3)) == {(4, 3): "worker_died"}
    with pytest.raises(PluginError, match="die at ever different records"):
        alone(Hasty(), SHARD, at(*[""] * 20))
