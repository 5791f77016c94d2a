"""The run loop: from suite to run directory, the same bytes whatever the split, results kept whatever breaks."""

import functools
import json
import random
from datetime import datetime
from pathlib import Path

import pytest

import gradestack
from gradestack.errors import ConfigError, DataError, PluginError
from gradestack.facade import load_suite
from gradestack.jsontext import dumps, line_ranges
from gradestack.rows import grade_from_json, key_from_row
from gradestack.store import is_run
from gradestack_plugins.readers import jsonl

DO_SKIP, DO_RAISE, DO_STOP = (
    {"recorded": {"do": "skip"}},
    {"recorded": {"do": "raise"}},
    {"recorded": {"do": "interrupt"}},
)


@pytest.fixture
def small_shards(monkeypatch):
    """Return a function that makes the jsonl reader cut its files into ranges of a size."""

    def cut(size):
        monkeypatch.setattr(jsonl, "line_ranges", functools.partial(line_ranges, size=size))

    return cut


@pytest.fixture
def noon(monkeypatch):
    """Stop the clock: pages show the moment of the run, which is in header.json."""

    class Clock:
        @staticmethod
        def now(zone):
            return datetime(2031, 2, 3, 12, 0, 5, tzinfo=zone)

    monkeypatch.setattr("gradestack.runner.datetime", Clock)


def read(report, name="summary.json"):
    return json.loads((report.path / name).read_text(encoding="utf-8"))


def ids(report):
    return [row["sample"]["id"] for row in report.rows()]


# what a run comes to


def test_a_run_directory(run_lines, record, toys):
    """Rows, summary, header; nothing else without pages and exporters, and nothing left beside it."""
    report = run_lines([record("a", 1.0), record("b", 0.25)])
    assert sorted(toys.files_of(report.path)) == ["header.json", "results.jsonl", "summary.json"]
    assert [path.name for path in report.path.parent.iterdir() if path.name != "runs.jsonl"] == ["out"]
    assert is_run(report.path)
    assert ids(report) == ["a", "b"]
    assert dict(report.summary) == read(report)
    assert dict(report.header) == read(report, "header.json")


def test_the_summary_spells_out_every_figure(run_lines, record):
    """1, 0.5 and 0 graded, one skipped, one failed: 1.5/3 and 1.5/5, and two of three pass the gate's 0.5."""
    records = [record("a", 1.0), record("b", 0.5), record("c", 0.0), record("d", **DO_SKIP), record("e", **DO_RAISE)]
    report = run_lines(records, gate={"op": "gte", "value": 0.5})
    summary = read(report)
    figures = {"avg_score_attempted": 0.5, "avg_score_total": 0.3, "passed_attempts": 2, "failed_attempts": 1}
    rate = 100 * 2 / 3
    assert summary["metrics"] == {
        "total": 5,
        "total_attempted": 3,
        **figures,
        "per_model": None,
        "by_metric": {"quality": {**figures, "pass_rate": rate}},
        "metrics": {"quality": rate},
        "states": {"quality": {"graded": 3, "skipped": 1, "failed": 1, "missing": 0}},
        "aggregates": {
            "quality": {
                "toy_count": {
                    "outcomes": {"failed": 1, "graded": 3, "skipped": 1},
                    "sum": 1.5,
                    "ids": ["a", "b", "c", "d", "e"],
                }
            }
        },
    }
    assert summary["gates"] == [
        {
            "metric_key": "quality",
            "metric": "avg_score",
            "op": "gte",
            "value": 0.5,
            "text": "quality >= 0.5",
            "actual": 0.5,
            "passed": True,
            "outcome": "passed",
        }
    ]
    assert summary["gates_passed"] is True
    assert (summary["suite"], summary["bad_records"], summary["warnings"]) == ("toys", {"count": 0, "listed": []}, [])
    assert summary["duplicates"] == {"policy": "keep", "count": 0, "listed": []}
    assert report.exit_code == 0


