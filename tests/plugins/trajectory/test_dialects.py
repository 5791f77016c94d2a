"""One conversation in every dialect of chat logs takes the same steps, turns and calls."""

import json

import pytest

from gradestack.cli import main
from tests.core.outcomes import data

DATA = data(__file__, "dialects_texts.yaml")

DIALECTS = data(__file__, "dialects.yaml")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_of_one_conversation(tmp_path, dialect):
    case, path = DIALECTS[dialect], tmp_path / "log.json"
    path.write_text(json.dumps(case["document"]), encoding="utf-8")
    words = [
        "grade",
        path,
        "-o",
        tmp_path / "out",
        "--grader",
        "usage",
        "--set",
        "reports=[]",
        *case["options"],
    ]
    with pytest.raises(SystemExit, match="0"):
        main(list(map(str, words)))
    (line,) = (tmp_path / "out/results.jsonl").read_text(encoding="utf-8").splitlines()
    parts = json.loads(line)["grades"]["usage"]["parts"]
    assert {name: parts[name] for name in ("turns", "steps", "calls", "executed_calls")} == DATA[
        "usage"
    ]
    assert [parts["steps_per_turn"], parts["calls_per_turn"]] == [2.0, 1.5]
