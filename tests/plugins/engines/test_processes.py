"""The processes engine: the same bytes as serial, whatever the workers, and whatever happens to them."""

import functools
import json
import os
import random
import signal
from pathlib import Path

import attrs
import pytest

import gradestack
from gradestack.api import Component, Grader, Shard
from gradestack.errors import PluginError
from gradestack.hooks import hookimpl
from gradestack.jsontext import line_ranges
from gradestack.model import Grade
from gradestack.registry import discover
from gradestack_plugins.engines.auto import WORTHWHILE, Auto
from gradestack_plugins.engines.processes import Processes
from gradestack_plugins.engines.serial import Serial

EXAMPLES = Path(__file__).parents[3] / "examples"


@attrs.frozen(kw_only=True)
class Fatal(Grader):
    """Ends the process on the samples named; with a marker, only until the marker exists."""

    needs = frozenset({"id"})
    ids: tuple[str, ...] = ()
    marker: str = ""

    def grade(self, sample):
        if sample.id in self.ids and not (self.marker and Path(self.marker).exists()):
            if self.marker:
                Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Grade(score=1.0)


class Plugin:
    """The grader as a plugin."""

    @staticmethod
    @hookimpl
    def gradestack_components():
        return [Component(kind="grader", name="fatal", target=f"{__name__}:Fatal", summary="ends the process")]


@pytest.fixture
def registry():
    """The installed plugins, and the fatal grader."""
    found = discover([("fatal", Plugin())])
    load = found.load
    found.load = lambda kind, name: Fatal if name == "fatal" else load(kind, name)
    return found


@pytest.fixture
def recording(tmp_path, monkeypatch):
    """400 samples in about 30 shards."""
    path = tmp_path / "runs.jsonl"
    call = {"name": "f", "arguments": {"a": 1}}
    rows = ({"id": f"t{n}", "expected": [call], "predicted": [call] * (n % 3)} for n in range(400))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    small = functools.partial(line_ranges, size=path.stat().st_size // 30)
    monkeypatch.setattr("gradestack_plugins.readers.jsonl.line_ranges", small)
    return path


def _bytes(out):
    return {
        path.relative_to(out): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in ("header.json", "report.html", "report.md")
    }


def _suite(path, engine, graders):
    return {"name": "x", "target": {"paths": [str(path)]}, "graders": graders, "reports": [], "engine": engine}


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_bytes_do_not_depend_on_workers(recording, tmp_path, workers):
    """Rows, summary and metrics of many shards are those of the serial engine."""
    graders = {"partial": "tau_partial"}
    gradestack.run(_suite(recording, "serial", graders), output=tmp_path / "one")
    engine = {"kind": "processes", "workers": workers}
    gradestack.run(_suite(recording, engine, graders), output=tmp_path / "many")
    assert _bytes(tmp_path / "one") == _bytes(tmp_path / "many")


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/suite.yaml")))
def test_every_example_has_the_same_bytes(name, tmp_path):
    """Native files included, every family's example comes out the same on two workers."""
    suite = EXAMPLES / name / "suite.yaml"
    for engine in ("serial", "processes"):
        overrides = [f"engine={{kind: {engine}}}", "reports=[]"]
        gradestack.run(suite, output=tmp_path / engine, overrides=overrides)
    assert _bytes(tmp_path / "serial") == _bytes(tmp_path / "processes")


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_worker_costs_nothing(recording, tmp_path, registry, seed):
    """A process killed once, at a random sample, changes no figure."""
    victim = f"t{random.Random(seed).randrange(400)}"  # noqa: S311 - test data
    grader = {"kind": "fatal", "ids": [victim], "marker": str(tmp_path / "killed")}
    engine = {"kind": "processes", "workers": 2}
    report = gradestack.run(_suite(recording, engine, {"g": grader}), output=tmp_path / "out", registry=registry)
    assert (tmp_path / "killed").exists()
    assert report.states["g"] == {"graded": 400, "skipped": 0, "failed": 0, "missing": 0}
    assert [row["sample"]["id"] for row in report.rows()] == [f"t{n}" for n in range(400)]


def test_a_record_that_always_kills_is_reported_as_failed(recording, tmp_path, registry):
    """Two such records in one shard and one in another are named; everything else is graded."""
    grader = {"kind": "fatal", "ids": ["t7", "t9", "t300"]}
    engine = {"kind": "processes", "workers": 2}
    report = gradestack.run(_suite(recording, engine, {"g": grader}), output=tmp_path / "out", registry=registry)
    assert report.states["g"] == {"graded": 397, "skipped": 0, "failed": 3, "missing": 0}
    broken = {row["sample"]["id"]: row["grade"]["fault"]["code"] for row in report.rows() if row["state"] == "failed"}
    assert broken == dict.fromkeys(("t7", "t9", "t300"), "worker_died")


def _die(shard):
    os.kill(os.getpid(), signal.SIGKILL)


def test_work_that_cannot_be_watched_ends_with_an_error():
    """A function that is not a worker has no records to blame."""
    with pytest.raises(PluginError, match="ends every process"):
        list(Processes(workers=1).map(_die, [_shard(0)]))


def _shard(ordinal):
    return Shard(ordinal=ordinal, input=gradestack.api.Input(path=Path("x"), name="x", shown="x"))


def _ordinal(shard):
    return shard.ordinal


@pytest.mark.parametrize("count", [0, 1, WORTHWHILE - 1, WORTHWHILE, 40])
@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2), Auto()])
def test_results_come_in_shard_order(engine, count):
    """Every engine yields one result per shard, in order."""
    assert list(engine.map(_ordinal, [_shard(n) for n in range(count)])) == list(range(count))


def test_workers_must_be_positive():
    """Zero workers are refused."""
    with pytest.raises(ValueError, match="at least 1"):
        Processes(workers=0)