def test_states_are_never_zeros(run_lines, record):
    """Nothing could be graded: the average is null, the gate has no data and fails."""
    report = run_lines([record("a", **DO_SKIP), record("b", **DO_RAISE)], gate={"op": "lte", "value": 1})
    assert report.metrics["avg_score_attempted"] is None
    assert report.metrics["by_metric"]["quality"]["pass_rate"] is None
    assert (report.gates[0]["outcome"], report.gates[0]["actual"], report.passed, report.exit_code) == (
        "no_data",
        None,
        False,
        1,
    )
    upstream = run_lines([record("a", **DO_SKIP)], gate={"op": "lte", "value": 1}, profile="upstream")
    assert (upstream.metrics["avg_score_attempted"], upstream.gates[0]["actual"], upstream.passed) == (0.0, 0.0, True)


def test_models_are_told_apart(run_lines, record):
    """In the order of their first sample; overall figures are over all of them."""
    records = [record("a", 1.0, model="z"), record("a", 0.0, model="b"), record("b", 0.0, model="z")]
    report = run_lines(records)
    rows = report.metrics["per_model"]
    assert [(row["model_name"], row["total"], row["avg_score_attempted"], row["passed_samples"]) for row in rows] == [
        ("z", 2, 0.5, 1),
        ("b", 1, 0.0, 0),
    ]
    assert rows[0]["metrics"] == {"quality": 50.0}
    assert report.metrics["avg_score_attempted"] == pytest.approx(1 / 3, abs=0)


def test_several_graders(run_lines, record):
    """The first is the headline, or the one the gate names; a row has the grades of all."""
    graders = {"zeta": {"kind": "toy", "factor": 0.5}, "alpha": "toy"}
    report = run_lines([record("a", 1.0)], graders=graders)
    assert report.metrics["avg_score_attempted"] == 0.5
    assert {key: each["avg_score_attempted"] for key, each in report.metrics["by_metric"].items()} == {
        "zeta": 0.5,
        "alpha": 1.0,
    }
    (row,) = report.rows()
    assert (row["grade"]["score"], row["grades"]["alpha"]["score"]) == (0.5, 1.0)
    gated = run_lines([record("a", 1.0)], graders=graders, gate={"metric_key": "alpha", "op": "gte", "value": 1})
    assert gated.metrics["avg_score_attempted"] == 1.0


