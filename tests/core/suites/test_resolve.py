"""Suites: from YAML to components ready to run, with stacks, overrides and datasets."""

import pytest

import gradestack
from gradestack import ConfigError, DataError, PluginError, load_suite
from gradestack.python_api import files_suite
from gradestack.suites.spec import RunOptions
from tests.core.toy_components import BASE


def test_a_small_suite(load, toys, tmp_path):
    suite = load(BASE)
    assert (suite.name, suite.profile, suite.main, suite.gates) == ("x", "documented", "quality", ())
    assert suite.reader.name == "jsonl"
    assert [(stage.key, stage.name, stage.component) for stage in suite.graders] == [("quality", "toy", toys.Toy())]
    assert [(metric.of, metric.stage.key) for metric in suite.metrics] == [("quality", "toy_count")]
    assert [stage.name for stage in suite.reports] == ["html", "markdown"]
    assert suite.engine.name == "auto"
    assert suite.duplicates == "keep"
    assert [given.shown for given in suite.inputs.data] == ["runs.jsonl"]
    assert suite.graders[0].version == "7"


def test_paths_are_taken_from_the_suite_file(load, tmp_path, monkeypatch, toys):
    monkeypatch.chdir("/")
    suite = load(BASE + "profile: upstream\n", "graders.quality={kind: toy, place: side/file}")
    assert suite.inputs.data[0].path == tmp_path / "runs.jsonl"
    assert suite.graders[0].component.place == tmp_path / "side/file"


def test_the_profile_is_inherited_and_can_be_overridden(load):
    suite = load(BASE + "profile: upstream\n", "graders.mine={kind: toy, profile: documented}")
    assert [stage.component.profile for stage in suite.graders] == ["upstream", "documented"]
    assert suite.profile == "upstream"


def test_the_name_defaults_to_the_files(load):
    assert load(BASE.replace("name: x\n", "")).name == "suite"


def test_an_own_metric_replaces_the_default_of_its_name(load):
    """Others are added; without `of` a metric goes to the grader that has it by default, else to the first."""
    suite = load(
        """\
        target: {paths: [runs.jsonl]}
        graders: {one: demanding_not, two: toy}
        metrics:
          toy_count: {fail: numbers}
          average: mean
          late: {kind: mean, of: two, confidence: 0.5}
        """.replace("demanding_not", "tau_partial")
    )
    found = [
        (metric.of, metric.stage.key, metric.stage.name)
        for metric in suite.metrics
        if metric.stage.name != "partial_statistics"
    ]
    assert ("two", "toy_count", "toy_count") in found
    assert ("one", "average", "mean") in found
    assert ("two", "late", "mean") in found
    (count,) = [metric.stage.component for metric in suite.metrics if metric.stage.key == "toy_count"]
    assert count.fail == "numbers"


def test_a_stack_is_the_ground_a_suite_stands_on(load, tmp_path):
    """Own entries add to it, extend it option by option, or replace it by naming their own kind."""
    (tmp_path / "x.numbers").write_text("numbers\n1\n")
    suite = load(
        """\
        target: {paths: [x.numbers]}
        stack: numbers
        graders:
          number: {factor: 3.0}
          second: {kind: toy, factor: 2.0}
        gate: {op: lt, value: 9}
        """
    )
    found = [(stage.key, stage.component.limit, stage.component.factor) for stage in suite.graders]
    assert found == [("number", 5, 3.0), ("second", None, 2.0)]
    assert [gate.op for gate in suite.gates] == ["lt"]
    assert suite.reports == ()
    replaced = load("target: {paths: [x.numbers]}\nstack: numbers\ngraders: {number: toy}\n")
    assert [(stage.key, stage.component.limit) for stage in replaced.graders] == [("number", None)]


def test_a_broken_stack_is_its_plugins_fault(load, make_registry_, toys):
    using = make_registry_(toys.component("stack", "raising", "raising_stack"))
    with pytest.raises(PluginError, match=r"stack 'raising' of plugin toys .* raised LookupError: no stack here"):
        load("target: {paths: [runs.jsonl]}\nstack: raising\n", using=using)


def test_overrides_reach_every_part(load):
    suite = load(
        "target: {paths: [runs.jsonl]}\n",
        "graders.partial.no_expected=skip",
        "metrics.average={kind: mean, confidence: 0.5}",
        "gate={op: gt, value: 0.25}",
        "reports=[]",
        "name=mine",
        "profile=upstream",
    )
    assert suite.graders[0].component.no_expected == "skip"
    assert suite.metrics[-1].stage.component.confidence == 0.5
    assert (suite.gates[0].op, suite.name, suite.profile, suite.reports) == ("gt", "mine", "upstream", ())


