"""Tests of the beginnings of files: formats, odd ones, and first records that are very long."""

import bz2
import json

import pytest

import gradestack
from gradestack import DataError, RecordReader
from gradestack.suites.beginnings import Beginning
from gradestack.suites.recognition import recognise
from tests.core.outcomes import data, some_of

GOOD = b'{"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}\n'


@pytest.fixture
def file(tmp_path):
    def write(content, name="x.jsonl"):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


UNKNOWN = {
    name: (text.encode("latin-1"), message)
    for name, (text, message) in data(__file__, "heads.yaml")["unknown"].items()
}
UNKNOWN |= {
    "a key too many": (
        GOOD.replace(b'"id"', b'"status": "ok", "id"'),
        (
            "with the keys expected, id, predicted, status; the nearest is jsonl: "
            "status: unknown key (did you mean"
        ),
    ),
    "a key too many beside those of a request": (
        GOOD.replace(b'"id"', b'"timing": 1, "input": "hi", "model": "m", "id"'),
        "the nearest is jsonl: timing: unknown key",
    ),
    "a key too many beside messages": (
        GOOD.replace(
            b'"id"', b'"timing": 1, "messages": [{"role": "user", "content": "hi"}], "id"'
        ),
        "the nearest is jsonl: timing: unknown key",
    ),
    "binary": (b"ab\0c" * 20, "it is a binary file (NUL bytes)"),
    "nesting": (b"[" * 10_000, "it is "),
    "a long key": (b'{"%s": 1}\n' % (b"k" * 500), f"with the keys {'k' * 60}; the nearest"),
}


