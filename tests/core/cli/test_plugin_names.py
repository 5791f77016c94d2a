"""Names in GRADESTACK_PLUGINS that no installed plugin has."""

import pytest

import gradestack

SAID = "GRADESTACK_PLUGINS names no_such_plugin, no installed plugin is called that"


@pytest.mark.parametrize("command", [["validate", "suite.yaml"], ["run", "suite.yaml", "-q"], ["plugins", "list"]])
def test_every_command_warns_of_an_unknown_name(spawn, here, command):
    (here / "suite.yaml").write_text("target: {paths: [runs.jsonl]}\ngraders: {quality: exact_match}\nreports: []\n")
    said = spawn(*command, GRADESTACK_PLUGINS="no_such_plugin")
    assert said.code == 0
    assert f"warning: {SAID}" in said.err.splitlines()


def test_the_python_api_warns_of_an_unknown_name(here, monkeypatch):
    monkeypatch.setenv("GRADESTACK_PLUGINS", "no_such_plugin")
    suite = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": "exact_match"}, "reports": []}
    sample = [{"id": "a", "expected": "x", "predicted": "x"}]
    calls = {
        "load_suite": lambda: gradestack.load_suite(suite),
        "run": lambda: gradestack.run(suite, output="out"),
        "grade_files": lambda: gradestack.grade_files("runs.jsonl", graders=["exact_match"], output="two"),
        "grade": lambda: gradestack.grade(sample, ["exact_match"]),
        "stream": lambda: list(gradestack.stream(sample, ["exact_match"])),
    }
    for call in calls.values():
        with pytest.warns(UserWarning, match=SAID):
            call()
    gradestack.load_suite(suite, registry=gradestack.discover())
