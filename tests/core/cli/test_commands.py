"""Commands: what they list, print and leave."""

import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict

import jsonschema
import pytest
import yaml

import gradestack
from gradestack import Component, ConfigError, PluginError, Registry
from gradestack.cli import commands
from gradestack.cli.commands import main
from gradestack.registry import Plugin
from gradestack_plugins.reporters.commands import component_lines, describe_lines
from tests.core.outcomes import clean, data

DATA = data(__file__, "commands.yaml")

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


@pytest.mark.parametrize(("arguments", "message"), DATA["usage_mistakes"])
def test_usage_mistakes(command, arguments, message):
    said = command(*arguments)
    assert (said.code, said.out) == (2, "")
    assert message.lower() in said.err.lower()


def test_a_run_prints_the_results_block(command, here):
    said = command("run", "suite.yaml", "-o", "out")
    assert said.err == ""
    lines, within = said.out.splitlines(), "passes, but the threshold lies within it"
    assert lines == [
        "Running evaluation: airline",
        "━" * 40 + " 2/2 100%",
        "",
        "Results:",
        "  Passed: 1 of 2 (50.0%; 95% interval 0.0 to 100.0%); quality score >= 1",
        "  Avg score: 0.750",
        "",
        "By grader:",
        "  quality  avg 0.75  graded 2",
        "",
        f"Gate (quality >= 0.75): PASSED (actual: 0.75, 95% interval 0.00 to 1.00: {within})",
        "1 bad record left out:",
        lines[12],
        "Warning: 1 of 3 samples (33.3%) failed or missing for 'quality', 1 of them unreadable",
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
    options = ["--stack", "tool_calls", "--reader", "jsonl", "--dataset", "gold.jsonl", "--profile", "upstream"]
    said = command("grade", "odd.txt", *options, "-o", "out", "--set", "name=mine", "--set", "reports=[]")
    assert said.code == 0, said.err
    summary = json.loads((here / "out/summary.json").read_text())
    assert summary["suite"] == "mine"
    assert summary["metrics"]["states"]["calls"] == {"graded": 1, "skipped": 0, "failed": 0, "missing": 1}
    assert json.loads((here / "out/header.json").read_text())["profile"] == "upstream"


def test_a_profile_overrides_that_of_the_suite(command, here):
    said = command("run", "suite.yaml", "-o", "out", "--set", "profile=documented", "--profile", "upstream")
    assert (said.code, json.loads((here / "out/header.json").read_text())["profile"]) == (0, "upstream"), said.err


def test_several_runs_can_be_asked_for(command, here, write_lines, record):
    write_lines([record("a", 1.0, run=1), record("a", 0.0, run=2)])
    assert command("run", "suite.yaml", "-o", "out", "--num-runs", "2", "-q").code == 1
    assert (here / "out/run_2/summary.json").is_file()
    words = "num_runs asks for 3 run(s), the recording holds 2: 1, 2"
    clean(command("run", "suite.yaml", "-o", "out", "--num-runs", "3"), 3, words)


def test_strict(command, here, write_lines, record):
    clean(command("run", "suite.yaml", "-o", "out", "--strict"), 3, "runs.jsonl:3: not JSON")
    write_lines([record("a", recorded={"do": "raise"})])
    clean(command("run", "suite.yaml", "-o", "out", "--strict"), 4, "grader 'quality' (toy 7) raised on runs.jsonl:1")
    assert not (here / "out").exists()
    assert command("run", "suite.yaml", "-o", "out", "-q", "--set", "gate=null").code == 3


def test_validate_says_what_would_run(command, here):
    said = command("validate", "suite.yaml", "--set", "gate={metric: accuracy, op: gte, value: 0.8}")
    assert said.code == 0
    words = ("suite.yaml: valid", "runs.jsonl (jsonl)", "quality (toy)", "quality/toy_count", "is a percentage here")
    for word in words:
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
    for component in (each for each in header["components"] if each["kind"] == "reporter"):
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


def test_every_component_has_a_line(registry):
    lines = list(component_lines(registry))
    assert "grader      toy                        A grader for tests  [local 0]" in lines
    assert len(lines) == len(registry.components())
    assert [line.split()[:2] for line in lines] == sorted(line.split()[:2] for line in lines)


def test_panels_and_commands_are_listed_as_other_kinds():
    offered = [
        Component(kind=kind, name="curve", target="no_such_module:f", summary="How it falls")
        for kind in ("panel", "command")
    ]
    found = Registry([Plugin(name="p", distribution="d", version="2", components=tuple(offered))])
    assert list(component_lines(found)) == [
        f"command     {'curve':<26} How it falls  [d 2]",
        f"panel       {'curve':<26} How it falls  [d 2]",
    ]
    assert list(component_lines(found, "grader")) == []


def test_trouble_is_listed_too(registry):
    toys = next(each for each in registry.plugins if each.name == "toys")
    twice = toys._replace(distribution="d", version="2", components=toys.components[:1], error="boom")
    last = list(component_lines(Registry([*registry.plugins, twice])))[-2:]
    assert last[0] == f"broken      {'toys':<26} boom  [d 2]"
    assert last[1].startswith("conflict    ")
    assert " is offered by toys and toys (d 2); write local:" in last[1]


def test_a_component_is_described(registry, toys):
    lines = list(describe_lines(registry, "toy"))
    assert lines[:3] == [
        "grader toy: A grader for tests",
        "  from local 0, plugin toys, gradestack_toys:Toy",
        "  version 7",
    ]
    for line in [
        "  needs: recorded",
        "  requires: none",
        "  aggregators: toy_count",
        f"  {toys.Toy.__doc__}",
        "    factor: number (default 1.0)",
        "    limit: integer | null (default null)",
        '    mode: plain | loud (default "plain")',
        "    weights: object (default {})",
        "    names: array (default [])",
        "    place: string | null (default null)",
        "    anything: any (default null)",
        '    profile: documented | upstream (default "documented")',
        "  in a suite:",
    ]:
        assert line in lines
    entry = yaml.safe_load(lines[-1])
    assert entry["graders"]["KEY"].items() >= {"kind": "toy", "factor": 1.0, "mode": "plain"}.items()


def test_components_as_json(command):
    """Read by programs, which ask what is installed."""
    done = command("plugins", "list", "--kind", "stack", "--json")
    assert {each["kind"] for each in json.loads(done.out)["components"]} == {"stack"}


def test_all_components_of_a_name_are_described(registry):
    lines = list(describe_lines(registry, "numbers"))
    assert [line for line in lines if line.startswith(("reader", "stack"))] == [
        "reader numbers: A reader for tests",
        "stack numbers: A stack for tests",
    ]
    assert "  Return the stack of the numbers format." in lines


def test_every_built_in_component_can_be_described(registry):
    for component, _ in registry.components():
        assert list(describe_lines(registry, component.name))


def test_an_unknown_name_and_a_broken_component(make_registry_, toys):
    found = make_registry_(toys.component("grader", "sick", "Missing"))
    with pytest.raises(ConfigError, match=r"no component is called 'toi' \(did you mean 'toy'\?\)"):
        list(describe_lines(found, "toi"))
    with pytest.raises(PluginError, match="AttributeError"):
        list(describe_lines(found, "sick"))


SAID = "GRADESTACK_PLUGINS names no_such_plugin, no installed plugin is called that"


@pytest.mark.parametrize(
    "command", [["validate", "suite.yaml"], ["run", "suite.yaml", "-q", "--allow-all-failed"], ["plugins", "list"]]
)
def test_every_command_warns_of_an_unknown_name(spawn, here, command):
    (here / "suite.yaml").write_text("target: {paths: [runs.jsonl]}\ngraders: {quality: exact_match}\nreports: []\n")
    (here / "runs.jsonl").write_text('{"id": "a", "expected": "x", "predicted": "x"}\n')
    said = spawn(*command, GRADESTACK_PLUGINS="no_such_plugin")
    assert said.code == 0
    assert f"warning: {SAID}" in said.err.splitlines()


def test_the_python_api_warns_of_an_unknown_name(here, monkeypatch):
    monkeypatch.setenv("GRADESTACK_PLUGINS", "no_such_plugin")
    suite = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": "exact_match"}, "reports": []}
    sample = [{"id": "a", "expected": "x", "predicted": "x"}]
    calls = {
        "load_suite": lambda: gradestack.load_suite(suite),
        "run": lambda: gradestack.run(suite, output="out"),
        "grade_files": lambda: gradestack.grade_files("runs.jsonl", graders=["exact_match"], output="two"),
        "grade": lambda: gradestack.grade(sample, ["exact_match"]),
        "stream": lambda: list(gradestack.stream(sample, ["exact_match"])),
    }
    for call in calls.values():
        with pytest.warns(UserWarning, match=SAID):
            call()
    gradestack.load_suite(suite, registry=gradestack.discover())


SUITE = DATA["suite"]


def _line(number, quality, accuracy, model=None):
    grades = {
        "quality": {"score": quality, "rationale": "", "metadata": {}},
        "accuracy": {"score": accuracy, "rationale": "", "metadata": {}},
    }
    return json.dumps(
        {
            "sample": {"id": number, "input": f"question {number}", "ground_truth": "4"},
            "submission": "4",
            "trajectory": [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}]],
            "agent_id": f"agent-{number}",
            "grade": grades["quality"],
            "grades": grades,
            "model_name": model,
        }
    )


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return a function that writes recordings (folder -> lines) and a suite over them, in a new directory."""
    monkeypatch.chdir(tmp_path)

    def write(files, more=""):
        for name, lines in files.items():
            path = tmp_path / name / "results.jsonl"
            path.parent.mkdir(parents=True)
            path.write_text("\n".join(lines) + "\n")
        (tmp_path / "suite.yaml").write_text(SUITE.format(paths="recorded", more=more))
        return tmp_path

    return write


def _main(*arguments):
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    return done.value.code


def test_the_console_block(recorded, capsys):
    """Three samples, scores 1, 1 and 0.5, two passing: the guide's block, line by line."""
    recorded({"recorded": [_line(0, 1.0, 1.0), _line(1, 1.0, 0.0), _line(2, 0.5, 1.0)]})
    assert _main("run", "suite.yaml", "--output", "results") == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line]
    assert said[:7] == data(__file__, "commands.yaml")["the_console_block"]
    at = said.index("Gate (quality >= 0.75): PASSED")
    assert said[at + 1].startswith("  actual: 0.83, ")


