"""The command line: help, running and grading, and the other commands."""

import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
import yaml

import gradestack
from gradestack.cli import commands
from tests.core.outcomes import clean

HEAVY = {"yaml", "cattrs", "jinja2", "pluggy", "msgspec", "numpy", "rich", "attr", "attrs", "orjson", "ijson"}


def test_help_imports_click_and_nothing_heavier():
    """Start-up must not pay for what is not used."""
    code = (
        "import sys\nfrom gradestack.cli import commands\n"
        "for arguments in (['run', '--help'], ['grade', '-h'], ['--version']):\n"
        "    try:\n        commands.main(arguments)\n    except SystemExit as done:\n        assert not done.code\n"
        "print('MODULES', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    modules = set(done.stdout.splitlines()[-1].split())
    assert {"click", "gradestack"} <= modules
    assert modules & HEAVY == set()
    assert modules & {"gradestack_plugins", "gradestack_templates", "asyncio", "multiprocessing"} == set()


def test_help_finds_the_commands_of_plugins_and_imports_nothing_of_them():
    code = (
        "import sys\nfrom gradestack.cli import commands\n"
        "for arguments in (['--help'], ['plugins', 'list']):\n"
        "    try:\n        commands.main(arguments)\n    except SystemExit as done:\n        assert not done.code\n"
        "print('MODULES', *sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(done.stdout.splitlines()[-1].split())
    assert {"show", "view", "index"} <= set(re.findall(r"^  (\w+)  ", done.stdout, re.MULTILINE))
    assert not {
        name for name in modules if name.startswith(("gradestack_plugins.pages", "gradestack_templates", "jinja2"))
    }


def test_help_names_commands_and_exit_codes(command):
    for option in ("--help", "-h"):
        said = command(option)
        assert said.code == 0
        for word in ("run", "grade", "report", "validate", "plugins", "stacks", "schema", "Exit codes: 0 passed"):
            assert word in said.out


@pytest.mark.parametrize("group", [[], ["plugins"], ["stacks"]])
def test_a_group_without_a_command_shows_its_help(command, group):
    said = command(*group)
    assert said.code == 2
    assert said.err.strip() == command(*group, "--help").out.strip()


def test_every_command_has_help(command):
    for path in (["run"], ["grade"], ["report"], ["validate"], ["schema"], ["plugins", "list"], ["stacks", "show"]):
        said = command(*path, "--help")
        assert (said.code, said.err) == (0, "")
        assert "Usage: gradestack" in said.out


def test_version(command):
    assert command("--version").out == f"gradestack, version {gradestack.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: gradestack"),
        (["rnu"], "No such command 'rnu'"),
        (["run"], "Missing argument 'SUITE'"),
        (["grade"], "Missing argument 'FILES...'"),
        (["grade", "x", "--profile", "original"], "'original' is not one of 'documented', 'upstream'"),
        (["run", "x", "--outptu", "y"], "--outptu"),
        (["schema", "report"], "'report' is not one of 'suite', 'sample'"),
    ],
)
def test_usage_mistakes(command, arguments, message):
    said = command(*arguments)
    assert (said.code, said.out) == (2, "")
    assert message.lower() in said.err.lower()


def test_a_run_prints_the_results_block(command, here):
    said = command("run", "suite.yaml", "-o", "out")
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines == [
        "Running evaluation: airline",
        "━" * 40 + " 2/2 100%",
        "",
        "Results:",
        "  Passed: 1 of 2 (50.0%; 95% interval 0.0 to 100.0%); rule: quality score >= 1",
        "  Avg score: 0.750",
        "",
        "By grader:",
        "  quality  avg 0.75  graded 2",
        "",
        "Gate (quality >= 0.75): PASSED (actual: 0.75, 0.00 to 1.00: passes, not sure)",
        "1 bad record left out:",
        lines[12],
        "",
        "Results: out",
        "✓ PASSED",
    ]
    assert lines[12].startswith("  runs.jsonl:3: not JSON")
    assert said.code == 0


