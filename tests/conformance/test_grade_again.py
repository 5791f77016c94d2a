"""A run's own rows, graded again, give the run's grades and figures, whatever read them first and
whatever grades.
"""

import json
import os
from pathlib import Path

import msgspec
import pytest

from gradestack import GradeRow, Row
from gradestack.cli.commands import main
from tests.core.outcomes import data, some_of

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [
    EXAMPLES / name
    for name in (
        "airline/results.json",
        "deepfabric/replies.jsonl",
        "quickstart/runs.jsonl",
        "stability/runs.jsonl",
        "letta/recorded",
        "orchestration/results",
        "when2call/judge_decisions.jsonl",
    )
]
DATA = Path(os.environ.get("GRADESTACK_REFERENCE_DATA", "none"))
PUBLISHED = [
    *(
        DATA / "formats" / name
        for name in ("tau2/results.json", "bfcl", "openai/finetune.jsonl", "atif", "adk")
    ),
    *(
        DATA / "formats" / name
        for name in ("anthropic/conversations.jsonl", "otel/genai.jsonl", "inspect/lending.eval")
    ),
    *(
        DATA / name
        for name in (
            "own_data/tool_runs.csv",
            "own_data/desk_log.jsonl",
            "tool_calls/bfcl_cases.jsonl",
        )
    ),
]
LINES = data(__file__, "grade_again.yaml")["lines"]


def _run(*arguments):
    try:
        main([*map(str, arguments), "--engine", "serial", "--allow-all-failed"])
    except SystemExit as done:
        return done.code
    return 0


def _graded_twice(records_file, options, folder):
    """Grade a file and the rows of that run again, and return the folders of both.

    Return None where the options do not fit the file, and it was refused.
    """
    first = folder / "first"
    second = folder / "second"
    suite = folder / "suite.yaml"
    code = _run("grade", records_file, *options, "--output", first)
    summary_path = first / "summary.json"
    if not summary_path.exists():
        assert code in (2, 3)
        return None
    text = (first / "summary.json").read_text()
    document = json.loads(text)
    config = document["config"]
    paths = [str(first)]
    config |= {"target": {"paths": paths}, "reader": {"kind": "letta"}}
    values_by_name = {name: value for name, value in config.items() if name != "dataset"}
    suite.write_text(json.dumps(values_by_name))
    assert _run("run", suite, "--output", second) == code
    return first, second


def _content(run, graders):
    """Return the verdicts of a run's rows and its figures, of some of its graders.

    A stack may add some for rows.
    """
    rows = []
    results_path = run / "results.jsonl"
    text = results_path.read_text()
    for line in text.splitlines():
        document = json.loads(line)
        rows.append(document)
    names = ("predicted", "expected", "status", "error", "facets", "usage", "remarks", "native")
    compared_rows = []
    for row in rows:
        grades_by_key = {key: row["grades"][key] for key in graders}
        compared_rows.append(
            {
                **{name: row.get(name) for name in names},
                **grades_by_key,
            }
        )
    summary_path = run / "summary.json"
    summary = json.loads(summary_path.read_text())
    metrics = summary["metrics"]
    outcome = summary["outcome"]
    keys = Row.__annotations__.keys()
    assert {name for row in rows for name in row} <= keys
    assert {
        name for row in rows for grade in row["grades"].values() for name in grade
    } <= GradeRow.__annotations__.keys()
    msgspec.convert(rows, list[Row])
    if outcome is not None and outcome["grader"] in graders:
        compared_rows += [row["passed"] for row in rows]
    else:
        outcome = None
    figures = []
    for part in ("aggregates", "by_metric", "states"):
        figures.append({key: metrics[part][key] for key in graders})
    headline = [
        figure
        for figure in summary["headline"]["figures"]
        if figure["figure"].partition(".")[0] in graders
    ]
    return compared_rows, figures, outcome, headline


def _check(records_file, options, folder):
    runs = _graded_twice(records_file, options, folder)
    if runs is None:
        return
    summary_path = runs[0] / "summary.json"
    text = summary_path.read_text()
    document = json.loads(text)
    graders = document["metrics"]["states"]
    run = runs[1]
    assert _content(run, graders) == _content(runs[0], graders)


@pytest.mark.parametrize("profile", some_of(["documented", "upstream"], 2))
@pytest.mark.parametrize("stack", some_of([None, "trajectory"], 2))
@pytest.mark.parametrize("records_file", FILES, ids=lambda path: path.parent.name)
def test_rows_graded_again_give_the_run(records_file, stack, profile, tmp_path):
    options = [*(["--stack", stack] if stack else []), "--profile", profile]
    _check(records_file, options, tmp_path)


@pytest.mark.parametrize("stack", ["tool_calls", "trajectory", "peers"])
def test_who_made_a_call_and_what_it_gave_and_the_schemas_are_in_the_row(stack, tmp_path):
    """Results stand in the call where no conversation has them, and schemas where a grader reads
    them.
    """
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    records_file = tmp_path / "runs.jsonl"
    _check(records_file, ["--stack", stack], tmp_path)


@pytest.mark.skipif(not DATA.is_dir(), reason="GRADESTACK_REFERENCE_DATA is not set")
@pytest.mark.proof
@pytest.mark.parametrize("stack", [None, "trajectory"])
@pytest.mark.parametrize(
    "records_file", PUBLISHED, ids=lambda path: path.relative_to(DATA).as_posix()
)
def test_rows_of_published_data_graded_again_give_the_run(records_file, stack, tmp_path):
    options = ["--stack", stack] if stack else []
    _check(records_file, options, tmp_path)
