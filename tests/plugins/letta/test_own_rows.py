"""gradestack's own report directories are read back without loss of what their rows hold."""

import json

import msgspec
import pytest

import gradestack
from gradestack import (
    DataError,
    Expectation,
    Sample,
    ToolCall,
    discover,
    replace,
)
from gradestack.suites.recognition import recognise
from tests.core.outcomes import data

CALL = ToolCall(name="f", arguments={"x": 1}, id="1", raw_arguments='{"x":  1}')
SAMPLES = msgspec.convert(data(__file__, "own_rows.yaml")["samples"], list[Sample])


def written(samples, out):
    graders = {"calls": "tau_partial", "text": "exact_match"}
    gradestack.grade(samples, graders, output=out)
    return out


def shared(sample):
    bare = replace(sample, source=None, native=None, recorded={})
    calls = bare.calls and tuple(replace(call, requestor="assistant") for call in bare.calls)
    return replace(bare, calls=calls)


def test_samples_come_back(letta, tmp_path):
    out_folder = tmp_path / "out"
    out = written(SAMPLES, out_folder)
    registry = discover(limit="")
    assert recognise([out], registry, None).reader == "letta"
    samples = letta.read(out)
    for mine, theirs in zip(samples, SAMPLES, strict=True):
        assert shared(mine) == shared(theirs), theirs.id
    reward = samples[0].recorded["reward"]
    assert reward == 0.5
    grades = set(samples[0].recorded["grades"])
    assert grades == {"calls", "text"}


def test_recorded_grades_of_a_run_come_back(tmp_path):
    out_folder = tmp_path / "out"
    out = written(SAMPLES, out_folder)
    paths = [str(out)]
    suite = {
        "graders": {"calls": {"kind": "recorded", "metric": "calls"}},
        "target": {"paths": paths},
    }
    output = tmp_path / "again"
    report = gradestack.run({**suite, "reports": []}, output=output)
    before = []
    results_path = out / "results.jsonl"
    text = results_path.read_text(encoding="utf-8")
    for line in text.splitlines():
        document = json.loads(line)
        before.append(document)
    rows = report.rows()
    for old, new in zip(before, rows, strict=True):
        calls = old["grades"]["calls"]
        assert new["grade"] == calls, old["sample"]["id"]


def test_a_run_directory_with_several_runs_is_read_once(letta, tmp_path):
    """results.jsonl holds all runs; run_N beside it is not read again, a run_N given alone is."""
    (tmp_path / "run_1").mkdir()
    samples = []
    for run in (0, 1):
        samples.append(Sample(id="a", run=run, text="x"))
    out_folder = tmp_path / "out"
    out = written(samples, out_folder)
    for number in (1, 2):
        results_path = out / f"run_{number}" / "results.jsonl"
        rows = letta.rows(out)
        row = rows[number - 1]
        letta.write(results_path, [row])
    runs = [sample.run for sample in letta.read(out)]
    assert runs == [0, 1]
    run_2_folder = out / "run_2"
    assert [sample.run for sample in letta.read(run_2_folder)] == [1]


@pytest.mark.parametrize("changes", data(__file__, "cases.yaml")["odd_rows"])
def test_rows_that_were_changed_are_bad_records(letta, tmp_path, changes):
    samples = SAMPLES[:1]
    out_folder = tmp_path / "out"
    (row,) = letta.rows(written(samples, out_folder))
    results_path = tmp_path / "results.jsonl"
    (bad,) = letta.read(letta.write(results_path, [row | changes]))
    assert bad.reason.startswith("the row is not as gradestack wrote it: ")


def test_a_submission_is_no_answer(tmp_path):
    """The first grader's submission is not handed to others when rows are graded again."""
    suite = {
        "name": "s",
        "graders": {
            "asked": {
                "kind": "contains",
                "extractor": "tool_arguments",
                "extractor_config": {"tool_name": "f"},
            },
            "ascii": {"kind": "ascii_printable_only"},
        },
        "reports": [],
    }
    expectation = Expectation(text="{")
    sample = Sample(id="silent", expected=expectation)
    expected = Expectation(text="{")
    samples = [
        sample,
        Sample(id="labelled", label="{", expected=expected),
    ]
    output = tmp_path / "rows"
    rows = gradestack.grade(samples, {"calls": "tau_partial"}, output=output)
    paths = [str(rows.path)]
    target = {"paths": paths}
    one_folder = tmp_path / "one"
    one = gradestack.run({**suite, "target": target}, output=one_folder)
    path = str(one.path)
    two_folder = tmp_path / "two"
    two = gradestack.run({**suite, "target": {"paths": [path]}}, output=two_folder)
    for before, after in zip(one.rows(), two.rows(), strict=True):
        assert before["submissions"] == {"asked": "{}", "ascii": ""} == after["submissions"]
        assert before["grades"] == after["grades"]


@pytest.mark.parametrize("change", ["lost", "repeated"])
def test_a_run_that_has_lost_rows_is_not_graded_again(tmp_path, change):
    """Before anything is.

    Its rows alone, or without the summary that counts them, are taken as they are.
    """
    lines = "".join(f'{{"id": "{n}", "expected": "x", "predicted": "x"}}\n' for n in range(3))
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(lines, encoding="utf-8")
    run = tmp_path / "run"
    messages = []
    paths = tmp_path / "runs.jsonl"
    gradestack.grade_files(paths, output=run, overrides=["reports=[]"])
    results_path = run / "results.jsonl"
    text = results_path.read_text(encoding="utf-8")
    rows = text.splitlines(keepends=True)
    changed_rows = rows[:2] if change == "lost" else [*rows, rows[0]]
    (run / "results.jsonl").write_text("".join(changed_rows), encoding="utf-8")
    message = (
        f"{2 if change == 'lost' else 4} rows, but summary.json is of 3 samples: it was "
        "changed; grade the files again"
    )
    with pytest.raises(DataError, match=message):
        gradestack.grade_files(
            run,
            graders=["exact_match"],
            output=tmp_path / "out",
            progress=messages.append,
            overrides=["reports=[]"],
        )
    assert not messages
    (run / "summary.json").unlink()
    left = 2 if change == "lost" else 3  # of repeated ones the last counts
    for source in (run, run / "results.jsonl"):
        output = tmp_path / "out"
        report = gradestack.grade_files(
            source, graders=["exact_match"], output=output, overrides=["reports=[]"]
        )
        total = report.metrics["total"]
        assert total == left
