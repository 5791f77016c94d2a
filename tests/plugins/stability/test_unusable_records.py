"""Records and dataset rows at the edge of what can be used.

What is counted, what is reported, and as what.
"""

import json

from gradestack import BadRecord, Sample, Status, grade_files
from tests.plugins.stability.stability_records import C, D, T, item, record


def reported(records):
    return [
        (record.source.file, record.source.line)
        for record in records
        if isinstance(record, BadRecord)
    ]


def test_an_unusable_record_leaves_its_row_without_runs(evaluate, read):
    records = [record("a", [T, T]), {**record("b", [T, T]), "run_labels": T}]
    dataset = [item("a"), item("b")]
    samples = read(records, dataset)
    assert reported(samples) == [("runs.jsonl", 2)]
    last = [sample for sample in samples if isinstance(sample, Sample)][-1]
    assert last.id == "b"
    assert last.status == Status.MISSING
    metrics = evaluate(records, dataset)
    names = ("n_items_total", "n_items_processed", "coverage", "stability_at_k")
    assert [metrics[name] for name in names] == [2, 1, 0.5, 1.0]
    assert metrics["n_items_without_runs"] == 1


def test_a_row_may_lack_question_and_gold_label(read):
    """It is a task all the same; the record says what its gold label is."""
    samples = read([record("a", [T])], [{"uuid": "a"}, {"uuid": "b", "correct_answer": None}])
    assert [
        (sample.id, sample.expected.label, sample.native.counts["dataset_rows"])
        for sample in samples
    ] == [
        ("a", T, 1),
        ("b", None, 1),
    ]


def sweeps(tmp_path, **files):
    dataset = tmp_path / "dataset.jsonl"
    lines = [item("a"), "{broken", item("b", C)]
    dataset.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    )
    paths = []
    for name, records in files.items():
        paths.append(tmp_path / f"{name}.jsonl")
        last_path = paths[-1]
        last_path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return paths, dataset


def test_each_of_several_files_is_a_sweep_of_its_own(tmp_path):
    """Files that do not name their sweep are kept apart by their names."""
    cold = [record("a", [T, T])]
    warm = [record("a", [T, D]), record("b", [C, C], gold=C)]
    paths, dataset = sweeps(
        tmp_path,
        cold=cold,
        warm=warm,
    )
    out = tmp_path / "out"
    grade_files(paths, dataset=dataset, output=out, overrides=["reports=[]"])
    summary_path = out / "summary.json"
    text = summary_path.read_text()
    summary = json.loads(text)
    aggregates = summary["metrics"]["aggregates"]
    label = aggregates["label"]
    stability = label["stability"]
    assert stability["n_items_total"] == 4
    assert stability["n_items_processed"] == 3
    assert stability["tasks_by_k"] == {"2": 3}
    assert stability["mean_consistency_at_k"] == 2.5 / 3
    count = summary["bad_records"]["count"]
    assert count == 1  # the dataset's, once for both files
    rows = []
    results_path = out / "results.jsonl"
    for line in results_path.read_text().splitlines():
        document = json.loads(line)
        rows.append(document)
    names = [row["facets"]["experiment"] for row in rows]
    expected = ["cold"] * 3 + ["warm"] * 4
    assert names == expected


def test_a_sweep_named_by_its_records_stays_one(tmp_path):
    """Two parts of it are one sweep; a single file without a name needs none."""
    paths, dataset = sweeps(
        tmp_path, one=[record("a", [T], ckpt_name="s")], two=[record("b", [C], C, ckpt_name="s")]
    )
    out = tmp_path / "out"
    grade_files(paths, output=out, overrides=["reports=[]"])
    rows = []
    results_path = out / "results.jsonl"
    for line in results_path.read_text().splitlines():
        document = json.loads(line)
        rows.append(document)
    facets = [row["facets"] for row in rows]
    assert facets == [{"experiment": "s"}] * 2
    paths, dataset = sweeps(tmp_path, one=[record("a", [T])])
    grade_files(paths, dataset=dataset, output=out, overrides=["reports=[]"])
    text = (out / "results.jsonl").read_text()
    lines = text.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["facets"] for row in rows] == [{}] * 2
