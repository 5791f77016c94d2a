"""Which samples count: the first tasks, certain tags, the last of several duplicates."""

import pytest

from gradestack import DataError, Sample
from gradestack.grading.selection import Selection, digests, tags_of

RECORDS = [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 2), ("c", 2)]


@pytest.fixture(params=[1, 10_000], ids=["many shards", "one shard"])
def run(run_lines, record, request, monkeypatch):
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", request.param)
    tags = {"a": ["easy", "short"], "b": "easy", "c": [5]}

    def call(**suite):
        records = [record(task, 1.0, run=trial, facets={"tags": tags[task]}) for task, trial in RECORDS]
        report = run_lines(records, **suite)
        return [(row["sample"]["id"], row["run"]) for row in report.rows()]

    return call


@pytest.mark.parametrize(
    ("count", "tasks"),
    [(0, "abc"), (1, "a"), (2, "ab"), (3, "abc"), (9, "abc")],
    ids=["all", "one", "two", "three", "nine"],
)
def test_the_first_tasks_with_all_their_runs(run, count, tasks):
    """max_samples counts tasks; 0 means no limit."""
    assert run(max_samples=count) == [(task, trial) for task, trial in RECORDS if task in tasks]


@pytest.mark.parametrize(("tags", "tasks"), [(["easy"], "ab"), (["short", "x"], "a"), (["hard"], "")])
def test_samples_with_one_of_the_tags(run, tags, tasks):
    if not tasks:
        with pytest.raises(DataError, match=r"no sample is left after the suite's limits\n.*sample_tags: hard"):
            run(sample_tags=tags)
    else:
        assert run(sample_tags=tags) == [(task, trial) for task, trial in RECORDS if task in tasks]


def test_tags_of_the_dataset_count(run_lines, record, write_lines):
    """Recordings rarely carry them; a sample's own go before its row's. What is not chosen is not missing either."""
    tags = {"a": ["easy"], "b": ["hard"], "c": ["easy"], "d": ["easy"], "e": ["hard"]}
    rows = [{"id": name, "expected": "x", "facets": {"tags": each}} for name, each in tags.items()]
    gold = write_lines(rows, "gold.jsonl")
    records = [record("a", 1.0), record("b", 1.0), record("c", 1.0, facets={"tags": ["own"]})]
    report = run_lines(records, dataset=str(gold), sample_tags=["easy"])
    assert [(row["sample"]["id"], row["state"]) for row in report.rows()] == [("a", "graded"), ("d", "missing")]


def test_a_dataset_is_cut_to_its_first_rows(run_lines, record, write_lines):
    gold = write_lines([{"id": name, "expected": "x"} for name in "zab"], "gold.jsonl")
    report = run_lines([record("a", 1.0), record("b", 1.0)], dataset=str(gold), max_samples=2)
    assert [(row["sample"]["id"], row["state"]) for row in report.rows()] == [("a", "graded"), ("z", "missing")]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [(None, set()), ("x", {"x"}), (["x", 5, None, "y"], {"x", "y"}), (("x",), {"x"}), ({"x": 1}, set()), (5, set())],
)
def test_tags(tags, expected):
    assert tags_of(Sample(id="a", facets={"tags": tags})) == expected


def test_identities():
    made = [
        Sample(id="a"),
        Sample(id="a", run=1),
        Sample(id="a", run="1"),
        Sample(id="a", model="m"),
        Sample(id="a", model=""),
        Sample(id="\ud800"),
        Sample(id='a", null'),
    ]
    assert len(set(digests(made))) == len(made)
    assert len(set(digests([Sample(id="a", text="x"), Sample(id="a", text="y")]))) == 1


def test_without_limits_everything_is_taken():
    assert Selection().takes(Sample(id="a"), (0, 0))


class Name(str):
    """A text of a class of its own, as some libraries return them."""

    __slots__ = ()


@pytest.mark.parametrize("text", ["a", "é\u2028\x7f", '"\\/\n\x1f', "\ud800", "x\udfff"])
@pytest.mark.parametrize("run", [None, 0, -(10**30), 2**64, "0"])
def test_one_identity_has_one_digest(text, run):
    (plain,) = digests([Sample(id=text, model=text, run=run)])
    assert digests([Sample(id=Name(text), model=Name(text), run=run)]) == [plain]
    assert 0 <= plain < 2**64
    assert plain not in digests([Sample(id=text, model=None, run=run), Sample(id=text, model=text, run="1")])
