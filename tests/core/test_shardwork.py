"""Samples are graded in blocks: whatever their size, and whatever interrupts them, rows and figures tell the same."""

import json
import signal

import attrs
import pytest

from gradestack import shardwork
from gradestack.api import Aggregator, Exporter, Extractor, Grader, Input, Shard
from gradestack.errors import DataError, PluginError
from gradestack.gate import GateSpec
from gradestack.model import (
    BadRecord,
    Expectation,
    Fault,
    Grade,
    Key,
    Message,
    Reason,
    Sample,
    Source,
    Status,
    ToolCall,
)
from gradestack.pipeline import MetricSlot, Worker
from gradestack.selection import Selection, digest
from gradestack.slots import GraderSlot
from gradestack.tally import figures
from gradestack_plugins.extractors.assistant import LastAssistant
from gradestack_plugins.statistics.mean import Mean
from gradestack_plugins.tau_bench.aggregate import PartialStatistics
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.text_graders.json_equal import JsonEqual

GIVEN = Input(path="in.jsonl", name="in", shown="in.jsonl")
SHARD = Shard(ordinal=3, input=GIVEN, position=1000)
CALL = ToolCall(name="f", arguments={"x": 1, "y": [1, 2]})


@attrs.frozen(kw_only=True)
class Log(Exporter):
    """Two files: one chunk per record, and one for every other record."""

    separator = "|"

    def row(self, record, grades, shard):
        if isinstance(record, BadRecord):
            yield "all.txt", f"bad {record.source.line}"
            return
        yield "all.txt", f"{record.id}={grades['toy'].outcome}"
        if record.id.endswith("0"):
            yield "some.txt", record.id


@pytest.fixture
def quick(monkeypatch):
    """Let blocks grow whatever they take, up to a size that can be changed."""
    monkeypatch.setattr(shardwork, "QUICK_BLOCK", 1e9)
    return lambda size: monkeypatch.setattr(shardwork, "LARGEST_BLOCK", size)


@pytest.fixture
def make_worker(tmp_path, toys):
    """Return a function that makes a worker with graders and metrics of several kinds."""
    made = []

    def make(**fields):
        parts = tmp_path / f"parts{len(made)}"
        parts.mkdir()
        toy = GraderSlot(key="quality", component="toy", grader=toys.Toy())
        partial = GraderSlot(key="partial", component="tau_partial", grader=TauPartial())
        text = GraderSlot(key="text", component="json_equal", grader=JsonEqual(), extractor=LastAssistant())
        usual = {
            "graders": (toy, partial, text),
            "metrics": (
                MetricSlot(key="toy_count", of="quality", aggregator=toys.Count()),
                MetricSlot(key="mean", of="quality", aggregator=Mean()),
                MetricSlot(key="mean", of="partial", aggregator=Mean()),
                MetricSlot(key="statistics", of="partial", aggregator=PartialStatistics()),
                MetricSlot(key="mean", of="text", aggregator=Mean()),
            ),
            "exporters": (("log", Log()),),
            "gate": GateSpec(op="gte", value=0.3),
            "headline": "quality",
        }
        made.append(Worker(reader=toys.Numbers(), index=None, parts=parts, **{**usual, **fields}))
        return made[-1]

    return make


WISHES = {5: "raise", 11: "skip", 17: "nothing", 23: "nan part", 29: "set", 41: "raise", 42: "raise"}


def sample(number, **fields):
    """Return a sample that asks the toy for a score, has calls, and an answer."""
    wish = {"do": WISHES[number]} if number in WISHES else {}
    failed = number % 31 == 7
    made = (CALL, attrs.evolve(CALL, arguments={"x": number % 4, "y": [2, 1]}))[number % 2 :]
    answer = Message(role="assistant", content=json.dumps(number % 3) if number % 9 else "")
    usual = {
        "id": f"t{number % 20}" if number % 10 else f"t{number}",
        "model": (None, "m", "é")[number % 3],
        "run": number // 20,
        "recorded": {"score": number % 5 / 7, **wish},
        "expected": Expectation(calls=(CALL,) if number % 6 else (), text="1"),
        "calls": made if number % 13 else None,
        "turns": ((answer,),),
        "status": Status.FAILED if failed else Status.MISSING if number == 50 else Status.OK,
        "error": Fault(category="target", code="x") if failed else None,
        "facets": {"tags": ["odd"] if number % 2 else [], "nan": float("nan")} if number % 8 else {"deep": {1}},
        "source": Source(file="in.jsonl", ordinal=number, line=number + 1),
    }
    return Sample(**{**usual, **fields})


