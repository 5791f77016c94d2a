"""Stacks made for the inputs, and graders and readers that look at the recording before grading."""

import pytest

import gradestack
from gradestack import Component, ConfigError, PluginError
from gradestack.suites.components import FIRST, stack_for
from tests.core.outcomes import write_records
from tests.core.toy_components import Adapting


@pytest.fixture
def recording_registry(make_registry_, toys):
    component = toys.component("stack", "counting", "counting_stack")
    return make_registry_(
        component,
        toys.component("stack", "raising", "raising_stack"),
        toys.component("stack", "listed", "listed_stack"),
        toys.component("grader", "adapting", "Adapting"),
        Component(kind="stack", name="constant", target="gradestack_toys:ROOT", summary="s"),
    )


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file of jsonl samples with these recorded values, and returns
    its path.
    """

    def written(name, *recorded):
        path = tmp_path / name
        records = (
            {"id": str(number), "recorded": recording} for number, recording in enumerate(recorded)
        )
        write_records(path, records)
        return str(path)

    return written


def test_stacks_are_made_by_functions(recording_registry):
    stack = stack_for(recording_registry, "numbers")
    number = stack["graders"]["number"]
    kind = number["kind"]
    assert kind == "toy"
    for name, message in [
        ("raising", "raised LookupError: no stack here"),
        ("listed", "is list, not a mapping"),
    ]:
        with pytest.raises(PluginError, match=message):
            stack_for(recording_registry, name)
    with pytest.raises(PluginError, match="is not a function"):
        stack_for(recording_registry, "constant")


def test_a_stack_may_depend_on_the_inputs(recording_registry, write):
    """Its function is given them.

    Its gate is applied, and what it has to say is a warning of the run.
    """
    paths = [write("a.jsonl", {"score": 1.0}), write("b.jsonl", {"score": 0.0})]
    suite = gradestack.load_suite(
        {"target": {"paths": paths, "reader": "jsonl"}, "stack": "counting"},
        registry=recording_registry,
    )
    keys = [stage.key for stage in suite.graders]
    assert keys == ["a", "b"]
    metric_keys = [gate.metric_key for gate in suite.gates]
    assert metric_keys == ["a"]
    assert "counted" in suite.warnings


@pytest.mark.parametrize(
    "own_options", [{"gate": None}, {"gates": [{"metric_key": "b", "op": "lt", "value": 1}]}]
)
def test_gates_of_its_own_take_the_place_of_the_stack_s(recording_registry, write, own_options):
    paths = [write("a.jsonl", {"score": 1.0}), write("b.jsonl", {"score": 0.0})]
    suite = gradestack.load_suite(
        {"target": {"paths": paths, "reader": "jsonl"}, "stack": "counting", **own_options},
        registry=recording_registry,
    )
    gates = own_options.get("gates", [])
    metric_keys = [gate["metric_key"] for gate in gates]
    assert [gate.metric_key for gate in suite.gates] == metric_keys


def test_a_grader_is_decided_on_by_the_first_records_of_each_input(recording_registry, write):
    """It sees the first 1,000 records of each file, whatever becomes of it stands in the header,
    and is used.
    """
    long = [{"score": 0.001}] * (FIRST + 5)
    paths = [write("a.jsonl", *long), write("b.jsonl", {"score": 0.001}, {})]
    suite = {
        "target": {"paths": paths, "reader": "jsonl"},
        "graders": {"x": {"kind": "adapting"}},
        "reports": [],
    }
    loaded = gradestack.load_suite(suite, registry=recording_registry)
    (stage,) = loaded.graders
    assert stage.component.factor == FIRST + 1
    factor = stage.options["factor"]
    assert factor == FIRST + 1
    graders = loaded.config["graders"]
    assert graders["x"] == {"kind": "adapting"}


def test_of_very_many_inputs_some_are_looked_into(recording_registry, write, monkeypatch):
    """Spread evenly over all: 4 of 10 where 4 are looked into at most."""
    monkeypatch.setattr("gradestack.suites.components._MOST_INPUTS", 4)
    paths = []
    for number in range(10):
        paths.append(write(f"{number}.jsonl", {"score": 0.001}))
    suite = {"target": {"paths": paths, "reader": "jsonl"}, "graders": {"x": "adapting"}}
    first_grader = gradestack.load_suite(suite, registry=recording_registry).graders[0]
    assert first_grader.component.factor == 4


def test_a_grader_may_refuse_a_recording(recording_registry, write):
    paths = [write("a.jsonl", {})]
    suite = {
        "target": {"paths": paths, "reader": "jsonl"},
        "graders": {"x": "adapting", "y": "adapting"},
    }
    with pytest.raises(ConfigError) as caught:
        gradestack.load_suite(suite, registry=recording_registry)
    expected = []
    for key in "xy":
        expected.append(f"graders.{key}: {key} finds no score in 1 input(s) of JsonLines")
    problems = caught.value.problems
    assert [problem.partition(": ")[2] for problem in problems] == expected


@pytest.mark.parametrize("grader", ["adapting", Adapting()])
def test_samples_in_memory_are_looked_at_and_graded(recording_registry, grader):
    """Those looked at are graded too, also when they are made one by one, and no more than 1,000
    are made ahead.
    """
    made = []

    def samples():
        for number in range(FIRST + 200):
            made.append(number)
            yield {"id": str(number), "recorded": {"score": 0.001}}

    graded = gradestack.stream(samples(), {"x": grader}, registry=recording_registry)
    sample, grades = next(graded)
    assert sample.id == "0"
    assert grades["x"].score == 1.0
    assert len(made) < FIRST + 200
    count = sum(1 for _ in graded)
    assert 1 + count == FIRST + 200
