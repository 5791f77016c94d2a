"""Records of all kinds: joined with datasets, repeated, broken, hostile."""

import pytest

from gradestack import DataError


def test_a_dataset_is_joined_by_id(run_lines, write_lines):
    """Expectations come from it.

    Rows nobody answered are missing, per model, and counted in the total only.
    """
    gold = write_lines(
        [{"id": str(n), "expected": [{"name": "f"}], "input": f"q{n}"} for n in range(3)],
        "gold.jsonl",
    )
    call = [{"name": "f"}]
    records = [
        {"id": "0", "model": "m", "predicted": call},
        {"id": "2", "model": "m", "predicted": []},
        {"id": "1", "model": "n", "predicted": call},
        {"id": "9", "model": "n", "predicted": call},
    ]
    report = run_lines(records, graders={"q": "tau_partial"}, dataset=str(gold))
    rows = []
    for row in report.rows():
        model_name = row["model_name"]
        sample = row["sample"]
        state = row["state"]
        rows.append((model_name, sample["id"], state, row["sample"]["input"]))
    assert rows == [
        ("m", "0", "graded", "q0"),
        ("m", "2", "graded", "q2"),
        ("n", "1", "graded", "q1"),
        ("n", "9", "skipped", None),
        ("m", "1", "missing", "q1"),
        ("n", "0", "missing", "q0"),
        ("n", "2", "missing", "q2"),
    ]
    assert report.states["q"] == {"graded": 3, "skipped": 1, "failed": 0, "missing": 3}
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == pytest.approx(2 / 3, abs=0)
    avg_score_total = report.metrics["avg_score_total"]
    assert avg_score_total == pytest.approx(2 / 6, abs=0)
    per_model = {
        row["model_name"]: (row["total"], row["total_attempted"])
        for row in report.metrics["per_model"]
    }
    assert per_model == {"m": (3, 2), "n": (4, 1)}


def test_a_dataset_and_no_readable_record_is_no_run(run_lines, write_lines):
    """All missing because nothing could be read is unusable input, not a result."""
    gold = write_lines([{"id": "0", "expected": "x"}], "gold.jsonl")
    with pytest.raises(DataError, match="no record could be read"):
        run_lines(["broken"], dataset=str(gold))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": "a", "expected": "x"}', "{oops"], r"gold\.jsonl:2: not JSON"),
        ([], "the file is empty"),
    ],
)
def test_a_broken_dataset_is_refused(run_lines, write_lines, record, lines, message):
    """A reference that is half there would give wrong figures quietly."""
    gold = write_lines(lines, "gold.jsonl")
    with pytest.raises(DataError, match=message):
        run_lines([record("a")], dataset=str(gold))


TWICE = [("a", 0.0, None), ("b", 1.0, None), ("a", 1.0, None), ("a", 0.5, 1), ("a", 0.25, None)]


def twice(record):
    return [record(identifier, score, run=run) for identifier, score, run in TWICE]


@pytest.mark.parametrize("size", [1, 10_000])
def test_duplicates_are_kept_and_told(run_lines, record, small_shards, size):
    small_shards(size)
    report = run_lines(twice(record))
    duplicates = report.summary["duplicates"]
    assert duplicates == {
        "policy": "keep",
        "count": 2,
        "listed": ["runs.jsonl:3", "runs.jsonl:5"],
    }
    warnings = report.summary["warnings"]
    assert warnings == [
        "2 record(s) repeat an (id, model, run), the first at runs.jsonl:3; all are kept"
    ]
    total = report.metrics["total"]
    assert total == 5


@pytest.mark.parametrize("size", [1, 10_000])
def test_the_last_duplicate_can_win(run_lines, record, small_shards, size):
    small_shards(size)
    report = run_lines(twice(record), duplicates="last")
    rows = report.rows()
    assert [(row["sample"]["id"], row["run"], row["grade"]["score"]) for row in rows] == [
        ("b", None, 1.0),
        ("a", 1, 0.5),
        ("a", None, 0.25),
    ]


