"""Exit codes of runs, of signals and processes."""

import json
import re
import socket

import pytest
import yaml

import gradestack
from gradestack.cli.commands import main
from tests.core.outcomes import clean, data, read_json, write_records

DATA = data(__file__, "exit_codes.yaml")


@pytest.mark.parametrize(
    ("output", "words"),
    [*DATA["places_that_cannot_be_used_are_exit_2"], ("x" * 300, "File name too long")],
)
def test_places_that_cannot_be_used_are_exit_2(command, here, output, words):
    """Said before any work is done: the suite is not even read."""
    (here / "theirs").mkdir()
    (here / "theirs/data").touch()
    dangling_folder = here / "dangling"
    dangling_folder.symlink_to("nowhere")
    before = sorted(here.iterdir())
    clean(command("run", "no-such-suite.yaml", "-o", output), 2, words)
    match = rf"{re.escape(words)}|which this run reads"
    with pytest.raises(gradestack.ConfigError, match=match):
        gradestack.run("suite.yaml", output=output)
    paths = sorted(here.iterdir())
    assert paths == before


def test_an_interruption_before_the_first_sample_is_exit_130(command, here, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("gradestack.grading.loop.shards_of", stop)
    result = command("run", "suite.yaml", "-o", "out")
    assert result.code == 130
    assert result.err.strip() == "interrupted"
    out_folder = here / "out"
    assert not out_folder.exists()
    paths = [path for path in here.iterdir() if path.name.startswith(".")]
    assert not paths


def test_surprises_are_told_without_a_traceback(command, here, monkeypatch):
    def fail(error):
        def failing(*_, **__):
            raise error

        monkeypatch.setattr("gradestack.runner.run_suite", failing)

    fail(RuntimeError("strange\x1b"))
    clean(
        command("run", "suite.yaml", "-o", "out"),
        4,
        "unexpected RuntimeError: strange\\x1b",
        "run again with --debug",
    )
    fail(OSError(28, "No space left on device", "/dev/full"))
    clean(command("run", "suite.yaml", "-o", "out"), 3, "/dev/full: No space left on device")


def test_a_long_reason_is_one_line(run_lines, record):
    error = "no\nanswer\n" * 200
    report = run_lines([record("a", error=error)])
    assert report.all_failed.startswith(
        "the only grade failed, so nothing was graded; the first: runs.jsonl:1, grader "
    )
    assert "no answer no answer" in report.all_failed
    assert "\n" not in report.all_failed
    all_failed_count = len(report.all_failed)
    assert all_failed_count < 500


def test_in_python_nothing_is_raised(registry, toys):
    toy = toys.Toy()
    with gradestack.grade(
        [{"id": "a", "recorded": {"do": "raise"}}], {"q": toy}, registry=registry
    ) as report:
        assert report.exit_code == 3
        assert "grader q: ZeroDivisionError: cannot grade" in report.all_failed


TASKS = 24


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that grades a file of right and wrong answers and returns exit code, output
    and gate.
    """
    monkeypatch.chdir(tmp_path)

    def call(right, out, gate=None, suite="suite", **fields):
        lines = []
        for task in range(TASKS):
            predicted = "x" if right(task) else "y"
            lines.append({"id": f"t{task}", "expected": "x", "predicted": predicted} | fields)
        path = tmp_path / "runs.jsonl"
        write_records(path, lines)
        content = {
            "name": suite,
            "target": {"paths": ["runs.jsonl"]},
            "graders": {"exact": "exact_match"},
            "reports": [],
            **({"gate": gate} if gate else {}),
        }
        suite_path = tmp_path / "suite.yaml"
        suite_path.write_text(yaml.safe_dump(content))
        capsys.readouterr()
        try:
            main(["run", "suite.yaml", "-o", out])
            code = 0
        except SystemExit as done:
            code = done.code
        printed = capsys.readouterr()
        summary_file = tmp_path / out / "summary.json"
        gates = None
        if code in (0, 1):
            document = read_json(summary_file)
            gates = document["gates"]
        return code or 0, printed.out + printed.err, gates and gates[0]

    return call


def two_in_three(task):
    return task % 3 > 0


GATE = {"metric_key": "exact", "baseline": "before", "not_worse_than": 0.15}


@pytest.mark.parametrize(
    ("right", "code", "outcome", "word"),
    [
        (two_in_three, 0, "passed", "PASSED"),
        (lambda task: task % 3 > 1, 1, "failed", "FAILED"),
        (lambda task: two_in_three(task) != (task in (0, 1, 2, 4, 7)), 0, "undecided", "UNDECIDED"),
        (
            lambda task: two_in_three(task) and task not in (1, 2, 4, 5, 7, 8),
            1,
            "undecided",
            "UNDECIDED",
        ),
    ],
    ids=["passed", "failed", "within the margin", "beyond it"],
)
def test_a_baseline_gate_in_each_of_its_outcomes(run, right, code, outcome, word):
    """By the one-sided bounds of the paired difference."""
    assert run(two_in_three, "before")[0] == 0
    exit_code, printed, gate = run(right, "after", GATE)
    assert exit_code == code
    assert gate["outcome"] == outcome
    assert gate["tasks"] == TASKS
    expected_text = (
        f"Gate (exact not worse than before by 0.15): {word} (actual: {gate['actual']:+.2f}, "
    )
    assert expected_text in printed
    low, high = gate["bounds"]
    assert (low > -0.15, high < -0.15) == (outcome == "passed", outcome == "failed")
    assert ("tasks would be needed" in printed) == (outcome == "undecided")
    assert run(right, "strict", GATE | {"on_undecided": "fail"})[0] == (outcome != "passed")


@pytest.mark.parametrize(
    "what",
    [
        {"metric": "pass_rate"},
        {"metric": "accuracy", "metric_key": "exact"},
        {"figure": "exact.mean"},
    ],
    ids=["outcome", "grader", "figure"],
)
def test_a_baseline_gate_on_any_figure(run, what):
    """A percentage is compared in points, of the outcome grader where none is named.

    Other figures as they are.
    """
    scale = 100 if "metric" in what else 1
    run(two_in_three, "before")
    not_worse_than = 0.15 * scale
    gate = {"baseline": "before", **what, "not_worse_than": not_worse_than}
    for right, code in (
        (lambda task: task % 3 > 1, 1),
        (lambda task: two_in_three(task) and task != 1, 0),
    ):
        exit_code, _, verdict = run(right, "after", gate)
        plain = run(right, "plain", GATE)[2]
        known = ("outcome", "flips", "tasks_needed", "passed")
        assert exit_code == code
        expected = [plain[name] for name in known]
        assert [verdict[name] for name in known] == expected
        assert verdict["bounds"] == pytest.approx(plain["bounds"])
        actual = verdict["actual"]
        assert actual == pytest.approx(scale * plain["actual"])
    if "metric" in what:
        assert (
            '0.05 is a percentage here: 0.05% of the runs; write "5%" or "0.05%"'
            in run(two_in_three, "low", gate | {"not_worse_than": 0.05})[1]
        )


def test_a_baseline_gate_says_how_many_tasks_would_do(run):
    """Never fewer than there are.

    Where the margin alone asks for no more, those that show how near it the loss is.
    """
    run(two_in_three, "before")
    for margin in (0, 0.2, 0.9):
        _, _, gate = run(
            lambda task: two_in_three(task) != (task in (0, 1, 2, 4, 7)),
            "a",
            GATE | {"not_worse_than": margin},
        )
        needed = gate["tasks_needed"]
        assert (needed is None) == (gate["outcome"] == "passed")
        if needed is not None:
            assert needed > TASKS


def test_an_improvement_is_required_and_flips_are_limited(run):
    """Nothing better is undecided; a run that broke too many is failed whatever the mean says."""
    run(two_in_three, "before")
    better = GATE | {"require": "improvement", "not_worse_than": None}
    outcome = run(lambda task: True, "a", better)[2]["outcome"]
    assert outcome == "passed"
    assert run(two_in_three, "b", better | {"on_undecided": "warn"})[0] == 0
    gate = {"metric_key": "exact", "baseline": "before", "max_flips": 1}
    code, printed, gate_row = run(lambda task: task not in (1, 2), "c", gate)
    assert code == 1
    assert gate_row["flips"] == {"fixed": 8, "broken": 2}
    assert "Gate (exact runs broken since before <= 1): FAILED" in printed


def test_the_latest_is_the_newest_complete_run_of_the_suite_beside_this_one(run, tmp_path):
    """None yet passes with a warning; runs of other suites are none.

    Its digest is in the header.
    """
    gate = GATE | {"baseline": "latest"}
    code, printed, _ = run(two_in_three, "first", gate)
    assert code == 0
    assert (
        "Warning: gate exact not worse than latest by 0.15: no earlier complete run of "
        "the suite 'suite' whose gates" in printed
    )
    run(lambda task: True, "other", suite="other")
    actual = run(two_in_three, "second", gate)[2]["actual"]
    assert actual == 0.0
    path = tmp_path / "second/header.json"
    header = read_json(path)
    paths = [entry["path"] for entry in header["baselines"]]
    first_folder = tmp_path / "first"
    assert paths == [str(first_folder)]
    first_baseline = header["baselines"][0]
    assert len(first_baseline["sha256"]) == 64


def test_a_run_that_equals_its_baseline_passes_with_any_margin(run):
    """Without a difference of any task there is nothing to be undecided of.

    An improvement it is not.
    """
    run(two_in_three, "before")
    outcome = run(two_in_three, "a", GATE | {"not_worse_than": 0})[2]["outcome"]
    assert outcome == "passed"
    assert run(two_in_three, "b", GATE | {"require": "improvement"})[0] == 1


def test_a_run_that_failed_is_not_the_latest_baseline(run):
    """A regression fails as often as it is run; latest_any compares with what ran last."""
    latest = GATE | {"baseline": "latest"}
    assert run(lambda task: True, "first", latest)[0] == 0
    for output in ("second", "third"):
        assert run(two_in_three, output, latest)[0] == 1
    assert run(two_in_three, "fourth", GATE | {"baseline": "latest_any"})[0] == 0


@pytest.mark.parametrize("break_it", ["gone", "incomplete", "rows", "version", "expected"])
def test_a_baseline_that_cannot_be_compared_with_ends_the_run(run, tmp_path, break_it):
    run(two_in_three, "before", **({"expected": "z"} if break_it == "expected" else {}))
    before = tmp_path / "before"
    if break_it == "gone":
        moved_folder = tmp_path / "moved"
        before.rename(moved_folder)
    elif break_it in ("incomplete", "rows"):
        name, more = (
            ("summary", {"incomplete": "it was interrupted"})
            if break_it == "incomplete"
            else ("header", {"rows": False})
        )
        path = before / f"{name}.json"
        document = read_json(path)
        text = json.dumps(document | more)
        path.write_text(text)
    elif break_it == "version":
        path = before / "header.json"
        path.write_text(path.read_text().replace('"version": "', '"version": "0'))
    code, printed, _ = run(two_in_three, "after", GATE)
    assert code == 3
    assert "baseline" in printed
    assert "Traceback" not in printed
    after_folder = tmp_path / "after"
    assert not after_folder.exists()


@pytest.fixture
def stranger():
    """A port of this machine that waits for connections, and the address of the scheduler it could
    be.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server, f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def suite(here, stranger):
    far_path = here / "far.yaml"
    far_path.write_text(
        "target: {paths: [runs.jsonl]}\ngraders: {q: toy}\nreports: []\n"
        f"engine:\n  kind: dask\n  patience: 0.2\n  address: {stranger[1]}\n"
    )
    return "far.yaml"


REFUSED = (
    "error: far.yaml: 1 problem in the configuration\n"
    "  - far.yaml:7: engine.address: what is named here can run code on this machine; "
    "name it on the command line, --set engine.address=..., or pass --allow-code if you trust "
    "this suite\n"
)


@pytest.mark.parametrize(
    "arguments",
    [("validate",), ("run",), ("run", "--engine", "dask"), ("run", "--set", "engine.patience=0.1")],
    ids=" ".join,
)
def test_an_address_of_a_suite_is_refused(command, suite, stranger, arguments):
    result = command(arguments[0], suite, *arguments[1:])
    assert result.code == 2
    assert result.out == ""
    assert result.err == REFUSED
    with pytest.raises(BlockingIOError):
        stranger[0].accept()


@pytest.mark.parametrize("suite", DATA["an_address_of_a_mapping_is_refused"])
def test_an_address_of_a_mapping_is_refused(here, registry, suite):
    mapping = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": "toy"}, **suite}
    with pytest.raises(
        gradestack.ConfigError, match=r"engine\.address: what is named here can run code on this"
    ):
        gradestack.run(mapping, output="out", registry=registry)
    out_folder = here / "out"
    assert not out_folder.exists()


NOBODY = "tcp://127.0.0.1:9"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "far.yaml", "--set", f"engine.address={NOBODY}"),
        ("run", "far.yaml", "--set", f"engine={{kind: dask, address: '{NOBODY}'}}"),
        ("run", "near.yaml", "--allow-code"),
        ("grade", "runs.jsonl", "--engine", "dask", "--set", f"engine.address={NOBODY}"),
    ],
    ids=["option", "engine", "allowed", "grade"],
)
def test_an_address_of_the_command_line_is_connected_to(command, suite, stranger, here, arguments):
    near_path = here / "near.yaml"
    text = (here / suite).read_text()
    near_path.write_text(text.replace(stranger[1], NOBODY))
    result = command(*arguments, "--set", "engine.patience=0.2")
    assert result.code == 2
    assert f"error: engine: no dask scheduler answers at {NOBODY}" in result.err


@pytest.mark.slow
def test_an_address_in_a_run_directory_is_not_connected_to(command, suite, here, stranger):
    """Graded again, reported or compared, a run's header names an engine for people to read."""
    for out in ("out", "twin"):
        assert command("run", suite, "--engine", "serial", "-o", out).code == 0
    path = here / "out/header.json"
    header = read_json(path)
    components = header["components"]
    (engine,) = (component for component in components if component["kind"] == "engine")
    options = {"address": stranger[1]}
    engine |= {"name": "dask", "options": options}
    header_path = here / "out/header.json"
    text = json.dumps(header)
    header_path.write_text(text)
    for arguments in (
        ("grade", "out", "-o", "again"),
        ("run", suite, "--engine", "serial", "--cached", "out", "-o", "cached"),
        ("report", "out"),
        ("compare", "out", "twin"),
        ("show", "out", "a"),
        ("index", "."),
    ):
        assert command(*arguments).code == 0, arguments
    with pytest.raises(BlockingIOError):
        stranger[0].accept()