def records(count=100):
    """Yield samples with bad records among them."""
    for number in range(count):
        if number % 14 == 3:
            yield BadRecord(source=Source(file="in.jsonl", ordinal=number, line=number + 1), reason=f"bad {number}")
        yield sample(number)


def rows(result):
    return [json.loads(line) for line in result.rows.read_bytes().splitlines()]


def told(worker, result):
    """Return everything a result says, the rows as they stand in the file."""
    aggregators = {f"{each.of}/{each.key}": each.aggregator for each in worker.metrics}
    return {
        "rows": None if result.rows is None else result.rows.read_bytes(),
        "metrics": {name: aggregators[name].finish(state) for name, state in result.states.items()},
        "tally": {
            model: {key: (figures(count, "documented"), figures(count, "upstream")) for key, count in counts.items()}
            for model, counts in result.tally.items()
        },
        "models": list(result.tally),
        "keys": bytes(result.keys),
        "bad": (result.bad, result.bad_listed),
        "native": {name: path.read_text() for name, path in result.native.items()},
        "rest": (result.samples, result.superseded, result.seen, result.broken, result.interrupted),
    }


def whole(worker, given):
    return told(worker, worker.process(SHARD, iter(given)))


def consistent(result):
    """Check that rows, counts, keys and every figure are about the same samples."""
    ids = [row["sample"]["id"] for row in rows(result)]
    assert result.samples == len(ids)
    assert [identifier for _, _, identifier in result.states["quality/toy_count"]["ids"]] == ids
    for name, state in result.states.items():
        if name.endswith("/mean"):
            assert state["total"] == len(ids)
    counted = [sum(count["states"].values()) for counts in result.tally.values() for count in counts.values()]
    assert sum(counted) == len(ids) * len({key for counts in result.tally.values() for key in counts})
    assert len(result.keys) == 8 * sum(row["status"] != "missing" for row in rows(result))
    if "log/all.txt" in result.native:
        chunks = result.native["log/all.txt"].read_text().split("|")
        assert [chunk.partition("=")[0] for chunk in chunks if not chunk.startswith("bad")] == ids
    return ids


# any size


