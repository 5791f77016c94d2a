"""What recordings say of themselves: metrics and gates, models, and why grades are none."""

from __future__ import annotations

import json

import pytest

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "recordings.yaml")

GATE = {"metric_key": "exact", "metric": "accuracy", "op": "gte", "value": 60, "pass_op": "gt", "pass_value": 0.4}


@pytest.fixture
def record(letta, tmp_path):
    """Return a function that writes a recording of (exact, quality) scores, with what stands beside it."""

    def written(*scores, folder="recorded", summary=None, header=None, **fields):
        place = tmp_path / folder
        records = [
            letta.result(
                number,
                grade=letta.grade(quality),
                grades={"quality": letta.grade(quality), "exact": letta.grade(exact)},
                **fields,
            )
            for number, (exact, quality) in enumerate(scores)
        ]
        letta.write(place / "results.jsonl", records)
        for name, content in (("summary", summary), ("header", header)):
            if content is not None:
                (place / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        return place

    return written


def figures(names):
    """Return a summary's figures by metric; the reader wants their names only."""
    return {"metrics": {"by_metric": {name: {"avg_score_attempted": 0.0} for name in names}}}


def run(place, graders, **more):
    suite = {"target": {"paths": [str(place)]}, "graders": graders, "reports": [], **more}
    return gradestack.run(suite, output=place.parent / "out")


def averages(report):
    return {key: each["avg_score_attempted"] for key, each in report.metrics["by_metric"].items()}


SCORES = ((1.0, 0.25), (0.5, 0.75), (0.25, 0.5))
"""Averages: exact 0.58333..., quality 0.5."""


@pytest.mark.parametrize("summary", [None, figures(["exact", "quality"])])
def test_a_key_takes_the_metric_of_its_name(record, summary):
    place = record(*SCORES, summary=summary)
    report = run(
        place, {"quality": {"kind": "recorded"}, "exact": "recorded", "q": {"kind": "recorded", "metric": "quality"}}
    )
    assert averages(report) == {"quality": 0.5, "exact": 1.75 / 3, "q": 0.5}
    chosen = {
        each["key"]: each["options"]["metric"] for each in report.header["components"] if each["kind"] == "grader"
    }
    assert chosen == {"quality": "quality", "exact": "exact", "q": "quality"}


def test_several_metrics_must_be_named(letta, record, tmp_path):
    record(*SCORES)
    done = letta.run(["grade", "recorded", "--grader", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 2
    assert "graders.recorded: the recording has no metric 'recorded' but several others" in done.stderr
    assert "name one with `metric`: quality, exact" in done.stderr
    named = ["--set", "graders.recorded.metric=exact"]
    assert letta.run(["grade", "recorded", "--grader", "recorded", *named, "-o", "out"], tmp_path).returncode == 0


def test_the_only_metric_needs_no_name(letta, tmp_path):
    letta.write(tmp_path / "recorded/results.jsonl", [letta.result(0, grades={"style": letta.grade(0.25)})])
    assert averages(run(tmp_path / "recorded", {"any": "recorded"})) == {"any": 0.25}


def test_a_named_metric_is_never_second_guessed(record):
    """One that the recording lacks is skipped in every row."""
    report = run(record(*SCORES), {"exact": {"kind": "recorded", "metric": "style"}})
    assert report.states["exact"] == {"graded": 0, "skipped": 3, "failed": 0, "missing": 0}


def test_the_summary_decides_before_the_records(record, letta):
    """A metric it does not list is none, and one it lists may be absent from a row, which is skipped."""
    place = record(*SCORES, summary=figures(["quality"]))
    assert averages(run(place, {"exact": "recorded"})) == {"exact": 0.5}
    place = record(*SCORES, summary=figures(["quality", "exact", "style"]))
    assert run(place, {"style": "recorded"}).states["style"]["skipped"] == 3


def test_without_a_summary_the_first_thousand_records_decide(letta, tmp_path):
    """Of each input; what only later ones hold is none of its metrics."""
    late = [letta.result(number, grades={"a": letta.grade(1.0)}) for number in range(1000)]
    letta.write(tmp_path / "recorded/results.jsonl", [*late, letta.result(1000, grades={"b": letta.grade(0.0)})])
    report = run(tmp_path / "recorded", {"b": "recorded"})
    assert (averages(report), report.states["b"]["skipped"]) == ({"b": 1.0}, 1)
    letta.write(tmp_path / "other/results.jsonl", [letta.result(0, grades={"b": letta.grade(0.5)})])
    both = {"paths": [str(tmp_path / "recorded"), str(tmp_path / "other")]}
    report = run(tmp_path / "recorded", {"b": "recorded"}, target=both)
    assert (averages(report), report.states["b"]["skipped"]) == ({"b": 0.25}, 1000)


def test_grades_without_names_are_the_gate_s(letta, tmp_path):
    """A recording of one grader may have `grade` alone, whatever its summary calls it."""
    place = tmp_path / "recorded"
    letta.write(place / "results.jsonl", [letta.result(0, grade=letta.grade(0.25), grades=None)])
    assert averages(run(place, {"any": "recorded"})) == {"any": 0.25}
    (place / "summary.json").write_text(json.dumps(figures(["style"])), encoding="utf-8")
    assert averages(run(place, {"style": "recorded"})) == {"style": 0.25}
    assert letta.run(["grade", "recorded", "-o", "out"], tmp_path).returncode == 0
    assert averages(gradestack.load_report(tmp_path / "out")) == {"style": 0.25}


def test_scores_of_other_formats_are_decided_on_alike(tmp_path):
    """Its own key's score, else the only one, else one must be named; also of samples in memory."""
    samples = [{"id": "a", "predicted": "x", "recorded": {"speed": 0.5, "taste": 1, "note": "n"}}]
    (tmp_path / "data.jsonl").write_text(json.dumps(samples[0]) + "\n", encoding="utf-8")
    assert averages(run(tmp_path / "data.jsonl", {"speed": "recorded"})) == {"speed": 0.5}
    for grade in (
        lambda: run(tmp_path / "data.jsonl", {"x": "recorded"}),
        lambda: gradestack.grade(samples, "recorded"),
    ):
        with pytest.raises(gradestack.ConfigError) as caught:
            grade()
        assert "name one with `metric`: speed, taste" in str(caught.value.problems)
    assert averages(gradestack.grade(samples, {"taste": "recorded"})) == {"taste": 1.0}


@pytest.mark.parametrize("file", ["summary", "header"])
def test_grading_a_directory_takes_every_metric_and_the_gate(letta, record, tmp_path, file):
    """Each by its name, the gate with its per-sample rule, and its verdict is the exit code."""
    graders = {"exact": {"kind": "tool"}, "quality": {"kind": "rubric"}}
    config = {"config": {"graders": graders, "gate": GATE | {"on_no_data": None}}}
    beside = {"summary": figures(["quality", "exact"]), "header": {}}
    beside[file] |= config
    record(*SCORES, **beside)
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    report = gradestack.load_report(tmp_path / "out")
    assert list(report.metrics["by_metric"]) == ["exact", "quality"]
    assert averages(report) == {"exact": 1.75 / 3, "quality": 0.5}
    # more than 0.4: two of three, 66.7 %
    assert [row["passed"] for row in report.rows()] == [True, True, False]
    assert report.metrics["passed_attempts"] == 2
    assert (report.gates[0]["actual"], report.passed, done.returncode) == (pytest.approx(200 / 3), True, 0)
    again = letta.run(["grade", "out", "-o", "again"], tmp_path)
    assert gradestack.load_report(tmp_path / "again").metrics == report.metrics
    assert again.returncode == 0
    other = ["--set", "gate={metric_key: quality, op: gte, value: 0.9}"]
    assert letta.run(["grade", "recorded", *other, "-o", "other"], tmp_path).returncode == 1


def test_runs_share_the_gate(letta, record, tmp_path):
    """Each run's folder has its own summary; the gate is applied to all of them together."""
    for number in (1, 2, 10):
        summary = figures(["exact", "quality"]) | {"config": {"gate": {"op": "gte", "value": 0.9}}}
        record((1.0, number / 10), folder=f"recorded/run_{number}", summary=summary)
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    report = gradestack.load_report(tmp_path / "out")
    assert (report.gates[0]["metric_key"], report.gates[0]["actual"], done.returncode) == ("exact", 1.0, 0)


@pytest.mark.parametrize(("gate", "said"), DATA["a_gate_that_cannot_be_applied_is_left_out"])
def test_a_gate_that_cannot_be_applied_is_left_out(letta, record, tmp_path, gate, said):
    record(*SCORES, summary=figures(["exact", "quality"]) | {"config": {"gate": gate}})
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    report = gradestack.load_report(tmp_path / "out")
    assert (report.passed, averages(report)["exact"]) == (None, 1.75 / 3)
    assert any(said in each for each in report.summary["warnings"]) if said else not report.summary["warnings"]


@pytest.mark.parametrize("gate", DATA["gates_of_later_versions_are_applied"])
def test_gates_of_later_versions_are_applied(letta, record, tmp_path, gate):
    record(*SCORES, header={"config": {"gate": gate}})
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    assert (done.returncode, gradestack.load_report(tmp_path / "out").passed) == (0, True), done.stderr


def test_different_gates_are_not_mixed(letta, record, tmp_path):
    for name, value in (("one", 0.5), ("two", 0.6)):
        summary = figures(["exact", "quality"]) | {"config": {"gate": {"op": "gte", "value": value}}}
        record(*SCORES, folder=name, summary=summary)
    assert letta.run(["grade", "one", "two", "-o", "out"], tmp_path).returncode == 0
    report = gradestack.load_report(tmp_path / "out")
    assert report.passed is None
    assert "the recordings went by different gates; none of them is applied" in report.summary["warnings"]


def test_rewards_stand_before_the_metrics_they_are_made_of(letta, tmp_path):
    """The later layout has no gate: the reward comes first, every metric behind it."""
    place = tmp_path / "recorded"
    line = {"sample_id": 0, "trajectory": [[letta.spoken("Oslo")]], "agent_id": "a"}
    line |= {"grades": {"a": letta.grade(0.25), "b": letta.grade(0.75)}, "reward": {"score": 0.5, "metadata": {}}}
    letta.write(place / "m.jsonl", [line])
    (place / "suite.json").write_text(json.dumps({"samples": [{"id": 0, "input": "?"}]}), encoding="utf-8")
    assert letta.run(["grade", "recorded", "-o", "out"], tmp_path).returncode == 0
    report = gradestack.load_report(tmp_path / "out")
    assert averages(report) == {"reward": 0.5, "a": 0.25, "b": 0.75}
    assert next(report.rows())["grade"]["score"] == 0.5


@pytest.mark.parametrize(("summary", "header"), DATA["odd_summaries_and_headers_say_nothing"])
def test_odd_summaries_and_headers_say_nothing(letta, record, tmp_path, summary, header):
    """The results are enough: every metric of theirs is graded, by no gate."""
    record(*SCORES, summary=summary, header=header)
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    report = gradestack.load_report(tmp_path / "out")
    assert (averages(report), report.passed) == ({"quality": 0.5, "exact": 1.75 / 3}, None)


def test_what_another_metric_says_is_not_taken_over(letta, tmp_path):
    """A failed run's grade has the metadata of its own metric; where none is named, that of the gate's."""
    gate = letta.grade(0.0, "Error: gone", judge="small")
    for name, grades in (("named", {"a": letta.grade(0.0), "b": gate}), ("unnamed", None)):
        letta.write(tmp_path / f"{name}/results.jsonl", [letta.failure(0, grade=gate, grades=grades)])
    of = {"kind": "recorded", "metric": "a"}
    for name, metadata in (("named", {}), ("unnamed", {"judge": "small"})):
        (row,) = run(tmp_path / name, {"a": of, "c": of | {"metric": "c"}}).rows()
        assert [row["grades"][key]["metadata"] for key in "ac"] == [
            {"error": "gone", "error_type": "target_error"} | metadata for _ in "ac"
        ]
