"""Suites of strangers: whatever they name, nothing of it is run, and nothing is written outside the run directory."""

import json
import subprocess
import sys

import pytest

EVIL = """
from pathlib import Path
Path(__file__).with_name("ran").touch()
from gradestack import Extractor, Grade, Grader, Reader, Reporter

class Evil(Grader):
    \"\"\"Never to be made.\"\"\"

    def grade(self, sample):
        return Grade(score=1.0)

def evil(*arguments, **named):
    return 1.0
"""
REACHING = "{{ cycler.__init__.__globals__.os.system('touch ran') }}"
PLAIN = "name: s\ntarget: {paths: [runs.jsonl], reader: jsonl}\ngraders: {g: {kind: exact_match}}\nreports: []\n"


def grader(entry):
    return PLAIN.replace("{kind: exact_match}", entry)


def with_(**parts):
    return PLAIN.replace("reports: []\n", "") + "".join(f"{key}: {text}\n" for key, text in parts.items())


FORMS = {
    "a grader in a file": grader('{kind: "./evil.py:Evil"}'),
    "a function in a file": grader('{kind: "./evil.py:evil"}'),
    "a file with components": PLAIN + "plugins: [./evil.py]\n",
    "an absolute file": grader('{kind: "HERE/evil.py:Evil"}'),
    "a module": grader('{kind: "evil:Evil"}'),
    "a function grader": grader('{kind: python_function, function: "evil.py:evil"}'),
    "a function of the standard library": grader('{kind: python_function, function: "os:system"}'),
    "a letta tool": grader('{kind: tool, function: "evil.py:evil"}'),
    "a letta extractor": grader('{kind: exact_match, extractor: "./evil.py:evil"}'),
    "an aggregator in a file": PLAIN + 'metrics: {m: {kind: "./evil.py:Evil", of: g}}\n',
    "a reader in a file": PLAIN.replace("reader: jsonl", 'reader: "./evil.py:Evil"'),
    "a reporter in a file": with_(reports='[{kind: "./evil.py:Evil"}]'),
    "an exporter in a file": PLAIN + 'exporters: [{kind: "./evil.py:Evil"}]\n',
    "an engine in a file": PLAIN + 'engine: {kind: "./evil.py:Evil"}\n',
    "the address of a cluster": PLAIN + "engine: {kind: dask, address: tcp://127.0.0.1:9}\n",
    "a setup script": PLAIN + "setup_script: evil.py:evil\n",
    "a live target": PLAIN.replace("paths: [runs.jsonl]", "kind: letta_agent, agent_script: evil.py:evil"),
    "a tag that calls": PLAIN + 'description: !!python/object/apply:os.system ["touch ran"]\n',
    "a tag that names": PLAIN + "description: !!python/name:evil.evil\n",
    "a tag that imports": PLAIN + "description: !!python/module:evil\n",
    "a tag of its own": PLAIN + "description: !evil {a: 1}\n",
    "aliases that expand": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + PLAIN,
    "a name that leads out": PLAIN.replace("name: s", "name: ../../../outside/ran"),
    "a command as a path": PLAIN.replace("runs.jsonl", '"|touch ran"'),
    "a template as a name": PLAIN.replace(
        "name: s", "name: \"{{ cycler.__init__.__globals__.os.system('touch ran') }}\""
    ),
    "templates that reach for Python": with_(reports="[{kind: html, templates: house}]"),
    "references": PLAIN.replace("runs.jsonl", '"reference://x::file://HERE/evil.json"'),
    "a dataset on the web": PLAIN + "dataset: http://127.0.0.1:9/data.jsonl\n",
    "a pattern without end": grader('{kind: contains, pattern: "^(a+)+$"}'),
    "nesting": PLAIN + f"description: {'[' * 5000}{']' * 5000}\n",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("verb", ["validate", "run"])
def test_nothing_a_suite_names_is_run(tmp_path, bounded, verb, form):
    """Without --allow-code; it ends soon and in little memory, and leaves nothing outside the run directory."""
    place = tmp_path / "a/b/c/suite"
    (place / "house").mkdir(parents=True)
    (place / "evil.py").write_text(EVIL)
    (place / "house/report.html").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}" + REACHING)
    (place / "runs.jsonl").write_text(json.dumps({"id": "t", "expected": "a" * 40, "predicted": "b"}) + "\n")
    (place / "suite.yaml").write_text(form.replace("HERE", str(place)))
    before = set(tmp_path.rglob("*"))
    done = bounded(verb, "a/b/c/suite/suite.yaml")
    assert done.returncode in {0, 1, 2, 3}, done.stderr
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr
    runs = tmp_path / "gradestack-runs"
    assert {path for path in tmp_path.rglob("*") if path != runs and runs not in path.parents} == before
    assert not list(tmp_path.rglob("ran")), done.stdout


def test_the_file_would_be_run_if_it_were_allowed(tmp_path):
    """So that the cases above are about something."""
    (tmp_path / "evil.py").write_text(EVIL)
    (tmp_path / "runs.jsonl").write_text(json.dumps({"id": "t", "expected": "a", "predicted": "b"}) + "\n")
    (tmp_path / "suite.yaml").write_text(FORMS["a grader in a file"])
    command = [sys.executable, "-P", "-m", "gradestack.cli", "run", "suite.yaml", "--allow-code"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert (tmp_path / "ran").exists()
