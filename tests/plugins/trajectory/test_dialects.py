"""One conversation in every dialect of chat logs takes the same steps, turns and calls."""

import json

import pytest

from gradestack.cli import main
from tests.core.outcomes import data

DATA = data(__file__, "dialects_texts.yaml")

DIALECTS = data(__file__, "dialects.yaml")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_of_one_conversation(tmp_path, dialect):
    case = DIALECTS[dialect]
    path = tmp_path / "log.json"
    text = json.dumps(case["document"])
    path.write_text(text, encoding="utf-8")
    out_folder = tmp_path / "out"
    options = case["options"]
    words = [
        "grade",
        path,
        "-o",
        out_folder,
        "--grader",
        "usage",
        "--set",
        "reports=[]",
        *options,
    ]
    with pytest.raises(SystemExit, match="0"):
        main(list(map(str, words)))
    results_path = tmp_path / "out/results.jsonl"
    (line,) = results_path.read_text(encoding="utf-8").splitlines()
    document = json.loads(line)
    usage = document["grades"]["usage"]
    parts = usage["parts"]
    parts_by_name = {name: parts[name] for name in ("turns", "steps", "calls", "executed_calls")}
    assert parts_by_name == DATA["usage"]
    assert [parts["steps_per_turn"], parts["calls_per_turn"]] == [2.0, 1.5]
