"""The command line: what is printed where, the exit codes, and never a traceback without --debug."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest
import yaml

import gradestack
from gradestack import cli
from gradestack.registry import Plugin, Registry

HEAVY = {"yaml", "cattrs", "jinja2", "pluggy", "msgspec", "numpy", "rich", "attr", "attrs", "orjson", "ijson"}


@pytest.fixture
def here(tmp_path, monkeypatch, write_lines, record):
    """A working directory with runs, a suite and a numbers file."""
    monkeypatch.chdir(tmp_path)
    write_lines([record("a", 1.0), record("b", 0.5), "broken"])
    (tmp_path / "suite.yaml").write_text(
        "name: airline\ntarget: {paths: [runs.jsonl]}\ngraders: {quality: toy}\nreports: []\n"
        "gate: {metric_key: quality, op: gte, value: 0.75}\n"
    )
    (tmp_path / "x.numbers").write_text("numbers\n1\n0.25\n")
    return tmp_path


# help and version


def test_help_imports_click_and_nothing_heavier():
    """Start-up must not pay for what is not used."""
    code = (
        "import sys\nfrom gradestack import cli\n"
        "for arguments in (['--help'], ['run', '--help'], ['grade', '-h'], ['--version']):\n"
        "    try:\n        cli.main(arguments)\n    except SystemExit as done:\n        assert not done.code\n"
        "print('MODULES', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    modules = set(done.stdout.splitlines()[-1].split())
    assert {"click", "gradestack"} <= modules
    assert modules & HEAVY == set()
    assert modules & {"gradestack_plugins", "gradestack_templates", "asyncio", "multiprocessing"} == set()


def test_help_names_commands_and_exit_codes(command):
    """On standard output, exit 0."""
    for option in ("--help", "-h"):
        said = command(option)
        assert said.code == 0
        for word in ("run", "grade", "report", "validate", "plugins", "stacks", "schema", "Exit codes: 0 passed"):
            assert word in said.out


def test_every_command_has_help(command):
    """One line of what it does, and its options."""
    for path in (["run"], ["grade"], ["report"], ["validate"], ["schema"], ["plugins", "list"], ["stacks", "show"]):
        said = command(*path, "--help")
        assert (said.code, said.err) == (0, "")
        assert "Usage: gradestack" in said.out


def test_version(command):
    """The number of the package."""
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
    """Exit 2, on standard error, with what to do."""
    said = command(*arguments)
    assert (said.code, said.out) == (2, "")
    assert message.lower() in said.err.lower()


# run and grade


def test_a_run_prints_the_results_block(command, here):
    """The letta document's block, then where the files are, then the verdict; bad records are told."""
    said = command("run", "suite.yaml", "-o", "out")
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines == [
        "Running evaluation: airline",
        "━" * 40 + " 2/2 100%",
        "",
        "Results:",
        "  Total samples: 2",
        "  Attempted: 2",
        "  Avg score: 0.75 (attempted: 0.75)",
        "  Passed: 1 (50.0%)",
        "",
        "Gate (quality >= 0.75): PASSED",
        "1 bad record left out:",
        lines[11],
        "",
        "Results: out",
        "✓ PASSED",
    ]
    assert lines[11].startswith("  runs.jsonl:3: not JSON")
    assert said.code == 0


def test_a_failed_gate_is_exit_1(command, here):
    """And nothing but the verdict with --quiet."""
    said = command("run", "suite.yaml", "-o", "out", "--set", "gate.value=0.8", "--quiet")
    assert said == type(said)(1, "✗ FAILED\n", "")
    loud = command("run", "suite.yaml", "-o", "out", "--set", "gate.value=0.8")
    assert loud.code == 1
    assert "Gate (quality >= 0.8): FAILED (actual: 0.75)" in loud.out


def test_quiet_prints_the_verdict_only(command, here):
    """Without a gate nothing at all."""
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
    """What is not recognised in them is told, by its path below."""
    (here / "data/deep").mkdir(parents=True)
    (here / "x.numbers").rename(here / "data/deep/x.numbers")
    (here / "data/notes.txt").write_text("notes")
    said = command("grade", "data", "-o", "out")
    assert said.code == 0
    assert "Warning: data/notes.txt: not recognised, left out" in said.out