def test_the_console_block_of_several_models(recorded, capsys):
    """The guide's lines: 0.85 and 80 % of five of one model, 0.92 and all of the other."""
    scores = {"gpt-4o-mini": [1, 1, 0.8, 0.75, 0.7], "claude-3-5-sonnet": [1, 1, 0.9, 0.9, 0.8]}
    lines = [_line(at, score, 1.0, model) for model, each in scores.items() for at, score in enumerate(each)]
    recorded({"recorded": lines})
    assert _main("run", "suite.yaml", "--output", "results") == 0
    said = capsys.readouterr().out.splitlines()
    at = said.index("Results by model:")
    assert said[at + 1 : at + 3] == [
        "  gpt-4o-mini - Avg: 0.85, Pass: 80.0%",
        "  claude-3-5-sonnet - Avg: 0.92, Pass: 100.0%",
    ]
    assert "Gate (quality >= 0.75): PASSED" in said


def test_summary_and_header_have_the_documented_keys(recorded):
    quality = [1.0, 1.0, 1.0, 0.8, 0.8, 0.8, 0.8, 0.7, 0.6, 0.5]
    lines = [_line(number, score, 0.0 if number == 3 else 1.0) for number, score in enumerate(quality)]
    place = recorded({"recorded": lines})
    gradestack.run(place / "suite.yaml", output="results")
    summary = json.loads((place / "results/summary.json").read_text())
    assert {"suite", "config", "metrics", "gates_passed"} <= set(summary)
    assert {"target", "graders", "gate"} <= set(summary["config"])
    metrics = summary["metrics"]
    assert (metrics["total"], metrics["total_attempted"]) == (10, 10)
    assert (metrics["avg_score_attempted"], metrics["avg_score_total"]) == (0.8, 0.8)
    assert (metrics["passed_attempts"], metrics["failed_attempts"]) == (7, 3)
    shares = {"avg_score_attempted": 0.8, "avg_score_total": 0.8, "pass_rate": 70.0}
    assert metrics["by_metric"]["quality"] == {**shares, "passed_attempts": 7, "failed_attempts": 3}
    assert metrics["by_metric"]["accuracy"]["pass_rate"] == 90.0
    assert metrics["metrics"] == {"quality": 70.0, "accuracy": 90.0}
    assert (summary["gates_passed"], metrics["per_model"]) == (True, None)
    header = json.loads((place / "results/header.json").read_text())
    assert (header["suite_name"], header["version"]) == ("my-eval-suite", gradestack.__version__)
    assert header["timestamp"].startswith("20")


