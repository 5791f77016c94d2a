"""RecordReader: a format that names its keys and writes sample_of is recognised, cut, numbered and
read with care.
"""

import json
import pickle

import attrs
import pytest

from gradestack import (
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    read_document,
    read_records,
    testing,
)
from gradestack.jsonio import Range
from tests.core.outcomes import data

DATA = data(__file__, "records.yaml")

HEAD = 64 * 1024
LAYOUTS = pytest.mark.parametrize("as_list", [False, True], ids=["lines", "list"])
SIZE = "gradestack.jsonio.records.SHARD_BYTES"


@attrs.frozen(kw_only=True)
class Quiz(RecordReader):
    """Questions and answers."""

    keys = frozenset({"question", "answer"})
    provides = frozenset({"input", "text", "native"})

    prefix: str = ""

    def sample_of(self, record, source):
        if record["answer"] == "odd":
            raise ValueError("the answer is odd")
        if record["answer"] == "deep":
            raise RecursionError
        question = str(record["question"])
        text = str(record["answer"])
        return Sample(
            id=self.prefix + question,
            text=text,
            source=source,
            native=record,
        )


@attrs.frozen(kw_only=True)
class Pairs(RecordReader):
    """One sample per answer of a question, from JSON Lines alone; blank ones give none."""

    layout = "lines"

    @classmethod
    def looks_like(cls, record):
        """Tell by the first key; text says nothing."""
        if isinstance(record, str):
            return None
        if "pairs" in record:
            return 0.8
        return 0.0

    def files(self, inputs, index):
        for input_file in inputs.data:
            yield RecordFile(input=input_file, most=9, extra="all")
            yield RecordFile(input=input_file, ranges=(Range(),), extra="once")

    def read(self, shard, index):
        if shard.extra == "all":
            yield from self.samples(shard, self.answers)

    def answers(self, record, source):
        samples = []
        for n in range(record["pairs"]):
            sample = Sample(id=f"{source.ordinal}/{n}", source=source)
            samples.append(sample)
        return samples


def quiz(question, reply="yes"):
    return {"question": question, "answer": reply}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes records, or a text, to a file."""

    def call(content, *, as_list=False, name="quiz.json"):
        if not isinstance(content, str):
            texts = []
            for record in content:
                texts.append(record if isinstance(record, str) else json.dumps(record))
            if as_list:
                content = f"[{', '.join(texts)}]"
            else:
                content = "".join(f"{text}\n" for text in texts)
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return call


def inputs_of(*paths):
    inputs = tuple(Input(path=path, name=path.stem, shown=path.name) for path in paths)
    return Inputs(data=inputs)


def shards_of(*paths, reader=None):
    shards = (reader or Quiz()).plan(inputs_of(*paths), None)
    return list(shards)


def read(*paths, reader=None):
    reader = reader or Quiz()
    shards = shards_of(*paths, reader=reader)
    return [sample for shard in shards for sample in reader.read(shard, None)]


def summaries(records):
    texts = []
    for record in records:
        texts.append(record.reason if isinstance(record, BadRecord) else record.id)
    pairs = zip(texts, records, strict=True)
    return [(text, record.source.line, record.source.ordinal) for text, record in pairs]


def sniff(path, reader=Quiz):
    return reader.sniff(path, path.read_bytes()[:HEAD])


@LAYOUTS
def test_a_format_keeps_the_contract_of_readers(write, tmp_path, as_list):
    path = write([quiz("a"), quiz("é", "\ud800"), quiz("c", None)], as_list=as_list)
    (tmp_path / "scratch").mkdir()
    reader = Quiz(prefix="q")
    scratch = tmp_path / "scratch"
    testing.check_reader(reader, path, scratch=scratch)
    samples = read(path, reader=Quiz(prefix="q"))
    ids = [sample.id for sample in samples]
    assert ids == ["qa", "qé", "qc"]


def test_lines_are_numbered_from_one_and_records_from_nought(write):
    """Blank lines count as lines; the line of a list's element is the one it begins on."""
    lines = write('\n{"question": 1, "answer": 2}\r\n  \n{"question": 2, "answer": 2}')
    records = read(lines)
    assert summaries(records) == [("1", 2, 1), ("2", 4, 3)]
    listed = write(
        '[\n{"question": 1,\n "answer": 2}, {"question": 2, "answer": 2},\n\n{"question": 3, '
        '"answer": 2}\n]'
    )
    assert summaries(read(listed)) == [("1", 2, 0), ("2", 3, 1), ("3", 5, 2)]


