"""Records whose grading ends the process or eats its memory.

They fail, everything else is graded.
"""

import re
import sys

import pytest

import gradestack
from gradestack import PluginError
from gradestack.interpreter import ROOM

POOL = {"kind": "processes", "workers": 2}
CLUSTER = {"kind": "dask", "workers": 2}
DIED = "worker_died"
ENGINES = pytest.mark.parametrize(
    "engine", [POOL, pytest.param(CLUSTER, marks=pytest.mark.faults)], ids=["processes", "dask"]
)


MANY, ENDS = [0, 97, 99, 299], ["exit", "kill"]


def _faults(report):
    faults_by_id = {}
    for row in report.rows():
        if row["state"] == "failed":
            faults_by_id[row["sample"]["id"]] = row["grade"]["fault"]
    return faults_by_id


def _all_there(report, recording):
    """Check that every record has a row, and a grade that is right or failed."""
    rows = list(report.rows())
    expected = [f"t{n}" for n in range(recording.count)]
    ids = [row["sample"]["id"] for row in rows]
    assert ids == expected
    scores = {}
    for n, row in enumerate(rows):
        if row["state"] == "graded":
            scores[n] = row["grade"]["score"]
    assert scores == {n: (n % 5) / 4 for n in scores}
    failed = recording.count - len(scores)
    assert report.states["g"] == {
        "graded": len(scores),
        "skipped": 0,
        "failed": failed,
        "missing": 0,
    }
    assert "broken" not in report.summary


@pytest.mark.parametrize(
    ("what", "hostile"),
    [("exit", [0, 99]), *(pytest.param(how, MANY, marks=pytest.mark.faults) for how in ENDS)],
)
def test_records_that_end_the_process(recording, what, hostile):
    """Several of them, two in one shard, the first and the last of all.

    Each is named, nothing else is lost.
    """
    recording.do(dict.fromkeys(hostile, what))
    report = recording.run(POOL)
    _all_there(report, recording)
    faults = _faults(report)
    expected = sorted(f"t{n}" for n in hostile)
    assert sorted(faults) == expected
    codes = {fault["code"] for fault in faults.values()}
    assert codes == {DIED}
    message = faults["t99"]["message"]
    assert "ended the worker process" in message


@pytest.mark.faults
def test_a_record_that_ends_dask_workers(recording):
    """The cluster is started again, the record is named, nothing else is lost."""
    recording.do({101: "kill"})
    report = recording.run(CLUSTER)
    _all_there(report, recording)
    faults = _faults(report).items()
    codes_by_name = {name: fault["code"] for name, fault in faults}
    assert codes_by_name == {"t101": DIED}


def test_in_a_strict_run_it_is_an_error(recording):
    recording.do({97: "exit"})
    with pytest.raises(PluginError, match=r"03\.jsonl: grading record 7 ends its worker process"):
        recording.run(POOL, strict=True)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
@ENGINES
def test_records_that_eat_memory(recording, engine):
    """They fail with MemoryError; the others, in the same shard and after it, are graded."""
    hostile = [7, 8, 150]
    recording.do(dict.fromkeys(hostile, "eat"))
    report = recording.run({**engine, "memory": "300MB"})
    _all_there(report, recording)
    faults = _faults(report)
    expected = sorted(f"t{n}" for n in hostile)
    assert sorted(faults) == expected
    assert {(fault["type"], fault["message"]) for fault in faults.values()} == {
        ("MemoryError", "not enough memory")
    }


@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_a_grader_that_never_gives_memory_back(recording):
    """Its worker is replaced between shards, so that all are graded."""
    recording.do(dict.fromkeys(range(150), "keep"))
    report = recording.run({**POOL, "memory": "1500MB"})
    _all_there(report, recording)
    faults = _faults(report)
    assert faults == {}


def _nested(recording, engine, depths):
    """Grade records nested to these depths, and return the depths that were read."""
    call = '{{"name": "f", "arguments": {{"a": {0}}}}}'
    for path in recording.folder.glob("*.jsonl"):
        path.unlink()
    for number in range(2):
        rows = []
        for depth in depths:
            text = call.format("[" * depth + "]" * depth)
            rows.append(
                f'{{"id": "{depth}", "run": {number}, "expected": [{text}], "predicted": '
                f"[{text}]}}\n"
            )
        (recording.folder / f"{number}.jsonl").write_text("".join(rows))
    suite = recording.suite(engine, graders={"g": "tau_partial"}, reader="jsonl")
    output = recording.folder / "out"
    report = gradestack.run(suite, output=output)
    read = []
    results_path = report.path / "results.jsonl"
    for sample_id in re.findall(r'"ground_truth":null,"id":"(\d+)"', results_path.read_text()):
        read.append(int(sample_id))
    expected = read[len(read) // 2 :]
    assert read[: len(read) // 2] == expected
    return read[: len(read) // 2]


@ENGINES
def test_what_is_nested_too_deeply_is_so_on_every_engine(recording, engine):
    """Though their stacks differ in depth.

    A record a little less deep than one refused here is read there.
    """
    depths = range(ROOM - 100, ROOM + 20)
    deepest = _nested(recording, "serial", depths)[-1]
    assert ROOM - 100 < deepest < ROOM + 19
    nested = _nested(recording, engine, [deepest - 4, deepest + 4])
    expected = [deepest - 4]
    assert nested == expected