def test_every_option_reaches_the_run(command, here, write_lines):
    """Stack, reader, dataset, profile and --set."""
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
    """--num-runs is checked against the recording."""
    write_lines([record("a", 1.0, run=1), record("a", 0.0, run=2)])
    assert command("run", "suite.yaml", "-o", "out", "--num-runs", "2", "-q").code == 1
    assert (here / "out/run_2/summary.json").is_file()
    said = command("run", "suite.yaml", "-o", "out", "--num-runs", "3")
    assert said.code == 3
    assert "num_runs asks for 3 run(s), the recording holds 2: 1, 2" in said.err


def test_the_default_place(command, here):
    """gradestack-runs/NAME/TIME, with a link to the latest."""
    said = command("run", "suite.yaml")
    assert said.code == 0
    (place,) = [line for line in said.out.splitlines() if line.startswith("Results: ")]
    assert place.startswith("Results: gradestack-runs/airline/2")
    assert (here / "gradestack-runs/airline/latest/summary.json").is_file()


def test_strict(command, here, write_lines, record):
    """A bad record is exit 3, a raising grader exit 4; nothing is written."""
    clean(command("run", "suite.yaml", "-o", "out", "--strict"), 3, "runs.jsonl:3: not JSON")
    write_lines([record("a", recorded={"do": "raise"})])
    clean(command("run", "suite.yaml", "-o", "out", "--strict"), 4, "grader 'quality' (toy 7) raised on runs.jsonl:1")
    assert not (here / "out").exists()
    assert command("run", "suite.yaml", "-o", "out", "-q", "--set", "gate=null").code == 0


# exit codes and messages


def clean(said, code, *words):
    assert said.code == code, said
    assert "Traceback" not in said.err + said.out
    assert said.err.startswith("error: "), said.err
    for word in words:
        assert word in said.err, said.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ("gone.jsonl: no such file or directory",)),
        (b"", ("data.jsonl: the file is empty",)),
        (b"just text\n", ("data.jsonl: the format is not recognised; name it with --reader (known: ",)),
        (b'{"tasks": {}}\n', ("data.jsonl: the format is not recognised",)),
        (b"\x00\xff\xfe", ("data.jsonl: the format is not recognised",)),
        (b"[1, 2, 3]", ("data.jsonl: the format is not recognised",)),
        (b'{"id": "a", "predicted": ', ("data.jsonl: the format is not recognised",)),
        (
            b'{"version": 9, "id": "a", "predicted": "x"}\n',
            ("data.jsonl:1: version 9 of the sample form is unknown", "upgrade"),
        ),
        (b"[" * 10_000, ("data.jsonl: the format is not recognised",)),
    ],
)
def test_unusable_input_is_exit_3(command, here, content, words):
    """One message with the file and what to try."""
    name = "gone.jsonl"
    if content is not None:
        name = "data.jsonl"
        (here / name).write_bytes(content)
    clean(command("grade", name, "-o", "out"), 3, *words)
    assert not (here / "out").exists()


def test_no_readable_record_is_exit_3(command, here):
    """With the first reason."""
    (here / "data.jsonl").write_bytes(b'{"id": "a", "predicted": \n[1]\nnull\n')
    clean(
        command("grade", "data.jsonl", "--reader", "jsonl", "-o", "out"),
        3,
        "no record could be read",
        "data.jsonl:1: not JSON",
    )


