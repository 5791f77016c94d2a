"""Reader `letta_dataset`: JSON Lines and CSV."""

from __future__ import annotations

import json

import pytest

import gradestack
from gradestack import BadRecord, DataError, Inputs, Sample, discover, testing
from gradestack.suites.inputs import name_inputs, recognise
from gradestack_plugins.letta.dataset import LettaDataset
from tests.core.outcomes import data

PROFILES = pytest.mark.parametrize("profile", ["documented", "upstream"])
REGISTRY = discover(limit="")


def rows(letta, path, profile="documented"):
    """Return what the reader yields for a dataset."""
    return letta.read(path, reader=LettaDataset(profile=profile))


def written(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


CSV = 'input,ground_truth,rubric_vars\nCapital of Norway?,Oslo,\n"Sum, please: 1+1",2,"{""a"": 1}"\n'


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_reader_keeps_the_contract(letta, tmp_path, name):
    if name.endswith(".csv"):
        path = written(tmp_path / name, CSV)
    else:
        path = letta.write(tmp_path / name, [{"input": "a", "ground_truth": "b"}, {"input": "c"}])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    testing.check_reader(LettaDataset(), path, scratch=scratch)


def test_the_fields_own_dataset_is_recognised_and_read(letta, reference_dataset):
    assert recognise([reference_dataset], REGISTRY, None).reader == "letta_dataset"
    raw = [json.loads(line) for line in reference_dataset.read_text(encoding="utf-8").splitlines()]
    for profile in ("documented", "upstream"):
        found = rows(letta, reference_dataset, profile)
        assert [sample.id for sample in found] == [str(n) for n in range(len(raw))]
        assert [sample.input for sample in found] == [record["input"] for record in raw]
        assert [sample.expected.text for sample in found] == [record["ground_truth"] for record in raw]


@pytest.mark.parametrize(("name", "line", "sure"), data(__file__, "cases.yaml")["sniffing"])
def test_sniffing(tmp_path, name, line, sure):
    path = tmp_path / name
    path.write_text(line if isinstance(line, str) else json.dumps(line), encoding="utf-8")
    assert LettaDataset.sniff(path, path.read_bytes()) == sure


def test_a_byte_order_mark_is_no_matter(letta, tmp_path):
    path = written(tmp_path / "d.csv", "\ufeff" + CSV)
    assert LettaDataset.sniff(path, path.read_bytes()) == 0.8
    assert len(rows(letta, path)) == 2
    path = written(tmp_path / "d.jsonl", '\ufeff{"input": "a", "ground_truth": "b"}\n')
    assert LettaDataset.sniff(path, path.read_bytes()) == 0.6
    assert rows(letta, path)[0].input == "a"


@PROFILES
def test_json_rows(letta, tmp_path, profile):
    """Text and list inputs and references; the id is the row's number from 0; metadata and tags are facets."""
    path = letta.write(
        tmp_path / "d.jsonl",
        [
            {"input": "a", "ground_truth": "b"},
            {"prompt": "c"},
            {"input": ["d", "e"], "ground_truth": ["f", "g"], "metadata": {"topic": "t", "rubric_vars": {}}},
            {"input": ["h", "i"], "ground_truth": "one for both", "tags": ["x"], "agent_args": {"a": 1}},
        ],
    )
    first, second, third, fourth = rows(letta, path, profile)
    assert [sample.id for sample in (first, second, third, fourth)] == ["0", "1", "2", "3"]
    assert (first.input, first.expected.text, first.expected.label) == ("a", "b", "b")
    assert (second.input, second.expected.text) == ("c", None)
    assert (third.input, third.expected.text, third.expected.label) == (("d", "e"), ("f", "g"), None)
    assert third.facets == {"topic": "t"}
    assert (fourth.expected.text, fourth.facets) == ("one for both", {"tags": ["x"]})
    assert (third.source.ordinal, third.source.line) == (2, 3)


def test_ids(letta, tmp_path):
    """Documented honours sample_id, then id; upstream counts rows."""
    path = letta.write(
        tmp_path / "d.jsonl", [{"input": "a", "id": "x"}, {"input": "b", "sample_id": 7, "id": "y"}, {"input": "c"}]
    )
    assert [sample.id for sample in rows(letta, path)] == ["x", "7", "2"]
    assert [sample.id for sample in rows(letta, path, "upstream")] == ["0", "1", "2"]


def test_repeated_ids_are_refused(letta, tmp_path):
    """A second row of the same id is a mistake, also when an explicit id meets a row's number."""
    path = letta.write(tmp_path / "d.jsonl", [{"input": "a", "id": 1}, {"input": "b"}])
    bad = rows(letta, path)[1]
    assert isinstance(bad, BadRecord)
    assert bad.reason == "id '1' stands on line 1 already"


@pytest.mark.parametrize(
    ("truth", "expected"),
    [(42, "42"), (True, "true"), ({"a": 1}, '{"a": 1}'), ([1, 2], "[1, 2]"), (["x", "y"], ("x", "y"))],
)
def test_references_that_are_no_text(letta, tmp_path, truth, expected):
    """Documented takes other JSON values as their text, and lists of texts as they are; upstream refuses them."""
    path = letta.write(tmp_path / "d.jsonl", [{"input": "a", "ground_truth": truth}])
    (sample,) = rows(letta, path)
    assert sample.expected.text == expected
    (bad,) = rows(letta, path, "upstream")
    assert isinstance(bad, BadRecord)
    assert "ground_truth" in bad.reason


@PROFILES
@pytest.mark.parametrize(("line", "reason"), data(__file__, "cases.yaml")["bad_rows"])
def test_bad_json_rows(letta, tmp_path, profile, line, reason):
    path = letta.write(tmp_path / "d.jsonl", [{"input": "good"}, line])
    good, bad = rows(letta, path, profile)
    assert good.input == "good"
    assert isinstance(bad, BadRecord)
    assert (bad.source.line, reason in bad.reason) == (2, True)


def test_a_file_that_goes_away_is_told(letta, tmp_path):
    path = letta.write(tmp_path / "d.jsonl", [{"input": "a"}])
    inputs = Inputs(data=name_inputs([path]))
    (shard,) = LettaDataset().plan(inputs, None)
    path.unlink()
    for reading in (LettaDataset().plan(inputs, None), LettaDataset().read(shard, None)):
        with pytest.raises(DataError, match=r"d\.jsonl: cannot be read"):
            list(reading)


def test_ids_of_other_types_are_refused(letta, tmp_path):
    (bad,) = rows(letta, letta.write(tmp_path / "d.jsonl", [{"input": "a", "id": 1.5}]))
    assert "id must be a text or a whole number" in bad.reason


def test_empty_files_are_refused(letta, tmp_path):
    for path, message in (
        (written(tmp_path / "a.jsonl", ""), "the dataset is empty"),
        (written(tmp_path / "a.csv", ""), "the dataset is empty"),
        (
            written(tmp_path / "b.csv", "question,answer\n1,2\n"),
            "a column 'input' is needed; there are: question, answer",
        ),
        (tmp_path, "is a directory"),
    ):
        with pytest.raises(DataError, match=message) as refused:
            rows(letta, path)
        assert str(path) in str(refused.value)


@PROFILES
def test_csv_rows(letta, tmp_path, profile):
    """Cells: a JSON list of texts is a list of turns, JSON objects are decoded, an empty cell is no value."""
    path = written(
        tmp_path / "d.csv",
        "input,ground_truth,agent_args,metadata,tags,more\n"
        'a,b,"{""x"": 1}","{""topic"": ""t""}","x, y",ignored\n'
        '"[""c"", ""d""]","[""e"", ""f""]",,,"[""z""]",\n'
        '[not a list],"[1, 2]",,,,\n'
        '"two\nlines",,,,,\n',
    )
    first, second, third, fourth = rows(letta, path, profile)
    assert (first.id, first.input, first.expected.text) == ("0", "a", "b")
    assert first.facets == {"topic": "t", "tags": ["x", "y"]}
    assert (second.input, second.expected.text, second.facets) == (("c", "d"), ("e", "f"), {"tags": ["z"]})
    assert (third.input, third.expected.text) == ("[not a list]", "[1, 2]")
    assert (fourth.id, fourth.input, fourth.expected.text) == ("3", "two\nlines", None)
    assert (fourth.source.ordinal, fourth.source.line) == (3, 5)


def test_csv_rows_are_told_by_the_line_they_begin_on(letta, tmp_path):
    """The header, blank lines and cells of several lines count."""
    path = written(tmp_path / "d.csv", 'input,ground_truth\na,b,c\n\n"d\ne",f\ng,h,i\n')
    first, second, third = rows(letta, path)
    assert (first.reason, second.input) == ('more cells than columns: ["c"]', "d\ne")
    assert [found.source.line for found in (first, second, third)] == [2, 4, 6]


def test_csv_ids_and_prompt(letta, tmp_path):
    """The columns sample_id and id are honoured in documented; prompt stands for input."""
    path = written(tmp_path / "d.csv", "id,prompt\nx,a\n,b\n")
    assert [(sample.id, sample.input) for sample in rows(letta, path)] == [("x", "a"), ("1", "b")]
    assert [sample.id for sample in rows(letta, path, "upstream")] == ["0", "1"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a,b,c", "more cells than columns"),
        ('a,"{"', "rubric_vars must hold a JSON object"),
        ("a,[1]", "rubric_vars must hold a JSON object"),
    ],
)
def test_bad_csv_rows(letta, tmp_path, line, reason):
    (bad,) = rows(letta, written(tmp_path / "d.csv", f"input,rubric_vars\n{line}\n"))
    assert isinstance(bad, BadRecord)
    assert reason in bad.reason


