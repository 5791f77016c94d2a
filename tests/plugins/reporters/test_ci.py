"""Files for CI systems: JUnit, annotations, a step summary.

And the documented Action, run step by step.
"""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

import gradestack
from gradestack import Grade, Grader
from gradestack.cli.commands import main
from gradestack_plugins.reporters.github import GithubReporter
from gradestack_plugins.reporters.junit import JunitReporter

ROOT = Path(__file__).parents[3]
HOSTILE = '::error::x\x1b[31m\ud800 </failure>]]> & "quoted" \u202e\nsecond ￾'


def samples(number=4):
    records = []
    for task in range(number):
        for run in (0, 1):
            predicted = "y"
            if (task + run) % 2:
                predicted = "x"
            records.append(
                {
                    "id": f"t{task}",
                    "run": run,
                    "expected": "x",
                    "predicted": predicted,
                }
            )
    broken = {"id": "broken", "run": 0, "expected": "x", "error": HOSTILE}
    return [*records, broken, {"id": HOSTILE, "run": "a", "predicted": "z"}]


@pytest.fixture
def graded():
    """Return the report of a small run with a gate that fails; a hostile error and a hostile id."""
    gate = {"metric_key": "exact", "op": "gte", "value": 0.9}
    with gradestack.grade(
        samples(), graders={"exact": {"kind": "exact_match"}}, gate=gate
    ) as report:
        yield report


def test_every_score_and_average_names_its_grader(tmp_path, capsys):
    """In annotations, and over the averages by model on the console: of two graders they differ."""
    lines = []
    for task in range(3):
        for model in ("a", "b"):
            predicted = "xx" if task else "x"
            lines.append(
                {
                    "id": f"t{task}",
                    "model": model,
                    "expected": "x",
                    "predicted": predicted,
                }
            )
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(text, encoding="utf-8")
    suite = {
        "name": "s",
        "target": {"paths": ["runs.jsonl"]},
        "graders": {"exact": "exact_match", "within": "contains"},
        "gate": {"metric_key": "within", "op": "gte", "value": 1},
        "outcome": "exact",
        "reports": ["github"],
    }
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(json.dumps(suite), encoding="utf-8")
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="0"):
        main(["run", str(tmp_path / "suite.yaml"), "-o", str(out)])
    expected = capsys.readouterr().out.splitlines()
    assert "Results by model, avg of within:" in expected
    annotations_path = out / "annotations.txt"
    annotations = annotations_path.read_text(encoding="utf-8").splitlines()
    assert len(annotations) == 4
    assert all("::within score 1.0" in line for line in annotations)


def parsed(report, tmp_path, **options):
    junit_reporter = JunitReporter(**options)
    (path,) = junit_reporter.write(report, tmp_path)
    return ET.parse(path).getroot()  # noqa: S314 - a file of our own


# element -> what it may hold, attributes it must have, attributes it may have: as Jenkins checks it
FORM = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "errors"}),
    "testsuite": (
        {"properties", "testcase"},
        {"name", "tests", "failures", "errors"},
        {"time", "skipped"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, set()),
    "testcase": ({"failure", "error", "skipped"}, {"name"}, {"time", "classname"}),
    **dict.fromkeys(("failure", "error", "skipped"), (set(), set(), {"type", "message"})),
}


def misfits(element):
    children, needed, allowed = FORM[element.tag]
    keys = set(element.keys())
    if not needed <= keys <= needed | allowed:
        yield element.tag, sorted(element.keys())
    for name in {"tests", "failures", "errors", "skipped", "time"} & set(element.keys()):
        if not element.get(name).isdecimal():
            yield element.tag, name, element.get(name)
    if element.text and element.text.strip() and children:
        yield element.tag, element.text
    for child in element:
        if child.tag in children:
            yield from misfits(child)
        else:
            yield element.tag, child.tag


def test_junit_of_the_command_line_has_the_form_that_jenkins_checks(tmp_path):
    """With a gate that fails, a failed run and hostile names.

    The same numbers stand in the summary.
    """
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(
        "".join(json.dumps(property_) + "\n" for property_ in samples()), encoding="utf-8"
    )
    gate = "gate: {metric_key: g, op: gte, value: 0.9}"
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        "name: ci\ntarget: {paths: [runs.jsonl]}\ngraders: {g: "
        f"exact_match}}\n{gate}\nreports: [junit]\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["run", str(suite), "-o", str(tmp_path / "out")])
    assert ended.value.code == 1
    root = ET.parse(tmp_path / "out" / "junit.xml").getroot()  # noqa: S314 - a file of our own
    assert list(misfits(root)) == []
    names = [property_.get("name") for property_ in root]
    assert names == ["g", "gates"]
    out_folder = tmp_path / "out"
    summary_path = out_folder / "summary.json"
    text = summary_path.read_text()
    document = json.loads(text)
    states = document["metrics"]["states"]["g"]
    errors = root[0].get("errors")
    assert int(errors) == states["failed"]
    skipped = root[0].get("skipped")
    assert int(skipped) == states["skipped"]


class Misses(Grader):
    """Letters that differ."""

    better = "lower"

    def grade(self, sample):
        score = float(sample.text != "x")
        return Grade(score=score)


class Letters(Misses):
    """Letters."""

    better = "neither"


