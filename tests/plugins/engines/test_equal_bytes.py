"""Whatever the engine and the number of workers, a run comes to the same bytes."""

import json

import pytest

import gradestack
from gradestack import DataError, Registry, discover

CALL = {"name": "book", "arguments": {"day": 1, "to": "Rome"}}
OTHER = {"name": "book", "arguments": {"day": 2, "to": "Rome"}}
LINES = [
    json.dumps(
        {"id": f"t{n % 30}", "run": n // 30, "expected": [CALL, CALL][: n % 3], "predicted": [CALL if n % 4 else OTHER]}
    )
    for n in range(120)
]
LINES[17] = "broken"


@pytest.fixture(scope="module")
def registry():
    return Registry([plugin for plugin in discover(limit="").plugins if not plugin.error])


@pytest.fixture
def run(tmp_path, monkeypatch, registry):
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 700)
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(LINES))

    def call(name, engine, **more):
        metrics = {"average": "mean", "hat": "pass_hat_k"}
        suite = {"name": "x", "target": {"paths": [str(path)]}, "graders": {"q": "tau_partial"}, "metrics": metrics}
        content = {**suite, "reports": [], "engine": engine, **more}
        report = gradestack.run(content, output=tmp_path / name, registry=registry)
        return {name: (report.path / name).read_bytes() for name in ("results.jsonl", "summary.json")}

    return call


@pytest.mark.parametrize(
    "engine",
    ["processes", "auto", {"kind": "processes", "workers": 1}, {"kind": "processes", "workers": 3}],
    ids=["processes", "auto", "one", "three"],
)
def test_every_engine_gives_what_the_serial_one_gives(run, engine):
    serial = run("serial", "serial")
    assert serial["results.jsonl"].count(b"\n") == 119
    assert run("other", engine) == serial


def test_errors_cross_process_borders(run, registry, tmp_path):
    said = []
    for number, engine in enumerate(("serial", {"kind": "processes", "workers": 2})):
        suite = {"target": {"paths": [str(tmp_path / "runs.jsonl")]}, "graders": {"q": "tau_partial"}, "engine": engine}
        with pytest.raises(DataError) as caught:
            gradestack.run(suite, output=tmp_path / f"strict{number}", strict=True, registry=registry)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "runs.jsonl:18: not JSON" in said[0]