def test_a_suite_with_five_mistakes_is_exit_2(command, here):
    """All of them, each with its line and a suggestion."""
    (here / "bad.yaml").write_text(
        "nmae: x\n"
        "target: {paths: [runs.jsonl]}\n"
        "graders:\n"
        "  quality: {kind: toi}\n"
        "  other: {kind: toy, facter: 2}\n"
        "gate: {metric_key: qality, op: ge, value: 1}\n"
        "engine: seriel\n"
    )
    for verb in ("run", "validate"):
        said = command(verb, "bad.yaml", *(["-o", "out"] if verb == "run" else []))
        clean(
            said,
            2,
            "bad.yaml: 6 problems in the configuration",
            "bad.yaml:1: nmae: unknown key (did you mean 'name'?)",
            "bad.yaml:4: graders.quality.kind: unknown grader 'toi' (did you mean 'toy'?)",
            "bad.yaml:5: graders.other.facter: unknown key (did you mean 'factor'?)",
            "bad.yaml:6: gate.metric_key: no grader has the key 'qality' (did you mean 'quality'?)",
            "bad.yaml:6: gate.op: expected one of gt, gte, lt, lte, eq; got 'ge' (did you mean 'gte'?)",
            "bad.yaml:7: engine: unknown engine 'seriel' (did you mean 'serial'?)",
        )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--reader", "jsnl"], ("unknown reader 'jsnl' (did you mean 'jsonl'?)",)),
        (["--stack", "jsnl"], ("unknown stack 'jsnl' (did you mean 'jsonl'?)",)),
        (
            ["--set", "graders.partial.kind=tau_partail"],
            ("--set graders.partial.kind: unknown grader", "'tau_partial'"),
        ),
        (
            ["--set", "gate={metric_key: prtial, op: gte, value: 1}"],
            ("--set gate.metric_key: no grader has the key", "'partial'"),
        ),
        (["--set", "nonsense"], ("--set nonsense: expected PATH=VALUE",)),
        (["--set", "a=[1"], ("--set a=[1: the value is not valid YAML",)),
        (["--set", "a=2024-99-99"], ("the value is not valid YAML",)),
    ],
)
def test_mistaken_options_are_exit_2(command, here, options, words):
    """Placed on the command line, with a suggestion."""
    clean(command("grade", "runs.jsonl", "-o", "out", *options), 2, *words)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("runs.jsonl", ("runs.jsonl: exists and is not a directory; name another place with -o",)),
        ("runs.jsonl/below", ("is not a directory that can be written to",)),
        ("theirs", ("theirs: the directory is not empty and not a gradestack run; name another with -o",)),
        (".", ("holds the working directory",)),
        ("x" * 300, ("File name too long",)),
    ],
)
def test_places_that_cannot_be_used_are_exit_2(command, here, output, words):
    """Said before any work is done: the suite is not even read."""
    (here / "theirs").mkdir()
    (here / "theirs/data").touch()
    clean(command("run", "no-such-suite.yaml", "-o", output), 2, *words)
    assert sorted(path.name for path in here.iterdir()) == ["runs.jsonl", "suite.yaml", "theirs", "x.numbers"]


def test_a_place_the_system_refuses_is_exit_2(command, here):
    """Even to root."""
    clean(
        command("run", "suite.yaml", "-o", "/proc/nowhere/out"), 2, "/proc/nowhere/out: cannot be written: No such file"
    )


def test_a_missing_suite_is_exit_2(command, here):
    """No traceback for a typo in a file name."""
    clean(command("run", "suit.yaml", "-o", "out"), 2, "suit.yaml: no such file")
    clean(command("run", ".", "-o", "out"), 2, "Is a directory")


def test_a_broken_plugin_in_use_is_exit_4(command, here, toys):
    """With its distribution and what it said; unused, it does not matter."""
    using = toys.make_registry(toys.component("grader", "sick", "Missing"))
    sick = Plugin(name="gone", distribution="gone-dist", version="9", error="ImportError: no libgone")
    command.use(Registry([*using.plugins, sick]))
    clean(
        command("run", "suite.yaml", "-o", "out", "--set", "graders.quality=sick"),
        4,
        "grader 'sick' of plugin toys",
        "AttributeError",
    )
    clean(
        command("run", "suite.yaml", "-o", "out", "--set", "graders.quality=whatever"),
        4,
        "gone (gone-dist 9): ImportError: no libgone",
    )
    assert command("run", "suite.yaml", "-o", "out", "-q").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "metrics={m: {kind: toy_count, fail: finish}}"], "quality/m is broken"),
        (["--set", "reports=[{kind: dump, breaks: true}]"], "reporter dump is broken"),
    ],
)
def test_a_component_that_breaks_on_the_way_is_exit_4(command, here, options, said):
    """The results are kept and the message is told, on standard error when quiet."""
    loud = command("run", "suite.yaml", "-o", "out", *options)
    assert loud.code == 4
    assert f"Warning: {said}" in loud.out
    assert gradestack.load_report(here / "out").metrics["total"] == 2
    quiet = command("run", "suite.yaml", "-o", "out", "-q", *options)
    assert (quiet.code, quiet.out) == (4, "✓ PASSED\n")
    assert quiet.err.startswith(f"error: {said}")


