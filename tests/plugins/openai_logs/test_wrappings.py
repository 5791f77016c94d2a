"""However messages are wrapped and lie in a file: the same samples, with ids, runs and places."""

import json

import pytest

from gradestack import testing
from gradestack_plugins.readers.api_logs import OpenAILogs
from tests.plugins.chat_files import certainties, read, written

TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


FILES = {
    "lines": "\n".join(json.dumps({"messages": TALK}) for _ in range(2)),
    "list": json.dumps([{"messages": TALK}, {"messages": TALK}]),
    "indented list": json.dumps([{"messages": TALK}, {"messages": TALK}], indent=1),
    "lines of lists": "\n".join(json.dumps(TALK) for _ in range(2)),
    "list of lists": json.dumps([TALK, TALK]),
    "page": json.dumps({"object": "list", "data": [{"messages": TALK}, {"messages": TALK}]}),
    "indented page": json.dumps(
        {"object": "list", "data": [{"messages": TALK}, {"messages": TALK}]}, indent=2
    ),
    "byte order mark": "\ufeff" + "\n".join(json.dumps({"messages": TALK}) for _ in range(2)),
}
ALONE = {
    "one list": json.dumps(TALK),
    "indented": json.dumps({"messages": TALK}, indent=2),
    "indented, messages in a line": '{"messages": [\n  '
    + ",\n  ".join(map(json.dumps, TALK))
    + "\n]}",
    "one line": json.dumps({"messages": TALK}),
    "a message a line": "\n".join(map(json.dumps, TALK)),
}


@pytest.mark.parametrize("name", [*FILES, *ALONE])
def test_every_layout_is_recognised_and_read(tmp_path, name):
    """Two conversations, or one: whatever stands between them."""
    path = tmp_path / "talk.v1.jsonl"
    path.write_text({**FILES, **ALONE}[name], encoding="utf-8")
    samples = read("openai", path)
    ids = ["talk:0", "talk:1"] if name in FILES else ["talk:0"]
    largest_certainty = max(certainties(path).items(), key=lambda entry: entry[1])
    assert largest_certainty[0] == "openai"
    assert [sample.id for sample in samples] == ids
    assert {(sample.input, sample.text) for sample in samples} == {("hi", "hello")}
    facets = [sample.facets for sample in samples]
    expected = [{"id_made": True}] * len(ids)
    assert facets == expected


def test_files_of_one_name_make_up_different_ids(tmp_path):
    """Where a stem is shared, as much of the path as tells them apart."""
    for folder in "ab":
        (tmp_path / folder).mkdir()
        written(tmp_path / folder, [{"messages": TALK}])
    log_path = tmp_path / "a/log.jsonl"
    paths = [log_path, tmp_path / "b/log.jsonl"]
    records = read("openai", *paths)
    ids = [record.id for record in records]
    assert ids == ["a/log:0", "b/log:0"]


def test_a_long_first_line_of_a_list_is_still_a_line(tmp_path):
    """Whether lines or one conversation is told by what follows, however far that is."""
    long = [TALK[0], {"role": "assistant", "content": "x" * 100_000}]
    path = written(tmp_path, [long, TALK])
    records = read("openai", path)
    text_counts = [len(record.text) for record in records]
    assert text_counts == [100_000, 5]
    assert certainties(path)


@pytest.mark.parametrize("name", FILES)
def test_reader_keeps_the_contract(tmp_path, name):
    path = tmp_path / "talk.jsonl"
    path.write_text(FILES[name], encoding="utf-8")
    testing.check_reader(OpenAILogs(), path, scratch=tmp_path)
