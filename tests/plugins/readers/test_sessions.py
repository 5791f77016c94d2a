"""Session files: how often they are read, and what of them is held."""

import json
import tracemalloc

import pytest

import gradestack
from gradestack import Input, Inputs, discover

LINES = 50
MORE = "a result in full, as the program shows it; " * 5_000
"""What a line repeats beside its message."""


def claude_code(number):
    """Return a line of Claude Code with a message that is short, and more beside it."""
    role = "user" if number % 2 else "assistant"
    message = {"role": role, "content": f"Line {number}"}
    parent_uuid = f"u{number - 1}"
    uuid = f"u{number}"
    line = {"type": message["role"], "uuid": uuid, "parentUuid": parent_uuid}
    tool_use_result = f"{number} {MORE}"
    return {**line, "sessionId": "s", "message": message, "toolUseResult": tool_use_result}


def codex(number):
    """Return a line of Codex: an event that repeats what an item says, or an item."""
    timestamp = f"2026-03-01T10:00:{number:02d}.000Z"
    line = {"timestamp": timestamp, "type": "event_msg"}
    if number % 2:
        output = f"{number} {MORE}"
        payload = {"type": "exec_command_end", "output": output}
        return {**line, "payload": payload}
    text = f"Line {number}"
    content = [{"type": "output_text", "text": text}]
    item = {"type": "message", "role": "assistant", "content": content}
    return {**line, "type": "response_item", "payload": item}


LINES_OF = {"claude_code": claude_code, "codex": codex}


@pytest.fixture(params=LINES_OF)
def session(request, tmp_path):
    """Write a session, and return the name of its reader and its file."""
    path = tmp_path / "session.jsonl"
    lines = map(LINES_OF[request.param], range(LINES))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return request.param, path


def test_what_repeats_the_conversation_is_not_held(session):
    name, path = session
    reader = discover().load("reader", name)()
    inputs = Inputs(data=(Input(path=path, name="session", shown="session.jsonl"),))
    index = reader.index(inputs)
    tracemalloc.start()
    try:
        shards = reader.plan(inputs, index)
        (sample,) = [sample for shard in shards for sample in reader.read(shard, index)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    expected_text = f"Line {LINES - 2}"
    assert sample.text == expected_text
    status = path.stat()
    expected = status.st_size / 4
    assert peak < expected


def test_a_session_is_read_once_to_choose_graders_and_once_to_grade(session, monkeypatch):
    name, path = session
    reads = []
    reader = discover().load("reader", name)
    read = reader.read

    def counted(self, shard, index):
        reads.append(shard)
        return read(self, shard, index)

    monkeypatch.setattr(reader, "read", counted)
    report = gradestack.grade_files(path)
    config = report.summary["config"]
    assert config["stack"] == "trajectory"
    assert len(reads) == 2