def test_a_failed_gate_is_exit_1(command, here):
    said = command("run", "suite.yaml", "-o", "out", "--set", "gate.value=0.8", "--quiet")
    assert said == type(said)(1, "✗ FAILED\n", "")
    loud = command("run", "suite.yaml", "-o", "out", "--set", "gate.value=0.8")
    assert loud.code == 1
    assert "Gate (quality >= 0.8): FAILED (actual: 0.75, " in loud.out


def test_quiet_prints_the_verdict_only(command, here):
    assert command("run", "suite.yaml", "-o", "out", "-q").out == "✓ PASSED\n"
    said = command("grade", "runs.jsonl", "-o", "out", "-q", "--set", "graders={q: toy}", "--set", "reports=[]")
    assert said == type(said)(0, "", "")


def test_files_are_graded_without_a_suite(command, here):
    """Format, stack and gate come from the reader's plugin."""
    said = command("grade", "x.numbers", "-o", "out")
    assert said.code == 0
    assert "Gate (number >= 0.5): PASSED" in said.out
    assert json.loads((here / "out/summary.json").read_text())["metrics"]["avg_score_attempted"] == 0.625


def test_directories_are_graded(command, here):
    (here / "data/deep").mkdir(parents=True)
    (here / "x.numbers").rename(here / "data/deep/x.numbers")
    (here / "data/notes.txt").write_text("notes")
    said = command("grade", "data", "-o", "out")
    assert said.code == 0
    assert "Warning: data/notes.txt: not recognised, left out" in said.out


def test_every_option_reaches_the_run(command, here, write_lines):
    write_lines([{"id": "a", "expected": [{"name": "f"}]}, {"id": "z", "expected": [{"name": "f"}]}], "gold.jsonl")
    write_lines([{"id": "a", "predicted": [{"name": "f"}]}], "odd.txt")
    options = ["--stack", "jsonl", "--reader", "jsonl", "--dataset", "gold.jsonl", "--profile", "upstream"]
    said = command("grade", "odd.txt", *options, "-o", "out", "--set", "name=mine", "--set", "reports=[]")
    assert said.code == 0, said.err
    summary = json.loads((here / "out/summary.json").read_text())
    assert summary["suite"] == "mine"
    assert summary["metrics"]["states"]["partial"] == {"graded": 1, "skipped": 0, "failed": 0, "missing": 1}
    header = json.loads((here / "out/header.json").read_text())
    assert header["profile"] == "upstream"


def test_several_runs_can_be_asked_for(command, here, write_lines, record):
    write_lines([record("a", 1.0, run=1), record("a", 0.0, run=2)])
    assert command("run", "suite.yaml", "-o", "out", "--num-runs", "2", "-q").code == 1
    assert (here / "out/run_2/summary.json").is_file()
    said = command("run", "suite.yaml", "-o", "out", "--num-runs", "3")
    assert said.code == 3
    assert "num_runs asks for 3 run(s), the recording holds 2: 1, 2" in said.err


def test_strict(command, here, write_lines, record):
    clean(command("run", "suite.yaml", "-o", "out", "--strict"), 3, "runs.jsonl:3: not JSON")
    write_lines([record("a", recorded={"do": "raise"})])
    clean(command("run", "suite.yaml", "-o", "out", "--strict"), 4, "grader 'quality' (toy 7) raised on runs.jsonl:1")
    assert not (here / "out").exists()
    assert command("run", "suite.yaml", "-o", "out", "-q", "--set", "gate=null").code == 3


def test_validate_says_what_would_run(command, here):
    said = command("validate", "suite.yaml", "--set", "gate={metric: accuracy, op: gte, value: 0.8}")
    assert said.code == 0
    for word in (
        "suite.yaml: valid",
        "runs.jsonl (jsonl)",
        "quality (toy)",
        "quality/toy_count",
        "is a percentage here",
    ):
        assert word in said.out
    assert sorted(path.name for path in here.iterdir()) == ["runs.jsonl", "suite.yaml", "x.numbers"]
    clean(command("validate", "suite.yaml", "--set", "target.paths=[gone]"), 3, "gone: no such file")