def test_a_broken_reader_is_exit_4(command, here):
    """A surprise in a plugin is never a gate that failed."""
    clean(
        command("grade", "x.numbers", "-o", "out", "--set", "reader.where=read"),
        4,
        "reader Numbers (version 1) raised LookupError",
    )


def test_an_interruption_is_exit_130(command, here, write_lines, record):
    """Partial results are kept, and said to be partial."""
    write_lines([record("a", 1.0), record("b", recorded={"do": "interrupt"}), record("c", 1.0)])
    said = command("run", "suite.yaml", "-o", "out")
    assert said.code == 130
    assert said.err == "interrupted: partial results were kept\n"
    assert "Incomplete: interrupted" in said.out
    assert "✗ FAILED" in said.out
    assert [row["sample"]["id"] for row in gradestack.load_report(here / "out").rows()] == ["a"]


def test_an_interruption_before_the_first_sample_is_exit_130(command, here, monkeypatch):
    """Nothing is written, nothing is left behind."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gradestack.grading.shards_of", stop)
    said = command("run", "suite.yaml", "-o", "out")
    assert (said.code, said.err.strip()) == (130, "interrupted")
    assert not (here / "out").exists()
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_surprises_are_told_without_a_traceback(command, here, monkeypatch):
    """Exit 4, with advice; the file system's troubles are exit 3."""

    def fail(error):
        def failing(*_, **__):
            raise error

        monkeypatch.setattr("gradestack.runner.run_suite", failing)

    fail(RuntimeError("strange\x1b"))
    clean(
        command("run", "suite.yaml", "-o", "out"), 4, "unexpected RuntimeError: strange\\x1b", "run again with --debug"
    )
    fail(OSError(28, "No space left on device", "/dev/full"))
    clean(command("run", "suite.yaml", "-o", "out"), 3, "/dev/full: No space left on device")


def test_debug_shows_the_traceback_and_keeps_the_exit_code(command, here):
    """In any place on the command line."""
    for arguments in (["--debug", "run", "gone.yaml"], ["run", "gone.yaml", "--debug"]):
        said = command(*arguments)
        assert said.code == 2
        assert "Traceback (most recent call last)" in said.err
        assert "error: gone.yaml: no such file" in said.err


# the other commands


def test_validate_says_what_would_run(command, here):
    """And runs nothing."""
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
    """From the run directory alone: the input may be gone."""
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


def test_report_mistakes(command, here):
    """Not a run: 3. An unknown reporter, a place that cannot be written: 2. A broken reporter: 4."""
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
    """Listed by kind, described by name."""
    said = command("plugins", "list")
    assert said.code == 0
    assert "toy_count" in said.out
    only = command("plugins", "list", "--kind", "engine")
    assert {line.split()[0] for line in only.out.splitlines()} == {"engine"}
    assert "factor: number (default 1.0)" in command("plugins", "describe", "toy").out
    clean(command("plugins", "list", "--kind", "greader"), 2, "unknown kind 'greader'")
    clean(command("plugins", "describe", "toi"), 2, "did you mean 'toy'?")


def test_stacks_can_be_seen_and_pasted(command, here):
    """What is printed is a suite's graders, metrics and gate."""
    assert "numbers" in command("stacks", "list").out
    said = command("stacks", "show", "numbers")
    shown = yaml.safe_load(said.out)
    assert shown["graders"] == {"number": {"kind": "toy", "limit": 5}}
    (here / "pasted.yaml").write_text(f"target: {{paths: [x.numbers]}}\n{said.out}")
    assert command("validate", "pasted.yaml").code == 0
    clean(command("stacks", "show", "numbres"), 2, "did you mean 'numbers'?")


