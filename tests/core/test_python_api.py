"""The Python API: suites, files, and samples in memory."""

import typing

import attrs
import pytest

import gradestack
from gradestack import (
    ConfigError,
    DataError,
    Expectation,
    Grade,
    Grader,
    PluginError,
    Sample,
    ToolCall,
)
from tests.core.outcomes import data

DATA = data(__file__, "python_api.yaml")

CALL = ToolCall(name="book", arguments={"day": 1})


def samples():
    expected = Expectation(calls=(CALL,))
    return [
        Sample(id="right", expected=expected, calls=(CALL,)),
        Sample(id="day", expected=expected, calls=(ToolCall(name="book", arguments={"day": 2}),)),
        Sample(id="none", expected=expected, calls=()),
    ]


def test_the_public_names_are_there():
    for name in gradestack.__all__:
        assert getattr(gradestack, name) is not None
    assert dir(gradestack) == sorted(gradestack.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'grad'"):
        gradestack.grad  # noqa: B018


def test_the_version_is_the_distributions():
    from importlib.metadata import version

    assert gradestack.__version__ == version("gradestack")


@pytest.mark.parametrize(
    "name", ["run", "grade", "grade_files", "load_suite", "load_report", "discover"]
)
def test_the_api_is_typed_and_documented(name):
    function = getattr(gradestack, name)
    hints = typing.get_type_hints(function)
    assert "return" in hints
    code = function.__code__
    assert set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) <= set(hints)
    assert len(function.__doc__) > 60


def test_samples_are_graded_by_name(registry):
    """0.4 for the tool and 0.6 for its arguments: 1, 0.4 + 0.6 x 0 and 0."""
    with gradestack.grade(samples(), ["tau_partial"], registry=registry) as report:
        assert [row["grade"]["score"] for row in report.rows()] == [1.0, 0.4, 0.0]
        assert report.metrics["avg_score_attempted"] == pytest.approx(1.4 / 3, abs=1e-15)
        assert report.summary["suite"] == "samples"
        assert "partial_statistics" in report.aggregates["tau_partial"]


def test_samples_may_come_one_by_one_and_as_mappings(registry):
    def stream():
        yield Sample(id="a", recorded={"score": 0.5})
        yield {"id": "b", "predicted": "x", "recorded": {"score": 1.0}}
        yield {"predicted": "no id"}

    with gradestack.grade(stream(), ["toy"], registry=registry) as report:
        assert report.metrics["avg_score_attempted"] == 0.75
        assert report.summary["bad_records"]["listed"][0]["reason"] == "id is missing"
    with pytest.raises(DataError, match="id is missing"):
        gradestack.grade(stream(), ["toy"], registry=registry, strict=True)


def test_graders_may_be_objects(registry, toys):
    with gradestack.grade(
        [Sample(id="a", recorded={"score": 0.5})],
        {"mine": toys.Toy(factor=0.5), "named": {"kind": "toy", "factor": 2.0}},
        gate={"metric_key": "named", "op": "gte", "value": 1.0},
        metrics={"average": {"kind": "mean", "of": "named"}},
        registry=registry,
    ) as report:
        assert report.passed is True
        assert report.metrics["by_metric"]["mine"]["avg_score_attempted"] == 0.25
        assert report.aggregates["named"]["average"]["mean"] == 1.0
        assert report.aggregates["mine"]["toy_count"]["sum"] == 0.25
    with gradestack.grade([Sample(id="a")], toys.Toy(), registry=registry) as report:
        assert list(report.states) == ["Toy"]


def test_options_of_a_grader_object_need_no_json_form(registry):
    @attrs.frozen(kw_only=True)
    class Calls(Grader):
        rule: typing.Any
        other: typing.Any = attrs.field(factory=object)

        def grade(self, sample):
            return Grade(score=self.rule(sample))

    def half(sample):
        return 0.5

    with gradestack.grade([Sample(id="a")], {"q": Calls(rule=half)}, registry=registry) as report:
        (grader,) = [each for each in report.header["components"] if each["kind"] == "grader"]
        assert grader["options"]["rule"].endswith("half")
        assert grader["options"]["other"] == "(object)"
        assert report.summary["config"]["graders"]["q"]["kind"] == "Calls"