def test_report_writes_the_same_pages_again(command, here):
    command("run", "suite.yaml", "-o", "out", "--set", "reports=[html, markdown, dump]", "--set", "graders.alpha=toy")
    pages = {name: (here / "out" / name).read_bytes() for name in ("report.html", "report.md", "dump.json")}
    for name in ("runs.jsonl", "suite.yaml", "out/report.html"):
        (here / name).unlink()
    said = command("report", "out")
    assert said.out.splitlines() == ["Report: out/report.html", "Report: out/report.md", "Report: out/dump.json"]
    assert {name: (here / "out" / name).read_bytes() for name in pages} == pages
    elsewhere = command("report", "out", "-o", "pages/new", "--format", "markdown")
    assert elsewhere.out == "Report: pages/new/report.md\n"
    assert (here / "pages/new/report.md").read_bytes() == pages["report.md"]


def test_report_imports_no_yaml(command, here):
    command("run", "suite.yaml", "-o", "out", "--set", "reports=[html]")
    code = (
        "import sys\nfrom gradestack.cli import commands\n"
        "try:\n    commands.main(['report', 'out', '--format', 'html', '--format', 'markdown'])\n"
        "except SystemExit as done:\n    assert not done.code\n"
        "print('yaml' in sys.modules, 'jinja2' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "False True"


def test_report_mistakes(command, here):
    command("run", "suite.yaml", "-o", "out", "--set", "reports=[{kind: dump}]")
    clean(command("report", "gone"), 3, "gone: no such directory")
    clean(command("report", "runs.jsonl"), 3, "runs.jsonl: not a directory")
    clean(command("report", "."), 3, ".: not a gradestack run directory")
    clean(command("report", "out", "--format", "htlm"), 2, "unknown reporter 'htlm' (did you mean 'html'?)")
    for place in ("x.numbers", "x.numbers/below"):
        clean(command("report", "out", "-o", place), 2, "x.numbers")
    header = json.loads((here / "out/header.json").read_text())
    for component in header["components"]:
        if component["kind"] == "reporter":
            component["options"] = {"breaks": True}
    (here / "out/header.json").write_text(json.dumps(header))
    clean(command("report", "out"), 4, "reporter dump raised RuntimeError")


def test_plugins_can_be_seen(command):
    said = command("plugins", "list")
    assert said.code == 0
    assert "toy_count" in said.out
    only = command("plugins", "list", "--kind", "engine")
    assert {line.split()[0] for line in only.out.splitlines()} == {"engine"}
    assert "factor: number (default 1.0)" in command("plugins", "describe", "toy").out
    clean(command("plugins", "list", "--kind", "greader"), 2, "unknown kind 'greader'")
    clean(command("plugins", "describe", "toi"), 2, "did you mean 'toy'?")


def test_stacks_can_be_seen_and_pasted(command, here):
    assert "numbers" in command("stacks", "list").out
    said = command("stacks", "show", "numbers")
    shown = yaml.safe_load(said.out)
    assert shown["graders"] == {"number": {"kind": "toy", "limit": 5}}
    (here / "pasted.yaml").write_text(f"target: {{paths: [x.numbers]}}\n{said.out}")
    assert command("validate", "pasted.yaml").code == 0
    clean(command("stacks", "show", "numbres"), 2, "did you mean 'numbers'?")


def test_schemas_are_printed(command, here):
    suite = json.loads(command("schema", "suite").out)
    jsonschema.validate(yaml.safe_load((here / "suite.yaml").read_text()), suite)
    sample = json.loads(command("schema", "sample").out)
    jsonschema.Draft202012Validator.check_schema(sample)
    jsonschema.validate(json.loads((here / "runs.jsonl").read_text().splitlines()[0]), sample)


def test_no_plugins_limits_what_is_found(here, monkeypatch, capsys):
    asked, discover = [], gradestack.discover

    def found(limit=None):
        asked.append(limit)
        return discover(limit="")

    monkeypatch.setattr("gradestack.registry.discover", found)
    for options in ([], ["--no-plugins"]):
        with pytest.raises(SystemExit):
            commands.main(["grade", "runs.jsonl", "-o", "out", "-q", "--set", "reports=[]", *options])
    assert asked == [None, ""]
