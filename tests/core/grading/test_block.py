"""Samples are graded in blocks: whatever their size, rows and figures tell the same."""

import pytest

from gradestack import BadRecord, DataError, Expectation, Fault, PluginError, Sample, Source
from gradestack.grading import worker as workers
from gradestack.grading.selection import Selection, identity_of
from tests.core.block_samples import CALL, SHARD, records, sample, whole_result
from tests.core.workers import singly

SELECTION = Selection(
    tags=frozenset({"odd"}),
    last={
        identity_of(sample(21)): (3, 41),
        identity_of(sample(33)): (3, 33),
        identity_of(sample(7)): (3, 7),
    },
)

DATASET = {
    f"t{number}": Sample(
        id=f"t{number}", expected=Expectation(calls=(CALL,), text="2"), facets={"d": number}
    )
    for number in range(0, 20, 2)
}
DIED = Fault(category="grading", code="worker_died", message="gone")
WAYS = {
    "plain": {},
    "selected": {"selection": SELECTION},
    "joined": {"dataset": DATASET},
    "without some": {"faults": dict.fromkeys([(3, 0), (3, 12), (3, 13), (3, 99), (4, 5)], DIED)},
    "all": {
        "selection": SELECTION,
        "dataset": DATASET,
        "faults": dict.fromkeys([(3, 11), (3, 41)], DIED),
    },
    "without exporters": {"exporters": ()},
    "without rows": {"rows": False},
    "figures only": {"rows": False, "exporters": ()},
}


def test_a_strict_run_ends_at_the_first_problem(make_worker, quick):
    quick(64)
    worker = make_worker(strict=True)
    for wrong, kind, words in (
        (sample(5), PluginError, r"grader 'quality' \(toy 7\) raised on in.jsonl:6"),
        (sample(17), PluginError, "broke its contract on in.jsonl:18"),
        (BadRecord(source=Source(file="f", line=9), reason="no"), DataError, "f:9: no"),
    ):
        with pytest.raises(kind, match=words):
            worker.process(SHARD, singly([sample(1), sample(2), wrong, sample(4)]))


@pytest.mark.parametrize("way", WAYS)
def test_the_size_of_blocks_changes_nothing(make_worker, quick, way):
    collected = []
    for size in (1, 2, 5, 64, 1000):
        quick(size)
        worker = make_worker(**WAYS[way])
        collected.append(whole_result(worker, records()))
    for other in collected[1:]:
        assert other == collected[0]
    bad = collected[0]["bad"]
    assert bad[0] == 7


def sizes_of(monkeypatch, worker, seconds, count=300, reading=0.0):
    """Return the sizes of blocks when grading sample n takes ``seconds(n)`` by the clock, reading
    it ``reading``.
    """
    now, sizes = [0.0], []
    grade = workers.Graders.grade

    def timed(self, samples):
        now[0] += sum(seconds(int(timed_sample.id)) for timed_sample in samples)
        sizes.append(len(samples))
        return grade(self, samples)

    monkeypatch.setattr(workers, "perf_counter", lambda: now[0])
    monkeypatch.setattr(workers.Graders, "grade", timed)

    def samples():
        for number in range(count):
            now[0] += reading
            yield Sample(id=str(number), recorded={"score": 1.0})

    blocks = singly(samples())
    worker.process(SHARD, blocks)
    assert sum(sizes) == count
    return sizes


def test_quick_blocks_grow_to_the_largest(monkeypatch, make_worker):
    sizes = sizes_of(monkeypatch, make_worker(), lambda _: 1e-6, count=1000)
    expected = [1, 2, 4, 8, 16, 32, *[64] * 14, 41]
    assert sizes == expected


def test_slow_graders_are_asked_sample_by_sample(monkeypatch, make_worker):
    """So that an interruption is never far away; after slow samples blocks start anew."""
    sizes = sizes_of(monkeypatch, make_worker(), lambda _: 1.0, count=20)
    assert sizes == [1] * 20
    largest_size = max(
        sizes_of(monkeypatch, make_worker(), lambda number: 0.004 if number < 40 else 1e-6)[:10]
    )
    assert largest_size <= 4


def test_few_samples_are_held_that_take_long_to_read(monkeypatch, make_worker):
    sizes = sizes_of(monkeypatch, make_worker(), lambda _: 1e-6, reading=0.004)
    largest_size = max(sizes)
    assert largest_size <= 4


def test_where_one_sample_may_end_everything_blocks_do_not_grow(monkeypatch, make_worker):
    worker = make_worker(strict=True)
    sizes = set(sizes_of(monkeypatch, worker, lambda _: 0.0, count=20))
    assert sizes == {1}
