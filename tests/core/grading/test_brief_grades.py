"""Reasons nobody reads are not asked for, and classes that work anew do not inherit a short form."""

import attrs
import pytest

from gradestack import Aggregator, Grade, Grader, Key, Reason, Sample, replace
from gradestack_plugins.statistics.mean import Mean
from gradestack_plugins.tau_bench.aggregators import PartialStatistics
from tests.core.block_samples import SHARD, Log, numbered
from tests.core.workers import grader_stage, metric


@attrs.frozen(kw_only=True)
class Explaining(Grader):
    """Says in its grade which form was asked for."""

    def grade(self, sample):
        return Grade(score=1.0, reasons=(Reason(code="long"),))

    def brief(self, sample):
        return Grade(score=1.0)


@attrs.frozen(kw_only=True)
class Reading(Aggregator[dict[str, int]]):
    """Counts reasons."""

    def start(self):
        return {"n": 0}

    def add(self, state, key, grade):
        return {"n": state["n"] + len(grade.reasons)}

    def merge(self, left, right):
        return {"n": left["n"] + right["n"]}

    def finish(self, state):
        return dict(state)


@attrs.frozen(kw_only=True)
class Blind(Reading):
    """Counts reasons all the same, though it says it does not."""

    reads_reasons = False


@pytest.mark.parametrize(
    ("aggregator", "rows_kept", "exporters", "reasons"),
    [
        (Reading(), False, (), 3),
        (Blind(), False, (), 0),
        (Blind(), True, (), 3),
        (Blind(), False, (("log", Log()),), 3),
    ],
)
def test_reasons_are_asked_for_where_somebody_reads_them(make_worker, aggregator, rows_kept, exporters, reasons):
    """Rows, exporters, or one of the metrics."""
    worker = make_worker(
        graders=(grader_stage(key="quality", component="toy", grader=Explaining()),),
        metrics=(metric(key="n", of="quality", aggregator=aggregator),),
        rows=rows_kept,
        exporters=exporters,
    )
    assert worker.process(SHARD, numbered(3)).states == {"quality/n": {"n": reasons}}


def test_a_class_that_grades_anew_does_not_inherit_the_short_form():
    """Its own grades are what a run without rows sees; a short form of its own is kept."""

    @attrs.frozen(kw_only=True)
    class Harsh(Explaining):
        def grade(self, sample):
            return Grade(score=0.0)

    @attrs.frozen(kw_only=True)
    class Harsher(Harsh):
        def brief(self, sample):
            return Grade(score=-1.0)

    @attrs.frozen(kw_only=True)
    class Named(Explaining):
        name: str = "x"

    assert Harsh().brief(Sample(id="a")) == Grade(score=0.0)
    assert Harsher().brief(Sample(id="a")) == Grade(score=-1.0)
    assert Named().brief(Sample(id="a")) == Grade(score=1.0)


def test_a_class_that_counts_anew_does_not_inherit_the_way_of_counting_blocks():
    """Nor what its base says about reasons; what it says itself stands."""

    @attrs.frozen(kw_only=True)
    class Doubled(PartialStatistics):
        def add(self, state, key, grade):
            return super().add(super().add(state, key, grade), key, grade)

    @attrs.frozen(kw_only=True)
    class Odd(Mean):
        reads_reasons = False

        def add(self, state, key, grade):
            return super().add(state, key, replace(grade, score=0.0))

    keys, grades = [Key(id=str(number)) for number in range(3)], [Grade(score=1.0)] * 3
    doubled, odd = Doubled(), Odd()
    assert doubled.finish(doubled.add_many(doubled.start(), keys, grades))["n"] == 6
    assert odd.finish(odd.add_many(odd.start(), keys, grades))["mean"] == 0.0
    assert (Doubled.reads_reasons, Odd.reads_reasons, PartialStatistics.reads_reasons) == (True, False, False)
