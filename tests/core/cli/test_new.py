"""``gradestack new``.

What it writes passes its own tests and both type checkers, and what it cannot write it says.
"""

import re
import subprocess
import sys

import pytest

from tests.core.outcomes import data, some_of

DATA = data(__file__, "new.yaml")

PARTS = [[], ["--with", "reader,aggregator,stack,exporter"]]


@pytest.mark.parametrize(
    "parts", some_of(map(pytest.param, PARTS[::-1]), 2), ids=["everything", "grader"]
)
def test_a_new_package_passes_its_checks(spawn, tmp_path, parts):
    made = spawn("new", "gradestack-acme", *parts)
    assert made.code == 0, made.err
    folder = tmp_path / "gradestack-acme"
    paths = folder.rglob("*")
    relative_paths = set()
    for path in paths:
        if path.is_file():
            relative_path = path.relative_to(tmp_path)
            relative_paths.add(str(relative_path))
    expected = set(made.out.split())
    assert relative_paths == expected
    pyproject_path = folder / "pyproject.toml"
    text = pyproject_path.read_text()
    assert re.search(r'"gradestack>=\d+\.\d+,<\d+\.\d+"', text)
    source = folder / "src"
    dist_info = source / "gradestack_acme-0.1.0.dist-info"
    dist_info.mkdir()
    metadata_folder = dist_info / "METADATA"
    metadata_folder.write_text("Metadata-Version: 2.1\nName: gradestack-acme\nVersion: 0.1.0\n")
    entry_points_path = dist_info / "entry_points.txt"
    entry_points_path.write_text("[gradestack]\nacme = gradestack_acme\n")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "tests")
    done = spawn(paths=[source], cwd=folder, program=tests)
    assert done.code == 0, done.out
    expected_text = f"{15 if parts else 6} passed"
    assert expected_text in done.out


@pytest.mark.proof
@pytest.mark.parametrize(
    "checker", [["mypy"], ["pyright", "--pythonpath", sys.executable]], ids=["mypy", "pyright"]
)
def test_a_new_package_is_typed(spawn, tmp_path, checker):
    assert spawn("new", "gradestack-acme", *PARTS[1]).code == 0
    cwd = tmp_path / "gradestack-acme"
    done = subprocess.run(
        [sys.executable, "-m", *checker],
        check=False,
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_a_metric_in_one_file_is_graded_with(spawn, tmp_path):
    assert spawn("new", "recall.py").out == "recall.py\n"
    done = spawn("plugins", "check", "recall.py", "--allow-code")
    assert done.code == 0
    assert done.err == ""
    assert done.out.count("... ok") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    DATA["what_cannot_be_begun"],
)
def test_what_cannot_be_begun(spawn, tmp_path, arguments, message):
    (tmp_path / "taken.py").touch()
    done = spawn("new", *arguments)
    assert done.code == 2
    assert done.err.startswith(f"error: {message}")
    assert done.err.count("\n") == 1
