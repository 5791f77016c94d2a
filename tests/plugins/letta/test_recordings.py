"""What decides which metric a grader takes; the rest is in sessions of the command line."""

import pytest

import gradestack


def test_without_a_summary_the_first_thousand_records_decide(letta, tmp_path):
    """Of each input; what only later ones hold is none of its metrics."""
    late = [letta.result(number, grades={"a": letta.grade(1.0)}) for number in range(1000)]
    letta.write(
        tmp_path / "recorded/results.jsonl",
        [*late, letta.result(1000, grades={"b": letta.grade(0.0)})],
    )
    letta.write(tmp_path / "other/results.jsonl", [letta.result(0, grades={"b": letta.grade(0.5)})])
    for names, average, skipped in ((["recorded"], 1.0, 1), (["recorded", "other"], 0.25, 1000)):
        paths = [str(tmp_path / name) for name in names]
        suite = {"target": {"paths": paths}, "graders": {"b": "recorded"}, "reports": []}
        metrics = gradestack.run(suite, output=tmp_path / "out").metrics
        found = metrics["by_metric"]["b"]["avg_score_attempted"], metrics["states"]["b"]["skipped"]
        assert found == (average, skipped)


def test_scores_of_samples_in_memory_are_decided_on_alike():
    samples = [{"id": "a", "predicted": "x", "recorded": {"speed": 0.5, "taste": 1, "note": "n"}}]
    with pytest.raises(gradestack.ConfigError) as caught:
        gradestack.grade(samples, "recorded")
    assert "name one with `metric`: speed, taste" in str(caught.value.problems)
    assert gradestack.grade(samples, {"taste": "recorded"}).metrics["avg_score_attempted"] == 1.0
