"""Grades of Letta runs: faults, models, documents."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

import gradestack
from gradestack import Fault, Grade, Item, Reason, Sample, Status, grade_to_json, replace, testing
from gradestack_plugins.letta.grader import Recorded
from gradestack_plugins.letta.records import grade_fault, read_trajectory
from gradestack_plugins.text_graders.texts import BUILT_IN
from tests.core.outcomes import at, data

DATA = data(__file__, "grader.yaml")

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])


def sample(**recorded):
    return Sample(id="t", recorded=recorded)


def taken(grade, *, metric=None, profile="documented"):
    return Recorded(metric=metric, profile=profile).grade(sample(grade=grade, grades={"a": grade, "b": grade}))


@PROFILES
def test_grader_keeps_the_contract(letta, profile):
    odd = [
        sample(grade=value, grades={"a": value})
        for value in (None, 1, "x", [], {}, {"score": "1"}, {"score": None}, {"score": float("nan")}, {"state": "?"})
    ]
    odd += [
        sample(grade={"state": "graded", "score": 1.0, "metadata": 3}),
        sample(grade={"state": "graded", "score": 1.0, "items": 3}),
        sample(grade={"state": "graded", "score": 1.0, "parts": {"a": "NaN"}}),
        sample(grade={"state": "failed", "fault": {"nonsense": 1}}),
        sample(grade=letta.grade(0.5), error={"category": 3}),
        sample(grades=[1]),
    ]
    for metric in (None, "a"):
        testing.check_grader(Recorded(metric=metric, profile=profile), odd)


@pytest.mark.parametrize("case", data(__file__, "grades.yaml"))
def test_a_grade_is_taken(case):
    given, profile = Sample(id="t", recorded=case["recorded"]), case.get("profile", "documented")
    if "status" in case:
        given = replace(given, status=Status(case["status"]), error=case.get("error") and Fault(**case["error"]))
    for each in ("documented", "upstream") if profile == "both" else (profile,):
        grade = Recorded(metric=case.get("metric"), profile=each).grade(given)
        assert {path: at(grade, path) for path in case["grade"]} == case["grade"]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 10**400])
@PROFILES
def test_scores_that_are_no_number(score, profile):
    grade = taken({"score": score, "rationale": "", "metadata": {}}, profile=profile)
    assert (grade.outcome, grade.fault.category, grade.fault.code) == ("failed", "data", "bad_recorded_grade")


def test_grades_per_turn_become_items(letta):
    turns = DATA["turns"]
    grade = taken(letta.grade(0.5) | {"per_turn_grades": turns})
    assert [(item.id, item.outcome, item.score) for item in grade.items] == [
        ("turn 1", "graded", 1.0),
        ("turn 2", "failed", None),
    ]
    assert grade.items[0].metadata == {"submission": "a", "ground_truth": "a", "rationale": "ok"}


@pytest.mark.parametrize(
    "grade",
    [
        Grade(
            score=0.5,
            passed=False,
            counts={"n": 2},
            parts={"p": 0.25, "q": None},
            label="a",
            gold="b",
            items=(Item(id="0", score=0.5, reasons=(Reason(code="c", pointer="/x", expected=None),)),),
            reasons=(Reason(code="d", actual=[1]),),
            rationale="so so",
            metadata={"k": 1},
        ),
        Grade(outcome="skipped", reasons=(Reason(code="s", message="m"),), rationale="m"),
        Grade(outcome="failed", fault=Fault(category="grading", code="raised", message="m", type="E"), rationale="m"),
    ],
)
def test_grades_of_gradestack_come_back_whole(grade):
    written = json.loads(json.dumps(grade_to_json(grade)))
    found = taken(written, metric="a")
    assert grade_to_json(found) == written
    assert found.outcome == grade.outcome


@pytest.mark.parametrize(
    ("rationale", "metadata", "category", "message", "kind"), data(__file__, "cases.yaml")["no_judgements"]
)
def test_what_a_grade_says_in_place_of_a_judgement(letta, rationale, metadata, category, message, kind):
    """Its rationale behind the prefix, what its metadata adds, and the type."""
    fault = grade_fault({"score": 0.0, "rationale": rationale, "metadata": metadata})
    assert (fault.category, fault.message, fault.type) == (category, message, kind)


@pytest.mark.parametrize("grade", [None, 3, {}, {"rationale": 3, "metadata": 3}, {"rationale": "An Error: none"}])
def test_a_judgement_is_no_fault(grade):
    assert grade_fault(grade) is None


def graded(letta, tmp_path, record, profile):
    """Grade a recording of one result; return its row and the page."""
    letta.write(tmp_path / "recorded/results.jsonl", [record])
    done = letta.run(["grade", "recorded", "--profile", profile, "-o", "out", "--allow-all-failed"], tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = gradestack.load_report(tmp_path / "out").rows()
    return row, (tmp_path / "out/report.html").read_text(encoding="utf-8")


@PROFILES
def test_a_failed_run_keeps_its_reason(letta, tmp_path, profile):
    broken = letta.grade(
        0.0, "Error during grading: Connection timeout", error="timed out", error_type="ConnectionError"
    )
    row, page = graded(letta, tmp_path, letta.failure(0, grade=broken), profile)
    reason = DATA["reason"]
    assert (row["status"], row["error"], row["grade"]["fault"]) == ("failed", reason, reason)
    assert row["grade"]["rationale"] == "Error during grading: Connection timeout"
    assert row["grade"]["metadata"] == {"error": "timed out", "error_type": "ConnectionError"}
    assert "(ConnectionError): Connection timeout (timed out)" in page


def test_a_target_error_keeps_its_type(letta, tmp_path):
    """The results guide's failed sample: `Error: ...` with metadata."""
    broken = letta.grade(0.0, "Error: no answer", error="no answer", error_type="ReadTimeout")
    row, page = graded(letta, tmp_path, letta.failure(0, grade=broken), "documented")
    assert (row["error"]["category"], row["error"]["type"], row["error"]["message"]) == (
        "target",
        "ReadTimeout",
        "no answer",
    )
    assert row["grade"]["metadata"] == {"error": "no answer", "error_type": "ReadTimeout"}
    assert "(ReadTimeout): no answer" in page


