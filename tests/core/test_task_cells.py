"""What aggregators hold per task: little memory, whatever the split, and every task once."""

import gc
import json
import random
import tracemalloc
from collections import Counter
from fractions import Fraction

import pytest

from gradestack import Grade, Key, TaskCells, testing
from gradestack.estimates import tasks
from gradestack_plugins.statistics.mean import Mean
from gradestack_plugins.tau_bench.reliability import PassAtK, PassHatK


@pytest.fixture(params=[2, 8])
def few_notes(monkeypatch, request):
    """Let no more than six notes stay as they came, and count two equal ones, or none."""
    monkeypatch.setattr(tasks, "NOTES", 6)
    monkeypatch.setattr(tasks, "USUAL", request.param)


class Sums(tasks.PerTask):
    """Adds numbers."""

    def fewer(self, notes, most):
        return notes if len(notes) <= most else [sum(notes)]


SUMS = Sums()


def values(state):
    return [sum(notes) for (part,) in tasks.mappings([state["m"]], SUMS.fewer) for notes in part.values()]


def held(pairs):
    state = SUMS.start()
    for task, value in pairs:
        SUMS.add(state, Key(id=task, model="m"), value)
    return state


@pytest.mark.usefixtures("few_notes")
@pytest.mark.parametrize("seed", range(20))
def test_every_task_has_one_value_however_the_input_is_split(seed):
    """Powers of two that are added, merged in any grouping, after a JSON round trip: as one mapping adds them up."""
    rng = random.Random(seed)  # noqa: S311 - test data
    pairs = [(f"t{rng.randrange(30)}", 1 << number) for number in range(120)]
    cuts = sorted(rng.randrange(121) for _ in range(6))
    states = [held(pairs[a:b]) for a, b in zip([0, *cuts], [*cuts, 120], strict=True)]
    while len(states) > 1:
        at = rng.randrange(len(states) - 1)
        right = json.loads(json.dumps(states.pop(at + 1)))
        before = json.dumps(right)
        SUMS.merge(states[at], right)
        assert json.dumps(right) == before
    expected = Counter()
    for task, value in pairs:
        expected[task] += value
    assert sorted(values(states[0])) == sorted(expected.values())
    assert len(states[0]["m"]["tasks"]) <= 6


@pytest.mark.usefixtures("few_notes")
def test_any_text_is_a_task():
    """Empty ids, lone surrogates, quotes and line ends come back as what they were: met again, they are the same."""
    odd = ["", "\ud800", "\udc00", '"', "\n", "é", "日本", "a", "\0"]
    state = held([(task, 1) for task in odd * 3])
    assert sorted(values(state)) == [3] * len(odd)


def test_tasks_met_again_and_again_take_no_more():
    """However often: what is put away is joined before it is five times as long as it need be."""
    shown = [(f"task {number}", 1) for number in range(3 * tasks.NOTES)]

    def size(times):
        state = SUMS.start()
        for _ in range(times):
            SUMS.merge(state, held(shown))
        assert set(values(state)) == {times}
        return len(json.dumps(state))

    assert size(50) < 5 * size(1)


def fold(aggregator, records):
    """Return the state of tasks of one run each, merged as ranges of 1,000 records are."""
    state = aggregator.start()
    for start in range(0, records, 1000):
        part = aggregator.start()
        for number in range(start, start + 1000):
            key = Key(id=f"task-{number:06}", run=0, ordinal=number)
            part = aggregator.add(part, key, Grade(score=float(number % 7 / 7)))
        state = aggregator.merge(state, part)
    return state


@pytest.mark.parametrize(
    "aggregator",
    [Mean(), pytest.param(PassHatK(), marks=pytest.mark.proof), pytest.param(PassAtK(), marks=pytest.mark.proof)],
    ids=lambda each: type(each).__name__,
)
def test_a_task_of_one_run_takes_less_than_a_hundred_bytes(aggregator, monkeypatch):
    """Its id included, and with the figures put together; an eighth of the notes, as of 320,000 tasks in a run."""
    monkeypatch.setattr(tasks, "NOTES", 4096)
    fold(aggregator, 1000)
    gc.collect()
    tracemalloc.start()
    try:
        state = fold(aggregator, 40_000)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] / 40_000
        tracemalloc.reset_peak()
        figures = aggregator.finish(state)
        most = tracemalloc.get_traced_memory()[1] / 40_000
    finally:
        tracemalloc.stop()
    assert figures.get("clusters", figures.get("tasks")) == 40_000
    assert kept < 60
    assert most < 100


@pytest.mark.parametrize("notes", [1, 100])
def test_large_whole_numbers_add_up_exactly_with_fractions(notes, monkeypatch):
    """Whole numbers whose sum no float holds, and then a half: the same sum, whether they were added before or not."""
    monkeypatch.setattr(tasks, "NOTES", notes)
    cells, state = TaskCells("samples", "sum"), {}
    for value in (2**53, 1, *[0] * 20, 0.5):
        cells.merge(state, cells.add(cells.start(), Key(id="a"), [1, value]))
    assert cells.rounded(state)[0] == {(23, 2**53 + 2): 1}
    assert cells.totals(state)["sum"] == 2**53 + Fraction(3, 2)


@pytest.mark.usefixtures("few_notes")
@pytest.mark.parametrize("aggregator", [Mean(), PassHatK(), PassHatK(trials="task"), PassAtK()])
@pytest.mark.parametrize("seed", range(3))
def test_the_laws_of_merging_hold_where_tasks_are_put_away(aggregator, seed):
    """Identity, associativity, any split, JSON round trips, with ==."""
    testing.check_aggregator(aggregator, seed=seed)


@pytest.mark.parametrize("copied", [False, True])
def test_usual_notes_are_counted_exactly(copied, monkeypatch):
    """Thirds and tenths of 100 tasks, met again 50 times, once as other objects: six values, and sums as fractions."""
    monkeypatch.setattr(tasks, "NOTES", 1000)
    cells, state = TaskCells("samples", "sum"), {}
    rng = random.Random(1)  # noqa: S311 - test data
    usual = [[1, value] for value in (0.0, 1.0, 1 / 3, 2 / 3, 0.1, 0.7)]
    expected = Counter()
    for run in range(50):
        part = cells.start()
        for task in range(100):
            expected[task] += Fraction((note := rng.choice(usual))[1])
            cells.add(part, Key(id=f"t{task}", run=run), note)
        cells.merge(state, json.loads(json.dumps(part)) if copied else part)
    assert len(state[""]["usual"]) == 6
    assert len(state[""]["tasks"]) <= 250
    exact = Counter()
    for (_, parts), times in cells.counted(state)[0].items():
        exact[sum(map(Fraction, parts)) if isinstance(parts, tuple) else Fraction(parts)] += times
    assert exact == Counter(expected.values())
    assert cells.rounded(state)[0] == Counter((50, float(each)) for each in expected.values())
    assert cells.totals(state) == {"samples": 5000, "sum": sum(expected.values())}


def test_usual_notes_take_no_more_memory_however_many_samples():
    """A note for each task and value, as text, whether 20 or 200 samples had it."""

    def size(runs):
        cells, state = TaskCells("samples", "sum"), {}
        note = [1, 0.5]
        for _ in range(runs):
            part = cells.start()
            cells.add_many(part, [Key(id=f"t{task}") for task in range(2000)], [note] * 2000)
            cells.merge(state, part)
        return len(json.dumps(state))

    assert size(200) < 1.2 * size(20)
