"""Commands: what they list, print and leave."""

import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
import yaml

import gradestack
from gradestack import ConfigError, PluginError
from gradestack.cli import commands
from gradestack_plugins.reporters.describe import component_lines, describe_lines

HEAVY = {
    "yaml",
    "jinja2",
    "pluggy",
    "msgspec",
    "numpy",
    "rich",
    "attr",
    "attrs",
    "orjson",
    "ijson",
}


FINISH = """
import sys
from gradestack.cli import commands
for arguments in {commands}:
    try:
        commands.main(arguments)
    except SystemExit as done:
        assert not done.code
print('MODULES', *sorted(sys.modules))
"""


def run_in_a_process(*commands, folder=None):
    """Run command lines one after the other in a fresh process; return its output and modules."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run(
        [sys.executable, "-c", FINISH.format(commands=commands)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    output, _, modules = done.stdout.rpartition("MODULES ")
    return output, set(modules.split())


def test_help_imports_click_and_nothing_heavier():
    """Start-up must not pay for what is not used."""
    _, modules = run_in_a_process(["run", "--help"], ["grade", "-h"], ["--version"])
    packages = {name.partition(".")[0] for name in modules}
    assert {"click", "gradestack"} <= packages
    assert packages & HEAVY == set()
    assert (
        packages & {"gradestack_plugins", "gradestack_templates", "asyncio", "multiprocessing"}
        == set()
    )


def test_help_finds_the_commands_of_plugins_and_imports_nothing_of_them():
    output, modules = run_in_a_process(["--help"], ["plugins", "list"])
    matches = set(re.findall(r"^  (\w+)  ", output, re.MULTILINE))
    assert {"show", "view", "index"} <= matches
    assert not {
        name
        for name in modules
        if name.startswith(("gradestack_plugins.pages", "gradestack_templates", "jinja2"))
    }


UNUSED = {
    *("asyncio", "glob", "ijson", "jinja2", "multiprocessing", "numpy", "rich", "statistics"),
    *("subprocess", "traceback", "gradestack_templates"),
}
"""Packages that a run without pages has no use for."""
OTHERS_FORMATS = "gradestack_plugins.archives.documents"
"""Module of readers that a run with a named reader does not ask."""


def test_a_run_with_named_components_and_no_reports_imports_no_others(tmp_path):
    """Neither pages, nor readers and graders that it does not name."""
    record = {"id": "a", "expected": [], "predicted": []}
    (tmp_path / "runs.jsonl").write_text(json.dumps(record))
    suite = {
        "target": {"paths": ["runs.jsonl"], "reader": "jsonl"},
        "graders": {"calls": "tool_calls"},
        "reports": [],
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    _, modules = run_in_a_process(["run", "suite.yaml", "-o", "out"], folder=tmp_path)
    packages = {name.partition(".")[0] for name in modules}
    assert packages & UNUSED == set()
    assert OTHERS_FORMATS not in modules
    assert "gradestack_plugins.pages.html" not in modules
    assert "gradestack.comparison.compared" not in modules


def test_grading_files_without_a_suite_imports_no_yaml(here):
    """Not even where a reader of YAML is asked whether it knows the file."""
    arguments = ["grade", "runs.jsonl", "-o", "out"]
    _, modules = run_in_a_process(arguments, folder=here)
    assert "gradestack_plugins.orchestrationbench.reader" in modules
    assert modules.isdisjoint({"subprocess", "traceback", "yaml"})
    assert "gradestack_plugins.judges.calibrated" not in modules  # nobody judged


def test_samples_of_a_long_name_are_found(command, tmp_path):
    samples = []
    for run in range(2):
        samples.append({"id": "a" * 1_000, "run": run, "expected": [], "predicted": []})
    output = tmp_path / "run"
    gradestack.grade(samples, graders={"g": "tool_calls"}, output=output)
    run_folder = tmp_path / "run"
    code = command("show", str(run_folder), "a" * 1_000 + ".1").code
    assert code == 0


def test_version(command):
    assert command("--version").out == f"gradestack, version {gradestack.__version__}\n"


def test_report_writes_the_same_pages_again(command, here):
    command(
        "run",
        "suite.yaml",
        "-o",
        "out",
        "--set",
        "reports=[html, markdown, dump]",
        "--set",
        "graders.alpha=toy",
    )
    pages = {
        name: (here / "out" / name).read_bytes()
        for name in ("report.html", "report.md", "dump.json")
    }
    for name in ("runs.jsonl", "suite.yaml", "out/report.html"):
        (here / name).unlink()
    result = command("report", "out")
    lines = result.out.splitlines()
    assert lines == [
        "Report: out/report.html",
        "Report: out/report.md",
        "Report: out/dump.json",
    ]
    contents_by_name = {name: (here / "out" / name).read_bytes() for name in pages}
    assert contents_by_name == pages
    elsewhere = command("report", "out", "-o", "pages/new", "--format", "markdown")
    assert elsewhere.out == "Report: pages/new/report.md\n"
    report_path = here / "pages/new/report.md"
    assert report_path.read_bytes() == pages["report.md"]


def test_report_imports_no_yaml(command, here):
    command("run", "suite.yaml", "-o", "out", "--set", "reports=[html]")
    arguments = ["report", "out", "--format", "html", "--format", "markdown"]
    _, modules = run_in_a_process(arguments, folder=here)
    assert "yaml" not in modules
    assert "jinja2" in modules


@pytest.mark.slow
def test_schemas_are_printed(command, here):
    text = command("schema", "suite").out
    suite = json.loads(text)
    suite_path = here / "suite.yaml"
    jsonschema.validate(yaml.safe_load(suite_path.read_text()), suite)
    sample = json.loads(command("schema", "sample").out)
    jsonschema.Draft202012Validator.check_schema(sample)
    runs_path = here / "runs.jsonl"
    lines = runs_path.read_text().splitlines()
    document = json.loads(lines[0])
    jsonschema.validate(document, sample)


def test_no_plugins_limits_what_is_found(here, monkeypatch, capsys):
    limits_asked = []
    discover = gradestack.discover

    def discovered(limit=None):
        limits_asked.append(limit)
        return discover(limit="")

    monkeypatch.setattr("gradestack.registry.discover", discovered)
    for options in ([], ["--no-plugins"]):
        with pytest.raises(SystemExit):
            commands.main(
                ["grade", "runs.jsonl", "-o", "out", "-q", "--set", "reports=[]", *options]
            )
    assert limits_asked == [None, ""]


def test_every_component_has_a_line(registry):
    lines = list(component_lines(registry))
    assert "grader      toy                        A grader for tests  [local 0]" in lines
    components = registry.components()
    component_count = len(components)
    assert len(lines) == component_count
    expected = sorted(line.split()[:2] for line in lines)
    assert [line.split()[:2] for line in lines] == expected


def test_every_built_in_component_can_be_described(registry):
    for component, _ in registry.components():
        assert list(describe_lines(registry, component.name))


def test_an_unknown_name_and_a_broken_component(make_registry_, toys):
    component = toys.component("grader", "sick", "Missing")
    registry = make_registry_(component)
    with pytest.raises(ConfigError, match=r"no component is called 'toi' \(did you mean 'toy'\?\)"):
        list(describe_lines(registry, "toi"))
    with pytest.raises(PluginError, match="AttributeError"):
        list(describe_lines(registry, "sick"))


SAID = "GRADESTACK_PLUGINS names no_such_plugin, no installed plugin is called that"


def test_the_python_api_warns_of_an_unknown_name(here, monkeypatch):
    monkeypatch.setenv("GRADESTACK_PLUGINS", "no_such_plugin")
    suite = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": "exact_match"}, "reports": []}
    sample = [{"id": "a", "expected": "x", "predicted": "x"}]
    with pytest.warns(UserWarning, match=SAID):
        gradestack.load_suite(suite)
    with pytest.warns(UserWarning, match=SAID):
        gradestack.grade(sample, ["exact_match"])
    registry = gradestack.discover()
    gradestack.load_suite(suite, registry=registry)
