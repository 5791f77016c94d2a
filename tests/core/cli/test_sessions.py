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
    env = SESSIONS[name].get("env", {})
    for variable, value in env.items():
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
            run = step["run"].replace("EXAMPLES", EXAMPLES)
            main(shlex.split(run))
        except SystemExit as done:
            code = done.code or 0
        out, err = capsys.readouterr()
        printed = out + err
        expected = step.get("exit", 0)
        assert code == expected, printed
        assert ("Traceback" in printed) == ("--debug" in step["run"])
        assert out == step.get("out", out)
        assert err == step.get("err", err)
        says = step.get("says", ())
        assert [text for text in says if text not in printed] == [], printed
        assert [text for text in step.get("never", ()) if text in printed] == [], printed
        for file, texts in step.get("holds", {}).items():
            text = (tmp_path / file).read_text(encoding="utf-8")
            wanted_texts = [wanted_text for wanted_text in texts if wanted_text not in text]
            assert wanted_texts == []
        assert [file for file in step.get("gone", ()) if (tmp_path / file).exists()] == []
        for file, values in step.get("writes", {}).items():
            text = (tmp_path / file).read_text(encoding="utf-8")
            shards = text.splitlines() if file.endswith("l") else [text]
            documents = map(json.loads, shards)
            pairs = zip(documents, values, strict=True)
            ats_by_paths = []
            for row, want in pairs:
                ats_by_paths.append({path: at(row, path) for path in want})
            assert ats_by_paths == values