def test_a_grader_without_attrs_can_be_used_as_an_object(registry, toys):
    with gradestack.grade([Sample(id="a")], [toys.Plain()], registry=registry) as report:
        assert report.metrics["avg_score_attempted"] == 1.0


def test_two_graders_of_one_name_need_keys(registry, toys):
    with pytest.raises(ConfigError, match="two graders are called 'Toy'; give a mapping"):
        gradestack.grade(samples(), [toys.Toy(), toys.Toy(factor=2.0)], registry=registry)


@pytest.mark.parametrize(("arguments", "message"), DATA["mistakes_are_told_as_in_a_suite"])
def test_mistakes_are_told_as_in_a_suite(registry, arguments, message):
    with pytest.raises(ConfigError) as caught:
        gradestack.grade(samples(), **{"graders": ["toy"]} | arguments, registry=registry)
    assert message in str(caught.value)
    assert "grade()" in str(caught.value)


def test_no_sample_is_no_result(registry):
    with pytest.raises(DataError, match="no record could be read"):
        gradestack.grade([], ["toy"], registry=registry)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("runs.jsonl", "str"),
        (["a.csv", "b.csv"], "list"),
        ({"id": "a"}, "dict"),
        (samples()[0], "Sample"),
        (b"{}", "bytes"),
        (None, "NoneType"),
        (5, "int"),
    ],
)
def test_what_holds_no_samples_is_a_mistake_of_the_caller(given, said, registry):
    with pytest.raises(ConfigError) as caught:
        gradestack.grade(given, ["tau_partial"], registry=registry)
    assert str(caught.value).startswith(
        f"samples: expected a list of samples or mappings, or a data frame, got {said}; "
    )


def test_a_raising_grader_object(registry, toys):
    bad = [Sample(id="a", recorded={"do": "raise"})]
    with gradestack.grade(bad, [toys.Toy()], registry=registry) as report:
        (row,) = report.rows()
        assert row["grade"]["fault"]["component"] == "Toy 7"
    with pytest.raises(PluginError, match="'Toy'"):
        gradestack.grade(bad, [toys.Toy()], strict=True, registry=registry)


def test_samples_that_are_not_json_are_failures(registry):
    odd = Sample(id="a", calls=(ToolCall(name="f", arguments={"x": {1}}),), recorded={"score": 1.0})
    with gradestack.grade(
        [odd, Sample(id="b", recorded={"score": 1.0})], ["toy"], registry=registry
    ) as report:
        assert report.states["toy"] == {"graded": 1, "skipped": 0, "failed": 1, "missing": 0}


def test_files_are_graded_with_their_formats_stack(write_lines, record, registry, tmp_path):
    path = write_lines([{"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}])
    for number, paths in enumerate((path, str(path), [path])):
        report = gradestack.grade_files(
            paths, output=tmp_path / f"out{number}", overrides=["reports=[]"], registry=registry
        )
        assert (report.metrics["avg_score_attempted"], report.name) == (1.0, "runs")


def test_a_suite_may_be_a_file_or_a_mapping(write_lines, record, registry, tmp_path):
    write_lines([record("a", 0.5)])
    suite = tmp_path / "suite.yaml"
    suite.write_text("name: filed\ntarget: {paths: [runs.jsonl]}\ngraders: {q: toy}\nreports: []\n")
    report = gradestack.run(
        suite, output=tmp_path / "out", overrides=["graders.q.factor=2"], registry=registry
    )
    assert (report.name, report.metrics["avg_score_attempted"]) == ("filed", 1.0)
    with pytest.raises(ConfigError, match=r"gone\.yaml: no such file"):
        gradestack.run(tmp_path / "gone.yaml", registry=registry)
