"""A run of which every grade failed: exit code 3, and everything written as always."""

import pytest

import gradestack

RAISE, SKIP = {"recorded": {"do": "raise"}}, {"recorded": {"do": "skip"}}


@pytest.fixture
def failing(here, write_lines, record):
    """The working directory, with runs that all fail but for one the grader does not apply to."""
    write_lines([record("z", **SKIP), record("a", **RAISE), record("b", error="timed out"), record("c", **RAISE)])
    return here


LINE = "error: all 3 grades failed, so nothing was graded; the first: runs.jsonl:2, grader quality: ZeroDivisionError: "


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
@pytest.mark.parametrize("gate", ["null", "{op: gte, value: 0.5}", "{op: gte, value: 0.5, on_no_data: pass}"])
def test_exit_3_goes_before_1(command, failing, gate, quiet):
    got = command("run", "suite.yaml", "-o", "out", "--set", f"gate={gate}", *quiet)
    assert got.code == 3
    assert got.err.splitlines()[-1].startswith(LINE)
    assert sum("error:" in text for text in got.err.splitlines()) == 1
    assert "PASSED\n" not in got.out.replace("): PASSED", "")
    assert ("✗ FAILED" in got.out) is (gate != "null")
    report = gradestack.load_report("out")
    assert (report.exit_code, report.states["quality"]["failed"]) == (3, 3)
    assert len(list(report.rows())) == 4


@pytest.mark.parametrize(("gate", "code"), [("null", 0), ("{op: gte, value: 0.5}", 1)])
def test_it_can_be_switched_off(command, failing, gate, code):
    for options in (["--allow-all-failed"], ["--set", "allow_all_failed=true"]):
        got = command("run", "suite.yaml", "-o", "out", "-q", "--set", f"gate={gate}", *options)
        assert (got.code, got.err) == (code, "")
        assert gradestack.load_report("out").all_failed is None
    assert command("grade", "runs.jsonl", "--grader", "toy", "--allow-all-failed", "-o", "out", "-q").code == 0


@pytest.mark.parametrize("records", [[RAISE, {"recorded": {"score": 0.0}}], [SKIP]])
def test_one_grade_is_enough(command, here, write_lines, record, records):
    """A score, however low; and where the grader applies to nothing, nothing failed."""
    write_lines([record(str(number), **fields) for number, fields in enumerate(records)])
    assert command("grade", "runs.jsonl", "--grader", "toy", "-o", "out", "-q").code == 0


def test_every_grader_must_have_failed(run_lines, record):
    graders = {"quality": "toy", "said": {"kind": "exact_match"}}
    records = [record("a", expected="x", **RAISE), record("b", expected="x", **RAISE)]
    report = run_lines(records, graders=graders)
    assert (report.states["quality"]["failed"], report.states["said"]["graded"]) == (2, 2)
    assert (report.all_failed, report.exit_code) == (None, 0)


def test_upstream_has_no_such_rule(run_lines, record):
    report = run_lines([record("a", **RAISE)], profile="upstream", gate={"op": "lte", "value": 1})
    assert (report.all_failed, report.exit_code) == (None, 0)


@pytest.mark.parametrize("rows", ["full", "slim", "none"])
def test_the_reason_is_known_however_little_is_kept(run_lines, record, rows):
    report = run_lines([record("a", **RAISE)], rows=rows)
    assert report.all_failed.startswith("the only grade failed, so nothing was graded; the first: ")
    assert "grader quality: ZeroDivisionError: cannot grade" in report.all_failed


def test_a_long_reason_is_one_line(run_lines, record):
    report = run_lines([record("a", error="no\nanswer\n" * 200)])
    assert report.all_failed.startswith(
        "the only grade failed, so nothing was graded; the first: runs.jsonl:1, grader "
    )
    assert "no answer no answer" in report.all_failed
    assert ("\n" in report.all_failed, len(report.all_failed) < 500) == (False, True)


def test_in_python_nothing_is_raised(registry, toys):
    with gradestack.grade([{"id": "a", "recorded": {"do": "raise"}}], {"q": toys.Toy()}, registry=registry) as report:
        assert report.exit_code == 3
        assert "grader q: ZeroDivisionError: cannot grade" in report.all_failed


def test_pages_say_so(command, failing):
    suite = ["--set", "gate={op: lte, value: 0.5, on_no_data: pass}", "--set", "reports=[html, markdown]"]
    assert command("run", "suite.yaml", "-o", "out", *suite).code == 3
    for name in ("report.html", "report.md"):
        text = (failing / "out" / name).read_text(encoding="utf-8")
        assert "all 3 grades failed" in text
    assert "# airline: ✗ FAILED" in text
