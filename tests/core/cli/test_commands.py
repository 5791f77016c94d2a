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


def test_help_imports_click_and_nothing_heavier():
    """Start-up must not pay for what is not used."""
    code = (
        "import sys\nfrom gradestack.cli import commands\n"
        "for arguments in (['run', '--help'], ['grade', '-h'], ['--version']):\n"
        "    try:\n        commands.main(arguments)\n    except SystemExit as done:\n        "
        "assert not done.code\n"
        "print('MODULES', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    lines = done.stdout.splitlines()
    last_line = lines[-1]
    modules = set(last_line.split())
    assert {"click", "gradestack"} <= modules
    assert modules & HEAVY == set()
    assert (
        modules & {"gradestack_plugins", "gradestack_templates", "asyncio", "multiprocessing"}
        == set()
    )


def test_help_finds_the_commands_of_plugins_and_imports_nothing_of_them():
    code = (
        "import sys\nfrom gradestack.cli import commands\n"
        "for arguments in (['--help'], ['plugins', 'list']):\n"
        "    try:\n        commands.main(arguments)\n    except SystemExit as done:\n        "
        "assert not done.code\n"
        "print('MODULES', *sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    last_line = lines[-1]
    modules = set(last_line.split())
    matches = set(re.findall(r"^  (\w+)  ", done.stdout, re.MULTILINE))
    assert {"show", "view", "index"} <= matches
    assert not {
        name
        for name in modules
        if name.startswith(("gradestack_plugins.pages", "gradestack_templates", "jinja2"))
    }


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
    code = (
        "import sys\nfrom gradestack.cli import commands\n"
        "try:\n    commands.main(['report', 'out', '--format', 'html', '--format', 'markdown'])\n"
        "except SystemExit as done:\n    assert not done.code\n"
        "print('yaml' in sys.modules, 'jinja2' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=here,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    lines = done.stdout.splitlines()
    last_line = lines[-1]
    assert last_line == "False True"


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