@pytest.mark.parametrize(("grader", "failures"), [(Misses, 1), (Letters, 0)])
def test_junit_goes_by_what_a_grader_calls_better(tmp_path, grader, failures):
    records = [{"id": identifier, "expected": "x", "predicted": identifier} for identifier in "xxy"]
    gradestack.grade(records, ["exact_match", grader], reports=["junit"], output=str(tmp_path))
    root = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - a file of our own
    failures_by_suite = {}
    for suite in root:
        failures_by_suite[suite.get("name")] = int(suite.get("failures"))
    expected = {"exact_match": 1, grader.__name__: failures}
    assert failures_by_suite == expected


def test_nothing_from_the_data_breaks_out_of_the_xml(graded, tmp_path):
    """Control characters, lone surrogates and markup come back as text, without any that would be a
    command.
    """
    text = "".join(parsed(graded, tmp_path).itertext())
    junit_path = tmp_path / "junit.xml"
    raw = junit_path.read_text(encoding="utf-8")
    chars = raw + text
    assert all(char.isprintable() or char == "\n" for char in chars)
    lines = raw.splitlines()
    assert not any(line.lstrip().startswith("::") for line in lines)
    names = [case.get("name") for case in ET.fromstring(raw).iter("testcase")]  # noqa: S314
    assert any("</failure>" in name and 'quoted" ' in name for name in names)


def test_a_long_run_lists_only_what_did_not_pass(graded, tmp_path):
    """And how many did; the counts stay those of all."""
    exact = parsed(graded, tmp_path, max_cases=5)[0]
    tests = exact.get("tests")
    assert int(tests) == 10
    matches = exact.findall("testcase")
    assert len(matches) == 6
    properties = {}
    for property_ in exact.iter("property"):
        properties[property_.get("name")] = property_.get("value")
    assert properties["passed cases left out"] == "4"


def test_annotations_are_the_failed_gates_and_the_worst_samples(graded, tmp_path):
    """Ten at most, each a command of one line that nothing from the data can end or add to.

    The rest is a page.
    """
    annotations, summary = GithubReporter().write(graded, tmp_path)
    text = annotations.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert (
        lines[0] == "::error title=gate failed::exact >= 0.9: failed, actual: 0.50; "
        "8 of 10 graded: 1 error, 1 not applicable; most often "
        '::error::x␛[31m⟨U+D800⟩ </failure>]]> & "quoted" '
        "⟨U+202E⟩ second ⟨U+FFFE⟩"
    )
    assert len(lines) == 6
    assert all(line.startswith("::error title=") and line.isprintable() for line in lines)
    assert not any("::" in line.removeprefix("::error title=").partition("::")[0] for line in lines)
    assert summary.read_text(encoding="utf-8").startswith("#")
    github_reporter = GithubReporter(max_annotations=2)
    few, _ = github_reporter.write(graded, tmp_path)
    assert few.read_text(encoding="utf-8").splitlines() == lines[:2]


@pytest.mark.slow
def test_the_documented_action_runs_as_a_script(tmp_path):
    """Its steps, one after the other.

    Graded, shown, compared with the baseline, and commented by a stand-in for gh.
    """
    ci_path = ROOT / "docs/tutorials/ci.md"
    page = ci_path.read_text(encoding="utf-8")
    blocks = dict(block.split("\n", 1) for block in page.split("```yaml ")[1:])
    jobs = yaml.safe_load(blocks["agent.yml"].split("```")[0])["jobs"]
    steps = jobs["grade"]["steps"]
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(blocks["suite.yaml"].split("```")[0])
    results_path = ROOT / "examples/airline/results.json"
    shutil.copy(results_path, tmp_path / "results.json")
    output = tmp_path / "runs/first"
    gradestack.run(tmp_path / "suite.yaml", output=output)
    tools = tmp_path / "bin"
    tools.mkdir()
    gh = tools / "gh"
    gh.write_text('#!/bin/sh\necho "$@" > asked.txt\n')
    gh.chmod(0o755)
    executable_path = Path(sys.executable)
    parent = str(executable_path.parent)
    path = os.pathsep.join([str(tools), parent, os.environ["PATH"]])
    shown_path = tmp_path / "shown.md"
    environment = os.environ | {
        "PATH": path,
        "GITHUB_STEP_SUMMARY": str(shown_path),
        "PULL_REQUEST": "7",
    }
    scripts = {}
    for step in steps:
        if "run" in step and "name" in step:
            scripts[step["name"]] = step["run"]
    variables = {}
    for name, script in scripts.items():
        variables[name] = subprocess.run(
            ["/bin/bash", "-e", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    assert list(variables) == ["Grade", "Show", "Comment", "Keep"]
    lines = variables["Show"].splitlines()
    first_line = lines[0]
    assert first_line.startswith("::error title=")
    text = (tmp_path / "shown.md").read_text(encoding="utf-8")
    assert text.startswith("#")
    assert "new and first are identical" in variables["Grade"]
    asked_path = tmp_path / "asked.txt"
    arguments = asked_path.read_text().split()
    assert arguments[:3] == ["pr", "comment", "7"]
    runs_folder = tmp_path / "runs"
    paths = runs_folder.iterdir()
    names = {path.name for path in paths}
    (newest,) = names - {"first"}
    last_argument = arguments[-1]
    moved = last_argument.replace("runs/new", f"runs/{newest}")
    data = json.loads((tmp_path / moved).with_suffix(".json").read_text())
    assert data["baseline"] == "first"
