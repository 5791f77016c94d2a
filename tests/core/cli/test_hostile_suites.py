"""Suites of strangers.

Whatever they name, nothing of it is run, and nothing is written outside the report directory.
"""

import json
import subprocess
import sys

import pytest

from tests.core.outcomes import data, some_of

DATA = data(__file__, "hostile_suites_texts.yaml")
EVIL = DATA["evil"]
REACHING = "{{ cycler.__init__.__globals__.os.system('touch ran') }}"
FORMS = data(__file__, "hostile_suites.yaml")


@pytest.mark.parametrize(
    "form", some_of([pytest.param(form, id=name) for name, form in FORMS.items()], 5)
)
@pytest.mark.parametrize("verb", ["run", pytest.param("validate", marks=pytest.mark.faults)])
def test_nothing_a_suite_names_is_run(tmp_path, bounded, verb, form):
    """Without --allow-code.

    It ends soon and in little memory, and leaves nothing outside the report directory.
    """
    folder = tmp_path / "a/b/c/suite"
    (folder / "house").mkdir(parents=True)
    evil_path = folder / "evil.py"
    evil_path.write_text(EVIL)
    report_path = folder / "house/report.html"
    report_path.write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}" + REACHING)
    expected = "a" * 40
    text = json.dumps({"id": "t", "expected": expected, "predicted": "b"})
    runs_path = folder / "runs.jsonl"
    runs_path.write_text(text + "\n")
    suite_path = folder / "suite.yaml"
    suite_path.write_text(
        form.replace("HERE", str(folder)).replace("NESTED", "[" * 5000 + "]" * 5000)
    )
    before = set(tmp_path.rglob("*"))
    done = bounded(verb, "a/b/c/suite/suite.yaml")
    assert done.returncode in {0, 1, 2, 3}, done.stderr
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr
    runs = tmp_path / "gradestack-runs"
    paths = tmp_path.rglob("*")
    assert {path for path in paths if path != runs and runs not in path.parents} == before
    assert not list(tmp_path.rglob("ran")), done.stdout


def test_the_file_would_be_run_if_it_were_allowed(tmp_path):
    """So that the cases above are about something."""
    evil_path = tmp_path / "evil.py"
    evil_path.write_text(EVIL)
    runs_path = tmp_path / "runs.jsonl"
    text = json.dumps({"id": "t", "expected": "a", "predicted": "b"})
    runs_path.write_text(text + "\n")
    suite_path = tmp_path / "suite.yaml"
    suite_path.write_text(FORMS["a grader in a file"])
    command = [sys.executable, "-P", "-m", "gradestack.cli", "run", "suite.yaml", "--allow-code"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert (tmp_path / "ran").exists()
