"""A true null: the field's gpt-4o airline run against itself; skipped without GRADESTACK_REFERENCE_DATA."""

import json
import os
from pathlib import Path

import pytest

import gradestack


@pytest.mark.skipif("GRADESTACK_REFERENCE_DATA" not in os.environ, reason="GRADESTACK_REFERENCE_DATA is not set")
def test_the_same_model_against_itself_shows_no_difference(tmp_path, command):
    """Trials 0 and 1 against 2 and 3: the known figures, no more is said, and gates do not know, or pass."""
    file = Path(os.environ["GRADESTACK_REFERENCE_DATA"]) / "tau-bench/gpt-4o-airline.json"
    records = json.loads(file.read_text(encoding="utf-8"))
    runs = []
    for name, trials in (("a", (0, 1)), ("b", (2, 3))):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps([each for each in records if each["trial"] in trials]), encoding="utf-8")
        runs.append(gradestack.grade_files(path, output=tmp_path / name))
    found = gradestack.compare(*runs)
    rounded = {
        key: tuple(round(each[name], 3) for name in ("a", "b", "difference", "p", "mde80"))
        for key, each in found.data["metrics"].items()
    }
    assert rounded == {"reward": (0.43, 0.41, -0.02, 0.659, 0.129), "partial": (0.597, 0.596, -0.001, 0.978, 0.109)}
    reward, partial = (found.data["metrics"][key] for key in ("reward", "partial"))
    assert [[round(end, 3) for end in each["ci95"]] for each in (reward, partial)] == [[-0.111, 0.071], [-0.078, 0.076]]
    assert [(each["better"], each["worse"], each["same"]) for each in (reward, partial)] == [(7, 10, 33), (18, 16, 16)]
    assert (round(reward["p_exact"], 3), partial["p_exact"], reward["p_holm"], partial["p_holm"]) == (0.825, None, 1, 1)
    assert (found.data["flips"]["fixed"], found.data["flips"]["broken"]) == (13, 15)
    assert found.sentence == (
        "no evidence of a difference on reward (-0.020, -0.111 to 0.071); 50 tasks x 2 can show 0.13 or more"
    )
    said = command("compare", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "out"))
    assert (said.code, said.out.splitlines()[0]) == (0, found.sentence)
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["metrics"] == found.data["metrics"]
    for key in ("reward", "partial"):
        for margin, code, outcome in ((0.05, 1, "undecided"), (0.1, 0, "passed")):
            gate = {"metric_key": key, "baseline": "a", "not_worse_than": margin}
            suite = {"name": "null", "target": {"paths": ["b.json"]}, "stack": "tau-bench", "gate": gate, "reports": []}
            (tmp_path / "suite.yaml").write_text(json.dumps(suite), encoding="utf-8")
            place = tmp_path / f"{key}-{margin}"
            assert command("run", str(tmp_path / "suite.yaml"), "-o", str(place)).code == code
            assert gradestack.load_report(place).gates[0]["outcome"] == outcome
