"""Files whose first record is very long: recognised, or not, in bounded time and memory."""

import json

import pytest

MB = 1_000_000


def line_of(value, length):
    """Return a record of about so many bytes whose list has one value again and again."""
    piece = json.dumps(value, separators=(",", ":"))
    return '{"a":[' + ",".join([piece] * (length // (len(piece) + 1))) + "]}\n"


LINES = {
    "lists": lambda length: line_of([], length),
    "objects": lambda length: line_of({"k": 1}, length),
    "numbers": lambda length: line_of(1, length),
    "a text": lambda length: line_of("x" * length, length + 9),
    "brackets that do not end": lambda length: '{"a": ' + "[" * length + "\n",
    "no JSON": lambda length: "x" * length + "\n",
    "a header": lambda length: ",".join(f"c{n}" for n in range(length // 8)) + "\n",
    "a list of one": lambda length: f"[{line_of([], length)}]",
    "a list of many": lambda length: json.dumps([{"a": 1}] * (length // 10)),
}


@pytest.mark.parametrize("length", [15 * MB, 30 * MB], ids=["15 MB", "30 MB"])
@pytest.mark.parametrize("kind", LINES)
def test_a_long_first_record_is_looked_at_once(bounded, tmp_path, kind, length):
    (tmp_path / "log.jsonl").write_text(LINES[kind](length))
    done = bounded("grade", "log.jsonl", "--output", "out")
    assert done.returncode == 3
    assert "the format is not recognised" in done.stderr
    assert kind in {"a list of one", "a list of many"} or "its first line is longer than 64 KB" in done.stderr


@pytest.mark.parametrize("begin", ["", "["], ids=["lines", "list"])
@pytest.mark.parametrize("length", [1 * MB, 5 * MB, 30 * MB], ids=["1 MB", "5 MB", "30 MB"])
def test_a_long_conversation_is_recognised(bounded, tmp_path, length, begin):
    """By all of it, or by its beginning where it is longer than what is looked at."""
    turns = [{"role": "user", "content": "x" * 2000}, {"role": "assistant", "content": "y" * 2000}]
    record = json.dumps({"id": "a", "messages": turns * (length // 4000)})
    (tmp_path / "log.jsonl").write_text(f"{begin}{record}{']' if begin else ''}\n")
    done = bounded("grade", "log.jsonl", "--output", "out")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out/results.jsonl").read_text().splitlines()) == 1
