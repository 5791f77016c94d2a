"""The documentation's worked examples and the airline example are true."""

import importlib.util
import json
import re
from pathlib import Path

from gradestack import Grade, Key
from gradestack.testing import explained_grade
from gradestack_plugins.statistics.reliability import PassAtK, PassHatK
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.tau_bench.similarity import describe

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "tau-bench.md").read_text(encoding="utf-8")
AIRLINE = ROOT / "examples" / "airline"


def block(name):
    match = re.search(rf"<!-- worked example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    return match[1]


def row(start):
    lines = PAGE.splitlines()
    line = next(line for line in lines if line.startswith(f"| {start} |"))
    cells = line.strip("|").split("|")
    return [cell.strip() for cell in cells]


def test_worked_example(tau):
    """The page's record gives the page's numbers and reasons."""
    grade = explained_grade(TauPartial(), tau.sample(json.loads(block("record"))))
    expected = float(row("score")[-1])
    assert grade.score == expected
    scores = [item.score for item in grade.items]
    assert scores == [float(row(f"score of `{n}`")[-1]) for n in ("book_trip", "issue_voucher")]
    similarity = f"{grade.items[0].parts['argument_similarity']:.6f}"
    assert similarity == row("sim of the arguments")[-1]
    assert [describe(reason) for reason in grade.reasons] == block("reasons").splitlines()


def test_reliability_example(tau):
    """The page's table of pass^k and pass@k is what three tasks with 3, 4 and 0 of 4 successes
    give.
    """
    entries = []
    for task, successes in enumerate((3, 4, 0)):
        for run in range(4):
            key = Key(id=str(task), run=run)
            score = float(run < successes)
            entries.append((key, Grade(score=score)))
    hat = tau.fold(PassHatK(), entries)["pass_hat_k"]
    at = tau.fold(PassAtK(), entries)["pass_at_k"]
    for k in "1234":
        assert row(k)[1:] == [f"{round(hat[k], 6):g}", f"{round(at[k], 6):g}"]


def test_example_data_is_reproducible(tmp_path, capsys):
    """The generator writes the file that is there, which is small and has every kind of record it
    promises.
    """
    make_data_path = AIRLINE / "make_data.py"
    spec = importlib.util.spec_from_file_location("airline_make_data", make_data_path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path / "results.json")
    results_path = tmp_path / "results.json"
    expected = (AIRLINE / "results.json").read_bytes()
    assert results_path.read_bytes() == expected
    status = (AIRLINE / "results.json").stat()
    assert status.st_size < 400_000
