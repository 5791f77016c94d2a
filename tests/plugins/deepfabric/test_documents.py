"""The page's worked examples, and that its options, bands and reasons are there."""

import json
import re
from pathlib import Path

from gradestack_plugins.deepfabric.aggregators import BANDS
from tests.plugins.deepfabric.conftest import evaluate, run_program

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "deepfabric.md").read_text(encoding="utf-8")


def table(mark):
    text = PAGE.split(mark, 1)[1].strip()
    lines = text.split("\n\n", 1)[0].splitlines()[2:]
    cells = []
    for line in lines:
        cells.append([cell.strip() for cell in line.strip("|").split("|")])
    return cells


def test_worked_example(df):
    """The page's six calls have the page's verdicts, scores and totals."""
    tool = df.tool(
        "reserve_plot", ["plot", "weeks"], plot="integer", weeks="integer", watered="boolean"
    )
    tools = [tool]
    lines = []
    rows = table("<!-- worked example: calls -->")
    for call, *expected in rows:
        made = json.loads(call.strip("`"))
        reply = {"kind": "tool_call", "content": "", "tool_call": made}
        record = df.record(("reserve_plot", {"plot": 4, "weeks": 6}), tools)
        lines.append({"sample": record, "recorded": reply})
        grade = df.grade(record, reply)
        verdict = df.verdict(grade)
        verdicts = map(str, verdict)
        score = str(grade.score)
        assert [*verdicts, score] == expected
    assert len(rows) == 6
    metrics = evaluate(lines).metrics
    assert metrics.tool_selection_accuracy == 4 / 6
    assert metrics.parameter_accuracy == 2 / 6
    assert metrics.execution_success_rate == 2 / 6
    expected_text = f"= {metrics.overall_score:.6f}"
    assert expected_text in PAGE
    text = run_program(lines).files["deepfabric.json"]
    document = json.loads(text)
    program = document["metrics"]
    assert program["parameter_accuracy"] == 3 / 6
    assert f"overall_score {program['overall_score']:g}" in PAGE


def test_options_bands_and_reasons_are_documented():
    matches = re.findall(r"`([^`]+)`", PAGE)
    spans = set(matches)
    assert all(
        f"{name} from {bound:.2f}" in PAGE or f"{name} below" in PAGE for bound, name, _ in BANDS
    )
    plugins_folder = ROOT / "plugins"
    package = plugins_folder / "gradestack_plugins" / "deepfabric"
    source = "".join(
        (package / name).read_text(encoding="utf-8") for name in ("grader.py", "schemas.py")
    )
    codes = set(re.findall(r'(?:Reason\(\s*code=|skipped\(|_reason\()"(\w+)"', source))
    assert len(codes) > 11
    assert codes <= spans
