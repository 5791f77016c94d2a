"""Whatever interrupts a block, rows and figures are about the same samples."""

import signal

import attrs
import pytest

from gradestack import Aggregator, Grade, Grader, Sample
from gradestack_plugins.statistics.mean import Mean
from tests.core.block_samples import SHARD, consistent, numbered
from tests.core.workers import grader_stage, metric, singly

HALF = 0.5


@attrs.frozen(kw_only=True)
class Interrupted(Grader):
    """Does something at certain samples; the tenth has a score of its own."""

    at: dict[str, object] = attrs.field(factory=dict)

    def grade(self, sample):
        if sample.id in self.at:
            self.at[sample.id]()
        score = 1.0
        if sample.id == "10":
            score = HALF
        return Grade(score=score)


def ctrl_c(times=1):
    def press():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)

    return press


def stop():
    raise KeyboardInterrupt


def slots(*graders):
    pairs = zip(("quality", "b", "c"), graders, strict=False)
    return tuple(grader_stage(key=key, component="toy", grader=grader) for key, grader in pairs)


@pytest.fixture
def interrupted(make_worker, quick, toys):
    """Return a function that grades numbered samples with graders, in blocks, and gives
    the result.
    """
    quick(64)

    def run(*graders, samples=None, **fields):
        made = slots(*graders)
        aggregator = toys.Count()
        count = metric(key="toy_count", of="quality", aggregator=aggregator)
        means = []
        for slot in made:
            means.append(metric(key="mean", of=slot.key, aggregator=Mean()))
        options = {"graders": made, "metrics": (count, *means)}
        before = signal.getsignal(signal.SIGINT)
        try:
            worker = make_worker(**{**options, **fields})
            if samples is None:
                records = numbered()
            else:
                records = samples
            blocks = singly(records)
            return worker.process(SHARD, blocks)
        finally:
            assert signal.getsignal(signal.SIGINT) is before

    return run


@pytest.mark.parametrize("at", [0, 40, 63])
@pytest.mark.parametrize("grader_position", [0, 1, 2])
def test_samples_not_all_graders_have_judged_are_left_out(interrupted, grader_position, at):
    graders = []
    for number in range(3):
        graders.append(Interrupted(at={str(at): stop} if number == grader_position else {}))
    result = interrupted(*graders)
    assert consistent(result) == [str(number) for number in range(at)]
    assert result.interrupted


def test_an_interruption_while_another_is_dealt_with_drops_the_block(interrupted):
    """The other graders are asked about the samples before.

    Interrupted there, too, nothing of the block is kept.
    """
    make_worker = Interrupted(at={"40": stop})
    result = interrupted(make_worker, Interrupted(at={"35": stop}))
    assert consistent(result) == [str(number) for number in range(31)]
    assert result.interrupted


@pytest.mark.parametrize("at", [0, 1, 40, 62])
def test_the_first_ctrl_c_lets_the_block_be_finished(interrupted, at):
    make_worker = Interrupted(at={str(at): ctrl_c()})
    result = interrupted(make_worker)
    end = next(end for end in (1, 3, 7, 15, 31, 63) if end > at)
    assert consistent(result) == [str(number) for number in range(end)]
    assert result.interrupted


@pytest.mark.parametrize("at", [0, 1, 40, 62])
def test_the_second_ctrl_c_ends_at_once(interrupted, at):
    make_worker = Interrupted(at={str(at): ctrl_c(2)})
    result = interrupted(make_worker)
    assert consistent(result) == [str(number) for number in range(at)]
    assert result.interrupted


def test_ctrl_c_while_reading_grades_what_was_read(interrupted):
    """Once, twice, or as an exception of the reader's.

    The samples waiting for their block are not lost.
    """
    for press in (ctrl_c(), ctrl_c(2), stop):

        def reading(press=press):
            for number in range(100):
                if number == 50:
                    press()
                yield Sample(id=str(number), recorded={"score": 1.0})

        result = interrupted(Interrupted(), samples=reading())
        assert consistent(result) == [str(number) for number in range(50)]
        assert result.interrupted


def test_ctrl_c_while_the_rest_is_graded_keeps_what_was_judged(interrupted):
    for press, end in ((ctrl_c(), 100), (ctrl_c(2), 99), (stop, 99)):
        make_worker = Interrupted(at={"99": press})
        result = interrupted(make_worker)
        assert consistent(result) == [str(number) for number in range(end)]
        assert result.interrupted


@attrs.frozen(kw_only=True)
class Pressing(Aggregator):
    """Is interrupted while it looks at the grade of the tenth sample."""

    press: object = None

    def contribution(self, grade):
        if grade.score == HALF:
            self.press()
        return {"n": 1}

    def compute(self, grades):
        return {"n": int(grades.totals["n"])}


@pytest.mark.parametrize("times", [1, 2, 5])
def test_ctrl_c_while_figures_are_counted_waits_for_them(interrupted, toys, times):
    """However often: the block's rows and figures stay together, and then the run ends."""
    pressing = Pressing(press=ctrl_c(times))
    metrics = (
        metric(key="press", of="quality", aggregator=pressing),
        metric(key="toy_count", of="quality", aggregator=toys.Count()),
    )
    result = interrupted(Interrupted(), metrics=metrics)
    assert consistent(result) == [str(number) for number in range(15)]
    assert result.interrupted


def test_figures_that_are_torn_are_not_passed_on(interrupted):
    """A metric that raises what only Ctrl-C raises: the shard has no result."""
    for samples in (None, numbered(12)):
        with pytest.raises(KeyboardInterrupt):
            interrupted(
                Interrupted(),
                samples=samples,
                metrics=(metric(key="press", of="quality", aggregator=Pressing(press=stop)),),
            )
