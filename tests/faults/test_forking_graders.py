"""Graders that fork.

Their children neither grade the rest a second time nor are taken for workers.
"""

import os
import subprocess
import sys

import pytest

from tests.core.outcomes import data, some_of

DATA = data(__file__, "forking_graders.yaml")


FORKS = DATA["forks"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    "ending", some_of(["raise KeyboardInterrupt", "return 0.0", "raise ValueError"], 3)
)
@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_child_that_comes_back_ends(tmp_path, engine, ending):
    """There is one child per time a sample is graded, not one more for each child.

    Every grade is the parent's.
    """
    forks_path = tmp_path / "forks.py"
    forks = FORKS.format(ending=ending)
    forks_path.write_text(forks)
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text(
        "".join(f'{{"id": "{number}", "predicted": "x"}}\n' for number in range(6))
    )
    options = [
        "--engine",
        engine,
        "--allow-code",
        "--grader",
        "./forks.py:forks",
        "-o",
        "out",
        "--set",
        "reports=[]",
    ]
    command = [sys.executable, "-m", "gradestack.cli", "grade", "runs.jsonl", *options]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
    children_folder = tmp_path / "children"
    text = children_folder.read_text()
    assert text == "x" * 6
    results_path = tmp_path / "out/results.jsonl"
    assert results_path.read_text().count('"state":"graded"') == 3 * 6
