"""Report directories that somebody else wrote, or changed.

One clear error with exit code 3, or a page; never a bug.
"""

import contextlib
import json
import shutil

import pytest

import gradestack
from gradestack import DataError, load_report
from tests.core.outcomes import data, read_json, some_of, write_records

CASES = [
    (name, change) for name, many in data(__file__, "odd_runs.yaml").items() for change in many
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Grade the same samples into `good` and `bad`, and return the folder of both."""
    folder = tmp_path_factory.mktemp("runs")
    call = {"name": "f", "arguments": {}}
    samples = []
    for task in range(4):
        for run in range(2):
            predicted = [call] * ((task + run) % 2)
            samples.append(
                {
                    "id": str(task),
                    "run": run,
                    "expected": [call],
                    "predicted": predicted,
                    "input": "do",
                }
            )
    path = folder / "r.jsonl"
    write_records(path, samples)
    for name in ("good", "bad"):
        output = folder / name
        gradestack.grade(samples, graders={"g": "tool_calls"}, output=output)
    return folder


@pytest.mark.parametrize(
    ("name", "change"), some_of(CASES, 4), ids=lambda changed_value: json.dumps(changed_value)[:60]
)
def test_an_odd_run_is_shown_or_refused(sound, tmp_path, command, monkeypatch, name, change):
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if name == "results":
        bad_folder = tmp_path / "bad"
        path = bad_folder / "results.jsonl"
        lines = path.read_text().splitlines()
        first, *rest = map(json.loads, lines)
        write_records(path, (first | change, *rest))
    else:
        path = tmp_path / "bad" / f"{name}.json"
        content = read_json(path)
        changed = {
            key: content[key] | changed_value if key == "metrics" else changed_value
            for key, changed_value in change.items()
        }
        text = json.dumps(content | changed)
        path.write_text(text)
    gate = "gate={kind: baseline, metric_key: g, baseline: bad, max_flips: 5}"
    for arguments in (
        ("compare", "bad", "good"),
        ("compare", "good", "bad", "-o", "compared"),
        ("report", "bad", "-o", "pages"),
        ("show", "bad", "0"),
        ("index", "."),
        (
            "grade",
            "r.jsonl",
            "--set",
            "graders={g: tool_calls}",
            "-o",
            "gated",
            "--set",
            gate,
            "--set",
            "reports=[]",
        ),
    ):
        result = command(*arguments)
        assert result.code in (0, 3), (arguments, result)
        assert "bug" not in result.err, arguments
        assert result.code == 0 or result.err.startswith("error: "), arguments
        assert name != "results" or result.code == 0 or "bad/results.jsonl:1: " in result.err, (
            result
        )
    with contextlib.suppress(DataError):
        report = load_report("bad")
        table = report.table("samples")
        assert len(table) == 8
        grades = report.grades("g")
        assert len(grades) == 8


def test_what_is_wrong_is_named_with_its_place(sound, tmp_path):
    bad_folder = sound / "bad"
    shutil.copytree(bad_folder, tmp_path / "bad")
    path = tmp_path / "bad" / "header.json"
    document = read_json(path)
    text = json.dumps(document | {"components": None})
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_report(tmp_path / "bad")
    message = (
        "not the header of a gradestack run: Expected `array`, got `null` - at `$.components`; "
        "grade the files again"
    )
    expected_text = f"{path}: {message}"
    assert str(caught.value) == expected_text