@pytest.mark.parametrize(("content", "message"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_a_file_of_no_known_format_looks_like(file, content, message):
    with pytest.raises(DataError, match=r"x\.jsonl: the format is not recognised: ") as caught:
        recognise([file(content)], gradestack.discover(), None)
    assert message in str(caught.value)


FOREIGN = {
    "Excel": (
        b"PK\x03\x04" + b"\0" * 26 + b"docProps/app.xml",
        "is an Excel workbook; save it as CSV or Parquet",
    ),
    "bzip2": (bz2.compress(GOOD), "is a bzip2 archive, which is not supported; unpack it first"),
    "Parquet": (b"PAR1" + b"\x80" * 99, "is a Parquet file; write its records as JSON Lines first"),
    "UTF-16": (
        (GOOD * 3).decode().encode("utf-16"),
        "is UTF-16 text, and only UTF-8 is read: convert it first",
    ),
    "UTF-16-LE": (
        (GOOD * 3).decode().encode("utf-16-le"),
        "is UTF-16-LE text, and only UTF-8 is read",
    ),
    "UTF-32-BE": (
        (GOOD * 3).decode().encode("utf-32-be"),
        "is UTF-32-BE text, and only UTF-8 is read",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize(
    "reader", [None, "jsonl", "tau_bench", "letta", "when2call", "stability", "deepfabric"]
)
def test_a_file_that_is_no_text_is_refused_once(file, tmp_path, kind, reader):
    """With what it is and what to do, whoever reads it.

    Not a bad record per line, and none of them taken for one.
    """
    content, message = FOREIGN[kind]
    path = file(content)
    if kind == "Parquet" and reader is None:
        pytest.importorskip("pyarrow")  # without it, what to install is said first
        message = "no Parquet file that can be read"
    with pytest.raises(DataError) as caught:
        gradestack.grade_files(path, reader=reader, output=tmp_path / "out")
    expected_text = f"{path.name}: {message}"
    assert expected_text in str(caught.value)
    assert caught.value.problems == ()


@pytest.mark.parametrize("layout", [(b"", b"\n"), (b"[", b",")], ids=["lines", "list"])
def test_a_key_that_stands_twice_is_said_once(file, tmp_path, layout):
    """JSON takes the last one without a word.

    The first place is named, whatever the number of records.
    """
    start, between = layout
    record = (
        b'{"task_id": 1, "reward": 1.0, "info": {}, "traj": [{"role": "user", "role": '
        b'"user", "content": ""}]}'
    )
    if not start:
        record = GOOD.strip()[:-1] + b', "id": "b"}'
    path = file(start + between.join([record] * 3) + (b"]" if start else b""))
    output = tmp_path / "out"
    report = gradestack.grade_files(path, output=output)
    warnings = [warning for warning in report.summary["warnings"] if "occurs twice" in warning]
    key, position = ("role", "") if start else ("id", ":1")
    expected = [
        f"x.jsonl{position}: the key '{key}' occurs twice in one object; the last one counts"
    ]
    assert warnings == expected


def test_a_command_is_proposed_where_it_was_seen_to_work(file):
    """A table without its suffix by its reader, texts by a mapping, a suite by what runs it."""
    proposed = {
        "log.txt": (b"id,calls\na,[]\n", "try: gradestack grade {} --reader records"),
        "a.csv": (
            b"task,what,target\na,x,x\n",
            "try: gradestack grade {} --map=input=task --map=text=what",
        ),
        "uneven.csv": (b"task,what,target\na,x,x\nb\n", "to grade answers, map them"),
        "suite.yaml": (b"graders: {a: exact_match}\n", "try: gradestack run {}"),
    }
    for name, (content, command) in proposed.items():
        path = file(content, name)
        with pytest.raises(DataError) as caught:
            recognise([path], gradestack.discover(), None)
        last_problem = caught.value.problems[-1]
        assert last_problem.startswith(command.format(path)), name


@pytest.mark.parametrize(
    "first", [GOOD, b'{"uuid": "a", "predicted_label": "direct", "correct_answer": "direct"}\n']
)
def test_another_document_behind_records_does_not_make_the_format(file, first):
    """JSON Lines followed by an orchestration result, which is one object, stay what they are."""
    result = b'{"scenario_id": 1, "history": {"main_agent_history": [], "sub_agent_history": {}}}\n'
    paths = [file(first)]
    registry = gradestack.discover()
    alone = recognise(paths, registry, None).reader
    reader = recognise([file(first + result)], gradestack.discover(), None).reader
    assert reader == alone != "orchestrationbench"
    assert recognise([file(result)], gradestack.discover(), None).reader == "orchestrationbench"


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


@pytest.mark.parametrize(
    "length", [8 * MB, pytest.param(30 * MB, marks=pytest.mark.faults)], ids=["8 MB", "30 MB"]
)
@pytest.mark.parametrize("kind", some_of(LINES, 4))
def test_a_long_first_record_is_looked_at_once(bounded, tmp_path, kind, length):
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(LINES[kind](length))
    done = bounded("grade", "log.jsonl", "--output", "out")
    assert done.returncode == 3
    assert "the format is not recognised" in done.stderr
    assert (
        kind in {"a list of one", "a list of many"}
        or "its first line is longer than 64 KB" in done.stderr
    )


@pytest.mark.parametrize("begin", some_of(["[", ""], 2), ids=["list", "lines"])
@pytest.mark.parametrize(
    "length", [5 * MB, pytest.param(30 * MB, marks=pytest.mark.faults)], ids=["5 MB", "30 MB"]
)
def test_a_long_conversation_is_recognised(bounded, tmp_path, length, begin):
    """By all of it, or by its beginning where it is longer than what is looked at."""
    turns = [{"role": "user", "content": "x" * 2000}, {"role": "assistant", "content": "y" * 2000}]
    messages = turns * (length // 4000)
    record = json.dumps({"id": "a", "messages": messages})
    log_path = tmp_path / "log.jsonl"
    log_path.write_text(f"{begin}{record}{']' if begin else ''}\n")
    done = bounded("grade", "log.jsonl", "--output", "out", "--allow-all-failed")
    assert done.returncode == 0, done.stderr
    results_path = tmp_path / "out/results.jsonl"
    text = results_path.read_text()
    lines = text.splitlines()
    line_count = len(lines)
    assert line_count == 1


@pytest.mark.parametrize("records", [[{"at": 1}] * 99, [[1, 2]] * 99, ["text"] * 99])
@pytest.mark.parametrize("form", ["lines", "list", "document"])
def test_a_reader_looks_at_few_records_that_are_alike(file, records, form, monkeypatch):
    looks = []
    monkeypatch.setattr(RecordReader, "sniffed", 100)
    monkeypatch.setattr(RecordReader, "looks_like", lambda record: looks.append(record) or 0.0)
    lines = b"\n".join(json.dumps(record).encode() for record in records)
    document = json.dumps({"records": records}, indent=1).encode()
    text = {
        "lines": lines,
        "list": json.dumps(records).encode(),
        "document": document,
    }
    head = Beginning(file(text[form])).head
    assert RecordReader.sniff(None, head) == 0.0
    assert len(looks) <= 10


def test_a_record_of_another_kind_is_looked_at_behind_many_that_are_alike(file, monkeypatch):
    kinds = ["log"] * 60 + ["answer"] + ["log"] * 20
    monkeypatch.setattr(RecordReader, "sniffed", 100)
    monkeypatch.setattr(
        RecordReader, "looks_like", lambda record: 0.9 * (record != {"type": "log"})
    )
    text = "\n".join(json.dumps({"type": kind}) for kind in kinds)
    beginning = Beginning(file(text.encode()))
    assert RecordReader.sniff(None, beginning.head) == 0.3
