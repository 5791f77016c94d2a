"""Suites: from YAML to components ready to run, with stacks, overrides and datasets."""

import sys

import pytest

import gradestack
from gradestack import Component, ConfigError, DataError, PluginError, load_suite
from gradestack.hooks import KINDS
from gradestack.python_api import files_suite
from gradestack.registry import Plugin
from gradestack.suites.spec import RunOptions
from tests.core.outcomes import data
from tests.core.toy_components import BASE


def entry(stage):
    return [stage.key, stage.name, {name: getattr(stage.component, name) for name in stage.options}]


@pytest.mark.parametrize("case", data(__file__, "resolved.yaml"))
def test_what_a_suite_comes_to(load, tmp_path, case):
    x_path = tmp_path / "x.numbers"
    x_path.write_text("numbers\n1\n")
    gold_path = tmp_path / "gold.jsonl"
    gold_path.write_text('{"id": "a", "expected": [{"name": "f", "arguments": {"x": 1}}]}\n')
    suite = load(case["suite"], *case.get("set", ()))
    fields = {
        name: getattr(suite, name) for name in ("name", "profile", "main", "duplicates", "config")
    }
    inputs = [input_file.shown for input_file in suite.inputs.data]
    reader = entry(suite.reader)
    graders = [entry(stage) for stage in suite.graders]
    metrics = []
    for metric in suite.metrics:
        metrics.append([metric.of, *entry(metric.stage)])
    gates = [gate.text for gate in suite.gates]
    reports = [stage.name for stage in suite.reports]
    warnings = list(suite.warnings)
    fields |= {
        "inputs": inputs,
        "reader": reader,
        "graders": graders,
        "metrics": metrics,
        "gates": gates,
        "reports": reports,
        "engine": suite.engine.name,
        "warnings": warnings,
    }
    fields_by_name = {name: fields[name] for name in case["is"]}
    assert fields_by_name == case["is"]


def test_a_component_that_the_suite_does_not_name_is_never_loaded(
    tmp_path, monkeypatch, registry, write_lines, record
):
    """A plugin whose module raises breaks the suites that name a component of it, no others."""
    module_that_raises_path = tmp_path / "module_that_raises.py"
    module_that_raises_path.write_text("raise OSError('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    offers = [Component(kind, "broken", "module_that_raises:X", "Broken") for kind in KINDS]
    plugin = Plugin("broken", "gradestack-broken", "1", tuple(offers))
    registry = registry.extended(plugin)
    lines = write_lines([record("a")])
    target = {"paths": str(lines), "reader": "jsonl"}
    suite = {
        "target": target,
        "graders": {"q": "toy"},
        "metrics": {"m": "mean"},
        "reports": ["markdown"],
        "engine": "serial",
    }
    load_suite(suite, registry=registry)
    with pytest.raises(ConfigError, match="unknown grader 'brokn'"):
        load_suite({**suite, "graders": {"q": "brokn"}}, registry=registry)
    assert "module_that_raises" not in sys.modules
    with pytest.raises(PluginError, match="no licence"):
        load_suite({**suite, "graders": {"q": "broken"}}, registry=registry)


def test_paths_are_taken_from_the_suite_file(load, tmp_path, monkeypatch, toys):
    monkeypatch.chdir("/")
    suite = load(BASE, "graders.quality={kind: toy, place: side/file}")
    runs_path = tmp_path / "runs.jsonl"
    assert suite.inputs.data[0].path == runs_path
    first_grader = suite.graders[0]
    file_folder = tmp_path / "side/file"
    assert first_grader.component.place == file_folder


def test_the_published_configuration_does_not_say_where_files_lie(load, tmp_path):
    """Inputs, dataset and path options are cut to names; engine and directories are left out."""
    suite = load(
        BASE + "engine: serial\n",
        f"target.paths=[{tmp_path}/runs.jsonl]",
        f"graders.quality={{kind: toy, place: {tmp_path}/side/file.txt, names: [a]}}",
        f"dataset={tmp_path}/runs.jsonl",
    )
    assert suite.config == {
        "name": "x",
        "target": {"paths": ["runs.jsonl"]},
        "graders": {"quality": {"kind": "toy", "place": "file.txt", "names": ["a"]}},
        "reader": {"kind": "jsonl"},
        "dataset": "runs.jsonl",
    }


def test_a_suite_given_as_mapping_is_not_changed(tmp_path, registry, write_lines, record):
    lines = write_lines([record("a")])
    paths = str(lines)
    mapping = {
        "target": {"paths": paths},
        "graders": {"q": {"kind": "toy"}},
    }
    load_suite(mapping, overrides=["graders.q.factor=2", "target.reader=jsonl"], registry=registry)
    runs_path = tmp_path / "runs.jsonl"
    target = {"paths": str(runs_path)}
    assert mapping == {
        "target": target,
        "graders": {"q": {"kind": "toy"}},
    }


def test_files_without_a_suite(tmp_path, registry, write_lines, record):
    path = write_lines([record("a")], "my runs.jsonl")
    options = RunOptions(registry=registry, overrides=["reports=[]"])
    suite = files_suite(path, options)
    assert suite.name == "my runs"
    stack = suite.config["stack"]
    assert stack == "trajectory"
    with pytest.raises(ConfigError, match="no file to grade"):
        files_suite([], options)
    with pytest.raises(ConfigError, match="unknown stack 'jsn'"):
        files_suite([path], options, stack="jsn")
    with pytest.raises(ConfigError, match="unknown reader 'jsn'"):
        files_suite([path], options, reader="jsn")


def test_a_dataset_makes_up_for_what_the_format_lacks(load, tmp_path, registry):
    gold_path = tmp_path / "gold.jsonl"
    gold_path.write_text('{"id": "0", "expected": "x"}\n')
    x_path = tmp_path / "x.numbers"
    x_path.write_text("numbers\n1\n")
    suite = load("target: {paths: [x.numbers]}\ndataset: gold.jsonl\n")
    assert suite.reader.name == "numbers"
    assert suite.dataset_reader.name == "jsonl"
    assert suite.inputs.dataset.shown == "gold.jsonl"
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        load("target: {paths: [x.numbers]}\ndataset: gone.jsonl\n")


def test_engine_and_workers_from_beside_the_suite(tmp_path, write_lines, record, registry):
    """They win over the suite's.

    Options of the same engine stay, and an engine without workers refuses them.
    """
    lines = str(write_lines([record("a", 1.0)]))
    suite = {
        "target": {"paths": [lines]},
        "graders": {"q": "toy"},
        "reader": "jsonl",
    }

    def engine(written, **members):
        more = {} if written is None else {"engine": written}
        return gradestack.load_suite(suite | more, registry=registry, **members).engine

    assert engine(None).name == "auto"
    workers = engine({"memory": "2GiB"}, workers=2).options["workers"]
    assert workers == 2
    written = {"kind": "processes", "workers": 5}
    assert engine(written, engine="processes").component.workers == 5
    assert engine(written, workers=2).component.workers == 2
    assert engine(written, engine="serial").name == "serial"
    with pytest.raises(ConfigError, match=r"engine\.workers: unknown key; known: none"):
        engine("serial", workers=2)
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        engine("processes", workers=0)


def test_samples_in_memory_stay_in_this_process(registry):
    """They cannot be sent anywhere, so the engine is serial."""
    with gradestack.grade([{"id": "a"}], ["toy"], registry=registry) as report:
        engines = []
        for component in report.header["components"]:
            if component["kind"] == "engine":
                engines.append(component["name"])
    assert engines == ["serial"]