def test_per_model(recorded):
    lines = [_line(n, score, 1.0, model) for model in ("gpt-4o", "claude") for n, score in enumerate((1.0, 0.5))]
    lines[3] = _line(1, 0.9, 0.0, "claude")
    place = recorded({"recorded": lines})
    gradestack.run(place / "suite.yaml", output="results")
    first, second = json.loads((place / "results/summary.json").read_text())["metrics"]["per_model"]
    assert first == data(__file__, "commands.yaml")["per_model"]
    assert (second["model_name"], second["passed_samples"], second["metrics"]["accuracy"]) == ("claude", 2, 50.0)


def test_failures_by_metric_are_found_with_a_few_lines(recorded):
    """Rows carry every metric's grade, so failures are grouped by metric without knowing gradestack."""
    place = recorded({"recorded": [_line(0, 1.0, 0.2), _line(1, 0.3, 1.0), _line(2, 0.4, 0.1)]})
    gradestack.run(place / "suite.yaml", output="results")
    failures = defaultdict(list)
    with (place / "results/results.jsonl").open() as file:
        for line in file:
            result = json.loads(line)
            for metric, grade in result["grades"].items():
                if grade["score"] < 0.5:
                    failures[metric].append(result["sample"]["id"])
    assert failures == {"accuracy": [0, 2], "quality": [1, 2]}


