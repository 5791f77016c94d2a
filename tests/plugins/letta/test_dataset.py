"""Reader `letta_dataset`: JSON Lines and CSV."""

import json

import pytest

import gradestack
from gradestack import BadRecord, DataError, discover, testing
from gradestack.suites.recognition import recognise
from gradestack_plugins.letta.dataset import LettaDataset
from tests.core.outcomes import at, data

REGISTRY = discover(limit="")


def rows(letta, path):
    return letta.read(path, reader=LettaDataset())


def written(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


CSV = (
    'input,ground_truth,rubric_vars\nCapital of Norway?,Oslo,\n"Sum, please: 1+1",2,"{""a"": 1}"\n'
)


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_reader_keeps_the_contract(letta, tmp_path, name):
    if name.endswith(".csv"):
        path = written(tmp_path / name, CSV)
    else:
        path = letta.write(tmp_path / name, [{"input": "a", "ground_truth": "b"}, {"input": "c"}])
    testing.check_reader(LettaDataset(), path, scratch=tmp_path)


def test_the_fields_own_dataset_is_recognised_and_read(letta, reference_dataset):
    assert recognise([reference_dataset], REGISTRY, None).reader == "letta_dataset"
    text = reference_dataset.read_text(encoding="utf-8")
    lines = text.splitlines()
    raw = [json.loads(line) for line in lines]
    rows_read = rows(letta, reference_dataset)
    expected = [str(n) for n in range(len(raw))]
    ids = [sample.id for sample in rows_read]
    assert ids == expected
    inputs = [record["input"] for record in raw]
    assert [sample.input for sample in rows_read] == inputs
    texts = [sample.expected.text for sample in rows_read]
    ground_truths = [record["ground_truth"] for record in raw]
    assert texts == ground_truths


@pytest.mark.parametrize(("name", "line", "sure"), data(__file__, "cases.yaml")["sniffing"])
def test_sniffing(tmp_path, name, line, sure):
    path = tmp_path / name
    path.write_text(line if isinstance(line, str) else json.dumps(line), encoding="utf-8")
    assert LettaDataset.sniff(path, path.read_bytes()) == sure


@pytest.mark.parametrize("case", data(__file__, "datasets.yaml"))
def test_rows(letta, tmp_path, case):
    path = written(tmp_path / case["name"], case["text"])
    for row, wanted in zip(rows(letta, path), case["rows"], strict=True):
        assert isinstance(row, BadRecord) == ("reason" in wanted)
        cells = {name: at(row, name) for name in wanted}
        assert cells.pop("reason", "").startswith(wanted.get("reason", ""))
        values_by_name = {name: value for name, value in wanted.items() if name != "reason"}
        assert cells == values_by_name


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'input\na\n"open,b\n', r"d\.csv:3: .*never closed"),
        (b"input\n\xff\xfe\n", r"d\.csv:2: .*not UTF-8"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(letta, tmp_path, content, message):
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        rows(letta, path)


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_ids_may_stand_elsewhere(letta, tmp_path, name):
    """Rows of one id are then runs of one task; equal inputs may make them, too.

    A row without keeps its number.
    """
    records = [{"input": "a", "task": "x"}, {"input": "a", "task": "x"}, {"input": "b"}]
    if name.endswith(".csv"):
        path = written(tmp_path / name, "input,task\na,x\na,x\nb,\n")
    else:
        path = letta.write(tmp_path / name, records)
    letta_dataset = LettaDataset(ids="task")
    samples = letta.read(path, reader=letta_dataset)
    ids = [sample.id for sample in samples]
    assert ids == ["x", "x", "2"]
    assert samples[2].remarks == {"id_not_found": 1}
    reader = LettaDataset(ids="input")
    by_input = [sample.id for sample in letta.read(path, reader=reader)]
    assert by_input[0] == by_input[1] != by_input[2]


def test_a_dataset_without_runs_is_refused_with_what_is_missing(tmp_path):
    """Nothing an agent did can be graded in it; it can be joined to runs."""
    path = tmp_path / "questions.csv"
    path.write_text("input\nWhat is the capital?\n", encoding="utf-8")
    with pytest.raises(gradestack.ConfigError) as caught:
        gradestack.grade_files(path)
    message = (
        f"{path}: no column for the agent's answer (read as letta_dataset): map one (--map "
        "text=COLUMN), or grade"
    )
    expected_text = f"{message} the file of its runs with this one as --dataset"
    assert expected_text in str(caught.value)
