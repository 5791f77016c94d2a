"""`gradestack show`: one sample of a run in the terminal."""

import json
import re

import pytest

import gradestack
from gradestack_plugins.pages import show as showing
from tests.core.outcomes import data
from tests.core.toy_components import files_of

DATA = data(__file__, "show.yaml")

CALLS = [{"name": "book", "arguments": {"seat": "12A", "day": 1, "bags": 2}}]
MADE = [{"name": "book", "arguments": {"seat": "12C", "day": 1, "extra": True}}, {"name": "look", "arguments": {}}]
TALK = [{"role": "user", "content": "A window, please."}, {"role": "assistant", "content": "Done. " + "x" * 3000}]
IDS = [("task1", 0), ("task1", 1), ("task2.5", 0), ("task2", 5), ("task2", 6)]


def rows(models):
    for model in models:
        for number, (task, run) in enumerate(IDS):
            expected, made = {"calls": CALLS}, {"calls": CALLS if number % 2 else MADE}
            names = {"id": task, "run": run, "model": model}
            yield {**names, "messages": TALK, "expected": expected, "predicted": made}


@pytest.fixture(scope="module")
def runs(tmp_path_factory, registry):
    """A directory with runs of such records: `out`, `two` models, `slim`, `none` (no rows)."""
    place = tmp_path_factory.mktemp("shown")
    for name, models, kept in (
        ("out", "m", "full"),
        ("two", "ab", "full"),
        ("slim", "m", "slim"),
        ("none", "m", "none"),
    ):
        path = place / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows(models)))
        suite = {"name": "s", "target": {"paths": [str(path)]}, "reader": "jsonl", "rows": kept, "reports": []}
        gradestack.run({**suite, "graders": {"partial": "tau_partial"}}, output=place / name, registry=registry)
    return place


@pytest.fixture
def show(runs, monkeypatch, command):
    monkeypatch.chdir(runs)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: command("show", *arguments)


def test_a_sample_is_shown_with_what_differs(show, runs):
    before = files_of(runs)
    said = show("out", "task1.0")
    assert (said.code, said.err) == (0, "")
    assert files_of(runs) == before
    lines = said.out.splitlines()
    assert lines[0] == "task1  trial 0  m  not all calls right  0.600"
    assert lines[1].endswith("out.jsonl, line 1; row 1 of results.jsonl")
    text = " ".join(said.out.split())
    for words in (
        'seat "12A" "12C"',
        "bags 2 missing",
        "extra not expected true",
        "the same: day",
        'wrong_argument /seat: expected "12A", got "12C"',
        "other calls made: 2 look {}",
        "user A window, please.",
        "… 2,006 more characters",
    ):
        assert words in text
    assert max(map(len, lines)) <= 80
    whole = show("out", "task1.0", "--full").out
    assert whole.count("x") >= 3000
    assert "more characters" not in whole


def test_several_trials_are_listed_or_all_shown(show):
    assert show("out", "task1").out.splitlines() == [
        "task1.0  m  not all calls right  0.600",
        "task1.1  m  all calls right      1.000",
        "2 samples; name one (task1.TRIAL), or --all shows them all",
    ]
    every = show("out", "task1", "--all").out
    assert [line.split(";")[1] for line in every.splitlines() if ", line " in line] == [
        " row 1 of results.jsonl",
        " row 2 of results.jsonl",
    ]


def test_a_task_whose_name_looks_like_a_trial_goes_first(show):
    assert "; row 3 of" in show("out", "task2.5").out
    assert "; row 5 of" in show("out", "task2.6").out


def test_models_are_told_apart(show):
    listed = show("two", "task1.0").out.splitlines()
    assert [line.split()[:2] for line in listed[:2]] == [["task1.0", "a"], ["task1.0", "b"]]
    assert listed[2] == "2 samples; name one (--model NAME), or --all shows them all"
    assert show("two", "task1.0", "--model", "b").out.startswith("task1  trial 0  b  ")
    said = show("two", "task1.0", "--model", "c")
    assert (said.code, said.out) == (2, "")
    assert said.err == "error: task 'task1.0' has no sample of model 'c'; there are: a, b\n"


@pytest.mark.parametrize(("task", "message"), DATA["what_is_not_there_is_said_with_what_is"])
def test_what_is_not_there_is_said_with_what_is(show, task, message):
    said = show("out", task)
    assert (said.code, said.out, said.err) == (2, "", f"error: {message}\n")


def test_a_run_without_rows_says_so(show):
    said = show("none", "task1.0")
    assert (said.code, said.out, said.err) == (3, "", "error: none: the run kept no rows (rows: none)\n")
    assert show("nowhere", "task1.0").code == 3


def test_a_slim_run_reads_its_input_again(show, runs):
    assert "A window, please." in show("slim", "task1.0").out
    (runs / "slim.jsonl").rename(runs / "moved.jsonl")
    said = show("slim", "task1.0")
    (runs / "moved.jsonl").rename(runs / "slim.jsonl")
    assert (said.code, said.err) == (0, "")
    assert "is gone" in " ".join(said.out.split())
    assert 'seat      "12A"         "12C"' in said.out


def test_colours_only_where_a_terminal_shows_them(show, monkeypatch):
    quiet = show("out", "task1.0").out
    assert "\x1b" not in quiet
    monkeypatch.setattr(showing, "_coloured", lambda: True)
    loud = show("out", "task1.0").out
    assert "\x1b[1;34m" in loud
    assert re.sub(r"\x1b\[[\d;]*m", "", loud) == quiet


@pytest.mark.parametrize(("columns", "widest"), [("30", 40), ("500", 120)])
def test_lines_fit_the_terminal(show, monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, show("out", "task1.0", "--full").out.splitlines())) == widest


def test_a_trial_whose_name_has_dots_is_picked(tmp_path, registry, command):
    path = tmp_path / "dots.jsonl"
    records = [{"id": "x", "run": run, "expected": [], "predicted": []} for run in ("a.b", "0")]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    suite = {"name": "s", "target": {"paths": [str(path)]}, "reader": "jsonl", "reports": []}
    gradestack.run({**suite, "graders": {"partial": "tau_partial"}}, output=tmp_path / "out", registry=registry)
    shown = command("show", str(tmp_path / "out"), "x.a.b")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("x  trial a.b")
