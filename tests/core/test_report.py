"""Reports: what a finished run says of itself, in memory and read back."""

import json
import shutil

import pytest

import gradestack
from gradestack import DataError, load_report
from gradestack.outcome.pages import rewrite_pages
from gradestack_plugins.pages.index import index_of
from tests.core.outcomes import data, read_json

DATA = data(__file__, "report.yaml")


@pytest.fixture
def finished(run_lines, record):
    """Return the report of a run with two graders, a gate and three reporters."""
    records = [record("a", 1.0), record("b", 0.25), record("c", recorded={"do": "skip"})]
    graders = {"zeta": "toy", "alpha": {"kind": "toy", "factor": 0.5}}
    return run_lines(
        records,
        graders=graders,
        gate={"op": "gte", "value": 0.9},
        reports=["dump", "html", "markdown"],
    )


def test_rows_are_read_one_at_a_time(finished):
    """In input order, from disk: a broken line is met only when it is reached."""
    path = finished.path / "results.jsonl"
    text = path.read_text()
    first, second, third = text.splitlines(keepends=True)
    path.write_text(first + "{\n" + third)
    rows = finished.rows()
    sample = next(rows)["sample"]
    assert sample["id"] == "a"
    with pytest.raises(DataError, match=r"results\.jsonl:2: not JSON"):
        next(rows)
    path.write_text(first + "[1]\n" + third)
    with pytest.raises(DataError, match=r"results\.jsonl:2: expected an object, found \[1\]"):
        list(finished.rows())
    document = json.loads(second)
    assert document["sample"]["id"] == "b"


@pytest.mark.parametrize(("summary", "code"), DATA["exit_codes"])
def test_exit_codes(tmp_path, summary, code):
    """Interrupted beats broken, broken beats the gate."""
    report = gradestack.Report(path=tmp_path, header={}, summary={"gates_passed": None} | summary)
    assert report.exit_code == code


def test_a_run_reads_back_equal(finished):
    loaded = load_report(finished.path)
    assert loaded.summary == finished.summary
    assert loaded.header == finished.header
    rows = list(loaded.rows())
    expected = list(finished.rows())
    assert rows == expected
    assert loaded.passed is False
    assert loaded.exit_code == 1


def test_reporters_keep_the_options_of_the_run(run_lines, record, registry, tmp_path):
    """A page written again has the title the suite gave it.

    A format that is named has its defaults.
    """
    run = run_lines([record("a", 1.0)], reports=[{"kind": "dump", "title": "mine"}])
    loaded = load_report(run.path)
    again_folder = tmp_path / "again"
    (rewritten,) = rewrite_pages(loaded, registry, (), again_folder)
    document = read_json(rewritten)
    assert document[0] == "mine"
    named_folder = tmp_path / "named"
    (named,) = rewrite_pages(loaded, registry, ("dump",), named_folder)
    assert read_json(named)[0] == "dump"


def test_options_a_reporter_does_not_know_any_more(run_lines, record, registry, tmp_path):
    run = run_lines([record("a", 1.0)], reports=["dump"])
    loaded = load_report(run.path)
    components = loaded.header["components"]
    (reporter,) = [component for component in components if component["kind"] == "reporter"]
    reporter["options"] = {"gone": 1}
    with pytest.raises(
        DataError, match="does not take the options of this run; name it with --format"
    ):
        rewrite_pages(loaded, registry, (), tmp_path / "pages")


def test_a_run_without_pages_gets_the_usual_ones(run_lines, record, registry, tmp_path):
    run = run_lines([record("a", 1.0)])
    report = load_report(run.path)
    pages_folder = tmp_path / "pages"
    pages = rewrite_pages(report, registry, (), pages_folder)
    names = [page.name for page in pages]
    assert names == ["report.html", "report.md"]


def test_samples_are_graded_without_a_directory(registry, tmp_path, monkeypatch):
    """Nothing is written.

    Rows can be read again and again, beside each other, until the report is closed.
    """
    monkeypatch.chdir(tmp_path)
    records = [{"id": name, "predicted": "x"} for name in "abc"]
    with gradestack.grade(records, ["toy"], registry=registry) as report:
        assert report.path is None
        pairs = []
        for one in report.rows():
            for two in report.rows():
                sample = one["sample"]
                pairs.append((sample["id"], two["sample"]["id"]))
        expected = [(one, two) for one in "abc" for two in "abc"]
        assert pairs == expected
    paths = list(tmp_path.iterdir())
    assert paths == []
    with pytest.raises(DataError, match="the report is closed"):
        next(report.rows())


def test_held_figures_equal_those_of_a_directory(registry, tmp_path):
    records = [{"id": name, "predicted": "x", "run": run} for name in "abc" for run in range(3)]
    gate = {"kind": "simple", "metric_key": "toy", "aggregation": "p50", "op": "gte", "value": 0.0}
    with gradestack.grade(records, ["toy"], gate=gate, registry=registry) as held_report:
        output = tmp_path / "out"
        written_report = gradestack.grade(
            records, ["toy"], gate=gate, registry=registry, output=output
        )
        rows = list(held_report.rows())
        expected = list(written_report.rows())
        assert rows == expected
        assert held_report.summary == written_report.summary
        header = set(written_report.header)
        assert {*held_report.header, "files"} == header


def test_a_kept_run_is_not_removed(finished):
    """close() is for temporary ones."""
    finished.close()
    assert finished.path.is_dir()


def test_what_is_no_run_directory(tmp_path, finished):
    (tmp_path / "file").touch()
    (tmp_path / "theirs").mkdir()
    for name, message in [
        ("gone", "no such directory"),
        ("file", "not a directory"),
        ("theirs", "not a gradestack report directory"),
    ]:
        match = f"{name}: {message}"
        with pytest.raises(DataError, match=match):
            load_report(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        *DATA["a_damaged_run_directory"],
        ("summary.json", "[" * 10_000, "summary.json: cannot be read: nested too deeply"),
    ],
)
def test_a_damaged_run_directory(finished, tmp_path, name, text, message):
    copy_folder = tmp_path / "copy"
    copied_folder = shutil.copytree(finished.path, copy_folder)
    if text is None:
        (copied_folder / name).unlink()
    else:
        (copied_folder / name).write_text(text)
    with pytest.raises(DataError) as caught:
        load_report(copied_folder)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "change", [lambda lines: lines[:-1], lambda lines: [*lines, lines[0]], lambda _: []]
)
def test_rows_that_were_lost_or_repeated_since_are_refused(finished, change):
    """Pages, tables and comparisons of fewer or more rows than the summary is of would say other
    figures.
    """
    path = finished.path / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))
    match = rf"results\.jsonl: {len(change(lines))} rows, but .* {len(lines)} samples"
    with pytest.raises(DataError, match=match):
        list(finished.rows())
    with pytest.raises(DataError, match="grade the files again"):
        index_of(gradestack.load_report(finished.path))