SELECTION = Selection(
    tags=frozenset({"odd"}), last={digest(sample(21)): (3, 41), digest(sample(33)): (3, 33), digest(sample(7)): (3, 7)}
)
DATASET = {
    f"t{number}": Sample(id=f"t{number}", expected=Expectation(calls=(CALL,), text="2"), facets={"d": number})
    for number in range(0, 20, 2)
}
WAYS = {
    "plain": {},
    "selected": {"selection": SELECTION},
    "joined": {"join": DATASET},
    "poisoned": {"poison": frozenset({(3, 0), (3, 12), (3, 13), (3, 99), (4, 5)})},
    "all": {"selection": SELECTION, "join": DATASET, "poison": frozenset({(3, 11), (3, 41)})},
    "without exporters": {"exporters": ()},
    "without rows": {"rows": False},
    "figures only": {"rows": False, "exporters": ()},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_size_of_blocks_changes_nothing(make_worker, quick, way):
    """Rows, native files, figures, keys, bad records and their order are the same for every size."""
    found = []
    for size in (1, 2, 5, 64, 1000):
        quick(size)
        worker = make_worker(**WAYS[way])
        found.append(whole(worker, records()))
    for other in found[1:]:
        assert other == found[0]
    assert found[0]["bad"][0] == 7
    assert len(found[0]["keys"]) > 100


def test_without_rows_the_figures_are_the_same(make_worker, quick):
    """All but the rows; nothing is written."""
    quick(64)
    given = [each for each in records() if isinstance(each, BadRecord) or "deep" not in each.facets]
    given = [each for each in given if isinstance(each, BadRecord) or each.recorded.get("do") != "set"]
    long, short, bare = (
        whole(make_worker(**fields), given) for fields in ({}, {"rows": False}, {"rows": False, "exporters": ()})
    )
    assert (long.pop("rows") is None, short.pop("rows"), bare.pop("rows")) == (False, None, None)
    assert short == long
    assert bare | {"native": long["native"]} == long
    assert bare["native"] == {}


def test_every_grader_sees_every_sample_once_and_in_order(make_worker, quick, toys):
    """In blocks, too; and nothing is read far ahead."""
    quick(64)
    seen, read = [], []

    @attrs.frozen(kw_only=True)
    class Looking(toys.Toy):
        def grade(self, given):
            seen.append(given.id)
            return super().grade(given)

    def reading():
        for number in range(200):
            read.append(number)
            assert len(read) - len(seen) <= shardwork.LARGEST_BLOCK
            yield Sample(id=str(number), recorded={"score": 1.0})

    worker = make_worker(graders=(GraderSlot(key="quality", component="toy", grader=Looking()),), metrics=())
    result = worker.process(SHARD, reading())
    assert seen == [str(number) for number in range(200)]
    assert result.samples == 200
    assert set(result.timings) == {"quality"}
    assert result.timings["quality"] > 0


def test_a_raising_grader_fails_its_sample_alone(make_worker, quick):
    """In the middle of a block; the grades of the other graders stand."""
    quick(64)
    result = make_worker().process(SHARD, iter([sample(number) for number in range(45)]))
    found = dict(enumerate(rows(result)))
    failed = [number for number, row in found.items() if row["grades"]["quality"]["state"] == "failed"]
    wanted = {5, 7, 17, 23, 29, 38, 41, 42} | {number for number in range(45) if number % 8 == 0}
    assert set(failed) == wanted
    assert found[5]["grades"]["partial"]["state"] == "graded"
    assert "ZeroDivisionError" in found[5]["grades"]["quality"]["metadata"]["error_type"]
    consistent(result)


def test_a_strict_run_ends_at_the_first_problem(make_worker, quick):
    """Whatever it is, with its place; nothing behind it was graded."""
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
            worker.process(SHARD, reading())


def test_a_metric_that_raises_leaves_the_others_whole(make_worker, quick, toys):
    """Named as broken, whatever the size of blocks."""
    fine = [MetricSlot(key="mean", of="quality", aggregator=Mean())]
    broken = MetricSlot(key="broken", of="quality", aggregator=toys.Count(fail="add"))
    found = []
    for size in (1, 64):
        quick(size)
        worker = make_worker(metrics=(broken, *fine))
        result = worker.process(SHARD, records())
        found.append((Mean().finish(result.states["quality/mean"]), result.rows.read_bytes(), result.broken))
    assert found[0] == found[1]
    assert list(found[0][2]) == ["quality/broken"]


# the size itself


def sizes_of(monkeypatch, worker, seconds, count=300):
    """Return the sizes of blocks when grading sample n takes ``seconds(n)`` by the clock."""
    now, sizes = [0.0], []
    columns = shardwork.Judge.columns

    def timed(self, samples):
        now[0] += sum(seconds(int(each.id)) for each in samples)
        sizes.append(len(samples))
        return columns(self, samples)

    monkeypatch.setattr(shardwork, "perf_counter", lambda: now[0])
    monkeypatch.setattr(shardwork.Judge, "columns", timed)
    worker.process(SHARD, (Sample(id=str(number), recorded={"score": 1.0}) for number in range(count)))
    assert sum(sizes) == count
    return sizes


def test_quick_blocks_grow_to_the_largest(monkeypatch, make_worker):
    """One, two, four, ... and no further."""
    assert sizes_of(monkeypatch, make_worker(), lambda _: 1e-6) == [1, 2, 4, 8, 16, 32, 64, 64, 64, 45]


def test_slow_graders_are_asked_sample_by_sample(monkeypatch, make_worker):
    """So that an interruption is never far away; after slow samples blocks start anew."""
    assert sizes_of(monkeypatch, make_worker(), lambda _: 1.0, count=20) == [1] * 20
    assert max(sizes_of(monkeypatch, make_worker(), lambda number: 0.004 if number < 40 else 1e-6)[:10]) <= 4


@pytest.mark.parametrize("fields", [{"watch": True}, {"strict": True}])
def test_where_one_sample_may_end_everything_blocks_do_not_grow(monkeypatch, make_worker, fields):
    """The place noted is that of the sample being graded."""
    assert set(sizes_of(monkeypatch, make_worker(**fields), lambda _: 0.0, count=20)) == {1}


# interruption


@attrs.frozen(kw_only=True)
class Interrupted(Grader):
    """Does something at certain samples, else gives 1."""

    at: dict[str, object] = attrs.field(factory=dict)

    def grade(self, sample):
        if sample.id in self.at:
            self.at[sample.id]()
        return Grade(score=1.0)


def ctrl_c(times=1):
    def press():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)

    return press


