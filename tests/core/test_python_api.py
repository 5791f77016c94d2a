"""The Python API: suites, files, and samples in memory."""

import typing

import pytest

import gradestack
from gradestack import (
    ConfigError,
    DataError,
    Expectation,
    Sample,
    ToolCall,
)
from tests.core.outcomes import data

DATA = data(__file__, "python_api.yaml")

CALL = ToolCall(name="book", arguments={"day": 1})


def samples():
    expected = Expectation(calls=(CALL,))
    sample = Sample(id="right", expected=expected, calls=(CALL,))
    tool_call = ToolCall(name="book", arguments={"day": 2})
    return [
        sample,
        Sample(id="day", expected=expected, calls=(tool_call,)),
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
    doc_count = len(function.__doc__)
    assert doc_count > 60


def test_samples_may_come_one_by_one_and_as_mappings(registry):
    def stream():
        yield Sample(id="a", recorded={"score": 0.5})
        yield {"id": "b", "predicted": "x", "recorded": {"score": 1.0}}
        yield {"predicted": "no id"}

    with gradestack.grade(stream(), ["toy"], registry=registry) as report:
        avg_score_attempted = report.metrics["avg_score_attempted"]
        assert avg_score_attempted == 0.75
        bad_records = report.summary["bad_records"]
        reason = bad_records["listed"][0]["reason"]
        assert reason == "id is missing"
    with pytest.raises(DataError, match="id is missing"):
        gradestack.grade(stream(), ["toy"], registry=registry, strict=True)


def test_graders_may_be_objects(registry, toys):
    sample = Sample(id="a", recorded={"score": 0.5})
    toy = toys.Toy(factor=0.5)
    with gradestack.grade(
        [sample],
        {"mine": toy, "named": {"kind": "toy", "factor": 2.0}},
        gate={"metric_key": "named", "op": "gte", "value": 1.0},
        metrics={"average": {"kind": "mean", "of": "named"}},
        registry=registry,
    ) as report:
        assert report.passed is True
        by_metric = report.metrics["by_metric"]
        avg_score_attempted = by_metric["mine"]["avg_score_attempted"]
        assert avg_score_attempted == 0.25
        average = report.aggregates["named"]["average"]
        mean = average["mean"]
        assert mean == 1.0
        toy_count = report.aggregates["mine"]["toy_count"]
        assert toy_count["sum"] == 0.25
    with gradestack.grade([Sample(id="a")], toys.Toy(), registry=registry) as report:
        states = list(report.states)
        assert states == ["Toy"]


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
    ("value_given", "message"),
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
def test_what_holds_no_samples_is_a_mistake_of_the_caller(value_given, message, registry):
    with pytest.raises(ConfigError) as caught:
        gradestack.grade(value_given, ["tau_partial"], registry=registry)
    assert str(caught.value).startswith(
        f"samples: expected a list of samples or mappings, or a data frame, got {message}; "
    )