@LAYOUTS
def test_a_bad_record_is_told_and_the_others_are_read(write, as_list):
    records = [quiz(1), 7, None, {"question": 1}, {}, quiz(2, "odd"), quiz(3, "deep"), quiz(4)]
    texts = [text for text, *_ in summaries(read(write(records, as_list=as_list)))]
    assert texts == DATA["told_beside_a_bad_record"]
    bad = read(write(records, as_list=as_list))[5]
    assert bad.native == quiz(2, "odd")
    assert bad.source.ordinal == 5
    assert bad.source.file == "quiz.json"


def test_a_line_that_is_no_json_is_a_bad_record(write):
    records = read(
        write(
            [
                "{bad",
                quiz(1),
                '{"question": ',
                "\udcff".encode("utf-8", "surrogatepass").decode("latin1"),
            ]
        )
    )
    summaries_read = summaries(records)
    assert [text.partition(" at ")[0] for text, *_ in summaries_read] == DATA[
        "a_line_that_is_no_json_is_a_bad_record"
    ]


def test_a_document_over_several_lines_is_no_file_of_records(write):
    runs = [quiz(1)]
    text = json.dumps({"runs": runs}, indent=1)
    path = write(text)
    records = read(path)
    assert all(isinstance(record, BadRecord) for record in records)
    assert sniff(path) == 0.0


def test_an_empty_file_has_no_records(write):
    for text in ("", " \n\n", "[]", "[ ]\n"):
        assert read(write(text)) == []
        path = write(text)
        assert sniff(path) == 0.0


@LAYOUTS
@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_any_cut_gives_the_same_records(write, monkeypatch, as_list, size):
    records = []
    for n in range(60):
        reply = "yes"
        if n % 7 == 3:
            reply = "odd"
        records.append(quiz(n, reply))
    records[10:10] = [[1], {"question": 1}]
    paths = [
        write(records, as_list=as_list, name="a.json"),
        write(records[:9], as_list=as_list, name="b.json"),
    ]
    uncut = read(*paths)
    monkeypatch.setattr(SIZE, size)
    shards = pickle.loads(pickle.dumps(shards_of(*paths)))  # noqa: S301 - our own bytes
    assert len(shards) == 2 if size == 10_000 else len(shards) > 10
    expected = list(range(len(shards)))
    ordinals = [shard.ordinal for shard in shards]
    assert ordinals == expected
    parts = [list(Quiz().read(shard, None)) for shard in shards]
    assert [record for part in parts for record in part] == uncut
    for shard, part, later in zip(shards, parts, shards[1:], strict=False):
        assert shard.position + len(part) <= later.position


def test_a_layout_is_kept_to(write):
    class Lined(Quiz):
        layout = "lines"

    class Listed(Quiz):
        layout = "list"

    lines = write([quiz(1)], name="lines")
    listed = write([quiz(1)], as_list=True, name="list")
    assert [
        [sniff(path, reader) for path in (lines, listed)] for reader in (Quiz, Lined, Listed)
    ] == DATA["layouts"]
    records = read(listed, reader=Lined())
    reasons = [record.reason for record in records]
    assert reasons == ['expected an object, found [{"question": 1, "answer": "yes"}]']
    with pytest.raises(DataError, match=r"lines:1: expected a JSON list, found '\{'"):
        read(lines, reader=Listed())


@LAYOUTS
def test_a_file_is_recognised_by_its_first_records(write, as_list):
    """All keys and any others.

    What cannot be decoded hides nothing, objects of another format nearly everything.
    """
    path = write([quiz(1) | {"more": 1}], as_list=as_list)
    assert sniff(path) == 0.9
    assert sniff(write([{"question": 1}, 3, []], as_list=as_list)) == 0.0
    assert sniff(write([{"other": 1}, quiz(1)], as_list=as_list)) == 0.3
    assert sniff(write([quiz(1), {"other": 1}], as_list=as_list)) == 0.9
    assert sniff(write([{"other": 1}] * 9 + [quiz(1)], as_list=as_list)) == 0.3
    assert sniff(write([{"other": 1}] * 10 + [quiz(1)], as_list=as_list)) == 0.0
    assert sniff(write(["{bad}", quiz(1)], as_list=as_list)) == 0.9


def test_a_record_that_says_nothing_leaves_it_to_the_next(write):
    """None is no objection; 0.0 is one."""
    assert sniff(write(['"text"', {"pairs": 1}]), Pairs) == 0.8
    assert sniff(write([{"other": 1}, {"pairs": 1}]), Pairs) == 0.3
    assert sniff(write(['"text"']), Pairs) == 0.0
    path = write(['"text"'])
    head = path.read_bytes()
    recognised = Pairs.recognised(path, head)
    assert recognised is None