def stop():
    raise KeyboardInterrupt


def numbered(count=100):
    return (Sample(id=str(number), recorded={"score": 1.0}) for number in range(count))


def slots(*graders):
    return tuple(
        GraderSlot(key=key, component="toy", grader=grader)
        for key, grader in zip(("quality", "b", "c"), graders, strict=False)
    )


@pytest.fixture
def interrupted(make_worker, quick, toys):
    """Return a function that grades numbered samples with graders, in blocks, and gives the result."""
    quick(64)

    def run(*graders, given=None, **fields):
        made = slots(*graders)
        count = MetricSlot(key="toy_count", of="quality", aggregator=toys.Count())
        means = [MetricSlot(key="mean", of=slot.key, aggregator=Mean()) for slot in made]
        usual = {"graders": made, "metrics": (count, *means)}
        before = signal.getsignal(signal.SIGINT)
        try:
            return make_worker(**{**usual, **fields}).process(SHARD, numbered() if given is None else given)
        finally:
            assert signal.getsignal(signal.SIGINT) is before

    return run


@pytest.mark.parametrize("at", [0, 1, 2, 40, 62, 63, 99])
def test_an_interrupted_grader_keeps_the_samples_before(interrupted, at):
    """Rows and figures, up to the sample it was at, wherever that is in its block."""
    result = interrupted(Interrupted(at={str(at): stop}))
    assert consistent(result) == [str(number) for number in range(at)]
    assert result.interrupted


@pytest.mark.parametrize("at", [0, 40, 63])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_samples_not_all_graders_have_judged_are_left_out(interrupted, place, at):
    """Whichever of three graders is interrupted."""
    graders = [Interrupted(at={str(at): stop} if number == place else {}) for number in range(3)]
    result = interrupted(*graders)
    assert consistent(result) == [str(number) for number in range(at)]
    assert result.interrupted


def test_graders_of_texts_are_interrupted_alike(interrupted, toys):
    """Where a submission is taken out of the sample first, and where failed runs are in the block."""

    @attrs.frozen
    class Text(Extractor):
        def extract(self, sample):
            if sample.id == "41":
                raise KeyboardInterrupt
            return "text"

    made = (
        GraderSlot(key="quality", component="toy", grader=toys.Toy()),
        GraderSlot(key="b", component="toy", grader=toys.Toy(), extractor=Text()),
    )
    given = [sample(number, id=str(number), facets={}) for number in range(60)]
    metrics = (
        MetricSlot(key="toy_count", of="quality", aggregator=toys.Count()),
        MetricSlot(key="mean", of="b", aggregator=Mean()),
    )
    result = interrupted(graders=made, metrics=metrics, given=iter(given))
    assert consistent(result) == [str(number) for number in range(41)]
    assert {row["submissions"]["b"] for row in rows(result) if row["status"] == "ok"} == {"text"}