@pytest.mark.parametrize("line", ['"open,b', 'a,"b" c'])
def test_csv_with_quotes_that_do_not_match(letta, tmp_path, line):
    """Documented ends there, with the place; upstream guesses, which may merge rows."""
    path = written(tmp_path / "d.csv", f"input,ground_truth\nq,a\n{line}\nr,c\n")
    first, bad = rows(letta, path, profile="documented")
    assert (first.input, bad.source.line) == ("q", 3)
    assert bad.reason.startswith("not CSV: ")
    assert all(isinstance(row, Sample) for row in rows(letta, path, profile="upstream"))


def test_csv_that_breaks_off(letta, tmp_path):
    path = written(tmp_path / "d.csv", 'input\na\n"' + "x" * 200_000 + '"\nb\n')
    good, bad = rows(letta, path)
    assert (good.input, "not CSV" in bad.reason) == ("a", True)
    path.write_bytes(b"input\n\xff\xfe\n")
    with pytest.raises(DataError, match="cannot be read"):
        rows(letta, path)


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_ids_may_stand_elsewhere(letta, tmp_path, name):
    """Rows of one id are then runs of one task; equal inputs may make them, too; a row without keeps its number."""
    records = [{"input": "a", "task": "x"}, {"input": "a", "task": "x"}, {"input": "b"}]
    if name.endswith(".csv"):
        path = written(tmp_path / name, "input,task\na,x\na,x\nb,\n")
    else:
        path = letta.write(tmp_path / name, records)
    found = letta.read(path, reader=LettaDataset(ids="task"))
    assert [sample.id for sample in found] == ["x", "x", "2"]
    assert found[2].remarks == {"id_not_found": 1}
    by_input = [sample.id for sample in letta.read(path, reader=LettaDataset(ids="input"))]
    assert by_input[0] == by_input[1] != by_input[2]


def test_a_dataset_without_runs_is_refused_with_what_is_missing(tmp_path):
    """Nothing an agent did can be graded in it; it can be joined to runs."""
    path = tmp_path / "questions.csv"
    path.write_text("input\nWhat is the capital?\n", encoding="utf-8")
    with pytest.raises(gradestack.ConfigError) as caught:
        gradestack.grade_files(path)
    said = f"{path}: the format 'letta_dataset' holds what was asked or expected, and nothing of what an agent did"
    assert f"{said}; grade the file of its runs, with this one as --dataset, or name another --reader" in str(
        caught.value
    )