@LAYOUTS
@pytest.mark.parametrize("ours", [False, True])
def test_a_record_longer_than_the_head_is_read_whole(write, tmp_path, as_list, ours):
    """If it can be; else the names at its beginning tell."""
    note = "x" * HEAD
    path = write(
        [{"question": "q", "note": note, "answer" if ours else "reply": 1}], as_list=as_list
    )
    assert sniff(path) == (0.9 if ours else 0.0)
    head = path.read_bytes()[:HEAD]
    gone_folder = tmp_path / "gone"
    assert Quiz.sniff(gone_folder, head) == 0.0
    reader = head.replace(b'"note"', b'"answer"')
    assert Quiz.sniff(tmp_path / "gone", reader) == 0.6


@LAYOUTS
def test_a_record_too_long_to_be_read_is_told_by_its_names(write, monkeypatch, as_list):
    """No more is read than a part of it.

    Nothing more at all where its beginning speaks against it.
    """
    path = write([{"question": "q", "answer": "x" * 3 * HEAD}], as_list=as_list)
    monkeypatch.setattr("gradestack.jsonio.records._FAR", 2 * HEAD)
    assert sniff(path) == 0.6

    class Strict(Quiz):
        @classmethod
        def begins_like(cls, text):
            return 0.0

    head = path.read_bytes()[:HEAD]
    monkeypatch.setattr(type(path), "open", None)
    assert Strict.sniff(path, head) == 0.0


def test_directories_and_garbage_are_not_recognised(tmp_path):
    for head in (b"", b"\x00\xff", b"[" * 10_000, b'{"a":' * 10_000):
        assert Quiz.sniff(tmp_path, head) == 0.0
    assert RecordReader.sniff(tmp_path, b'{"a": 1}') == 0.0
    assert RecordReader.sniff(tmp_path, b'{"a": ') == 0.0


def test_a_record_may_give_any_number_of_samples(write):
    path = write([{"pairs": 3}, {"pairs": 0}, {"pairs": 9}, "{bad", {"pairs": 1}])
    shards = shards_of(path, path, reader=Pairs())
    status = path.stat()
    size = status.st_size + 1
    expected = [
        (0, "all", 0),
        (1, "once", 9 * size),
        (2, "all", 10 * size),
        (3, "once", 19 * size),
    ]
    assert [(shard.ordinal, shard.extra, shard.position) for shard in shards] == expected
    records = list(Pairs().read(shards[0], None))
    ids = [record.id for record in records if isinstance(record, Sample)]
    assert ids == ["0/0", "0/1", "0/2", *(f"2/{n}" for n in range(9)), "4/0"]
    lines = [record.source.line for record in records if isinstance(record, BadRecord)]
    assert lines == [4]


def test_a_file_that_cannot_be_read_is_named(write, tmp_path):
    path = write([quiz(1)])
    (shard,) = shards_of(path)
    with pytest.raises(DataError, match=r"^x: cannot be read: Is a directory$"):
        list(read_records(Input(path=tmp_path, name="x", shown="x")))
    path.unlink()
    with pytest.raises(DataError, match=r"^quiz\.json: cannot be read: No such file"):
        list(Quiz().read(shard, None))
    with pytest.raises(DataError, match=r"^quiz\.json: cannot be read: No such file"):
        shards_of(path)


@pytest.mark.parametrize(
    ("name", "relative", "shown"),
    [
        ("runs/", "", "runs/"),
        ("runs/", "a/b", "runs/a/b"),
        ("runs/c", "d", "runs/d"),
        ("runs", "/etc/b", "/etc/b"),
    ],
)
def test_files_below_or_beside_an_input(tmp_path, name, relative, shown):
    (tmp_path / "runs").mkdir()
    path = tmp_path / name
    other_input = Input(path=path, name="n", shown=name).below(relative)
    assert other_input.path == tmp_path / shown
    assert other_input.name == "n"
    assert other_input.shown == shown


@pytest.mark.parametrize(
    ("text", "value", "problem"), [("\ufeff[1]\n", [1], None), ("{", None, "not JSON")]
)
def test_a_document_is_one_record(tmp_path, text, value, problem):
    a_path = tmp_path / "a.json"
    a_path.write_text(text)
    path = tmp_path / "a.json"
    file = Input(path=path, name="a", shown="a.json")
    (record,) = read_document(file)
    assert record.ordinal == 0
    assert record.line == 1
    assert record.value == value
    assert ((record.problem or "")[:8] or None) == problem


def test_a_format_that_says_nothing_of_its_records_is_refused(write):
    with pytest.raises(
        NotImplementedError, match=r"RecordReader does not say.*sample_of is not written"
    ):
        read(write([{}]), reader=RecordReader())
