"""Reader ``records``: mappings, cells, tables, and what is refused."""

import csv
import json
import sys

import pytest

import gradestack
from gradestack import BadRecord, DataError, discover
from gradestack.cli import commands
from gradestack.jsonio import path_steps, path_value
from gradestack.suites.recognition import recognise
from gradestack_plugins.records.reader import Records
from tests.core.outcomes import data
from tests.plugins import chat_files
from tests.plugins.chat_files import certainties, described_sample, reference

DATA = data(__file__, "records.yaml")

TALK = DATA["talk"]
CALL = [{"name": "refund", "arguments": {"ticket": "T-3"}}]


def quoted(value):
    return '"' + (value if isinstance(value, str) else json.dumps(value)).replace('"', '""') + '"'


@pytest.fixture
def read(tmp_path):
    def read_table(content, columns=None, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return chat_files.read("records", path, columns=columns)

    return read_table


def refusal(read, *arguments, **more):
    with pytest.raises(DataError) as caught:
        read(*arguments, **more)
    return str(caught.value)


def test_references_in_cells_are_checked_like_those_of_the_form(read):
    """A rule that is none makes a bad record that names the place.

    Arguments may be called otherwise.
    """
    rules = [{"name": "refund", "rules": {"ticket": {"compare": "fuzzy"}}}]
    renamed = [{"name": "refund", "args": {"ticket": "T-3"}}]
    bad, *good = read(f"id,expected\na,{quoted(rules)}\nb,{quoted(renamed)}\nc,{quoted(CALL)}\n")
    reason = (
        "expected.calls[0].rules.ticket.compare: expected one of exact, text, number, set, "
        'schema, regex, got "fuzzy"'
    )
    assert bad.reason == reason
    arguments = [sample.expected.calls[0].arguments for sample in good]
    assert arguments == [{"ticket": "T-3"}] * 2


def test_the_published_table_gives_its_samples():
    """Every field of expected.json, by the mapping of the suite."""
    folder = reference("formats") / "records"
    expected_path = folder / "expected.json"
    text = expected_path.read_text(encoding="utf-8")
    document = json.loads(text)
    for content in document.values():
        suite = gradestack.load_suite(folder / content["suite"])
        reader = suite.reader.component
        shards = reader.plan(suite.inputs, None)
        samples = [record for shard in shards for record in reader.read(shard, None)]
        sample_count = len(content["samples"])
        assert len(samples) == sample_count
        for sample, wanted in zip(samples, content["samples"], strict=True):
            description = {
                **described_sample(sample),
                "usage": {
                    "input_tokens": sample.usage.input_tokens,
                    "output_tokens": sample.usage.output_tokens,
                },
            }
            expected = {key: wanted[key] for key in description}
            assert description == expected
            assert sample.id == wanted["id"]
            assert [sample.model] == wanted["model"]
            assert sample.status == wanted["status"]
            calls = sample.expected.calls
            expected_calls = wanted["expected_calls"]
            assert [{"name": c.name, "arguments": c.arguments} for c in calls] == expected_calls


@pytest.mark.parametrize(
    ("columns", "cells", "reason"), DATA["a_cell_that_its_field_cannot_hold_makes_a_bad_record"]
)
def test_a_cell_that_its_field_cannot_hold_makes_a_bad_record(read, columns, cells, reason):
    """Other rows are read; the reason names the field, the place the line of the file."""
    bad, good = read(f"id,{columns}\n\na,{cells}\nb,\n")
    assert isinstance(bad, BadRecord)
    assert reason in bad.reason
    source = str(bad.source)
    assert source == "table.csv:3"
    assert good.id == "b"
    assert str(good.source) == "table.csv:4"


@pytest.mark.parametrize(
    "content", ["id,label\na,{}\n", 'id,label\na,"{}\n'], ids=["a table", "an open quote"]
)
def test_a_long_cell_leaves_csv_as_it_was(read, content):
    """A cell may be longer than Python's csv allows.

    What that allows afterwards, for other readers, is what it did.
    """
    usual_limit = csv.field_size_limit()
    long = "x" * (usual_limit + 1)
    if '"' in content:
        expected = refusal(read, content.format(long))
        assert "never closed" in expected
    else:
        (sample,) = read(content.format(long))
        assert sample.label == long
    field_size_limit = csv.field_size_limit()
    assert field_size_limit == usual_limit


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *DATA["a_table_that_cannot_be_read_is_refused_with_its_place"],
        (b"id,label\na,caf\xe9\n", "table.csv:2: byte 0xe9 is not UTF-8"),
        (
            "id,label\n".encode("utf-16"),
            "table.csv:1: the table is written in UTF-16; save it as UTF-8",
        ),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_place(read, content, message):
    """One error with file and line; nothing behind an open quote is guessed."""
    assert refusal(read, content).startswith(message)


@pytest.mark.parametrize("name", ["table.csv", "log.jsonl", "list.json"])
def test_a_mapping_that_finds_nothing_is_refused_with_the_columns_there_are(read, name):
    """With the one that was meant, where it is close."""
    row = {"task": "a", "what": "x"}
    text = json.dumps(row)
    list_json = json.dumps([row])
    content = {
        "table.csv": "task,what\na,x\n",
        "log.jsonl": text,
        "list.json": list_json,
    }[name]
    message = refusal(read, content, {"id": "tasks", "label": "what"}, name)
    assert message.startswith(name)
    assert (
        "there is no column 'tasks', mapped to id (did you mean 'task'?); there are: task, what"
        in message
    )


@pytest.mark.parametrize(("path", "steps"), DATA["a_path_is_names_and_indexes"])
def test_a_path_is_names_and_indexes(path, steps):
    """A text that does not begin with $ is the name of a column, whatever it looks like."""
    assert list(path_steps(path)) == steps


@pytest.mark.parametrize(("path", "problem"), DATA["a_path_that_is_not_ended_says_so"])
def test_a_path_that_is_not_ended_says_so(monkeypatch, path, problem):
    """With its field, the whole of it and what paths look like."""
    monkeypatch.setitem(sys.modules, "jsonpath", None)
    with pytest.raises(ValueError, match="path") as caught:
        Records(columns={"id": "task", "messages": path})
    assert str(caught.value).startswith(
        f"messages: {path!r} {problem}; a path into a record is such as $.log.messages, "
    )


@pytest.mark.parametrize(
    "path", ["$.log['it\\'s']", "$.log[?search(@.a, '[(')].b", "$.log [0]", "$.log..['a]']"]
)
def test_brackets_and_quotes_within_texts_are_no_mistakes(path):
    pytest.importorskip("jsonpath")
    path_step_count = len(path_steps(path))
    assert path_step_count == 2


def test_wildcards_want_a_package(monkeypatch):
    """The error says which; names and indexes need none."""
    monkeypatch.setitem(sys.modules, "jsonpath", None)
    with pytest.raises(ValueError, match=r"\(extra 'paths'\)"):
        Records(columns={"id": "$.log[*].without_package"})
    assert Records(columns={"id": "$.log[0].id"})


def test_a_path_that_finds_nothing_is_refused(read):
    """With wildcards as without: no record has the place."""
    pytest.importorskip("jsonpath")
    message = refusal(read, '{"log": [{"a": 1}]}\n', {"calls": "$.log[*].call"}, "log.jsonl")
    assert "there is no column '$.log[*].call', mapped to calls" in message


def test_a_path_leads_through_json_in_a_cell():
    record = {"log": '{"messages": [[1, 2]]}', "n": 1}
    steps = path_steps("$.log.messages[0][-1]")
    assert path_value(record, steps) == 2
    for nowhere in (
        "$.log.messages[1]",
        "$.log.messages.x",
        "$.n.x",
        "$.x.y",
        "$.log.messages[0][2]",
    ):
        assert path_value(record, path_steps(nowhere)) is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"idd": "x"}, "did you mean 'id'"),
        ({"id": ""}, "no column or path"),
        ({"usage.tokens": "x"}, "no field"),
    ],
)
def test_a_field_that_no_sample_has_is_refused(columns, message):
    """With the nearest that there is."""
    with pytest.raises(ValueError, match=message):
        Records(columns=columns)