def test_an_interruption_while_another_is_dealt_with_drops_the_block(interrupted):
    """The other graders are asked about the samples before; interrupted there, too, nothing of the block is kept."""
    result = interrupted(Interrupted(at={"40": stop}), Interrupted(at={"35": stop}))
    assert consistent(result) == [str(number) for number in range(31)]
    assert result.interrupted


@pytest.mark.parametrize("at", [0, 1, 40, 62])
def test_the_first_ctrl_c_lets_the_block_be_finished(interrupted, at):
    """No sample is lost, none is begun anew."""
    result = interrupted(Interrupted(at={str(at): ctrl_c()}))
    end = next(end for end in (1, 3, 7, 15, 31, 63) if end > at)
    assert consistent(result) == [str(number) for number in range(end)]
    assert result.interrupted


@pytest.mark.parametrize("at", [0, 1, 40, 62])
def test_the_second_ctrl_c_ends_at_once(interrupted, at):
    """What was graded before is kept."""
    result = interrupted(Interrupted(at={str(at): ctrl_c(2)}))
    assert consistent(result) == [str(number) for number in range(at)]
    assert result.interrupted


def test_ctrl_c_while_reading_grades_what_was_read(interrupted):
    """Once, twice, or as an exception of the reader's; the samples waiting for their block are not lost."""
    for press in (ctrl_c(), ctrl_c(2), stop):

        def reading(press=press):
            for number in range(100):
                if number == 50:
                    press()
                yield Sample(id=str(number), recorded={"score": 1.0})

        result = interrupted(Interrupted(), given=reading())
        assert consistent(result) == [str(number) for number in range(50)]
        assert result.interrupted


def test_ctrl_c_while_the_rest_is_graded_keeps_what_was_judged(interrupted):
    """Behind the last record, where the last block is graded."""
    for press, end in ((ctrl_c(), 100), (ctrl_c(2), 99), (stop, 99)):
        result = interrupted(Interrupted(at={"99": press}))
        assert consistent(result) == [str(number) for number in range(end)]
        assert result.interrupted


@attrs.frozen(kw_only=True)
class Pressing(Aggregator[dict[str, int]]):
    """Is interrupted while it counts the tenth sample."""

    press: object = None

    def start(self):
        return {"n": 0}

    def add(self, state, key, grade):
        if key.id == "10":
            self.press()
        return {"n": state["n"] + 1}

    def merge(self, left, right):
        return {"n": left["n"] + right["n"]}

    def finish(self, state):
        return dict(state)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_ctrl_c_while_figures_are_counted_waits_for_them(interrupted, toys, times):
    """However often: the block's rows and figures stay together, and then the run ends."""
    metrics = (
        MetricSlot(key="press", of="quality", aggregator=Pressing(press=ctrl_c(times))),
        MetricSlot(key="toy_count", of="quality", aggregator=toys.Count()),
    )
    result = interrupted(Interrupted(), metrics=metrics)
    assert consistent(result) == [str(number) for number in range(15)]
    assert result.states["quality/press"] == {"n": 15}
    assert result.interrupted


def test_figures_that_are_torn_are_not_passed_on(interrupted):
    """A metric that raises what only Ctrl-C raises: the shard has no result."""
    for given in (None, numbered(12)):
        with pytest.raises(KeyboardInterrupt):
            interrupted(
                Interrupted(),
                given=given,
                metrics=(MetricSlot(key="press", of="quality", aggregator=Pressing(press=stop)),),
            )


# short forms


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
        graders=(GraderSlot(key="quality", component="toy", grader=Explaining()),),
        metrics=(MetricSlot(key="n", of="quality", aggregator=aggregator),),
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
            return super().add(state, key, attrs.evolve(grade, score=0.0))

    keys, grades = [Key(id=str(number)) for number in range(3)], [Grade(score=1.0)] * 3
    doubled, odd = Doubled(), Odd()
    assert doubled.finish(doubled.add_many(doubled.start(), keys, grades))["n"] == 6
    assert odd.finish(odd.add_many(odd.start(), keys, grades))["mean"] == 0.0
    assert (Doubled.reads_reasons, Odd.reads_reasons, PartialStatistics.reads_reasons) == (True, False, False)
