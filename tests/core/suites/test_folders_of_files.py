"""The files of a folder have the reader each has by itself, though not each is looked at."""

import json

import pytest

from gradestack import ConfigError, discover
from gradestack.suites import recognition

CALL = {"name": "f", "arguments": {}}
CHAT = [
    {"role": "user", "content": "q"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
]
RECORDS = {
    "jsonl": {"id": "a", "input": "q", "predicted": [CALL], "expected": [CALL]},
    "openai_logs": {"id": "a", "messages": CHAT},
    "anthropic_logs": {
        "id": "a",
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}],
            },
        ],
    },
    "records": {"task": "a", "question": "q", "answer": "x", "reference_answer": "x"},
}


@pytest.fixture(scope="module")
def registry():
    return discover(limit="")


def write(folder, record, indent=None):
    folder.mkdir(exist_ok=True)
    key = "id" if "id" in record else "task"
    for number in range(30):
        text = json.dumps({**record, key: f"a{number}"}, indent=indent)
        (folder / f"run{number}.json").write_text(text)


@pytest.mark.parametrize(
    ("name", "indent"), [*((name, None) for name in RECORDS), ("openai_logs", 1), ("records", 1)]
)
def test_files_of_a_folder_are_recognised_as_one_alone(tmp_path, registry, name, indent):
    folder = tmp_path / "runs"
    write(folder, RECORDS[name], indent)
    run7_path = tmp_path / "runs" / "run7.json"
    alone = recognition.recognise([run7_path], registry, None)
    runs_folder = tmp_path / "runs"
    together = recognition.recognise([runs_folder], registry, None)
    assert together.reader == alone.reader
    path_count = len(together.paths)
    assert path_count == 30


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("other", RECORDS)
def test_a_file_of_another_format_among_many_is_met(tmp_path, registry, name, other):
    folder = tmp_path / "runs"
    write(folder, RECORDS[name])
    run17_path = tmp_path / "runs" / "run17.json"
    text = json.dumps(RECORDS[other])
    run17_path.write_text(text)
    if name == other:
        runs_folder = tmp_path / "runs"
        path_count = len(recognition.recognise([runs_folder], registry, None).paths)
        assert path_count == 30
    else:
        with pytest.raises(ConfigError, match="several formats"):
            recognition.recognise([tmp_path / "runs"], registry, None)