def test_rows_over_several_lines_keep_their_first_line(read):
    first, second = read('id,text\n\na,"x\ny"\n\nb,z\n')
    assert first.text == "x\ny"
    assert first.source.line == 3
    assert second.source.line == 6
    assert second.source.ordinal == 1


def test_only_tables_with_columns_of_runs_are_recognised(tmp_path):
    """Any other file is left to its own reader, or refused with what to type."""
    table = tmp_path / "table.csv"
    table.write_text(f"id,messages\na,{quoted(TALK)}\n")
    certainty_by_reader = certainties(table)
    assert max(certainty_by_reader, key=certainty_by_reader.get) == "records"
    table.write_text("task,what\na,x\n")
    assert not certainties(table)
    registry = discover(limit="")
    with pytest.raises(
        DataError,
        match=r"\(fields: task, what\)\n  - to grade answers, map them and what was expected: ",
    ):
        recognise([table], registry, None)
    table.write_text("task,what,target\na,b,c\n")
    with pytest.raises(
        DataError, match=r"task, what, target\)\n  - try: .* --map=input=task --map=text=what"
    ):
        recognise([table], registry, None)


def test_a_path_into_cells_that_finds_nothing_is_refused(read):
    """In none of the first rows whose cell is not empty; one row that has it is enough."""
    columns = {"id": "id", "calls": "$.log.made", "label": "$.log.label"}
    filled = quoted({"made": []})
    empty = quoted({"x": 1})
    message = refusal(read, f"id,log\na,\nb,{filled}\nc,{empty}\n", columns)
    assert (
        message
        == "table.csv:1: in none of the first rows there is anything at '$.log.label', mapped to "
        "label"
    )
    columns.pop("label")
    first, second, third = read(f"id,log\na,\nb,{filled}\nc,{empty}\n", columns)
    assert first.calls is None
    assert second.calls == ()
    assert third.calls is None
    records = read("id,log\na,\nb,\n", columns)
    ids = [record.id for record in records]
    assert ids == ["a", "b"]


