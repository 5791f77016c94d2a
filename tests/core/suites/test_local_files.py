"""Python files of the user's own.

Their content, their modules, other processes, and what they raise.
"""

import hashlib
import pickle
import subprocess
import sys

import pytest

import gradestack
from gradestack import ConfigError, load_file
from gradestack.rundir import journal
from gradestack.suites.code import LocalFiles
from tests.core.code_samples import average, graded, grader_text


def test_the_code_of_a_run_is_in_its_header(shapes, registry):
    (shapes / "parts").mkdir()
    init_path = shapes / "parts/__init__.py"
    init_path.write_text("")
    score_path = shapes / "parts/score.py"
    score_path.write_text("SCORE = 0.5\n")
    whole_path = shapes / "whole.py"
    whole_path.write_text(
        "import json\nfrom parts.score import SCORE\ndef f(sample):\n    return SCORE\n"
    )
    report = graded("whole.py:f", registry=registry)
    files = ["parts/__init__.py", "parts/score.py", "whole.py"]
    code = report.header["code"]
    expected = []
    for file in files:
        digest = hashlib.sha256((shapes / file).read_bytes()).hexdigest()
        path = str(shapes / file)
        expected.append(
            {
                "path": path,
                "sha256": digest,
            }
        )
    assert code == expected
    assert graded("toy", registry=registry).header["code"] == []


@pytest.mark.parametrize("changed", ["mine.py", "helper.py"])
def test_a_run_is_not_continued_with_other_code(here, registry, monkeypatch, full_disk, changed):
    helper_path = here / "helper.py"
    helper_path.write_text("SCORE = 0.5\n")
    mine_path = here / "mine.py"
    mine_path.write_text(
        "from gradestack import Grade, Grader\nimport helper\n"
        + grader_text("Mine", "helper.SCORE")
    )
    more_path = here / "more.jsonl"
    runs_path = here / "runs.jsonl"
    more_path.write_bytes(runs_path.read_bytes())
    options = {
        "graders": ["mine.py:Mine"],
        "output": "out",
        "allow_code": True,
        "registry": registry,
    }
    monkeypatch.setattr(
        journal, "SECONDS_BETWEEN_WRITES", -1.0
    )  # a run that short would not be kept
    full_disk(1, lambda: gradestack.grade_files(["runs.jsonl", "more.jsonl"], **options))
    text = (here / changed).read_text()
    (here / changed).write_text(text + "# changed\n")
    match = rf"code {here}/{changed}: changed"
    with pytest.raises(ConfigError, match=match):
        gradestack.grade_files(["runs.jsonl", "more.jsonl"], resume=True, **options)
    (here / changed).write_text(text)
    report = gradestack.grade_files(["runs.jsonl", "more.jsonl"], resume=True, **options)
    assert report.header["resumed"] == 1
    assert average(report, "mine") == 0.5


def test_changed_code_is_loaded_again(tmp_path):
    helper_path = tmp_path / "helper.py"
    helper_path.write_text("A = 1\n")
    (tmp_path / "mine.py").write_text("from helper import A\nB = 1\n")
    first = load_file(tmp_path / "mine.py")
    path = tmp_path / "mine.py"
    assert load_file(path) is first
    (tmp_path / "mine.py").write_text("from helper import A\nB = 22\n")
    mine_path = tmp_path / "mine.py"
    assert load_file(mine_path).A == 1
    file = load_file(tmp_path / "mine.py")
    assert file.B == 22
    (tmp_path / "helper.py").write_text("A = 33\n")
    assert load_file(tmp_path / "mine.py").A == 33
    assert load_file(tmp_path / "mine.py").B == 22


def test_a_file_is_run_as_it_is_written(tmp_path):
    """Its annotations are what they are in a script; one that is interrupted is begun anew."""
    mine_path = tmp_path / "mine.py"
    mine_path.write_text("class Thing:\n    size: int = 3\nraise KeyboardInterrupt\n")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            load_file(tmp_path / "mine.py")
    (tmp_path / "mine.py").write_text("class Thing:\n    size: int = 3\n")
    path = tmp_path / "mine.py"
    file = load_file(path)
    assert file.Thing.__annotations__ == {"size": int}


