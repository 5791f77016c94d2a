"""Files as people have them, through the command line and as data frames.

The figure is right within one command.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

import gradestack
from gradestack.cli.commands import main
from gradestack_plugins.readers.chat.results import ERRORS, error_form
from tests.core.outcomes import data, some_of
from tests.plugins.chat_files import reference, written

CASES = data(__file__, "own_data.yaml")
FILES = """
finetune_chat.jsonl conversations.json completions.jsonl batch_output.jsonl answers.csv
tool_runs.csv chats.parquet tool_names.csv nested_records.json log_expected_calls.jsonl
desk_log.jsonl agents_input_list.jsonl agents_new_items.jsonl langchain_messages_to_dict.json
langchain_dumpd.jsonl langgraph_minimal.json sharegpt_functions.jsonl hermes.jsonl glaive.jsonl
proxy_log.jsonl langfuse_observations.jsonl langfuse_traces.csv phoenix_spans.jsonl
promptfoo_results.json deepeval_test_run.json
""".split()  # noqa: SIM905


def ended(*arguments):
    try:
        main([*arguments, "--set", "reports=[]"])
    except SystemExit as done:
        return done.code
    return 0


@pytest.mark.parametrize("name", some_of(CASES, 2))
def test_what_is_recognised(tmp_path, monkeypatch, capfd, name):
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    ((file, content),) = case["file"].items()
    many = (
        "".join(case["behind"].replace("#", str(number)) + "\n" for number in range(1000))
        if "behind" in case
        else ""
    )
    (tmp_path / file).write_text(many + content)
    options = case.get("options", ())
    code = ended("grade", file, *options, "--output", "out")
    output = "".join(capfd.readouterr())
    expected = case.get("exit", 0)
    assert code == expected, output
    texts = [text for text in case["says"] if text not in output]
    assert texts == [], output
    assert [text for text in case.get("never", ()) if text in output] == [], output
    advice = re.search(r"The same as: (.*)", output)
    if advice and code == 0:  # the command that is printed gives the same figures
        assert ended(*shlex.split(advice[1])[1:], "--output", "again") == 0
        first, second = (
            json.loads((tmp_path / run / "summary.json").read_text()) for run in ("out", "again")
        )
        assert first["outcome"] == second["outcome"]


@pytest.mark.parametrize("name", some_of(FILES, 2))
def test_the_figure_of_a_published_file(tmp_path, monkeypatch, capfd, name):
    folder = reference("own_data")
    expected_path = folder / "expected.json"
    wanted = json.loads(expected_path.read_text())[name]
    monkeypatch.chdir(folder)
    out_folder = tmp_path / "out"
    code = ended(*wanted["command"], "--output", str(out_folder))
    output = "".join(capfd.readouterr())
    assert code in wanted["exit"], output
    summary_path = tmp_path / "out/summary.json"
    summary_found = json.loads(summary_path.read_text())
    headline = wanted["headline"] or {"passed": 0, "of": 0}
    outcome = summary_found["outcome"]
    assert outcome["passed"] == headline["passed"]
    passed = outcome["passed"]
    assert passed + outcome["failed"] == headline["of"]
    total = summary_found["metrics"]["total"]
    assert total == wanted["runs"]
    ids = []
    results_path = tmp_path / "out/results.jsonl"
    for row in results_path.read_text().splitlines():
        document = json.loads(row)
        ids.append(document["sample"]["id"])
    assert wanted["ids"] in (None, sorted(ids))
    must_not_say = wanted["must_not_say"]
    texts = [text for text in must_not_say if text in output.lower()]
    assert not texts, output
    should_say = wanted["should_say"]
    assert not [text for text in should_say if text not in output.lower()], output
    name_path = Path(name)
    if name_path.suffix in {".csv", ".parquet"}:
        frames = pytest.importorskip("pandas")
        if name.endswith("csv"):
            frame = frames.read_csv(name)
        else:
            frame = frames.read_parquet(name)
        columns = frame.columns[::-1]
        for ordered_frame in (frame, frame[columns]):
            outcome = gradestack.grade(ordered_frame).summary["outcome"]
            assert outcome["passed"] == headline["passed"]
            expected = headline["of"] - headline["passed"]
            assert outcome["failed"] == expected


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_expectations_that_no_grader_compares(tmp_path, monkeypatch, capfd, engine):
    """Behind the first 1,000 records, in compare and in Python they are said with the option, on
    any engine.
    """
    monkeypatch.chdir(tmp_path)
    plain, due = {"predicted": [{"name": "f", "result": "ok"}]}, {"expected": [{"name": "f"}]}
    rows = []
    for number in range(1100):
        rows.append({"id": f"t{number}", **plain, **(due if number > 1000 else {})})
    log_path = tmp_path / "log.jsonl"
    log_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ended("grade", "log.jsonl", "--output", "out", "--engine", engine) == 0
    output = "".join(capfd.readouterr())
    message = (
        "not used: expected calls: read by no grader of this run, in no figure; to compare: "
        "--grader tool_calls (99 "
    )
    assert f"Warning: {message}" in output
    assert "No expectations in the 1,000 records looked at" in output
    main(["compare", "out", "log.jsonl"])
    expected = "".join(capfd.readouterr())
    assert f"out: {message}" in expected
    frame = gradestack.grade(rows[1000:], graders=["repeats"])
    warnings = frame.summary["warnings"]
    assert [
        warning
        for warning in warnings
        if "in no figure; to compare: --grader tool_calls (99 times" in warning
    ]


def test_scores_that_no_run_has_are_counted(tmp_path):
    """Scores are counted that belong to no trace, to sessions, or repeat a name."""
    row = {
        "traceId": "t",
        "type": "GENERATION",
        "input": [{"role": "user", "content": "Hi"}],
        "output": "Hello",
    }
    scores = [("t", 1), ("t", 2), ("u", 1), (None, 1)]
    named = {"name": "n", "dataType": "NUMERIC", "sessionId": "s"}
    path = written(
        tmp_path, [row, *({**named, "traceId": trace, "value": value} for trace, value in scores)]
    )
    output = tmp_path / "out"
    report = gradestack.grade_files([path], stack="recorded", output=output)
    warnings = report.summary["warnings"]
    assert [warning[21:] for warning in warnings if warning.startswith("scores not recorded")] == [
        "2, of traces without a model call in the data",
        "1, whose trace has another value of the same name",
    ]


def test_every_result_is_an_error_or_not_as_published():
    error_forms_path = reference("own_data") / "error_forms.jsonl"
    text = error_forms_path.read_text()
    lines = text.splitlines()
    rows = map(json.loads, lines)
    ids = []
    for row in rows:
        if bool(error_form(row["result"])) != row["error"]:
            ids.append(row["id"])
    assert ids == []


@pytest.mark.parametrize(("result", "rule"), data(__file__, "error_forms.yaml"))
def test_a_result_is_an_error_by_a_rule(result, rule):
    form = error_form(result)
    assert (form and form.type) == (rule and f"{ERRORS} {rule}")


def test_patterns_of_the_user_go_before_the_table(tmp_path, monkeypatch):
    """Each error names what found it; what is marked by the format stays."""
    monkeypatch.chdir(tmp_path)
    calls = [
        {"name": "f", "result": text} for text in ("Error: a", "error: known", "no rooms", "fine")
    ]
    calls += [{"name": "f", "result": "error: known", "status": "error", "error": "marked"}]
    a_path = tmp_path / "a.jsonl"
    a_path.write_text(json.dumps({"id": "a", "predicted": calls}) + "\n")
    grader = "graders={t: {kind: tool_success, errors: [no rooms], not_errors: [known]}}"
    assert ended("grade", "a.jsonl", "--output", "out", "--set", grader) == 0
    results_path = tmp_path / "out/results.jsonl"
    lines = results_path.read_text().splitlines()
    (row,) = [json.loads(line) for line in lines]
    reasons = row["grade"]["reasons"]
    messages = [reason["message"] for reason in reasons]
    assert messages == [
        "an error by rule text_error: Error: a",
        "an error by the option errors (no rooms): no rooms",
        "marked",
    ]
    broken = "graders={t: {kind: tool_success, errors: ['(']}}"
    assert ended("grade", "a.jsonl", "--output", "bad", "--set", broken) == 2
