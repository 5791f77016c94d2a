"""Recorded directories graded again through the real command line, figures derived by hand."""

from __future__ import annotations

import json

import pytest

from tests.core.outcomes import data

DATA = data(__file__, "cli.yaml")

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])
GRADERS = """
graders:
  exact: {kind: tool, function: exact_match, extractor: last_assistant, display_name: Exact}
  mentions: {kind: contains}
"""


def suite(tmp_path, text, name="suite.yaml"):
    """Write a suite that reads the directory `recorded` beside it and makes no report pages."""
    (tmp_path / name).write_text(f"name: again\ntarget: {{paths: [recorded]}}\nreports: []\n{text}", encoding="utf-8")
    return name


def summary(tmp_path, out="out"):
    return json.loads((tmp_path / out / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture
def recorded(letta, tmp_path):
    """Six results: right, right within a sentence, wrong, without reference, silent, failed."""
    records = [
        letta.result(0, "Oslo"),
        letta.result(1, "It is Oslo."),
        letta.result(2, "Bergen"),
        letta.result(3, "Oslo", sample={"ground_truth": None}),
        letta.result(4, "", trajectory=[[letta.called("look", {})]]),
        letta.failure(5),
    ]
    return letta.write(tmp_path / "recorded" / "results.jsonl", map(letta.wrapped, records))


@PROFILES
@pytest.mark.parametrize(("value", "code", "verdict"), [(0.6, 0, "✓ PASSED"), (0.7, 1, "✗ FAILED")])
def test_regrading_with_a_gate(letta, tmp_path, recorded, profile, value, code, verdict):
    # mentions: documented 1, 1, 0 of three graded = 2/3; upstream 1, 1, 0, 0, 0 and the failed run's 0, = 1/3
    value = value if profile == "documented" else value - 0.3
    text = f"profile: {profile}\n{GRADERS}gate: {{metric_key: mentions, op: gte, value: {value}}}\n"
    done = letta.run(["run", suite(tmp_path, text), "-o", "out"], tmp_path)
    assert done.returncode == code, done.stderr
    assert verdict in done.stdout
    metrics = summary(tmp_path)["metrics"]
    states = metrics["states"]["exact"]
    exact, mentions = (metrics["by_metric"][key] for key in ("exact", "mentions"))
    if profile == "documented":
        assert states == {"graded": 3, "skipped": 1, "failed": 2, "missing": 0}
        assert (exact["avg_score_attempted"], mentions["avg_score_attempted"]) == (1 / 3, 2 / 3)
        assert (exact["avg_score_total"], mentions["avg_score_total"]) == (1 / 5, 2 / 5)
    else:
        assert states == {"graded": 6, "skipped": 0, "failed": 0, "missing": 0}
        assert (exact["avg_score_attempted"], mentions["avg_score_attempted"]) == (1 / 6, 2 / 6)
        assert (metrics["total_attempted"], mentions["passed_attempts"], mentions["failed_attempts"]) == (5, 2, 3)
        assert (exact["avg_score_total"], mentions["avg_score_total"]) == (1 / 6, 2 / 6)
    rows = letta.rows(tmp_path / "out")
    assert rows[1]["submissions"] == {"exact": "It is Oslo.", "mentions": "It is Oslo."}
    assert rows[5]["error"]["message"] == "ReadTimeout: no answer"
    assert [row["run"] for row in rows] == [1] * 6


def test_a_silent_agent_is_a_failed_extraction(letta, tmp_path, recorded):
    assert letta.run(["run", suite(tmp_path, GRADERS), "-o", "out"], tmp_path).returncode == 0
    row = letta.rows(tmp_path / "out")[4]
    assert (row["grade"]["state"], row["grade"]["fault"]["code"]) == ("failed", "empty_submission")
    assert row["trajectory"][0][0]["tool_calls"][0]["function"]["name"] == "look"
    assert letta.rows(tmp_path / "out")[3]["grade"]["reasons"][0]["code"] == "no_ground_truth"


def test_recorded_grades_without_any_grader(letta, tmp_path, recorded):
    """`gradestack grade DIR` uses the recorded grades, by their name: five of 1.0, one failed run."""
    done = letta.run(["grade", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    figures = summary(tmp_path)["metrics"]["by_metric"]["quality"]
    assert (figures["avg_score_attempted"], figures["avg_score_total"]) == (1.0, 5 / 6)
    text = "graders:\n  quality: {kind: recorded, metric: quality}\n  other: {kind: recorded, metric: style}\n"
    done = letta.run(["run", suite(tmp_path, text), "-o", "two"], tmp_path)
    states = summary(tmp_path, "two")["metrics"]["states"]
    assert (states["quality"]["graded"], states["other"]["graded"], states["other"]["skipped"]) == (5, 0, 5)


@pytest.mark.parametrize("name", ["gold.jsonl", "gold.csv"])
def test_a_dataset_gives_the_references(letta, tmp_path, recorded, name):
    """The dataset's references replace the recorded ones, and a row nobody answered is missing."""
    truths = ["Bergen"] * 7
    if name.endswith("csv"):
        text = "input,ground_truth\n" + "".join(f"Capital?,{truth}\n" for truth in truths)
    else:
        text = "".join(json.dumps({"input": "Capital?", "ground_truth": truth}) + "\n" for truth in truths)
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = letta.run(["run", suite(tmp_path, f"dataset: {name}\n{GRADERS}"), "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert summary(tmp_path)["metrics"]["states"]["exact"] == {"graded": 4, "skipped": 0, "failed": 2, "missing": 1}
    rows = letta.rows(tmp_path / "out")
    assert [row["grade"]["score"] for row in rows] == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert (rows[6]["sample"]["id"], rows[6]["status"]) == (6, "missing")


def test_a_bad_dataset_row_ends_the_run(letta, tmp_path, recorded):
    (tmp_path / "gold.jsonl").write_text('{"input": "a"}\n\n{"input": "b"}\n', encoding="utf-8")
    done = letta.run(["run", suite(tmp_path, f"dataset: gold.jsonl\n{GRADERS}"), "-o", "out"], tmp_path)
    assert done.returncode == 3
    assert "gold.jsonl:2: a blank line" in done.stderr


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("gold.jsonl", b'{"ground_truth": "a"}\n{"input": "b"}\n', "gold.jsonl:1: input is missing"),
        ("gold.jsonl", b'{"input": null}\n', "gold.jsonl:1: input must be a text"),
        ("gold.jsonl", b'{"input": "\xff"}\n{"input": "b"}\n', "gold.jsonl:1: not UTF-8"),
        ("gold.jsonl", b'nothing\n{"input": "b"}\n', "gold.jsonl:1: not JSON"),
        ("gold.csv", b"question,ground_truth\na,b\n", "gold.csv: a column 'input' is needed"),
        ("gold.csv", b"input,ground_truth\na,b,c\n", "gold.csv:2: more cells than columns"),
    ],
)
def test_a_bad_first_row_is_told_with_its_place(letta, tmp_path, recorded, name, data, message):
    """A dataset that begins with a mistake is still known as one."""
    (tmp_path / name).write_bytes(data)
    done = letta.run(["run", suite(tmp_path, f"dataset: {name}\n{GRADERS}"), "-o", "out"], tmp_path)
    assert (done.returncode, message in done.stderr) == (3, True), done.stderr


@PROFILES
@pytest.mark.parametrize("last", DATA["what_is_not_understood_does_not_hide_the_answer"])
def test_what_is_not_understood_does_not_hide_the_answer(letta, tmp_path, profile, last):
    """The last thing the assistant said is graded, whatever comes after it, and again from the run's own rows."""
    letta.write(tmp_path / "recorded" / "results.jsonl", [letta.result(0, trajectory=[[letta.spoken("Oslo"), last]])])
    text = f"profile: {profile}\ngraders: {{exact: {{kind: exact_match}}}}\n"
    assert letta.run(["run", suite(tmp_path, text), "-o", "one"], tmp_path).returncode == 0
    assert letta.run(["run", "suite.yaml", "--cached", "one", "-o", "two"], tmp_path).returncode == 0
    for out in ("one", "two"):
        (row,) = letta.rows(tmp_path / out)
        assert (row["submissions"], row["grade"]["score"], row["state"]) == ({"exact": "Oslo"}, 1.0, "graded")


def test_upstream_grades_an_empty_trajectory_as_silence(letta, tmp_path):
    """A submission without a conversation is an answer in documented; upstream grades "" and calls the run failed."""
    letta.write(tmp_path / "recorded" / "results.jsonl", [letta.result(0, trajectory=[])])
    for profile, score, attempted in (("documented", 1.0, 1), ("upstream", 0.0, 0)):
        text = f"profile: {profile}\ngraders: {{exact: {{kind: exact_match}}}}\n"
        assert letta.run(["run", suite(tmp_path, text), "-o", profile], tmp_path).returncode == 0
        metrics = summary(tmp_path, profile)["metrics"]
        assert (metrics["avg_score_attempted"], metrics["total_attempted"]) == (score, attempted)


def test_upstream_averages_every_recorded_grade(letta, tmp_path):
    """A failed run with a grade counts in the averages, not among the attempted: (1.0 + 0.5) / 2, one attempted."""
    records = [
        letta.result(0, trajectory=[]),
        letta.result(1, grade=letta.grade(0.5), grades={"quality": letta.grade(0.5)}),
    ]
    letta.write(tmp_path / "kept" / "results.jsonl", [*records, letta.failure(2)])
    for profile, attempted, total in (("upstream", 0.75, 0.5), ("documented", 0.75, 0.5)):
        done = letta.run(["grade", "kept", "--profile", profile, "-o", profile], tmp_path)
        assert done.returncode == 0, done.stderr
        metrics = summary(tmp_path, profile)["metrics"]
        assert (metrics["avg_score_attempted"], metrics["avg_score_total"]) == (attempted, total)
        assert metrics["total_attempted"] == (1 if profile == "upstream" else 2)


LIVE = f"""
name: live
dataset: gold.jsonl
target: {{kind: agent, agent_file: a.af, base_url: "http://localhost:8283"}}
reports: []
{GRADERS}
gate: {{metric_key: mentions, metric: accuracy, op: gte, value: 40}}
"""


def test_cached_takes_the_place_of_a_live_target(letta, tmp_path, recorded):
    (tmp_path / "live.yaml").write_text(LIVE, encoding="utf-8")
    gold = [{"input": "Capital?", "ground_truth": "Oslo"}] * 7
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold), encoding="utf-8")
    refused = letta.run(["run", "live.yaml"], tmp_path)
    assert (refused.returncode, "--cached DIR" in refused.stderr) == (2, True)
    done = letta.run(["run", "live.yaml", "--cached", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    # graded: Oslo, It is Oslo., Bergen, Oslo: three mention it, of four graded, two failed and one missing
    assert summary(tmp_path)["gates"][0]["actual"] == 100 * 3 / 7
    assert summary(tmp_path)["metrics"]["states"]["exact"]["missing"] == 1


def test_cached_refuses_another_dataset(letta, tmp_path, recorded):
    (tmp_path / "live.yaml").write_text(LIVE, encoding="utf-8")
    (tmp_path / "gold.jsonl").write_text('{"input": "Something else?", "ground_truth": "x"}\n', encoding="utf-8")
    done = letta.run(["run", "live.yaml", "--cached", "recorded", "-o", "out"], tmp_path)
    assert done.returncode == 3
    assert "differs from the dataset's" in done.stderr


@PROFILES
def test_grading_turn_by_turn(letta, tmp_path, profile):
    """Lists of inputs and references are graded turn by turn: the mean over the references, an absent turn zero."""
    sample = {"input": ["a", "b", "c"], "ground_truth": ["one", "two", "three"]}
    turns = [[letta.spoken("one")], [letta.spoken("no"), letta.spoken("TWO")]]
    letta.write(tmp_path / "recorded" / "results.jsonl", [letta.result(0, sample=sample, trajectory=turns)])
    done = letta.run(["run", suite(tmp_path, f"profile: {profile}\n{GRADERS}"), "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = letta.rows(tmp_path / "out")
    assert row["grades"]["exact"]["score"] == 1 / 3
    assert row["grades"]["mentions"]["score"] == 2 / 3
    assert row["grades"]["mentions"]["metadata"] == {"turns_passed": 2, "turns_total": 3}
    assert row["submissions"]["mentions"] == "[Turn 1] one | [Turn 2] TWO | [Turn 3] "


def test_several_models_and_runs(letta, tmp_path):
    for number, answers in ((1, ("Oslo", "Oslo")), (2, ("Oslo", "Bergen")), (10, ("Bergen", "Bergen"))):
        records = [letta.result(0, answer, model_name=model) for answer, model in zip(answers, "ab", strict=True)]
        letta.write(tmp_path / "recorded" / f"run_{number}" / "results.jsonl", records)
    text = f"num_runs: 3\n{GRADERS}gate: {{metric_key: exact, op: gte, value: 0.5}}\n"
    done = letta.run(["run", suite(tmp_path, text), "-o", "out"], tmp_path)
    assert done.returncode == 1, done.stderr
    assert [(row["run"], row["model_name"], row["grade"]["score"]) for row in letta.rows(tmp_path / "out")] == [
        (1, "a", 1.0),
        (1, "b", 1.0),
        (2, "a", 1.0),
        (2, "b", 0.0),
        (10, "a", 0.0),
        (10, "b", 0.0),
    ]
    stats = json.loads((tmp_path / "out" / "aggregate_stats.json").read_text(encoding="utf-8"))
    assert (stats["num_runs"], stats["runs_passed"], stats["mean_avg_score_attempted"]) == (3, 2, 0.5)
    again = letta.run(["run", suite(tmp_path, text), "--cached", "out", "-o", "again"], tmp_path)
    assert again.returncode == 1, again.stderr
    assert json.loads((tmp_path / "again" / "aggregate_stats.json").read_text(encoding="utf-8")) == stats


def test_the_last_of_several_duplicates_counts(letta, tmp_path):
    """A second recording appended to the same file overwrites the first, with a warning."""
    records = [letta.result(0, "Bergen"), letta.result(1, "Oslo"), letta.result(0, "Oslo")]
    letta.write(tmp_path / "recorded" / "results.jsonl", records)
    assert letta.run(["run", suite(tmp_path, GRADERS), "-o", "out"], tmp_path).returncode == 0
    assert [(row["sample"]["id"], row["submission"]) for row in letta.rows(tmp_path / "out")] == [
        (1, "Oslo"),
        (0, "Oslo"),
    ]


@pytest.mark.parametrize(("extractor", "config", "submission"), data(__file__, "cases.yaml")["extractors"])
def test_every_extractor_on_a_recorded_trajectory(letta, tmp_path, extractor, config, submission):
    turn = [
        letta.spoken("Let me see."),
        letta.called("add", {"a": 3, "b": 4}),
        letta.returned("7"),
        letta.spoken("Answer: 7"),
    ]
    letta.write(tmp_path / "recorded" / "results.jsonl", [letta.result(0, trajectory=[turn])])
    text = f"graders:\n  g: {{kind: contains, extractor: {extractor}, extractor_config: {json.dumps(config)}}}\n"
    done = letta.run(["run", suite(tmp_path, text), "-o", "out"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert letta.rows(tmp_path / "out")[0]["submission"] == submission


def test_a_memory_block_cannot_be_regraded(letta, tmp_path):
    """Without the agent's state every sample is a failed extraction; a recorded block is graded."""
    with_memory = letta.result(1, memory_blocks=[{"label": "human", "value": "lives in Oslo"}])
    letta.write(tmp_path / "recorded" / "results.jsonl", [letta.result(0), with_memory])
    text = "graders:\n  g: {kind: contains, extractor: memory_block, extractor_config: {block_label: human}}\n"
    assert letta.run(["run", suite(tmp_path, text), "-o", "out"], tmp_path).returncode == 0
    first, second = letta.rows(tmp_path / "out")
    assert (first["state"], first["grade"]["fault"]["category"]) == ("failed", "extraction")
    assert "needs the agent's state" in first["grade"]["rationale"]
    assert second["grade"]["score"] == 1.0