def test_the_header_says_what_ran(run_lines, record, write_lines, tmp_path):
    """Versions, options, fingerprints of the inputs; the one file that may differ between runs."""
    report = run_lines([record("a", 1.0)], graders={"q": {"kind": "toy", "factor": 2, "names": ["x"]}})
    header = report.header
    assert (header["generator"], header["suite_name"], header["version"]) == (
        "gradestack",
        "toys",
        gradestack.__version__,
    )
    assert header["timestamp"].endswith("+00:00")
    (grader,) = [each for each in header["components"] if each["kind"] == "grader"]
    assert grader == {
        "kind": "grader",
        "key": "q",
        "name": "toy",
        "version": "7",
        "distribution": "local 0",
        "options": {"factor": 2, "names": ["x"], "profile": "documented"},
    }
    (given,) = header["inputs"]
    import hashlib

    data = (tmp_path / "runs.jsonl").read_bytes()
    assert given == {
        "path": str(tmp_path / "runs.jsonl"),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


# the same bytes


MIXED = [
    {
        "id": f"t{number % 40}",
        "run": number // 40,
        "model": "ab"[number % 2],
        "predicted": "é",
        "recorded": {"score": score},
    }
    for number, score in enumerate(random.Random(5).choices([0.0, 1.0, 0.1, 1 / 3, 1e-17, 0.7], k=120))  # noqa: S311 - test data
]
for _position in (3, 50, 119):
    MIXED[_position]["recorded"] = {"do": "raise"}
for _position in (7, 60):
    MIXED[_position]["recorded"] = {"do": "skip"}
LINES = [
    *map(json.dumps, MIXED[:30]),
    "not json",
    "",
    '{"id": 5.5}',
    *map(json.dumps, MIXED[30:]),
    json.dumps(MIXED[0]),
]
RICH = {
    "graders": {"quality": "toy", "other": {"kind": "toy", "factor": 0.3}},
    "metrics": {
        "average": "mean",
        "others": {"kind": "mean", "of": "other"},
        "hat": {"kind": "pass_hat_k", "of": "quality"},
        "partial": {"kind": "partial_statistics", "of": "quality"},
        "binary": {"kind": "binary", "of": "other"},
    },
    "gate": {"op": "gte", "value": 0.4},
    "reports": ["dump", "html", "markdown"],
}


@pytest.fixture(scope="session")
def with_echo(toys):
    """The registry with an exporter for jsonl."""
    return toys.make_registry(toys.component("exporter", "echo", "Echo"))


def test_rerunning_gives_the_same_bytes(run_lines, toys, with_echo, noon):
    """All files but the header, pages and native files included."""
    first = toys.files_of(run_lines(LINES, using=with_echo, **RICH).path, "header.json")
    second = toys.files_of(run_lines(LINES, output="again", using=with_echo, **RICH).path, "header.json")
    assert set(first) == {
        "results.jsonl",
        "summary.json",
        "dump.json",
        "report.html",
        "report.md",
        "native/echo.json",
        "native/figures.json",
    }
    assert first == second


def test_where_the_input_lies_does_not_show(tmp_path, write_lines, toys, with_echo, monkeypatch, noon):
    """Nothing but the header depends on directories, and no other file holds an absolute path."""
    found = []
    for place, relative in (("one", False), ("some/where/else", True)):
        path = write_lines(LINES, f"{place}/runs.jsonl")
        monkeypatch.chdir(path.parent)
        given = path.name if relative else str(path)
        suite = {"name": "x", "target": {"paths": [given]}, **RICH, "engine": "serial"}
        report = gradestack.run(suite, output=tmp_path / f"{place}-out", registry=with_echo)
        found.append(toys.files_of(report.path, "header.json"))
    assert found[0] == found[1]
    assert not any(str(tmp_path).encode() in data for data in found[0].values())


@pytest.mark.parametrize("size", [1, 100, 333, 1000, 5000])
def test_any_split_into_shards_gives_the_same_bytes(run_lines, small_shards, toys, with_echo, size, noon):
    """One record per shard or all in one: rows, figures, pages and native files are the same."""
    whole = toys.files_of(run_lines(LINES, using=with_echo, **RICH).path, "header.json")
    small_shards(size)
    split = toys.files_of(run_lines(LINES, output="split", using=with_echo, **RICH).path, "header.json")
    assert split == whole


def test_any_split_into_files_gives_the_same_figures(run_lines, write_lines, with_echo):
    """Three files hold what one held: the same rows but for their places, the same metrics."""
    whole = run_lines(MIXED, using=with_echo, **RICH)
    paths = [str(write_lines(MIXED[start : start + 40], f"part{start}.jsonl")) for start in (0, 40, 80)]
    parts = run_lines([], output="parts", using=with_echo, target={"paths": paths}, **RICH)
    assert parts.metrics == whole.metrics
    strip = lambda row: {key: value for key, value in row.items() if key != "source"}  # noqa: E731
    assert [strip(row) for row in parts.rows()] == [strip(row) for row in whole.rows()]


def test_metrics_can_be_recomputed_from_the_rows_alone(run_lines, tmp_path, registry):
    """Folding the grades of results.jsonl gives every aggregate of summary.json, exactly."""
    report = run_lines(LINES, **RICH)
    suite = load_suite({"target": {"paths": [str(tmp_path / "runs.jsonl")]}, **RICH}, registry=registry)
    aggregators = {(metric.of, metric.stage.key): metric.stage.component for metric in suite.metrics}
    assert len(aggregators) == 7
    states = {place: aggregator.start() for place, aggregator in aggregators.items()}
    for ordinal, row in enumerate(report.rows()):
        key = key_from_row(row, ordinal)
        for (of, name), aggregator in aggregators.items():
            states[of, name] = aggregator.add(states[of, name], key, grade_from_json(row["grades"][of]))
    summary = read(report)["metrics"]["aggregates"]
    for (of, name), aggregator in aggregators.items():
        assert json.loads(dumps(dict(aggregator.finish(states[of, name])))) == summary[of][name], (of, name)


# native files


def test_native_files_of_one_input(run_lines, record, with_echo):
    """Framed, in input order, with the figures of the input."""
    report = run_lines([record("a", 1.0), "broken", record("b", **DO_SKIP)], using=with_echo)
    assert (report.path / "native/echo.json").read_text() == '[\n"a=1.0",\n"bad",\n"b=None"\n]\n'
    figures = read(report, "native/figures.json")
    assert (figures["key"], figures["ids"], figures["states"]["skipped"]) == ("quality", ["a", "b"], 1)


def test_native_files_of_several_inputs(run_lines, write_lines, record, with_echo, small_shards):
    """One folder per input, each with its own figures, whatever an aggregator's merge takes over."""
    small_shards(1)
    one = write_lines([record("a", 1.0), record("b", 0.5)], "one.jsonl")
    two = write_lines([record("c", 0.25), record("d", 0.125)], "two.jsonl")
    report = run_lines([], using=with_echo, target={"paths": [str(one), str(two)]})
    found = {name: read(report, f"native/{name}/figures.json") for name in ("one", "two")}
    assert {name: (each["ids"], each["sum"]) for name, each in found.items()} == {
        "one": (["a", "b"], 1.5),
        "two": (["c", "d"], 0.375),
    }
    assert report.aggregates["quality"]["toy_count"]["sum"] == 1.875
    assert report.aggregates["quality"]["toy_count"]["ids"] == ["a", "b", "c", "d"]


def test_an_exporter_needs_its_reader_and_its_graders(run_lines, record, with_echo):
    """Otherwise nothing native is written."""
    report = run_lines([record("a", 1.0)], using=with_echo, graders={"q": "tau_partial"})
    assert not (report.path / "native").exists()


# datasets


def test_a_dataset_is_joined_by_id(run_lines, write_lines):
    """Expectations come from it; rows nobody answered are missing, per model, and counted in the total only."""
    gold = write_lines([{"id": str(n), "expected": [{"name": "f"}], "input": f"q{n}"} for n in range(3)], "gold.jsonl")
    call = [{"name": "f"}]
    records = [
        {"id": "0", "model": "m", "predicted": call},
        {"id": "2", "model": "m", "predicted": []},
        {"id": "1", "model": "n", "predicted": call},
        {"id": "9", "model": "n", "predicted": call},
    ]
    report = run_lines(records, graders={"q": "tau_partial"}, dataset=str(gold))
    rows = [(row["model_name"], row["sample"]["id"], row["state"], row["sample"]["input"]) for row in report.rows()]
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
    assert report.metrics["avg_score_attempted"] == pytest.approx(2 / 3, abs=0)
    assert report.metrics["avg_score_total"] == pytest.approx(2 / 7, abs=0)
    per_model = {row["model_name"]: (row["total"], row["total_attempted"]) for row in report.metrics["per_model"]}
    assert per_model == {"m": (3, 2), "n": (4, 1)}


def test_a_dataset_and_no_readable_record_is_no_run(run_lines, write_lines):
    """All missing because nothing could be read is unusable input, not a result."""
    gold = write_lines([{"id": "0", "expected": "x"}], "gold.jsonl")
    with pytest.raises(DataError, match="no record could be read"):
        run_lines(["broken"], dataset=str(gold))


@pytest.mark.parametrize(
    ("lines", "message"),
    [(['{"id": "a", "expected": "x"}', "{"], r"gold\.jsonl:2: not JSON"), ([], "the file is empty")],
)
def test_a_broken_dataset_is_refused(run_lines, write_lines, record, lines, message):
    """A reference that is half there would give wrong figures quietly."""
    gold = write_lines(lines, "gold.jsonl")
    with pytest.raises(DataError, match=message):
        run_lines([record("a")], dataset=str(gold))


# duplicates


TWICE = [("a", 0.0, None), ("b", 1.0, None), ("a", 1.0, None), ("a", 0.5, 1), ("a", 0.25, None)]


def twice(record):
    return [record(identifier, score, run=run) for identifier, score, run in TWICE]


@pytest.mark.parametrize("size", [1, 10_000])
def test_duplicates_are_kept_and_told(run_lines, record, small_shards, size):
    """The same id of another run is no duplicate."""
    small_shards(size)
    report = run_lines(twice(record))
    assert report.summary["duplicates"] == {"policy": "keep", "count": 2, "listed": ["runs.jsonl:3", "runs.jsonl:5"]}
    assert report.summary["warnings"] == [
        "2 record(s) repeat an (id, model, run), the first at runs.jsonl:3; all are kept"
    ]
    assert report.metrics["total"] == 5


@pytest.mark.parametrize("size", [1, 10_000])
def test_the_last_duplicate_can_win(run_lines, record, small_shards, size):
    """In its own place."""
    small_shards(size)
    report = run_lines(twice(record), duplicates="last")
    assert [(row["sample"]["id"], row["run"], row["grade"]["score"]) for row in report.rows()] == [
        ("b", None, 1.0),
        ("a", 1, 0.5),
        ("a", None, 0.25),
    ]


@pytest.mark.parametrize("size", [1, 10_000])
def test_duplicates_can_be_refused(run_lines, record, small_shards, size, tmp_path):
    """With the place of the first and what to do; nothing is written."""
    small_shards(size)
    with pytest.raises(
        DataError, match=r"runs\.jsonl:3: repeats an \(id, model, run\) .* `duplicates: keep` or `last`"
    ):
        run_lines(twice(record), duplicates="error")
    assert [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


# broken input


def test_bad_records_are_counted_and_listed(run_lines, record):
    """They do not end the run, and are in no total."""
    report = run_lines([record("a", 1.0), "{", "[1]", record("b", 1.0)])
    assert report.summary["bad_records"] == {
        "count": 2,
        "listed": [
            {
                "file": "runs.jsonl",
                "line": 2,
                "ordinal": 1,
                "reason": report.summary["bad_records"]["listed"][0]["reason"],
            },
            {"file": "runs.jsonl", "line": 3, "ordinal": 2, "reason": "record: expected an object, got [1]"},
        ],
    }
    assert "not JSON" in report.summary["bad_records"]["listed"][0]["reason"]
    assert (report.metrics["total"], report.exit_code) == (2, 0)


def test_strict_stops_at_the_first_bad_record(run_lines, record, tmp_path):
    """Nothing is written."""
    with pytest.raises(DataError, match=r"runs\.jsonl:2: not JSON"):
        run_lines([record("a"), "{", "[1]"], strict=True)
    assert not (tmp_path / "out").exists()
    with pytest.raises(PluginError, match="ZeroDivisionError"):
        run_lines([record("a", **DO_RAISE)], strict=True)


def test_no_readable_record_is_unusable_input(run_lines, tmp_path):
    """The first reason is told; nothing is written, an earlier run stays."""
    with pytest.raises(DataError) as caught:
        run_lines(["{", "[1]"])
    assert str(caught.value).startswith(f"{tmp_path}/runs.jsonl: no record could be read\n  - runs.jsonl:1: not JSON")
    with pytest.raises(DataError, match="no record could be read\n  - the input holds no record"):
        run_lines(["", ""])
    assert [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


HOSTILE = {
    "nan": '{"id": "x", "predicted": "y", "recorded": {"score": NaN}, "usage": [NaN, -Infinity, 1e400]}',
    "deep": '{"id": "x", "predicted": "y", "usage": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "surrogate": '{"id": "x\\ud800", "predicted": "\\udfff", "facets": {"\\ud800": "\\udc00"}, "model": "\\ud800"}',
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
        [record("before", 1.0), HOSTILE[name], record("after", 1.0)], reports=["html", "markdown", "dump"]
    )
    assert "broken" not in report.summary
    scores = {row["sample"]["id"]: row["grade"]["state"] for row in report.rows()}
    assert scores["before"] == scores["after"] == "graded"
    assert report.metrics["total"] + report.summary["bad_records"]["count"] == 3
    for data in toys.files_of(report.path).values():
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
    lines = [f'{{"id": "x", "predicted": "y", {place}}}' for place in places]
    report = run_lines([record("before", 1.0), *lines], reports=["html", "markdown"])
    assert "broken" not in report.summary
    assert report.metrics["total"] + report.summary["bad_records"]["count"] == 5


def test_huge_scores_do_not_poison_the_sums(run_lines, record):
    """Finite but absurd: failed grades, the average is of the others."""
    report = run_lines([record("a", 1.0), record("b", 1.7e308), record("c", 1.7e308)])
    assert (report.metrics["avg_score_attempted"], report.states["quality"]["failed"]) == (1.0, 2)


# broken components: the results are kept


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        ("add", "RuntimeError: stumbled in add over <object object>"),
        ("merge", "RuntimeError: stumbled in merge over <object object>"),
        ("finish", "RuntimeError: stumbled in finish over <object object>"),
        ("json", "TypeError: Object of type set is not JSON serializable"),
    ],
)
def test_a_raising_aggregator_costs_its_figures_only(run_lines, record, fail, said, small_shards):
    """Rows and the other metrics are kept, exit code 4."""
    small_shards(1)
    metrics = {"sick": {"kind": "toy_count", "fail": fail}}
    report = run_lines([record("a", 1.0), record("b", 0.5)], metrics=metrics, gate={"op": "gte", "value": 0.5})
    assert report.summary["broken"] == {"quality/sick": said}
    assert report.aggregates["quality"]["sick"] == {"error": said}
    assert report.aggregates["quality"]["toy_count"]["sum"] == 1.5
    assert report.summary["warnings"] == [f"quality/sick is broken and left out: {said}"]
    assert (report.exit_code, report.passed, ids(report)) == (4, True, ["a", "b"])
    assert read(report)["broken"] == {"quality/sick": said}


@pytest.mark.parametrize(
    ("target", "said"), [("BreaksAtRow", "RuntimeError: no row"), ("BreaksAtEnd", "RuntimeError: no end")]
)
def test_a_raising_exporter_costs_its_file_only(run_lines, record, toys, target, said):
    """The results are kept, the other exporter's file too."""
    using = toys.make_registry(toys.component("exporter", "sick", target), toys.component("exporter", "echo", "Echo"))
    report = run_lines([record("a", 1.0), record("bad", 0.5)], using=using)
    assert (report.exit_code, report.summary["broken"]) == (4, {"sick": said})
    assert report.metrics["avg_score_attempted"] == 0.75
    assert (report.path / "native/echo.json").exists()


def test_a_raising_reporter_costs_its_page_only(run_lines, record, tmp_path):
    """The other page is there, and nothing in the message depends on the place."""
    report = run_lines([record("a", 1.0)], reports=[{"kind": "dump", "breaks": True}, "markdown"])
    assert report.summary["broken"] == {"reporter dump": "RuntimeError: no page in somewhere"}
    assert (report.exit_code, [page.name for page in report.pages]) == (4, ["report.md"])
    assert report.summary["warnings"] == [
        "reporter dump is broken, its page is missing: RuntimeError: no page in somewhere"
    ]
    assert read(report) == dict(report.summary)


@pytest.mark.parametrize("where", ["index", "plan", "read", "yield"])
def test_a_broken_reader_ends_the_run(run_lines, tmp_path, where):
    """With its name, and nothing written."""
    path = tmp_path / "x.numbers"
    path.write_text("numbers\n1\n")
    with pytest.raises(PluginError, match="reader Numbers"):
        run_lines(path, reader={"kind": "numbers", "where": where})
    assert [each.name for each in tmp_path.iterdir()] == ["x.numbers"]


# interruption


@pytest.mark.parametrize("size", [1, 10_000])
def test_an_interrupted_run_keeps_what_it_has(run_lines, record, small_shards, size, toys, with_echo):
    """Rows and figures agree, the directory can be read, and says that it is incomplete."""
    small_shards(size)
    records = [record("a", 1.0), record("b", 0.0), record("c", **DO_STOP), record("d", 1.0)]
    report = run_lines(records, gate={"op": "gte", "value": 0.1}, reports=["markdown"], using=with_echo)
    assert report.exit_code == 130
    assert ids(report) == ["a", "b"]
    assert (report.metrics["total"], report.metrics["avg_score_attempted"], report.passed) == (2, 0.5, False)
    assert "interrupted" in report.summary["incomplete"]
    loaded = gradestack.load_report(report.path)
    assert (loaded.summary, loaded.exit_code) == (report.summary, 130)
    assert (report.path / "native/echo.json").read_text() == '[\n"a=1.0",\n"b=0.0"\n]\n'
    assert (report.path / "report.md").exists()


def test_an_interrupt_at_the_first_sample_is_still_a_run(run_lines, record):
    """Empty, incomplete, readable."""
    report = run_lines([record("a", **DO_STOP)])
    assert (report.metrics["total"], report.exit_code, ids(report)) == (0, 130, [])


def test_an_interrupt_with_several_runs_asked_for_keeps_the_rows(run_lines, record):
    """The missing runs are no reason to throw the others away."""
    report = run_lines([record("a", 1.0, run=1), record("a", **DO_STOP, run=2)], num_runs=2)
    assert (report.exit_code, ids(report)) == (130, ["a"])


def test_an_interrupt_while_pages_are_written_keeps_the_results(run_lines, record, toys):
    """All figures are there, the page is not."""
    using = toys.make_registry(toys.component("reporter", "slow", "Interrupting"))
    report = run_lines([record("a", 1.0)], reports=["slow", "markdown"], using=using)
    assert (report.exit_code, report.metrics["total"], report.pages) == (130, 1, ())
    assert read(report)["incomplete"] == "interrupted: report pages are missing"


# places


def test_a_rerun_replaces_the_run_whole(run_lines, record, toys):
    """Nothing of the earlier run stays, wherever it came from."""
    first = run_lines([record("a", 1.0)], reports=["markdown"])
    (first.path / "mine.txt").write_text("x")
    second = run_lines([record("b", 1.0)])
    assert sorted(toys.files_of(second.path)) == ["header.json", "results.jsonl", "summary.json"]
    assert ids(second) == ["b"]


def test_a_failing_rerun_leaves_the_earlier_run(run_lines, record, toys):
    """Moved into place only when done."""
    place = run_lines([record("a", 1.0)]).path
    first = toys.files_of(place)
    with pytest.raises(DataError):
        run_lines(["{"])
    assert toys.files_of(place) == first


def test_somebody_elses_directory_is_refused(run_lines, record, tmp_path):
    """Before anything is read."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out/data").touch()
    with pytest.raises(ConfigError, match="not empty and not a gradestack run"):
        run_lines([record("a")])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["data"]


def test_the_default_place_has_a_latest_link(tmp_path, monkeypatch, write_lines, record, registry):
    """gradestack-runs/NAME/TIME below the working directory."""
    path = write_lines([record("a", 1.0)])
    monkeypatch.chdir(tmp_path)
    suite = {"name": "my suite", "target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": []}
    reports = [gradestack.run(suite, registry=registry) for _ in range(3)]
    assert len({report.path for report in reports}) == 3
    assert reports[0].path.parent.as_posix() == "gradestack-runs/my-suite"
    assert (tmp_path / "gradestack-runs/my-suite/latest").resolve() == reports[-1].path.resolve()


def test_progress_is_told(run_lines, write_lines, record, registry, tmp_path):
    """The steps add up to the samples."""
    path = write_lines([record(str(number), 1.0) for number in range(100)])
    told = []
    suite = {"target": {"paths": [str(path)]}, "graders": {"q": "toy"}, "reports": []}
    gradestack.run(suite, output=tmp_path / "out", registry=registry, tick=told.append)
    assert sum(told) == 100


# the file system


def test_a_full_disk_is_told_and_leaves_nothing(run_lines, record, monkeypatch, tmp_path):
    """Whatever the system says, with the file it said it about."""

    def full(self, name, value):
        raise OSError(28, "No space left on device", str(self.path / name))

    monkeypatch.setattr("gradestack.store.Staging.write_json", full)
    with pytest.raises(DataError, match=r"summary\.json: No space left on device"):
        run_lines([record("a", 1.0)])
    assert [path.name for path in tmp_path.iterdir()] == ["runs.jsonl"]


def test_an_input_that_may_not_be_read(run_lines, record, monkeypatch, write_lines):
    """Said with its name (root may read anything, so the refusal is simulated)."""
    path = write_lines([record("a")])
    opened = Path.open

    def refuse(self, *arguments, **options):
        if self == path:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    for reader in ({"reader": None}, {}):
        with pytest.raises(DataError, match=r"runs\.jsonl: (cannot be read: )?Permission denied"):
            run_lines(path, **reader)


def test_an_interrupt_while_native_files_are_joined_keeps_the_results(run_lines, record, with_echo, monkeypatch, toys):
    """All rows are there, the run says it is incomplete."""

    def stop(self, summary):
        raise KeyboardInterrupt

    monkeypatch.setattr(toys.Echo, "finish", stop)
    report = run_lines([record("a", 1.0)], using=with_echo)
    assert (report.exit_code, ids(report)) == (130, ["a"])