def test_the_reason_of_another_metric_is_found(letta, tmp_path):
    """Where the gate's grade says nothing, another one's reason is the sample's."""
    grades = {"a": letta.grade(0.0), "b": letta.grade(0.0, "Error during grading: 429")}
    row, _ = graded(letta, tmp_path, letta.failure(0, grade=letta.grade(0.0), grades=grades), "documented")
    assert row["error"]["message"] == "429"


def test_a_judge_that_broke_down_keeps_its_words(letta, tmp_path):
    """The conversation is whole: the grade alone is failed, with rationale, message and type as recorded."""
    broken = letta.grade(0.0, "Error during grading: 429 Too Many", error="429 Too Many", error_type="RateLimitError")
    row, page = graded(letta, tmp_path, letta.result(0, grade=broken, grades={"q": broken}), "documented")
    grade = row["grade"]
    assert (row["status"], row["error"], grade["state"]) == ("ok", None, "failed")
    assert (grade["rationale"], grade["fault"]["message"]) == ("Error during grading: 429 Too Many", "429 Too Many")
    assert (grade["fault"]["type"], grade["metadata"]["error_type"]) == ("RateLimitError", "RateLimitError")
    assert "(RateLimitError): 429 Too Many" in page


def models(report):
    return [row["model_name"] for row in report.rows()]


def write_gold(tmp_path, rows):
    lines = (json.dumps({"input": "Capital?", "ground_truth": "Oslo"}) + "\n" for _ in range(rows))
    (tmp_path / "gold.jsonl").write_text("".join(lines), encoding="utf-8")


