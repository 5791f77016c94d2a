"""Sessions at the command line as data.

Files, commands, their exit codes, and what is said and written.
"""

import json
import shlex
from pathlib import Path

import pytest

from gradestack.cli.commands import main
from tests.core.outcomes import at, data

EXAMPLES = str(Path(__file__).parents[3] / "examples")
SESSIONS = {
    f"{path.stem}: {name}": session
    for path in sorted((Path(__file__).parent / "sessions").iterdir())
    for name, session in data(path, path.name).items()
}


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name, tmp_path, monkeypatch, capsys, request):
    for fixture in ("here", "command") if name.startswith("toys") else ():
        request.getfixturevalue(fixture)
    monkeypatch.chdir(tmp_path)
    for variable, value in SESSIONS[name].get("env", {}).items():
        monkeypatch.setenv(variable, value)

    def write(files):
        for file, content in files.items():
            lines = content if isinstance(content, list) else [content]
            text = "".join(
                line if isinstance(line, str) else f"{json.dumps(line)}\n" for line in lines
            )
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_bytes(text.encode("latin-1"))

    write(SESSIONS[name].get("files", {}))
    for step in SESSIONS[name]["steps"]:
        write(step.get("files", {}))
        code = 0
        try:
            main(shlex.split(step["run"].replace("EXAMPLES", EXAMPLES)))
        except SystemExit as done:
            code = done.code or 0
        out, err = capsys.readouterr()
        printed = out + err
        assert code == step.get("exit", 0), printed
        assert ("Traceback" in printed) == ("--debug" in step["run"])
        assert (out, err) == (step.get("out", out), step.get("err", err))
        assert [text for text in step.get("says", ()) if text not in printed] == [], printed
        assert [text for text in step.get("never", ()) if text in printed] == [], printed
        for file, texts in step.get("holds", {}).items():
            text = (tmp_path / file).read_text(encoding="utf-8")
            assert [wanted_text for wanted_text in texts if wanted_text not in text] == []
        assert [file for file in step.get("gone", ()) if (tmp_path / file).exists()] == []
        for file, values in step.get("writes", {}).items():
            text = (tmp_path / file).read_text(encoding="utf-8")
            documents = map(json.loads, text.splitlines() if file.endswith("l") else [text])
            assert [
                {path: at(row, path) for path in want}
                for row, want in zip(documents, values, strict=True)
            ] == values