def test_aggregate_statistics_over_runs(recorded):
    scores = {1: (1.0, 0.8), 2: (0.9, 0.9), 3: (0.6, 0.7)}
    files = {
        f"recorded/run_{run}": [_line(number, score, 1.0) for number, score in enumerate(pair)]
        for run, pair in scores.items()
    }
    place = recorded(files, more="num_runs: 3\nruns_must_pass: majority")
    report = gradestack.run(place / "suite.yaml", output="results")
    with (place / "results/aggregate_stats.json").open() as file:
        stats = json.load(file)
    means = [statistics.mean(pair) for pair in scores.values()]
    block = stats["avg_score_attempted"]
    assert (stats["num_runs"], stats["runs_passed"], stats["runs_failed"]) == (3, 2, 1)
    assert stats["pass_rate"] == pytest.approx(100 * 2 / 3)
    assert block["mean"] == pytest.approx(statistics.mean(means), abs=1e-15)
    assert block["std"] == pytest.approx(statistics.stdev(means), abs=1e-15)
    assert (block["min"], block["max"]) == (min(means), max(means))
    assert stats["per_metric"]["accuracy"]["avg_score_attempted"] == {"mean": 1.0, "std": 0.0, "min": 1.0, "max": 1.0}
    assert (stats["mean_avg_score_attempted"], stats["std_avg_score_attempted"]) == (block["mean"], block["std"])
    assert [each["avg_score_attempted"] for each in stats["individual_run_metrics"]] == means
    margin = 1.96 * (stats["avg_score_attempted"]["std"] / math.sqrt(stats["num_runs"]))
    assert 0 < margin < 0.2
    assert report.passed is True
    for run in scores:
        single = gradestack.load_report(place / f"results/run_{run}")
        assert single.metrics["avg_score_attempted"] == means[run - 1]
        assert sum(1 for _ in single.rows()) == 2
