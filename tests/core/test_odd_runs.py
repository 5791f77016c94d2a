"""Run directories that somebody else wrote, or changed.

One clear error with exit code 3, or a page; never a bug.
"""

import contextlib
import json
import shutil

import pytest

import gradestack
from gradestack import DataError, load_report
from tests.core.outcomes import data, some_of

CASES = [(name, each) for name, many in data(__file__, "odd_runs.yaml").items() for each in many]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    call = {"name": "f", "arguments": {}}
    samples = [
        {
            "id": str(task),
            "run": run,
            "expected": [call],
            "predicted": [call] * ((task + run) % 2),
            "input": "do",
        }
        for task in range(4)
        for run in range(2)
    ]
    (place / "r.jsonl").write_text("".join(json.dumps(each) + "\n" for each in samples))
    for name in ("good", "bad"):
        gradestack.grade(samples, graders={"g": "tool_calls"}, output=place / name)
    return place


@pytest.mark.parametrize(
    ("name", "change"), some_of(CASES, 4), ids=lambda each: json.dumps(each)[:60]
)
def test_an_odd_run_is_shown_or_refused(sound, tmp_path, command, monkeypatch, name, change):
    shutil.copytree(sound, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if name == "results":
        path = tmp_path / "bad" / "results.jsonl"
        first, *rest = map(json.loads, path.read_text().splitlines())
        path.write_text("".join(json.dumps(row) + "\n" for row in (first | change, *rest)))
    else:
        path = tmp_path / "bad" / f"{name}.json"
        found = json.loads(path.read_text())
        changed = {
            key: found[key] | each if key == "metrics" else each for key, each in change.items()
        }
        path.write_text(json.dumps(found | changed))
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
        said = command(*arguments)
        assert said.code in (0, 3), (arguments, said)
        assert "bug" not in said.err, arguments
        assert said.code == 0 or said.err.startswith("error: "), arguments
        assert name != "results" or said.code == 0 or "bad/results.jsonl:1: " in said.err, said
    with contextlib.suppress(DataError):
        report = load_report("bad")
        assert len(report.table("samples")) == 8
        assert len(report.grades("g")) == 8


def test_what_is_wrong_is_named_with_its_place(sound, tmp_path):
    shutil.copytree(sound / "bad", tmp_path / "bad")
    path = tmp_path / "bad" / "header.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"components": None}))
    with pytest.raises(DataError) as caught:
        load_report(tmp_path / "bad")
    said = (
        "not the header of a gradestack run: Expected `array`, got `null` - at `$.components`; "
        "grade the files again"
    )
    assert str(caught.value) == f"{path}: {said}"


def test_components_may_lack_options(sound, tmp_path):
    shutil.copytree(sound / "bad", tmp_path / "bad")
    path = tmp_path / "bad" / "header.json"
    path.write_text(path.read_text().replace('"options"', '"other"'))
    (row,) = (
        gradestack.compare(sound / "good", path.parent, figures=["g.call_figures.f1"])
        .data["figures"]
        .values()
    )
    assert row["difference"] == 0


@pytest.mark.parametrize("key", ["model_name", "run", "sample", "source"])
@pytest.mark.parametrize("value", some_of(["gone", None, 3, {}], 2))
def test_an_odd_row_of_a_slim_run_is_shown_or_refused(
    sound, tmp_path, command, monkeypatch, key, value
):
    """Its conversation is looked for in the input, by what the row says of its place."""
    shutil.copy(sound / "r.jsonl", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert (
        command("grade", "r.jsonl", "--rows", "slim", "-o", "slim", "--set", "reports=[]").code == 0
    )
    path = tmp_path / "slim/results.jsonl"
    first, *rest = map(json.loads, path.read_text().splitlines())
    first = {name: each for name, each in first.items() if name != key} | (
        {} if value == "gone" else {key: value}
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in (first, *rest)))
    if key == "source" and value == "gone":
        header = json.loads((tmp_path / "slim/header.json").read_text())
        (tmp_path / "slim/header.json").write_text(
            json.dumps({key: header[key] for key in header if key != "inputs"})
        )
    for arguments in (("report", "slim", "-o", "pages"), ("show", "slim", "0")):
        said = command(*arguments)
        assert said.code in (0, 3), (arguments, said)
        assert "bug" not in said.err