@pytest.mark.parametrize("reader", ["reader: {kind: numbers}", "target: {paths: [x.numbers], reader: numbers}", ""])
def test_reader_options_can_be_set_however_the_reader_is_named(load, tmp_path, reader):
    (tmp_path / "x.numbers").write_text("numbers\n1\n")
    target = "" if "target" in reader else "target: {paths: [x.numbers]}\n"
    suite = load(f"{target}{reader}\ngraders: {{quality: toy}}\n", "reader.where=plan")
    assert suite.reader.component.where == "plan"


def test_one_path_needs_no_list(load):
    assert len(load("target: {paths: runs.jsonl}\ngraders: {quality: toy}\n").inputs.data) == 1


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


def test_odd_yaml_values_do_not_end_up_in_files_that_are_json(load):
    suite = load(BASE, "graders.quality={kind: toy, anything: {when: 2024-05-20, 5: !!set {a}}}")
    assert suite.config["graders"]["quality"]["anything"] == {"when": "2024-05-20", "5": ["a"]}


def test_warnings_do_not_say_where_the_suite_lies(load):
    """A percentage that looks like a fraction is suspicious; the warning is kept in summary.json."""
    suite = load(BASE + "gate: {metric: accuracy, op: gte, value: 0.8}\n")
    (warning,) = suite.warnings
    assert warning == "suite.yaml:4: gate.value: 0.8 is a percentage here: 0.8% of the samples"


def test_a_suite_given_as_mapping_is_not_changed(tmp_path, registry, write_lines, record):
    given = {"target": {"paths": str(write_lines([record("a")]))}, "graders": {"q": {"kind": "toy"}}}
    load_suite(given, overrides=["graders.q.factor=2", "target.reader=jsonl"], registry=registry)
    assert given == {"target": {"paths": str(tmp_path / "runs.jsonl")}, "graders": {"q": {"kind": "toy"}}}


def test_files_without_a_suite(tmp_path, registry, write_lines, record):
    path = write_lines([record("a")], "my runs.jsonl")
    options = RunOptions(registry=registry, overrides=["reports=[]"])
    suite = files_suite(path, options, profile="upstream")
    assert (suite.name, suite.profile, suite.config["stack"]) == ("my runs", "upstream", "jsonl")
    with pytest.raises(ConfigError, match="no file to grade"):
        files_suite([], options)
    with pytest.raises(ConfigError, match="unknown stack 'jsn'"):
        files_suite([path], options, stack="jsn")
    with pytest.raises(ConfigError, match="unknown reader 'jsn'"):
        files_suite([path], options, reader="jsn")


def test_a_dataset_makes_up_for_what_the_format_lacks(load, tmp_path, registry):
    (tmp_path / "gold.jsonl").write_text('{"id": "0", "expected": "x"}\n')
    (tmp_path / "x.numbers").write_text("numbers\n1\n")
    suite = load("target: {paths: [x.numbers]}\ndataset: gold.jsonl\n")
    assert (suite.reader.name, suite.dataset_reader.name, suite.inputs.dataset.shown) == (
        "numbers",
        "jsonl",
        "gold.jsonl",
    )
    with pytest.raises(DataError, match=r"gone\.jsonl: no such file"):
        load("target: {paths: [x.numbers]}\ndataset: gone.jsonl\n")


def test_engine_and_workers_from_beside_the_suite(tmp_path, write_lines, record, registry):
    """They win over the suite's; options of the same engine stay, and an engine without workers refuses them."""
    suite = {"target": {"paths": [str(write_lines([record("a", 1.0)]))]}, "graders": {"q": "toy"}, "reader": "jsonl"}

    def engine(written, **beside):
        more = {} if written is None else {"engine": written}
        return gradestack.load_suite(suite | more, registry=registry, **beside).engine

    assert engine(None).name == "auto"
    assert (engine({"memory": "2GiB"}).name, engine({"memory": "2GiB"}, workers=2).options["workers"]) == ("auto", 2)
    assert (engine("serial", engine="processes", workers=3).name) == "processes"
    found = engine({"kind": "processes", "workers": 5}, engine="processes")
    assert found.component.workers == 5
    assert engine({"kind": "processes", "workers": 5}, workers=2).component.workers == 2
    assert engine({"kind": "processes", "workers": 5}, engine="serial").name == "serial"
    with pytest.raises(ConfigError, match=r"unknown engine 'proceses' \(did you mean 'processes'\?\)"):
        engine(None, engine="proceses")
    with pytest.raises(ConfigError) as caught:
        engine("serial", workers=2)
    told = "workers: the engine 'serial' has no workers to set; engines that have: "
    assert caught.value.problems[0].startswith(told)
    assert "processes" in caught.value.problems[0]
    with pytest.raises(ConfigError, match="workers must be at least 1"):
        engine("processes", workers=0)


def test_samples_in_memory_stay_in_this_process(registry):
    """They cannot be sent anywhere, so the engine is serial."""
    with gradestack.grade([{"id": "a"}], ["toy"], registry=registry) as report:
        engines = [each["name"] for each in report.header["components"] if each["kind"] == "engine"]
    assert engines == ["serial"]
