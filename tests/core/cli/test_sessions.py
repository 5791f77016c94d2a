"""Sessions at the command line as data: files, commands, their exit codes, and what is said and written."""

import json
import shlex

import pytest

from gradestack.cli.commands import main
from tests.core.outcomes import at, data

SESSIONS = data(__file__, "sessions.yaml")


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for file, content in SESSIONS[name]["files"].items():
        lines = content if isinstance(content, list) else [content]
        text = "".join(each if isinstance(each, str) else f"{json.dumps(each)}\n" for each in lines)
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(text.encode("latin-1"))
    for step in SESSIONS[name]["steps"]:
        code = 0
        try:
            main(shlex.split(step["run"]))
        except SystemExit as done:
            code = done.code or 0
        said = "".join(capsys.readouterr())
        assert code == step.get("exit", 0), said
        assert "Traceback" not in said
        for text in step.get("says", ()):
            assert text in said, said
        for file, values in step.get("writes", {}).items():
            text = (tmp_path / file).read_text(encoding="utf-8")
            found = map(json.loads, text.splitlines() if file.endswith("l") else [text])
            assert [{path: at(row, path) for path in want} for row, want in zip(found, values, strict=True)] == values