@pytest.mark.parametrize("footer", [b"\x0f" * 8, b"\x15\x04\x19\x4c", b"\x1c" * 40])
def test_a_broken_footer_of_parquet_is_an_unusable_input(tmp_path, footer, capsys):
    t_path = tmp_path / "t.parquet"
    t_path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    for options in ([], ["--map=text=a"]):
        with pytest.raises(SystemExit) as ended:
            commands.main(["grade", str(tmp_path / "t.parquet"), "--reader", "records", *options])
        assert ended.value.code == 3
        assert "t.parquet: no Parquet file that can be read: " in capsys.readouterr().err


@pytest.mark.parametrize("depth", [400, 450, 480, 490])
def test_keys_that_are_paths_beside_a_value_too_deep_for_them(tmp_path, depth):
    runs = (
        '{"runs": [{"context.trace_id": "t", "a.b": %s1%s}, {"id": "b", "expected": "w", '
        '"output": "w"}]}'
    )
    spans_path = tmp_path / "spans.json"
    spans_path.write_text(runs % ('{"a":' * depth, "}" * depth))
    paths = tmp_path / "spans.json"
    output = tmp_path / "out"
    report = gradestack.grade_files(paths, output=output)
    total = report.metrics["total"]
    assert total == 2


def test_what_is_not_understood_of_a_mapped_conversation_is_counted(tmp_path):
    """Whether or not there are columns left out beside it."""
    turns = [
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "strange"}]}]
    ]
    path = tmp_path / "runs.jsonl"
    text = json.dumps({"k": "a", "conversation": turns, "other": 1})
    path.write_text(text + "\n", encoding="utf-8")
    columns = {"id": "k", "turns": "conversation"}
    for more, left in (({}, {"column:other"}), ({"facets.other": "other"}, set())):
        report = gradestack.grade_files(
            path, columns=columns | more, graders=["usage"], overrides=["reports=[]"]
        )
        remarks = report.summary["remarks"]
        keys = remarks.keys()
        assert keys == {"part:strange"} | left
