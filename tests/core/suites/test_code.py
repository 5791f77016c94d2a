"""A component in one Python file.

Named in a suite, on the command line and from Python, on every engine.
"""

import json
import multiprocessing

import attrs
import pytest

import gradestack
from gradestack import ConfigError, Grade, Grader, Sample, ToolCall
from gradestack_plugins.engines import processes as pool
from tests.core.code_samples import SHAPES, average, graded, grader_text
from tests.core.outcomes import data, files_but_headers, some_of

DATA = data(__file__, "code.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("way", some_of(["forkserver", "fork", "spawn"], 3))
def test_code_travels_to_workers_by_file_and_name(shapes, registry, monkeypatch, way):
    more_path = shapes / "more.py"
    more_path.write_text(
        "from gradestack import Grade, Grader\nimport helper\n"
        + grader_text("Helped", "helper.SCORE")
    )
    helper_path = shapes / "helper.py"
    helper_path.write_text("SCORE = 0.75\n")
    monkeypatch.setattr(pool, "context", lambda: multiprocessing.get_context(way))
    suite = data(__file__, "code.yaml")["suite_of_code_travels_to_workers_by_file_and_name"]
    again_path = shapes / "again.jsonl"
    runs_path = shapes / "runs.jsonl"
    again_path.write_bytes(runs_path.read_bytes())
    for engine in ("serial", "processes"):
        workers = 2 if engine == "processes" else None
        report = gradestack.run(
            suite,
            output=engine,
            engine=engine,
            workers=workers,
            allow_code=True,
            registry=registry,
        )
    averages_by_key = {key: average(report, key) for key in "asfh"}
    assert averages_by_key == {
        "a": 1.0,
        "s": 0.125,
        "f": 0.25,
        "h": 0.75,
    }
    assert report.aggregates["h"]["n"] == {"count": 4}
    folder = shapes / "serial"
    assert files_but_headers(folder) == files_but_headers(shapes / "processes")


def test_a_class_a_function_and_options(shapes, registry):
    """Keys are names in snake case; options are set by key.

    A function of the sample takes no extractor.
    """
    report = graded(
        "shapes.py:Share",
        "./shapes.py:shout",
        "toy",
        registry=registry,
        overrides=["graders.share.of=0.75"],
    )
    averages = [average(report, key) for key in ("share", "shout", "toy")]
    assert averages == [0.75, 0.25, 0.75]
    components = report.header["components"]
    graders = [component for component in components if component["kind"] == "grader"]
    assert [(grader["name"], grader["distribution"], grader["options"]) for grader in graders] == [
        ("shapes.py:Share", "local 0", {"of": 0.75}),
        ("shapes.py:shout", "local 0", {}),
        ("toy", "local 0", {}),
    ]


def test_every_kind_of_component_may_stand_in_a_file(shapes, registry):
    kinds_path = shapes / "kinds.py"
    kinds_path.write_text(DATA["every_kind_of_component_may_stand_in_a_file"])
    words_path = shapes / "words.txt"
    words_path.write_text("one two three")
    suite = data(__file__, "code.yaml")["suite_of_every_kind_of_component_may_stand_in_a_file"]
    report = gradestack.run(suite, output="out", allow_code=True, registry=registry)
    assert average(report, "q") == 1.0
    total = report.metrics["total"]
    assert total == 3
    config = report.summary["config"]
    assert config["reader"] == {"kind": "kinds.py:Lines"}
    names = [page.name for page in report.pages]
    assert names == ["note.txt"]


def test_paths_are_relative_to_the_suite(shapes, registry, tmp_path_factory, monkeypatch):
    (shapes / "suite.yaml").write_text(
        "target: {paths: [runs.jsonl]}\ngraders: {q: shapes.py:Share}\nreports: []\n"
    )
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    suite_path = shapes / "suite.yaml"
    report = gradestack.run(suite_path, output="out", allow_code=True, registry=registry)
    assert average(report, "q") == 0.5
    with pytest.raises(ConfigError, match=r"shapes\.py: no such Python file"):
        gradestack.grade_files(
            shapes / "runs.jsonl", graders=["shapes.py:Share"], allow_code=True, registry=registry
        )


BAD = data(__file__, "bad_code.yaml")


@pytest.mark.parametrize(("reference", "message"), BAD["mistakes"], ids=str)
def test_a_mistake_is_one_problem_with_its_place(shapes, command, reference, message):
    for name, text in BAD["files"].items():
        (shapes / name).write_text(text)
    suite = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": reference}, "reports": []}
    mine_path = shapes / "mine.yaml"
    mine_path.write_text(json.dumps(suite))
    result = command("run", "mine.yaml", "--allow-code")
    assert result.code == 2
    head, problem = result.err.splitlines()
    assert head == "error: mine.yaml: 1 problem in the configuration"
    assert problem.startswith("  - mine.yaml:1: graders.q")
    assert message in problem
    expected = command("run", "mine.yaml", "--allow-code", "--debug").err
    assert "Traceback" in expected


def test_code_that_was_not_allowed_is_not_run(shapes, command):
    """Neither by a suite nor from the command line, nor to check the suite.

    All places are told at once.
    """
    suite_path = shapes / "suite.yaml"
    suite_path.write_text(
        "target: {paths: [runs.jsonl]}\nreader: trap.py:R\ngraders: {q: ./trap.py:Q}\nmetrics: "
        "{m: {kind: trap.py:M}}\n"
    )
    plugin_path = shapes / "plugin.yaml"
    plugin_path.write_text("target: {paths: [runs.jsonl]}\nplugins: [trap.py]\ngraders: {q: toy}\n")
    trap_path = shapes / "trap.py"
    trap_path.write_text("open('sprung', 'w')\n")
    advice = "is Python code; pass --allow-code if you trust it"
    for arguments in (["run", "suite.yaml"], ["validate", "suite.yaml"]):
        result = command(*arguments)
        assert result.code == 2
        for line, key, what in (
            (2, "reader.kind", "trap.py:R"),
            (3, "graders.q", "./trap.py:Q"),
            (4, "metrics.m.kind", "trap.py:M"),
        ):
            assert f"suite.yaml:{line}: {key}: {what} {advice}" in result.err
        assert "3 problems" in result.err
    expected = command("run", "plugin.yaml").err
    assert f"plugin.yaml:2: plugins[0]: trap.py {advice}" in expected
    expected_text = f"graders.q: trap.py:Q {advice}"
    assert expected_text in command("grade", "runs.jsonl", "--grader", "trap.py:Q").err
    sprung_folder = shapes / "sprung"
    assert not sprung_folder.exists()


def test_a_suite_with_code_can_be_checked(shapes, command):
    suite_path = shapes / "suite.yaml"
    suite_path.write_text("target: {paths: [runs.jsonl]}\ngraders: {q: shapes.py:Share}\n")
    result = command("validate", "suite.yaml", "--allow-code")
    assert result.code == 0
    assert "graders: q (shapes.py:Share)" in result.out


def test_graders_take_the_place_of_a_stack(shapes, command, registry):
    result = command("grade", "runs.jsonl", "--grader", "toy", "--stack", "tool_calls")
    assert result.code == 2
    assert "leave out the stack 'tool_calls'" in result.err
    result = command(
        "grade",
        "runs.jsonl",
        "--grader",
        "shapes.py:Share",
        "--grader",
        "x/shapes.py:share",
        "--allow-code",
    )
    assert (
        "two graders are called 'share'; give one of them another key with --set graders.KEY=NAME"
        in result.err
    )
    report = graded("toy", registry=registry)
    states = list(report.states)
    assert states == ["toy"]
    config = report.summary["config"]
    assert "stack" not in config


def test_two_files_of_one_name_are_told_apart(shapes, command):
    (shapes / "sub").mkdir()
    shapes_path = shapes / "sub/shapes.py"
    shapes_path.write_text(SHAPES)
    result = command(
        "grade",
        "runs.jsonl",
        "--grader",
        "shapes.py:Share",
        "--set",
        "graders.b=sub/shapes.py:Share",
        "--allow-code",
    )
    assert result.code == 2
    expected_text = (
        f"shapes.py:Share is the name of another file's, too ({shapes}/shapes.py); rename one of "
        "the files"
    )
    assert expected_text in result.err


class Loud(Grader):
    """Grades in capitals."""

    def grade(self, sample):
        return Grade(score=1.0)


@attrs.frozen(kw_only=True)
class Choosy(Grader):
    """Grades with an option it must be given."""

    least: int

    def grade(self, sample):
        score = float(self.least)
        return Grade(score=score)


class Empty(Grader):
    """Grades nothing."""


def test_samples_are_graded_by_functions_and_classes(shapes, registry):
    def made_a_call(sample):
        return bool(sample.calls)

    samples = [Sample(id="a", calls=()), Sample(id="b", calls=(ToolCall(name="f"),))]
    graders = [made_a_call, Loud, "shapes.py:Share", "toy"]
    with gradestack.grade(samples, graders, allow_code=True, registry=registry) as report:
        averages_by_key = {key: average(report, key) for key in report.states}
        assert averages_by_key == {
            "made_a_call": 0.5,
            "Loud": 1.0,
            "share": 0.5,
            "toy": 0.0,
        }
    with gradestack.grade(samples, {"q": made_a_call}, registry=registry) as report:
        assert average(report, "q") == 0.5
    with pytest.raises(ConfigError, match="pass --allow-code"):
        gradestack.grade(samples, "shapes.py:Share", registry=registry)
    with pytest.raises(ConfigError, match="'<lambda>' must take one parameter"):
        gradestack.grade(samples, [lambda: 1.0], registry=registry)
    with pytest.raises(ConfigError, match=r"^graders: Choosy.*missing 1 .* argument: 'least'$"):
        gradestack.grade(samples, [Choosy], registry=registry)
    with pytest.raises(ConfigError, match=r"^graders: Empty has no method grade\(self, sample\)$"):
        gradestack.grade(samples, Empty, registry=registry)
    with pytest.raises(
        ConfigError, match=r"^graders: Sample is not a class derived from gradestack\.Grader$"
    ):
        gradestack.grade(samples, {"q": Sample}, registry=registry)


def test_a_file_without_a_name_is_told_so_with_or_without_leave(shapes, command):
    result = command("grade", "runs.jsonl", "--grader", "./shapes.py")
    assert result.code == 2
    lines = result.err.splitlines()
    assert len(lines) == 2
    assert (
        "graders.shapes: ./shapes.py is Python code, and no grader of it is named "
        "(./shapes.py:NAME)" in result.err
    )
    assert "pass --allow-code" in result.err


def test_a_registry_is_not_changed_by_a_suite(shapes, registry):
    """Components of a file belong to the run that names it."""
    before = registry.names("grader")
    graded("shapes.py:Share", registry=registry)
    names = registry.names("grader")
    assert names == before