def test_they_are_those_of_the_only_model_named(letta, tmp_path):
    """With a warning, once; and a dataset counts its rows for one model, not for two."""
    records = [
        letta.result(0, model_name="gpt"),
        letta.failure(1),
        letta.wrapped(letta.result(2, model_name="")),
        letta.result(3, model_handle="gpt"),
    ]
    letta.write(tmp_path / "recorded/results.jsonl", ['{"type": "header"}', "no JSON", *records])
    write_gold(tmp_path, 5)
    done = letta.run(["grade", "recorded", "--dataset", "gold.jsonl", "--grader", "contains", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    report = gradestack.load_report(tmp_path / "out")
    assert models(report) == ["gpt"] * 5
    assert (report.metrics["total"], report.states["contains"]["missing"]) == (5, 1)
    assert [each["model_name"] for each in report.metrics["per_model"]] == ["gpt"]
    (said,) = [each for each in report.summary["warnings"] if "name no model" in each]
    assert said == (
        "recorded: 2 result(s) name no model, the first at recorded/results.jsonl:4; "
        "they are taken as those of 'gpt', the only one named"
    )


def test_runs_of_one_recording_are_looked_at_together(letta, tmp_path):
    for number, model in ((1, "gpt"), (2, None)):
        letta.write(tmp_path / f"recorded/run_{number}/results.jsonl", [letta.result(0, model_name=model)])
    samples = letta.read(tmp_path / "recorded")
    assert [(sample.run, sample.model) for sample in samples] == [(1, "gpt"), (2, "gpt")]


def test_several_models_need_a_word(letta, tmp_path):
    """Whose such a result is cannot be known: exit 2 with its place, and an option says it."""
    records = [letta.result(0, model_name="b"), letta.result(1), letta.result(2, model_name="a"), letta.result(3)]
    letta.write(tmp_path / "recorded/results.jsonl", records)
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 2
    assert (
        "recorded/results.jsonl:2: the result names no model, and others name several, such as 'b' and 'a'"
        in done.stderr
    )
    assert "--set reader.model=NAME" in done.stderr
    assert not (tmp_path / "out").exists()
    assert letta.run(["grade", "recorded", "--set", "reader.model=a", "-o", "out"], tmp_path).returncode == 0
    assert models(gradestack.load_report(tmp_path / "out")) == ["b", "a", "a", "a"]


@pytest.mark.parametrize("given", [[None, None], ["a", "b"]])
def test_nothing_is_said_where_nothing_is_mixed(letta, tmp_path, given):
    records = [letta.result(number, model_name=model) for number, model in enumerate(given)]
    letta.write(tmp_path / "recorded/results.jsonl", records)
    assert letta.run(["grade", "recorded", "-o", "out"], tmp_path).returncode == 0
    report = gradestack.load_report(tmp_path / "out")
    assert (models(report), report.summary["warnings"]) == (given, [])


def test_recordings_are_looked_at_one_by_one(letta, tmp_path):
    letta.write(tmp_path / "one/results.jsonl", [letta.result(0, model_name="gpt"), letta.result(1)])
    letta.write(tmp_path / "two/results.jsonl", [letta.result(0)])
    assert [sample.model for sample in letta.read(tmp_path / "one", tmp_path / "two")] == ["gpt", "gpt", None]


def test_files_named_by_model_are_told_apart(letta, tmp_path):
    """`default.jsonl` is a target of its own in that layout."""
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded/suite.json").write_text('{"samples": [{"id": 0, "input": "?"}]}', encoding="utf-8")
    for name in ("default", "gpt"):
        letta.write(tmp_path / f"recorded/{name}.jsonl", [{"sample_id": 0, "trajectory": [[letta.spoken("Oslo")]]}])
    assert [sample.model for sample in letta.read(tmp_path / "recorded")] == [None, "gpt"]


def test_rows_of_gradestack_keep_what_they_say(letta, tmp_path):
    """A null model in a run directory of ours is a fact, not an omission."""
    samples = [
        {"id": "a", "model": "gpt", "predicted": "x", "expected": "x"},
        {"id": "b", "predicted": "x", "expected": "x"},
    ]
    gradestack.grade(samples, "exact_match", output=tmp_path / "own")
    assert [sample.model for sample in letta.read(tmp_path / "own")] == ["gpt", None]


@pytest.mark.parametrize(
    "odd", [{"model_name": 3}, {"model_name": ["gpt"]}, {"sample": {"id": True}}, {"predicted": 1}]
)
def test_odd_results_are_looked_at_like_any_other(letta, tmp_path, odd):
    letta.write(tmp_path / "recorded/results.jsonl", [letta.result(0, model_name="gpt"), letta.result(1, **odd)])
    found = letta.read(tmp_path / "recorded")
    assert [getattr(each, "model", "bad") for each in found] == ["gpt", "bad" if "sample" in odd else "gpt"]


ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "letta"
PAGE = (ROOT / "docs" / "letta.md").read_text(encoding="utf-8")


def by_metric(report):
    """Return grader key -> (average over attempted, average over total, passed, failed)."""
    names = ("avg_score_attempted", "avg_score_total", "passed_attempts", "failed_attempts")
    return {key: tuple(each[name] for name in names) for key, each in report.metrics["by_metric"].items()}


def test_example_scores(tmp_path):
    """The example's graders give what its answers deserve, worked out by hand."""
    report = gradestack.run(EXAMPLE / "suite.yaml", output=tmp_path / "out", overrides=["reports=[]"])
    scores = [
        {key: grade["score"] for key, grade in row["grades"].items() if grade["state"] == "graded"}
        for row in report.rows()
    ]
    assert scores == DATA["example_scores"]
    assert report.passed
    assert by_metric(report)["mentions"] == (0.9, 0.75, 4, 1)


def test_recorded_grades_reproduce_the_recordings_own_summary(tmp_path):
    suite = {
        "target": {"paths": [str(EXAMPLE / "recorded")]},
        "graders": {key: {"kind": "recorded", "metric": key} for key in ("exact", "quality")},
        "gate": json.loads((EXAMPLE / "recorded" / "header.json").read_text(encoding="utf-8"))["config"]["gate"],
        "reports": [],
    }
    summary = json.loads((EXAMPLE / "recorded" / "summary.json").read_text(encoding="utf-8"))
    report = gradestack.run(suite, output=tmp_path / "out")
    for key, figures in summary["metrics"]["by_metric"].items():
        for name, value in figures.items():
            assert report.metrics["by_metric"][key][name] == pytest.approx(value, abs=1e-12), (key, name)
    assert report.passed is summary["gates_passed"]


def test_options_are_on_the_page():
    words = [f"`{field.name}`" for field in attrs.fields(Recorded) if field.name != "profile"]
    assert [word for word in words if word not in PAGE] == []
    kinds = [line.split("|")[1] for line in PAGE.splitlines() if "_message`" in line.split("|")[:2][-1]]
    named = [name.strip(" `") for cell in kinds for name in cell.split(",")]
    assert len(named) == 8
    for name in named:
        (turn,) = read_trajectory([[{"message_type": name, "content": "x", "tool_call": {"name": "f"}}]]).turns
        assert turn[0].role in PAGE


def test_text_graders_are_on_their_page():
    page = (ROOT / "docs" / "text-graders.md").read_text(encoding="utf-8")
    for name, kind in BUILT_IN.items():
        assert f"`{name}`" in page
        options = {field.name for field in attrs.fields(kind)} - {"profile"}
        assert [option for option in options if f"`{option}`" not in page] == []