def test_schemas_are_printed(command, here):
    """Valid JSON Schemas; the suite's accepts the suite, the sample's accepts the runs."""
    suite = json.loads(command("schema", "suite").out)
    jsonschema.validate(yaml.safe_load((here / "suite.yaml").read_text()), suite)
    sample = json.loads(command("schema", "sample").out)
    jsonschema.Draft202012Validator.check_schema(sample)
    jsonschema.validate(json.loads((here / "runs.jsonl").read_text().splitlines()[0]), sample)


def test_no_plugins_limits_what_is_found(here, monkeypatch, capsys):
    """--no-plugins asks for the built-in ones only."""
    asked, discover = [], gradestack.discover

    def found(limit=None):
        asked.append(limit)
        return discover(limit="")

    monkeypatch.setattr("gradestack.registry.discover", found)
    for options in ([], ["--no-plugins"]):
        with pytest.raises(SystemExit):
            cli.main(["grade", "runs.jsonl", "-o", "out", "-q", "--set", "reports=[]", *options])
    assert asked == [None, ""]


# processes of their own


def test_exit_codes_of_the_real_command(here, spawn, write_lines):
    """0, 1, 2, 3 and 4 as a shell sees them, messages on standard error."""
    runs = write_lines([{"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}])
    common = ["grade", runs, "-o", "out", "--quiet", "--set", "reports=[]", "--set"]
    assert spawn(*common, "gate={op: gte, value: 1}") == type(spawn("--version"))(0, "✓ PASSED\n", "")
    failed = spawn(*common, "gate={op: gt, value: 1}")
    assert (failed.code, failed.out, failed.err) == (1, "✗ FAILED\n", "")
    for code, arguments in [
        (2, ["grade", runs, "-o", runs]),
        (2, ["run", "gone.yaml"]),
        (2, ["nonsense"]),
        (3, ["grade", "gone.jsonl"]),
        (3, ["report", "gone"]),
    ]:
        said = spawn(*arguments)
        assert said.code == code, said
        assert said.out == ""
        assert said.err
        assert "Traceback" not in said.err


def test_a_terminal_that_cannot_show_a_mark_is_no_crash(here, spawn, write_lines):
    """Marks and odd file names are escaped where they cannot be written."""
    runs = write_lines([{"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}], "läufe.jsonl")
    options = ["-o", "out", "--set", "reports=[]", "--set", "gate={op: gte, value: 1}"]
    said = spawn("grade", runs, *options, PYTHONIOENCODING="latin-1")
    assert (said.code, said.err) == (0, "")
    assert "\\u2713 PASSED" in said.out
    odd = os.fsdecode(b"n\xff.jsonl")
    missing = spawn("grade", odd, PYTHONUTF8="1")
    assert (missing.code, missing.err) == (3, "error: n\\udcff.jsonl: no such file or directory\n")
    runs.rename(here / odd)
    found = spawn("grade", odd, *options, PYTHONUTF8="1")
    assert (found.code, found.err) == (0, "")


def test_a_reader_that_closes_the_pipe_is_no_traceback(here, spawn):
    """`gradestack schema suite | head -1`."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "gradestack.cli", "schema", "suite"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


def test_ctrl_c_keeps_partial_results(here, spawn, write_lines):
    """A real signal in the middle of a real run."""
    import signal
    import time

    runs = write_lines(
        [json.dumps({"id": str(n), "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}) for n in range(100_000)]
    )
    command = [sys.executable, "-m", "gradestack.cli", "grade", str(runs), "-o", "out", "--set", "reports=[]"]
    command += ["--engine", "serial"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size for path in here.glob(".out.unfinished/parts-*/*.rows.jsonl")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.decode() == "interrupted: partial results were kept\n"
    report = gradestack.load_report(here / "out")
    count = sum(1 for _ in report.rows())
    assert 0 < count < 100_000
    assert report.metrics["total"] == count
    assert "incomplete" in report.summary
    assert not list(here.glob(".out.*"))
