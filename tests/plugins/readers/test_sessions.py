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
    message = {"role": "user" if number % 2 else "assistant", "content": f"Line {number}"}
    line = {"type": message["role"], "uuid": f"u{number}", "parentUuid": f"u{number - 1}"}
    return {**line, "sessionId": "s", "message": message, "toolUseResult": f"{number} {MORE}"}


def codex(number):
    """Return a line of Codex: an event that repeats what an item says, or an item."""
    line = {"timestamp": f"2026-03-01T10:00:{number:02d}.000Z", "type": "event_msg"}
    if number % 2:
        return {**line, "payload": {"type": "exec_command_end", "output": f"{number} {MORE}"}}
    content = [{"type": "output_text", "text": f"Line {number}"}]
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
        (sample,) = [
            sample for shard in reader.plan(inputs, index) for sample in reader.read(shard, index)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sample.text == f"Line {LINES - 2}"
    assert peak < path.stat().st_size / 4


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
    assert report.summary["config"]["stack"] == "trajectory"
    assert len(reads) == 2
