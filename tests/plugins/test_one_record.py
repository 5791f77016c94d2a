"""One odd record among good ones, of every reader that was met with it.

The run goes on, and the others are graded.
"""

import json
from pathlib import Path

import pytest

import gradestack
from gradestack import BadRecord, Input, Inputs, RecordReader, Sample
from gradestack.cli.commands import main
from tests.core.outcomes import data

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTION, ANSWER = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
PREDICTED = {"predicted": "x", "expected": "x"}
RECORDS = json.loads(json.dumps(data(__file__, "one_record.yaml")).replace('"HUGE"', "9" * 400))


def code_of(*options):
    try:
        main(list(options))
    except SystemExit as ended:
        return ended.code
    return 0


def written(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("name", RECORDS)
def test_a_number_beyond_floats_or_a_value_of_another_type_ends_no_run(tmp_path, monkeypatch, name):
    """Both records are graded, the figures and pages of the run are written, and it can be shown
    again.
    """
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.jsonl"
    written(path, *RECORDS[name])
    code = code_of("grade", "log.jsonl", "--output", "out", "--quiet", "--allow-all-failed")
    assert code == 0
    results_path = tmp_path / "out/results.jsonl"
    text = results_path.read_text()
    lines = text.splitlines()
    line_count = len(lines)
    assert line_count == 2
    assert code_of("report", "out") == 0
    usage = "graders={usage: {kind: usage}}"
    assert (
        code_of(
            "grade",
            "log.jsonl",
            "--output",
            "usage",
            "--quiet",
            "--allow-all-failed",
            "--set",
            usage,
        )
        == 0
    )
    summary_path = tmp_path / "usage/summary.json"
    summary = json.loads(summary_path.read_text())
    states = summary["metrics"]["states"]
    failed = states["usage"]["failed"]
    assert failed == 0


@pytest.mark.parametrize("path", ["$..id", "$.log..id", "$..*"])
def test_a_record_too_deep_for_a_path_is_a_bad_record(tmp_path, path):
    """Counted, with its place; the record behind it is read."""
    pytest.importorskip("jsonpath")
    deep = 1
    for _ in range(400):
        deep = {"a": deep}
    talk = [QUESTION, ANSWER]
    first, second = (
        {"task": "a", "log": deep, "messages": talk},
        {"task": "b", "log": {"id": 1}, "messages": talk},
    )
    log_path = tmp_path / "log.jsonl"
    log = written(log_path, first, second)
    field = "facets.everything" if path == "$..*" else "label"  # which holds one value
    columns = {"id": "task", "messages": "messages", field: path}
    output = tmp_path / "out"
    report = gradestack.grade_files(log, reader="records", columns=columns, output=output)
    rows = report.rows()
    ids = [row["sample"]["id"] for row in rows]
    assert ids == ["b"]
    bad_records = report.summary["bad_records"]
    (bad,) = bad_records["listed"]
    assert bad["file"] == "log.jsonl"
    assert bad["line"] == 1
    assert bad["reason"] == "nested too deeply"


class Careless(RecordReader):
    """A reader that trusts every record."""

    keys = frozenset({"question", "answer"})

    def sample_of(self, record, source):
        question = record["question"].strip()
        text = record["answer"]["text"]
        return Sample(id=question, text=text, source=source)


def test_whatever_a_reader_raises_of_one_record_makes_a_bad_record(tmp_path):
    """With the reader's name, what it raised, and the place of the record; the others are read."""
    records = [
        {"question": "q", "answer": reply} for reply in ({"text": "x"}, 1, {}, {"text": "y"})
    ]
    path = tmp_path / "log.jsonl"
    log = written(path, *records, {"question": 0.1, "answer": {}})
    reader = Careless()
    inputs = Inputs(data=(Input(path=log, name="log", shown="log.jsonl"),))
    shards = reader.plan(inputs, None)
    read_records = [record for shard in shards for record in reader.read(shard, None)]
    assert [type(read_record) for read_record in read_records] == [
        Sample,
        BadRecord,
        BadRecord,
        Sample,
        BadRecord,
    ]
    reasons = []
    for read_record in read_records:
        if isinstance(read_record, BadRecord):
            reasons.append(f"{read_record.source}: {read_record.reason}")
    assert (
        reasons[0]
        == "log.jsonl:2: reader Careless raised TypeError: 'int' object is not subscriptable"
    )
    assert reasons[1] == "log.jsonl:3: reader Careless raised KeyError: 'text'"
    assert reasons[2].startswith("log.jsonl:5: reader Careless raised AttributeError: ")


@pytest.mark.parametrize("option", ["agent_cards", "config", "verdicts"])
def test_half_of_a_surrogate_pair_is_no_path(tmp_path, monkeypatch, capsys, option):
    """Said with the option, exit code 2."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.jsonl"
    written(path, {"id": "a", **PREDICTED})
    options = f'{{kind: orchestrationbench, {option}: "\\ud800"}}'
    reader = f"target: {{paths: [log.jsonl]}}\nreader: {options}\n"
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(f"name: odd\n{reader}graders: {{m: {{kind: exact_match}}}}\n")
    code = code_of("run", "suite.yaml")
    assert code == 2
    expected_text = f"reader.{option}"
    assert expected_text in (error_output := capsys.readouterr().err)
    assert "is no path: it holds half of a surrogate pair" in error_output
