"""Exporter ``tau_bench``."""

import json

import pytest

from gradestack import (
    BadRecord,
    ExportSummary,
    Grade,
    GraderSummary,
    Input,
    Inputs,
    Sample,
    Shard,
    figures,
)
from gradestack_plugins.tau_bench.aggregators import PartialStatistics
from gradestack_plugins.tau_bench.exporter import TauBenchExporter
from gradestack_plugins.tau_bench.grader import TauPartial
from gradestack_plugins.tau_bench.program import STATISTICS, partial_name, statistics_block
from gradestack_plugins.tau_bench.reader import TauBench
from tests.core.outcomes import data

DATA = data(__file__, "exporter.yaml")


def export(path, **options):
    """Return the artefacts of a file, put together as the kernel does."""
    reader = TauBench()
    grader = TauPartial(**options)
    exporter = TauBenchExporter()
    given_input = Input(path=path, name=path.stem, shown=path.name)
    chunks: dict[str, list[str]] = {}
    grades = []
    inputs = Inputs(data=(given_input,))
    for shard in reader.plan(inputs, None):
        for record in reader.read(shard, None):
            if isinstance(record, BadRecord):
                made = {}
            else:
                tau_partial = grader.grade(record)
                made = {"tau_partial": tau_partial}
            grades += [(record, grade) for grade in made.values()]
            for artefact, text in exporter.row(record, made, shard):
                chunks.setdefault(artefact, []).append(text)
    summary = summarise(given_input, reader, grader, grades)
    files = {}
    for artefact, texts in chunks.items():
        head, tail = exporter.frame(artefact, summary)
        files[artefact] = head + exporter.separator.join(texts) + tail
    return files | dict(exporter.finish(summary))


def summarise(given_input, reader, grader, grades):
    rows = [(sample.id, sample.run, None, grade) for sample, grade in grades]
    aggregates = figures({"partial_statistics": {}}, rows)
    grader_summary = GraderSummary(key="partial", grader=grader, states={}, aggregates=aggregates)
    graders = {"tau_partial": grader_summary}
    return ExportSummary(input=given_input, reader=reader, graders=graders)


@pytest.mark.parametrize(("name", "new"), DATA["output_names"])
def test_output_names(name, new):
    """Every ".json" is replaced; a name without one gets the ending."""
    assert partial_name(name) == new


def test_partial_file_is_byte_for_byte(tau, tmp_path):
    """The file is the input's list with ``partial_score``, as ``json.dump`` with an indent of two
    writes it.
    """
    records = [
        tau.record(
            [("a", {"x": 1, "y": 2})],
            [tau.call("a", {"x": 1})],
            zeta=1.0,
            alpha="é \ud83d\ude00 \ud800",
            nan=float("nan"),
        ),
        tau.record([], [], task_id="t", empty=[], more={}, partial_score="old", last=1e16),
        tau.record(info=None),
        {"no": "task"},
        7,
    ]
    path = tmp_path / "my.results.json"
    path.write_text(json.dumps(records))
    text = json.dumps(records)
    scored = json.loads(text)
    for record, score in zip(scored, (0.4 + 0.6 * 0.5, 1.0, None), strict=False):
        record["partial_score"] = score
    my_results_partial_json = export(path)["my.results_partial.json"]
    expected = json.dumps(scored, indent=2)
    assert my_results_partial_json == expected


def test_skipped_scores_are_null(tau, tmp_path):
    path = tmp_path / "r.json"
    text = json.dumps([tau.record([], [])])
    path.write_text(text)
    (record,) = json.loads(export(path, no_expected="skip")["r_partial.json"])
    assert record["partial_score"] is None


def test_unparsable_records_are_left_out(tau, tmp_path):
    """Text that could not be parsed cannot be written again; the other records are."""
    path = tmp_path / "r.json"
    text = json.dumps(tau.record([], []))
    path.write_text('[{"task_id": nope}, ' + text + "]")
    (record,) = json.loads(export(path)["r_partial.json"])
    assert record["partial_score"] == 1.0


def test_samples_of_other_readers_are_not_written(tmp_path):
    """Only records of the format's own reader have a place in its file."""
    path = tmp_path / "r.json"
    shard = Shard(ordinal=0, input=Input(path=path, name="r", shown="r.json"))
    row = list(TauBenchExporter().row(Sample(id="x"), {"tau_partial": Grade(score=1.0)}, shard))
    assert row == []


def test_statistics_block_character_for_character(tau, tmp_path):
    """The block of a small file, written out by hand."""
    right = tau.call("a", {"x": 1, "y": 2})
    half = tau.call("a", {"x": 1})
    wanted = [("a", {"x": 1, "y": 2})]
    record = tau.record(wanted, [right], task_id=0, reward=1.0)
    records = [
        record,
        tau.record(wanted, [half], task_id=1, reward=1.0),
        tau.record(wanted, [right], task_id="two", reward=0.0),
        tau.record(wanted, [], task_id=3, reward=0.0),
        tau.record([], [right], task_id=4, reward=1.0),
        tau.record(wanted, [right], task_id=5, reward=0.0),
        tau.record(wanted, [right], task_id=6, reward=0.0),
        tau.record(wanted, [right], task_id=7, reward=0.0),
    ]
    path = tmp_path / "r.json"
    text = json.dumps(records)
    path.write_text(text)
    assert export(path)[STATISTICS] == (DATA["statistics_block_character_for_character"])


def test_empty_lists_of_cases_have_no_line(tau):
    statistics = tau.fold(PartialStatistics(), [Grade(score=1.0, parts={"reward": 1.0})])
    block = statistics_block(statistics)
    assert block.endswith("  [1.0]:   1 tasks (100.0%)\n\nInteresting Cases:\n")


def test_records_left_out_of_the_block_are_told(tau):
    """Where calls cannot be read, the block covers the records with a score and says how many
    could not.
    """
    failed = TauPartial().grade(tau.sample(tau.record(info=None)))
    statistics = tau.fold(PartialStatistics(), [Grade(score=0.5), failed])
    block = statistics_block(statistics)
    assert (
        "Total tasks: 1\nNot scored: 1\nWithout reward: 1\n\nBinary Scoring:\n  Success rate: 0/0 "
        "(n/a)\n" in block
    )
    assert "Average: n/a" in block
    assert "[0.4-0.6):   1 tasks (100.0%)" in block
    expected = statistics_block(tau.fold(PartialStatistics(), [failed]))
    assert "Min: n/a" in expected


def test_no_block_without_its_figures(tmp_path):
    given_input = Input(path=tmp_path, name="r", shown="r")
    summary = ExportSummary(input=given_input, reader=TauBench(), graders={})
    assert TauBenchExporter().finish(summary) == {}
