"""What a run cost, by a price file the user names."""

import pytest

import gradestack


def test_a_suite_names_its_price_file(tmp_path):
    """Relative to the suite, and workers have it, too; a bad one is refused there."""
    (tmp_path / "prices.json").write_text('{"models": {"m": {"input": 1, "output": 1}}}')
    line = (
        '{"id": "a", "model": "m", "predicted": [], "usage": {"input_tokens": 1000000, '
        '"output_tokens": 1000000}}'
    )
    (tmp_path / "runs.jsonl").write_text(line + "\n")
    suite = (
        "name: s\ntarget: {paths: [runs.jsonl]}\ngraders: {u: {kind: usage, score: cost_usd, "
        "prices: prices.json}}\n"
    )
    (tmp_path / "suite.yaml").write_text(suite)
    two = ["engine={kind: processes, workers: 2}", "reports=[]"]
    report = gradestack.run(tmp_path / "suite.yaml", output=tmp_path / "out", overrides=two)
    assert report.metrics["avg_score_attempted"] == 2.0
    (tmp_path / "prices.json").write_text("[]")
    with pytest.raises(gradestack.ConfigError, match="problem in the configuration") as caught:
        gradestack.run(tmp_path / "suite.yaml", output=tmp_path / "again")
    assert "graders.u" in str(caught.value)
