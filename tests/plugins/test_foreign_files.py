"""A reader that is named for a file of another format says so: it makes no run of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradestack import BadRecord, DataError, Input, Inputs, discover, testing

REGISTRY = discover()
CASES = Path(__file__).parents[1] / "cases"
NAMES = (
    *("claude_code", "codex", "gemini_cli", "goose", "opencode", "agents_traces", "bedrock"),
    *("braintrust", "helicone", "langsmith", "litellm", "opik", "weave", "autogen", "langgraph"),
    *("openhands", "openai_evals", "mini_swe_agent", "swe_agent", "appworld", "gaia2"),
    *("hammerbench", "mcpmark", "stabletoolbench", "swebench", "terminal_bench", "toolsandbox"),
    *("atif", "adk", "promptfoo", "deepeval", "copilot_cli", "cursor"),
)


def files_by_reader():
    """Return the files of the first case of each reader that has one file of records."""
    files = {}
    for folder in ("sessions", "traces", "histories", "leaderboards", "archives"):
        for case in testing.cases(CASES / folder):
            name = case.data.get("reader")
            contents = case.data.get("files") or {}
            ((path, content),) = contents.items() if len(contents) == 1 else [("", "")]
            is_plain = isinstance(content, list | dict) and "/" not in path
            if isinstance(name, str) and is_plain and not case.file.startswith("damaged"):
                files.setdefault(name, (path, content))
    return files


FILES = files_by_reader()


def text_of(path, content):
    if path.endswith(".jsonl"):
        return "".join(json.dumps(line) + "\n" for line in content)
    return json.dumps(content)


@pytest.mark.parametrize("name", NAMES)
def test_no_run_is_made_of_a_file_of_another_format(name, tmp_path):
    kind = REGISTRY.load("reader", name)
    made = []
    for other, (path, content) in FILES.items():
        file = tmp_path / f"{other}-{path}"
        text = text_of(path, content)
        file.write_text(text)
        if other == name or kind.sniff(file, file.read_bytes()[: 64 * 1024]):
            continue
        inputs = Inputs(data=(Input(path=file, name=file.stem, shown=file.name),))
        reader = kind()
        try:
            index = reader.index(inputs)
            shards = reader.plan(inputs, index)
            read = [record for shard in shards for record in reader.read(shard, index)]
        except DataError:
            continue
        assert read, f"nothing is said of the file of {other}"
        made += [other for read_record in read if not isinstance(read_record, BadRecord)]
    assert made == []
