"""Samples are graded in blocks: whatever their size, rows and figures tell the same."""

import attrs
import pytest

from gradestack import BadRecord, DataError, Expectation, Fault, PluginError, Sample, Source
from gradestack.grading import worker as workers
from gradestack.grading.selection import Selection, identity_of
from gradestack_plugins.statistics.mean import Mean
from tests.core.block_samples import CALL, SHARD, consistent, records, rows, sample, whole
from tests.core.workers import grader_stage, merged, metric, singly

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
    "poisoned": {"poison": dict.fromkeys([(3, 0), (3, 12), (3, 13), (3, 99), (4, 5)], DIED)},
    "all": {
        "selection": SELECTION,
        "dataset": DATASET,
        "poison": dict.fromkeys([(3, 11), (3, 41)], DIED),
    },
    "without exporters": {"exporters": ()},
    "without rows": {"rows": False},
    "figures only": {"rows": False, "exporters": ()},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_size_of_blocks_changes_nothing(make_worker, quick, way):
    found = []
    for size in (1, 2, 5, 64, 1000):
        quick(size)
        worker = make_worker(**WAYS[way])
        found.append(whole(worker, records()))
    for other in found[1:]:
        assert other == found[0]
    assert found[0]["bad"][0] == 7


def test_without_rows_the_figures_are_the_same(make_worker, quick):
    quick(64)
    given = [each for each in records() if isinstance(each, BadRecord) or "deep" not in each.facets]
    given = [
        each for each in given if isinstance(each, BadRecord) or each.recorded.get("do") != "set"
    ]
    long, short, bare = (
        whole(make_worker(**fields), given)
        for fields in ({}, {"rows": False}, {"rows": False, "exporters": ()})
    )
    assert (long.pop("rows") is None, short.pop("rows"), bare.pop("rows")) == (False, None, None)
    assert short == long
    assert bare | {"native": long["native"]} == long
    assert bare["native"] == {}


def test_every_grader_sees_every_sample_in_order_and_once_when_it_is_not_watched_any_more(
    make_worker, quick, toys
):
    quick(64)
    seen, read = [], []

    @attrs.frozen(kw_only=True)
    class Looking(toys.Toy):
        def grade(self, given):
            seen.append(given.id)
            return super().grade(given)

    def reading():
        for number in range(500):
            read.append(number)
            assert len(read) - len(seen) <= workers.LARGEST_BLOCK
            yield Sample(id=str(number), recorded={"score": 1.0})

    worker = make_worker(
        graders=(grader_stage(key="quality", component="toy", grader=Looking()),), metrics=()
    )
    result = worker.process(SHARD, singly(reading()))
    assert list(dict.fromkeys(seen)) == [str(number) for number in range(500)]
    assert [each for each in seen if int(each) > 320] == [str(number) for number in range(321, 500)]
    assert result.samples == 500
    assert set(result.timings) == {"quality"}
    assert result.timings["quality"] > 0


def test_a_raising_grader_fails_its_sample_alone(make_worker, quick):
    quick(64)
    result = make_worker().process(SHARD, singly([sample(number) for number in range(45)]))
    found = dict(enumerate(rows(result)))
    failed = [
        number for number, row in found.items() if row["grades"]["quality"]["state"] == "failed"
    ]
    wanted = {5, 7, 17, 23, 29, 38, 41, 42} | {number for number in range(45) if number % 8 == 0}
    assert set(failed) == wanted
    assert found[5]["grades"]["partial"]["state"] == "graded"
    assert "ZeroDivisionError" in found[5]["grades"]["quality"]["metadata"]["error_type"]
    consistent(result)


def test_a_strict_run_ends_at_the_first_problem(make_worker, quick):
    quick(64)
    fine = [sample(number) for number in (1, 2, 4)]
    worker = make_worker(strict=True)
    for wrong, kind, words in (
        (sample(5), PluginError, r"grader 'quality' \(toy 7\) raised on in.jsonl:6"),
        (sample(17), PluginError, "broke its contract on in.jsonl:18"),
        (sample(29), PluginError, "broke its contract on in.jsonl:30"),
        (BadRecord(source=Source(file="f", line=9), reason="no"), DataError, "f:9: no"),
    ):

        def reading(wrong=wrong):
            yield from fine
            yield wrong
            pytest.fail("it went on")

        with pytest.raises(kind, match=words):
            worker.process(SHARD, singly(reading()))


def test_a_metric_that_raises_leaves_the_others_whole(make_worker, quick, toys):
    fine = [metric(key="mean", of="quality", aggregator=Mean())]
    broken = metric(key="broken", of="quality", aggregator=toys.Count(fail="numbers"))
    found = []
    for size in (1, 64):
        quick(size)
        worker = make_worker(metrics=(broken, *fine))
        result = worker.process(SHARD, singly(records()))
        figures = merged(worker, result).figures()["quality"]["mean"]
        found.append((figures, result.parts.rows.read_bytes(), result.broken))
    assert found[0] == found[1]
    assert list(found[0][2]) == ["quality/broken"]


def sizes_of(monkeypatch, worker, seconds, count=300, reading=0.0):
    """Return the sizes of blocks when grading sample n takes ``seconds(n)`` by the clock, reading
    it ``reading``.
    """
    now, sizes = [0.0], []
    grade = workers.Graders.grade

    def timed(self, samples):
        now[0] += sum(seconds(int(each.id)) for each in samples)
        sizes.append(len(samples))
        return grade(self, samples)

    monkeypatch.setattr(workers, "perf_counter", lambda: now[0])
    monkeypatch.setattr(workers.Graders, "grade", timed)

    def samples():
        for number in range(count):
            now[0] += reading
            yield Sample(id=str(number), recorded={"score": 1.0})

    worker.process(SHARD, singly(samples()))
    assert sum(sizes) == count
    return sizes


def test_quick_blocks_grow_to_the_largest(monkeypatch, make_worker):
    sizes = sizes_of(monkeypatch, make_worker(), lambda _: 1e-6, count=1000)
    assert sizes == [1, 2, 4, 8, 16, 32, *[64] * 14, 41]


def test_slow_graders_are_asked_sample_by_sample(monkeypatch, make_worker):
    """So that an interruption is never far away; after slow samples blocks start anew."""
    assert sizes_of(monkeypatch, make_worker(), lambda _: 1.0, count=20) == [1] * 20
    assert (
        max(
            sizes_of(monkeypatch, make_worker(), lambda number: 0.004 if number < 40 else 1e-6)[:10]
        )
        <= 4
    )


def test_few_samples_are_held_that_take_long_to_read(monkeypatch, make_worker):
    assert max(sizes_of(monkeypatch, make_worker(), lambda _: 1e-6, reading=0.004)) <= 4


@pytest.mark.parametrize("fields", [{"noting": True}, {"strict": True}])
def test_where_one_sample_may_end_everything_blocks_do_not_grow(monkeypatch, make_worker, fields):
    """The place noted is that of the sample being graded."""
    assert set(sizes_of(monkeypatch, make_worker(**fields), lambda _: 0.0, count=20)) == {1}