def test_folders_do_not_share_what_their_files_import(tmp_path):
    """Each file has the module of its own folder, two of one folder the same one, and nobody's path
    is changed.
    """
    path = list(sys.path)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        beside_path = tmp_path / folder / "beside.py"
        beside_path.write_text(f"WHERE = {folder!r}\nclass Thing: pass\n")
        for file in ("one", "two"):
            (tmp_path / folder / f"{file}.py").write_text("import beside\n")
    assert [load_file(tmp_path / folder / "one.py").beside.WHERE for folder in "aba"] == [
        "a",
        "b",
        "a",
    ]
    one, two = (load_file(tmp_path / f"b/{file}.py") for file in ("one", "two"))
    assert one.beside.Thing is two.beside.Thing
    assert sys.path == path


def test_files_are_loaded_before_what_is_of_their_classes(tmp_path):
    """Unpickled in another process, the files a run uses bring their classes.

    Changed ones are refused.
    """
    helper_path = tmp_path / "helper.py"
    helper_path.write_text("class Unit:\n    pass\n")
    (tmp_path / "mine.py").write_text("import helper\nclass Thing:\n    unit = helper.Unit()\n")
    mine_path = tmp_path / "mine.py"
    files = LocalFiles.load([mine_path])
    path = tmp_path / "mine.py"
    file = load_file(path)
    instance = file.Thing()
    instance.unit = instance.unit
    pickled_folder = tmp_path / "pickled"
    text = pickle.dumps([files, instance])
    pickled_folder.write_bytes(text)
    code = "import pickle; print(type(pickle.load(open('pickled', 'rb'))[1].unit).__module__)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "helper\n"
    assert done.stderr == ""
    (tmp_path / "helper.py").write_text("class Unit:\n    pass\n\n")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ConfigError: code of a run is not what it was when the run was begun" in done.stderr


def test_an_error_names_the_line_it_came_from(shapes, registry):
    report = graded("shapes.py:torn", registry=registry)
    rows = report.rows()
    faults = [row["grade"]["fault"] for row in rows]
    assert [(fault["message"], fault["component"]) for fault in faults] == [
        ("nothing in a (shapes.py:28)", "shapes.py:torn 2"),
        ("nothing in b (shapes.py:28)", "shapes.py:torn 2"),
    ]


def test_an_error_without_text_is_its_place(shapes, registry):
    """So that a failed assertion says something.

    Memory and recursion have no place that is always the same.
    """
    odd_path = shapes / "odd.py"
    odd_path.write_text(
        "def checked(sample):\n    assert sample.id == 'x'\n"
        "def deep(sample):\n    return deep(sample)\n"
        "def full(sample):\n    raise MemoryError\n"
    )
    report = graded("odd.py:checked", "odd.py:deep", "odd.py:full", registry=registry)
    rows = iter(report.rows())
    row = next(rows)
    messages = {}
    for key in ("checked", "deep", "full"):
        grade = row["grades"][key]
        messages[key] = grade["fault"]["message"]
    assert messages == {
        "checked": "(odd.py:2)",
        "deep": "nested too deeply",
        "full": "not enough memory",
    }


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_debug_shows_the_first_traceback_of_agrader_text(shapes, spawn, engine):
    """Once per grader, on standard error, whatever the engine; without --debug there is none."""
    more_path = shapes / "more.jsonl"
    runs_path = shapes / "runs.jsonl"
    more_path.write_bytes(runs_path.read_bytes())
    options = [
        "--grader",
        "shapes.py:torn",
        "--allow-code",
        "--engine",
        engine,
        "-q",
        "--set",
        "reports=[]",
    ]
    files = ["runs.jsonl", "more.jsonl"]
    expected = spawn("grade", *files, *options, "-o", "out").err
    assert "Traceback" not in expected
    result = spawn("--debug", "grade", *files, *options, "-o", "out").err
    assert result.count("Traceback") == 1
    assert result.startswith("the first error of grader 'torn':\n")
    assert (
        'shapes.py", line 28, in torn\n    raise LookupError(f"nothing in {sample.id}")' in result
    )
    assert "LookupError: nothing in a\n" in result