@pytest.mark.parametrize("size", [1, 10_000])
def test_duplicates_can_be_refused(run_lines, record, small_shards, size, tmp_path):
    small_shards(size)
    with pytest.raises(
        DataError,
        match=r"runs\.jsonl:3: repeats an \(id, model, run\) .* `duplicates: keep` or `last`",
    ):
        run_lines(twice(record), duplicates="error")
    paths = tmp_path.iterdir()
    names = [path.name for path in paths]
    assert names == ["runs.jsonl"]


def test_bad_records_are_counted_and_listed(run_lines, record):
    report = run_lines([record("a", 1.0), "{oops", "[1]", record("b", 1.0)])
    listed = report.summary["bad_records"]["listed"]
    reason = listed[0]["reason"]
    assert report.summary["bad_records"] == {
        "count": 2,
        "listed": [
            {
                "file": "runs.jsonl",
                "line": 2,
                "ordinal": 1,
                "reason": reason,
            },
            {
                "file": "runs.jsonl",
                "line": 3,
                "ordinal": 2,
                "reason": "record: expected an object, got [1]",
            },
        ],
    }
    bad_records = report.summary["bad_records"]
    expected = bad_records["listed"][0]["reason"]
    assert "not JSON" in expected
    total = report.metrics["total"]
    assert total == 2
    assert report.exit_code == 0


HOSTILE = {
    "nan": '{"id": "x", "predicted": "y", "recorded": {"score": NaN}, "usage": [NaN, -Infinity, '
    "1e400]}",
    "deep": '{"id": "x", "predicted": "y", "usage": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "surrogate": '{"id": "x\\ud800", "predicted": "\\udfff", "facets": {"\\ud800": "\\udc00"}, '
    '"model": "\\ud800"}',
    "huge": '{"id": "x", "predicted": "y", "usage": ' + "9" * 4000 + "}",
    "beyond": '{"id": "x", "predicted": "y", "usage": ' + "9" * 5000 + "}",
    "utf8": '{"id": "x", "predicted": "\udce9"}',
    "types": '{"id": [], "predicted": 5}',
    "null": "null",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_records_do_not_end_a_run(run_lines, record, name, toys):
    """Each is graded, failed or listed as bad, and the next record is graded; pages are written."""
    report = run_lines(
        [record("before", 1.0), HOSTILE[name], record("after", 1.0)],
        reports=["html", "markdown", "dump"],
    )
    assert "broken" not in report.summary
    scores = {}
    for row in report.rows():
        scores[row["sample"]["id"]] = row["grade"]["state"]
    assert scores["before"] == scores["after"] == "graded"
    total = report.metrics["total"]
    bad_records = report.summary["bad_records"]
    assert total + bad_records["count"] == 3
    files = toys.files_of(report.path)
    for data in files.values():
        data.decode("utf-8")


@pytest.mark.parametrize("depth", [150, 400, 700, *range(900, 1000, 7)])
def test_every_depth_is_read_or_refused(run_lines, record, depth):
    """At the edge of what the interpreter can nest, reader, rows and pages all hold."""
    value = "[" * depth + "]" * depth
    places = [
        f'"usage": {value}',
        f'"expected": {{"plan": {value}}}',
        f'"facets": {{"x": {value}}}',
        f'"model": {value}',
    ]
    lines = [f'{{"id": "x", "predicted": "y", {member}}}' for member in places]
    report = run_lines([record("before", 1.0), *lines], reports=["html", "markdown"])
    assert "broken" not in report.summary
    total = report.metrics["total"]
    bad_records = report.summary["bad_records"]
    assert total + bad_records["count"] == 5


def test_huge_scores_do_not_poison_the_sums(run_lines, record):
    """Finite but absurd: failed grades, the average is of the others."""
    report = run_lines([record("a", 1.0), record("b", 1.7e308), record("c", 1.7e308)])
    avg_score_attempted = report.metrics["avg_score_attempted"]
    assert avg_score_attempted == 1.0
    quality = report.states["quality"]
    assert quality["failed"] == 2
