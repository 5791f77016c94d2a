"""Processing errors: failed grades everywhere, while the family's own figures and file keep the original's."""

import json

import pytest

import gradestack
from gradestack import DataError
from gradestack_plugins.deepfabric.aggregators import DeepFabricMetrics
from gradestack_plugins.deepfabric.grader import DeepFabric

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


@pytest.fixture
def lines(df):
    """A right record, one with a broken rule, and one whose inference failed."""
    tools = [df.tool("f", ["a"], a="integer")]
    record = df.record(("f", {"a": 1}), tools)
    broken = {**record, "metadata": {"conversation_type": "chat"}}
    return [
        {"sample": record, "recorded": df.reply(("f", {"a": 1}))},
        {"sample": broken, "recorded": df.reply(("f", {"a": 1}))},
        {"sample": record, "recorded": {"kind": "exception", "message": "out of memory"}},
    ]


def graded(df, tmp_path, lines, profile="documented", **options):
    path = df.write(tmp_path / "joined.jsonl", *lines)
    overrides = [f"graders.tools.{name}={json.dumps(value)}" for name, value in options.items()]
    return gradestack.grade_files([path], output=tmp_path / "run", profile=profile, overrides=overrides)


@PROFILES
def test_states_rows_and_figures(df, tmp_path, lines, profile):
    """States, attempted and rows call them failed; native file and aggregator count them as the original does."""
    report = graded(df, tmp_path, lines, profile)
    metrics = report.summary["metrics"]
    assert metrics["states"]["tools"] == {"graded": 1, "skipped": 0, "failed": 2, "missing": 0}
    assert (metrics["total"], metrics["total_attempted"]) == (3, 1)
    assert (metrics["avg_score_attempted"], metrics["avg_score_total"]) == (1.0, pytest.approx(1 / 3))
    rows = list(report.rows())
    assert [row["state"] for row in rows] == ["graded", "failed", "failed"]
    assert [row["grade"]["fault"]["code"] for row in rows[1:]] == ["processing_error"] * 2
    assert "out of memory (see whether the model answered" in rows[2]["grade"]["rationale"]
    figures = metrics["aggregates"]["tools"]["deepfabric"]
    native = json.loads((report.path / "native/deepfabric.json").read_bytes())
    for found in (figures, native["metrics"]):
        assert found["tool_selection_accuracy"] == pytest.approx(1 / 3)
        assert (found["samples_evaluated"], found["samples_processed"], found["processing_errors"]) == (3, 1, 2)
    assert [record["error"] for record in native["predictions"]][::2] == [None, "out of memory"]


@PROFILES
def test_the_loud_line(df, tmp_path, lines, profile):
    """Summary and pages say how many there are and name the first; without any, nothing is said."""
    report = graded(df, tmp_path, lines[1:], profile)
    said = [text for text in report.summary["warnings"] if "processing errors" in text]
    (line,) = said
    assert line.startswith("grader 'tools': 2 of 2 records are processing errors, first: 0: metadata.conversation_type")
    assert "2 of 2 records are processing errors" in (report.path / "report.md").read_text(encoding="utf-8")
    assert graded(df, tmp_path / "fine", lines[:1], profile).summary["warnings"] == []


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "fine").mkdir()


def test_records_on_which_the_original_ends(df, tmp_path, lines):
    """A second line says that the original would have written nothing; ``on_stop: stop`` ends the run there."""
    silent = {"sample": {"messages": [{"role": "system", "content": "s"}]}, "recorded": df.reply()}
    report = graded(df, tmp_path, [lines[0], silent], "upstream")
    assert report.summary["warnings"][-1] == (
        "grader 'tools': on 1 of these records the original ends and writes no result at all"
    )
    rows = list(report.rows())
    assert rows[1]["grade"]["fault"]["code"] == "run_stops"
    with pytest.raises(DataError, match=r"joined.jsonl:2: DeepFabric 4.13 ends on this record: No user query"):
        graded(df, tmp_path / "fine", [lines[0], silent], "upstream", on_stop="stop")
    old = graded(df, tmp_path / "fine", [lines[0], silent], "upstream", on_stop="stop", upstream_version="4.3")
    assert not any("writes no result" in text for text in old.summary["warnings"])


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_the_run_ends_under_every_engine(df, tmp_path, lines, engine):
    silent = {"sample": {"messages": [{"role": "system", "content": "s"}]}, "recorded": df.reply()}
    path = df.write(tmp_path / "joined.jsonl", lines[0], silent)
    stop = ["graders.tools.on_stop=stop"]
    with pytest.raises(DataError, match="ends on this record"):
        gradestack.grade_files([path], output=tmp_path / "run", profile="upstream", overrides=stop, engine=engine)
    assert not (tmp_path / "run").exists()


def test_the_first_error_is_the_first_in_input_order(df, lines):
    grader = DeepFabric()
    grades = [grader.grade(df.sample(line["sample"], line["recorded"])) for line in lines]
    long = df.sample(lines[0]["sample"], {"kind": "exception", "message": "x" * 1000})
    (said,) = df.fold(DeepFabricMetrics(), [grades[0], grades[1], grader.grade(long), grades[2]])["warnings"]
    assert said.startswith("3 of 4 records are processing errors, first: 1: metadata.conversation_type")
    assert len(df.fold(DeepFabricMetrics(), [grader.grade(long)])["warnings"][0]) < 400


def test_the_version_reaches_the_result_file(df, tmp_path, lines):
    lines[1]["sample"]["metadata"] = {"conversation_type": "cot"}
    new = graded(df, tmp_path, lines[:2], "upstream")
    old = graded(df, tmp_path / "fine", lines[:2], "upstream", upstream_version=4.3)
    files = [json.loads((report.path / "native/deepfabric.json").read_bytes()) for report in (new, old)]
    assert [file["metrics"]["processing_errors"] for file in files] == [0, 1]
    assert ["available_tools" in file["predictions"][0] for file in files] == [True, False]
    assert [file["predictions"][1]["query"] for file in files] == ["the query", ""]
    assert ["multi_turn" in file["config"] for file in files] == [True, False]
    row = next(iter(old.rows()))
    assert row["grade"]["metadata"]["upstream_version"] == "4.3"
