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
    records = [
        {
            "id": f"t{task}",
            "run": run,
            "expected": "x",
            "predicted": "x" if (task + run) % 2 else "y",
        }
        for task in range(number)
        for run in (0, 1)
    ]
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
    lines = [
        {"id": f"t{task}", "model": model, "expected": "x", "predicted": "xx" if task else "x"}
        for task in range(3)
        for model in ("a", "b")
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "runs.jsonl").write_text(text, encoding="utf-8")
    suite = {
        "name": "s",
        "target": {"paths": ["runs.jsonl"]},
        "graders": {"exact": "exact_match", "within": "contains"},
        "gate": {"metric_key": "within", "op": "gte", "value": 1},
        "outcome": "exact",
        "reports": ["github"],
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite), encoding="utf-8")
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="0"):
        main(["run", str(tmp_path / "suite.yaml"), "-o", str(out)])
    assert "Results by model, avg of within:" in capsys.readouterr().out.splitlines()
    annotations = (out / "annotations.txt").read_text(encoding="utf-8").splitlines()
    assert len(annotations) == 4
    assert all("::within score 1.0" in line for line in annotations)


def parsed(report, tmp_path, **options):
    (path,) = JunitReporter(**options).write(report, tmp_path)
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
    if not needed <= set(element.keys()) <= needed | allowed:
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
    (tmp_path / "runs.jsonl").write_text(
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
    assert [property_.get("name") for property_ in root] == ["g", "gates"]
    states = json.loads((tmp_path / "out" / "summary.json").read_text())["metrics"]["states"]["g"]
    assert (int(root[0].get("errors")), int(root[0].get("skipped"))) == (
        states["failed"],
        states["skipped"],
    )


class Misses(Grader):
    """Letters that differ."""

    better = "lower"

    def grade(self, sample):
        return Grade(score=float(sample.text != "x"))


class Letters(Misses):
    """Letters."""

    better = "neither"


@pytest.mark.parametrize(("grader", "failures"), [(Misses, 1), (Letters, 0)])
def test_junit_goes_by_what_a_grader_calls_better(tmp_path, grader, failures):
    records = [{"id": identifier, "expected": "x", "predicted": identifier} for identifier in "xxy"]
    gradestack.grade(records, ["exact_match", grader], reports=["junit"], output=str(tmp_path))
    root = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - a file of our own
    failures_by_suite = {suite.get("name"): int(suite.get("failures")) for suite in root}
    assert failures_by_suite == {"exact_match": 1, grader.__name__: failures}


def test_nothing_from_the_data_breaks_out_of_the_xml(graded, tmp_path):
    """Control characters, lone surrogates and markup come back as text, without any that would be a
    command.
    """
    text = "".join(parsed(graded, tmp_path).itertext())
    raw = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert all(char.isprintable() or char == "\n" for char in raw + text)
    assert not any(line.lstrip().startswith("::") for line in raw.splitlines())
    names = [case.get("name") for case in ET.fromstring(raw).iter("testcase")]  # noqa: S314
    assert any("</failure>" in name and 'quoted" ' in name for name in names)


def test_a_long_run_lists_only_what_did_not_pass(graded, tmp_path):
    """And how many did; the counts stay those of all."""
    exact = parsed(graded, tmp_path, max_cases=5)[0]
    assert (int(exact.get("tests")), len(exact.findall("testcase"))) == (10, 6)
    properties = {
        property_.get("name"): property_.get("value") for property_ in exact.iter("property")
    }
    assert properties["passed cases left out"] == "4"


def test_annotations_are_the_failed_gates_and_the_worst_samples(graded, tmp_path):
    """Ten at most, each a command of one line that nothing from the data can end or add to.

    The rest is a page.
    """
    annotations, summary = GithubReporter().write(graded, tmp_path)
    lines = annotations.read_text(encoding="utf-8").splitlines()
    assert (
        lines[0] == "::error title=gate failed::exact >= 0.9: failed, actual: 0.50; "
        '8 of 10 graded: 1 error, ::error::x␛[31m⟨U+D800⟩ </failure>]]> & "quoted" '
        "⟨U+202E⟩ second ⟨U+FFFE⟩"
    )
    assert len(lines) == 6
    assert all(line.startswith("::error title=") and line.isprintable() for line in lines)
    assert not any("::" in line.removeprefix("::error title=").partition("::")[0] for line in lines)
    assert summary.read_text(encoding="utf-8").startswith("#")
    few, _ = GithubReporter(max_annotations=2).write(graded, tmp_path)
    assert few.read_text(encoding="utf-8").splitlines() == lines[:2]


@pytest.mark.slow
def test_the_documented_action_runs_as_a_script(tmp_path):
    """Its steps, one after the other.

    Graded, shown, compared with the baseline, and commented by a stand-in for gh.
    """
    page = (ROOT / "docs/tutorials/ci.md").read_text(encoding="utf-8")
    blocks = dict(block.split("\n", 1) for block in page.split("```yaml ")[1:])
    steps = yaml.safe_load(blocks["agent.yml"].split("```")[0])["jobs"]["grade"]["steps"]
    (tmp_path / "suite.yaml").write_text(blocks["suite.yaml"].split("```")[0])
    shutil.copy(ROOT / "examples/airline/results.json", tmp_path / "results.json")
    gradestack.run(tmp_path / "suite.yaml", output=tmp_path / "runs/first")
    tools = tmp_path / "bin"
    tools.mkdir()
    gh = tools / "gh"
    gh.write_text('#!/bin/sh\necho "$@" > asked.txt\n')
    gh.chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {
        "PATH": path,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "shown.md"),
        "PULL_REQUEST": "7",
    }
    scripts = {step["name"]: step["run"] for step in steps if "run" in step and "name" in step}
    variables = {
        name: subprocess.run(
            ["/bin/bash", "-e", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name, script in scripts.items()
    }
    assert list(variables) == ["Grade", "Show", "Comment", "Keep"]
    assert variables["Show"].splitlines()[0].startswith("::error title=")
    assert (tmp_path / "shown.md").read_text(encoding="utf-8").startswith("#")
    assert "new and first are identical" in variables["Grade"]
    arguments = (tmp_path / "asked.txt").read_text().split()
    assert arguments[:3] == ["pr", "comment", "7"]
    (newest,) = {path.name for path in (tmp_path / "runs").iterdir()} - {"first"}
    moved = arguments[-1].replace("runs/new", f"runs/{newest}")
    data = json.loads((tmp_path / moved).with_suffix(".json").read_text())
    assert data["baseline"] == "first"
