"""Results are kept whatever breaks or interrupts a run."""

import os
from pathlib import Path

import pytest

import gradestack
from gradestack import DataError, PluginError
from tests.core.outcomes import data, ids, read
from tests.core.toy_components import DO_STOP

DATA = data(__file__, "runner_broken.yaml")


@pytest.mark.parametrize(("fail", "message"), DATA["a_raising_aggregator_costs_its_figures_only"])
def test_a_raising_aggregator_costs_its_figures_only(
    run_lines, record, fail, message, small_shards
):
    small_shards(1)
    metrics = {"sick": {"kind": "toy_count", "fail": fail}}
    report = run_lines(
        [record("a", 1.0), record("b", 0.5)], metrics=metrics, gate={"op": "gte", "value": 0.5}
    )
    assert report.summary["failed_metrics"] == {"quality/sick": message}
    quality = report.aggregates["quality"]
    assert quality["sick"] == {"error": message}
    toy_count = report.aggregates["quality"]["toy_count"]
    assert toy_count["sum"] == 1.5
    warnings = report.summary["warnings"]
    expected = [f"quality/sick (toy_count) is broken and left out: {message}"]
    assert warnings == expected
    assert report.exit_code == 0
    assert report.passed is True
    assert ids(report) == ["a", "b"]
    failed_metrics = read(report)["failed_metrics"]
    assert failed_metrics == {"quality/sick": message}
    with pytest.raises(PluginError, match="quality/sick"):
        run_lines([record("a", 1.0)], metrics=metrics, strict=True)


@pytest.mark.parametrize(("target", "message"), DATA["a_raising_exporter_costs_its_file_only"])
def test_a_raising_exporter_costs_its_file_only(run_lines, record, toys, target, message):
    component = toys.component("exporter", "sick", target)
    using = toys.make_registry(component, toys.component("exporter", "echo", "Echo"))
    report = run_lines([record("a", 1.0), record("bad", 0.5)], using=using)
    name = f"exporter sick (gradestack {gradestack.__version__})"
    assert report.exit_code == 4
    broken = report.summary["broken"]
    assert broken == {name: message}
    warnings = report.summary["warnings"]
    expected = [f"{name} is broken and left out: {message}"]
    assert warnings == expected
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 0.75
    assert (report.path / "native/echo.json").exists()


def test_a_raising_reporter_costs_its_page_only(run_lines, record, tmp_path):
    report = run_lines([record("a", 1.0)], reports=[{"kind": "dump", "breaks": True}, "markdown"])
    broken = report.summary["broken"]
    assert broken == {"reporter dump": "RuntimeError: no page in somewhere (toy_components.py:202)"}
    assert report.exit_code == 4
    names = [page.name for page in report.pages]
    assert names == ["report.md"]
    warnings = report.summary["warnings"]
    assert warnings == [
        (
            "reporter dump is broken, its page is missing: RuntimeError: no page in somewhere "
            "(toy_components.py:202)"
        )
    ]
    assert read(report) == dict(report.summary)


def test_a_wrong_template_of_the_suite_ends_with_two(run_lines, record, tmp_path):
    """The results are kept and the other page is there.

    The suite is to be mended, so no reporter is called broken.
    """
    house = tmp_path / "house"
    house.mkdir()
    report_path = house / "report.html"
    report_path.write_text(
        "{% extends 'gradestack/report.html' %}{% block how %}\n{{ gone }}{% endblock %}"
    )
    report = run_lines(
        [record("a", 1.0)], reports=[{"kind": "html", "templates": str(house)}, "markdown"]
    )
    message = "templates: house/report.html:2: UndefinedError: 'gone' is undefined"
    assert report.exit_code == 2
    names = [page.name for page in report.pages]
    assert names == ["report.md"]
    refused = report.summary["refused"]
    assert refused == {"reporter html": message}
    warnings = report.summary["warnings"]
    expected = [f"reporter html has written no page: {message}"]
    assert warnings == expected
    assert "broken" not in report.summary
    assert read(report) == dict(report.summary)


@pytest.mark.parametrize(("where", "message"), DATA["a_broken_reader_ends_the_run"])
def test_a_broken_reader_ends_the_run(run_lines, tmp_path, where, message):
    path = tmp_path / "x.numbers"
    path.write_text("numbers\n1\n2\n")
    with pytest.raises(PluginError) as caught:
        run_lines(path, reader={"kind": "numbers", "where": where})
    expected_text = f"reader Numbers (version 1) {message}"
    assert str(caught.value) == expected_text
    paths = tmp_path.iterdir()
    names = [path.name for path in paths]
    assert names == ["x.numbers"]


@pytest.mark.parametrize("size", [1, 10_000])
def test_an_interrupted_run_keeps_what_it_has(
    run_lines, record, small_shards, size, toys, with_echo
):
    small_shards(size)
    records = [record("a", 1.0), record("b", 0.0), record("c", **DO_STOP), record("d", 1.0)]
    report = run_lines(
        records, gate={"op": "gte", "value": 0.1}, reports=["markdown"], using=with_echo
    )
    assert report.exit_code == 130
    assert ids(report) == ["a", "b"]
    total = report.metrics["total"]
    assert total == 2
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 0.5
    assert report.passed is False
    incomplete = report.summary["incomplete"]
    assert "interrupted" in incomplete
    loaded = gradestack.load_report(report.path)
    assert loaded.summary == report.summary
    assert loaded.exit_code == 130
    echo_path = report.path / "native/echo.json"
    text = echo_path.read_text()
    assert text == '[\n"a=1.0",\n"b=0.0"\n]\n'
    assert (report.path / "report.md").exists()


def test_an_interrupt_at_the_first_sample_is_still_a_run(run_lines, record):
    report = run_lines([record("a", **DO_STOP)])
    total = report.metrics["total"]
    assert total == 0
    assert report.exit_code == 130
    assert ids(report) == []


def test_an_interrupt_with_several_runs_asked_for_keeps_the_rows(run_lines, record):
    """The missing runs are no reason to throw the others away."""
    report = run_lines([record("a", 1.0, run=1), record("a", **DO_STOP, run=2)], num_runs=2)
    assert report.exit_code == 130
    assert ids(report) == ["a"]


def test_an_input_that_may_not_be_read(run_lines, record, monkeypatch, write_lines):
    """Said with its name (root may read anything, so the refusal is simulated)."""
    path = write_lines([record("a")])
    open_file = os.open

    def refuse(name, *arguments, **options):
        name_path = Path(name)
        if name_path == path:
            raise PermissionError(13, "Permission denied", str(name))
        return open_file(name, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    for reader in ({"reader": None}, {}):
        with pytest.raises(DataError, match=r"runs\.jsonl: (cannot be read: )?Permission denied"):
            run_lines(path, **reader)


def test_a_grader_may_raise_anything(run_lines, record):
    """Also what is no Exception, such as a cancelled task: the sample fails, the run goes on."""
    report = run_lines([record("a", 1.0), record("b", recorded={"do": "leave"}), record("c", 1.0)])
    rows = list(report.rows())
    states = [row["state"] for row in rows]
    assert states == ["graded", "failed", "graded"]
    grade = rows[1]["grade"]
    metadata = grade["metadata"]
    error_type = metadata["error_type"]
    assert error_type == "GeneratorExit"
