"""The page's worked examples, the example suite, the benchmark, and the family through the command line."""

import importlib.util
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from gradestack_plugins.deepfabric.aggregators import BANDS
from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.plugins.deepfabric.conftest import evaluate

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "deepfabric.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "deepfabric"
PROFILES = ["documented", "upstream"]


def table(mark):
    text = PAGE.split(mark, 1)[1].strip()
    lines = text.split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_worked_example(df):
    """The page's six calls have the page's verdicts, scores and totals."""
    tools = [df.tool("reserve_plot", ["plot", "weeks"], plot="integer", weeks="integer", watered="boolean")]
    lines, rows = [], table("<!-- worked example: calls -->")
    for call, *expected in rows:
        made = json.loads(call.strip("`"))
        reply = {"kind": "tool_call", "content": "", "tool_call": made}
        record = df.record(("reserve_plot", {"plot": 4, "weeks": 6}), tools)
        lines.append({"sample": record, "recorded": reply})
        grade = df.grade(record, reply)
        assert [*map(str, df.verdict(grade)), str(grade.score)] == expected
    assert len(rows) == 6
    metrics = evaluate(lines).metrics
    assert (metrics.tool_selection_accuracy, metrics.parameter_accuracy) == (4 / 6, 2 / 6)
    assert metrics.execution_success_rate == 2 / 6
    assert f"= {metrics.overall_score:.6f}" in PAGE
    upstream = evaluate(lines, profile="upstream").metrics
    assert upstream.parameter_accuracy == 3 / 6
    assert f"overall_score {upstream.overall_score:g}" in PAGE


@pytest.mark.parametrize("profile", PROFILES)
def test_example_figures(profile):
    """The example's 22 records give the figures of the page, which were counted by hand."""
    metrics = evaluate(EXAMPLE / "dataset.jsonl", EXAMPLE / "replies.jsonl", profile=profile).metrics
    rows = table("### The example")
    text = PAGE.split("### The example", 1)[1]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    found = {row[0]: row[1 + PROFILES.index(profile)] for row in rows[1:] if len(row) == 3 and "_" in row[0]}
    for name in ("tool_selection_accuracy", "parameter_accuracy", "execution_success_rate"):
        assert getattr(metrics, name) == float(Fraction(found[name]))
    assert f"{metrics.overall_score:.6f}" == found["overall_score"]
    for name in ("samples_evaluated", "samples_processed", "processing_errors"):
        assert getattr(metrics, name) == int(found[name])


def test_options_bands_and_reasons_are_documented():
    spans = set(re.findall(r"`([^`]+)`", PAGE))
    assert all(f"{name} from {bound:.2f}" in PAGE or f"{name} below" in PAGE for bound, name in BANDS)
    package = ROOT / "plugins" / "gradestack_plugins" / "deepfabric"
    source = "".join((package / name).read_text(encoding="utf-8") for name in ("grader.py", "schemas.py"))
    codes = set(re.findall(r'Reason\(\s*code="(\w+)"', source)) | set(re.findall(r'skipped\("(\w+)"', source))
    assert len(codes) > 12
    assert codes <= spans


def run_cli(*arguments):
    """Run the command and return (exit code, output)."""
    code = "import sys; from gradestack.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("profile", PROFILES)
def test_grading_without_a_suite(tmp_path, profile):
    """Replies and dataset are recognised; native file, metrics and states agree with the Python API."""
    out = tmp_path / "out"
    paths = (EXAMPLE / "replies.jsonl", "--dataset", EXAMPLE / "dataset.jsonl")
    code, output = run_cli("grade", *paths, "-o", out, "--profile", profile)
    assert code == 0, output
    expected = evaluate(EXAMPLE / "dataset.jsonl", EXAMPLE / "replies.jsonl", profile=profile)
    native = json.loads((out / "native" / "deepfabric.json").read_text(encoding="utf-8"))
    wanted = json.loads(expected.text)
    assert (native["metrics"], native["predictions"]) == (wanted["metrics"], wanted["predictions"])
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    figures = summary["metrics"]["aggregates"]["tools"]["deepfabric"]
    assert figures["overall_score"] == pytest.approx(expected.metrics.overall_score, abs=1e-12)
    assert figures["samples_missing"] == 1
    assert {"mean"} <= set(summary["metrics"]["aggregates"]["tools"])
    constant = {"reason": "0 for every reply: DeepFabric measures it under multi_turn alone"}
    assert [figures["response_quality"], native["metrics"]["response_quality"]] == [0.0, 0.0]
    assert figures["response_quality_interval"] == figures["response_quality_attempted_interval"] == constant
    assert "esponse quality" not in output
    lines = (out / "report.md").read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.startswith("| Response quality")]
    assert len(shown) == 2
    assert not any("–" in line for line in shown)


def test_the_example_suite(tmp_path):
    """The suite runs and passes its gate, and options are reached from the command line."""
    code, output = run_cli("run", EXAMPLE / "suite.yaml", "-o", tmp_path / "one")
    assert code == 0, output
    weights = "graders.tools.weights={tool_selection: 0, response_quality: 1}"
    code, output = run_cli("run", EXAMPLE / "suite.yaml", "-o", tmp_path / "two", "--set", weights)
    assert code == 1, output
    bad = "graders.tools.weights={tool_selection: 2}"
    code, output = run_cli("run", EXAMPLE / "suite.yaml", "-o", tmp_path / "three", "--set", bad)
    assert code == 2
    assert "weights must sum to 1" in output


def test_other_formats_can_be_graded(tmp_path):
    """The grader works on files of another format, where they hold calls, expected calls and tools."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    rows = [
        {
            "id": str(n),
            "predicted": [{"name": "f", "arguments": {"a": value}}],
            "expected": [{"name": "f", "arguments": {"a": 1}}],
            "tools": [tool],
        }
        for n, value in enumerate((1, "1"))
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, output = run_cli("grade", path, "--reader", "jsonl", "--stack", "deepfabric", "-o", tmp_path / "out")
    assert code == 0, output
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    figures = summary["metrics"]["aggregates"]["tools"]["deepfabric"]
    assert (figures["tool_selection_accuracy"], figures["parameter_accuracy"]) == (1.0, 0.5)


def test_the_benchmark_agrees_with_the_grader():
    """The benchmark's per-sample baseline and the grader give the same verdicts on its data."""
    spec = importlib.util.spec_from_file_location("deepfabric_baseline", ROOT / "benchmarks" / "deepfabric_baseline.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    lines = list(module.synthetic(300, seed=3, toolsets=7))
    assert lines == list(module.synthetic(300, seed=3, toolsets=7))
    differing, work = module.runs(lines, 300, DeepFabric(profile="upstream"))
    assert differing == 0
    for run in work.values():
        run()


def test_listing_the_plugin_loads_none_of_it():
    """Importing the package imports no other module of the family."""
    code = (
        "import sys, gradestack_plugins.deepfabric as d; d.gradestack_components();"
        "print([name for name in sys.modules if name.startswith('gradestack_plugins.deepfabric.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
