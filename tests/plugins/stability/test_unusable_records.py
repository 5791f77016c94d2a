"""Records and dataset rows at the edge of what can be used: what is counted, what is reported, and as what."""

from __future__ import annotations

import json

import pytest

from gradestack import BadRecord, Sample, Status, grade_files
from tests.plugins.stability.stability_records import PROFILES, C, D, I, T, item, record


def reported(found):
    return [(each.source.file, each.source.line) for each in found if isinstance(each, BadRecord)]


def broken(profile):
    """Return what makes a record unusable under a profile."""
    return {"run_labels": T} if profile == "documented" else {"consistency": None}


@pytest.mark.parametrize("profile", PROFILES)
def test_an_unusable_record_leaves_its_row_in_the_divisor(evaluate, read, profile):
    """The row is one without runs, and the record is reported."""
    records, dataset = [record("a", [T, T]), {**record("b", [T, T]), **broken(profile)}], [item("a"), item("b")]
    found = read(records, dataset, profile=profile)
    assert reported(found) == [("runs.jsonl", 2)]
    assert [(each.id, each.status) for each in found if isinstance(each, Sample)][-1] == ("b", Status.MISSING)
    metrics = evaluate(records, dataset, profile=profile)
    assert (metrics["n_items_total"], metrics["n_items_processed"], metrics["coverage"]) == (2, 1, 0.5)
    assert metrics["stability_at_k"] == (0.5 if profile == "upstream" else 1.0)
    assert metrics["n_items_without_runs"] == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_a_dataset_whose_only_record_is_unusable_still_has_its_row(evaluate, profile):
    """One task, none processed."""
    metrics = evaluate([{**record("a", [T]), **broken(profile)}], [item("a")], profile=profile)
    assert (metrics["n_items_total"], metrics["n_items_processed"], metrics["coverage"]) == (1, 0, 0.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_of_a_repeated_uuid_the_last_record_decides_whether_there_are_runs(read, profile):
    """Whatever the ones before it were."""
    good, worse = record("a", [T]), {**record("a", [D]), **broken(profile)}
    labels = [
        [each.label for each in read(records, [item("a")], profile=profile) if isinstance(each, Sample)]
        for records in ([good, worse], [worse, good])
    ]
    assert labels == [[None], [T]]


def upstream_pair(evaluate, **change):
    return evaluate([record("a", [T, T]), record("b", [T, D]) | change], [item("a"), item("b")], profile="upstream")


@pytest.mark.parametrize("gold", [["x"], {}, 5, True, "weird", None])
def test_upstream_processes_any_gold_label_it_does_not_know(evaluate, gold):
    """It adds nothing, whatever kind of value it is."""
    metrics = upstream_pair(evaluate, gold_label=gold)
    assert (metrics["n_items_processed"], metrics["stability_at_k"], metrics["n_items_unknown_gold"]) == (2.0, 0.5, 1)


@pytest.mark.parametrize("labels", ["tool_call", {"a": 1}, 7, [], None])
def test_upstream_processes_a_record_whose_runs_are_no_list(evaluate, labels):
    """With what it says of itself, and 0 for the rest."""
    metrics = upstream_pair(evaluate, run_labels=labels, consistency=0.5, mode_label=D, mode_count="x")
    assert (metrics["n_items_processed"], metrics["mean_consistency_at_k"]) == (2.0, 0.75)
    assert (metrics["stability_at_k"], metrics["mean_accuracy_across_runs"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    "change",
    [{"run_labels": [["x"], T]}, {"mode_label": D, "mode_count": "x"}, {"entropy": float("nan")}, {"n_runs": 10**400}],
)
def test_upstream_looks_at_nothing_it_does_not_need(evaluate, read, change):
    """Runs, mode and infinite figures spoil a record only where its gold label makes it count."""
    records = [record("b", [T, D]) | change]
    assert reported(read(records, profile="upstream")) == [("runs.jsonl", 1)]
    assert upstream_pair(evaluate, gold_label="weird", **change)["n_items_processed"] == 2.0


@pytest.mark.parametrize("change", [{"n_runs": "x"}, {"consistency": "much"}])
def test_upstream_skips_a_record_with_a_number_that_is_none_whatever_its_gold_label(evaluate, change):
    """These are read before the gold label is looked at."""
    assert upstream_pair(evaluate, gold_label="weird", **change)["n_items_processed"] == 1.0


def test_upstream_takes_any_number_of_runs_asked_for(evaluate):
    """However large: m / k is then next to nothing."""
    metrics = upstream_pair(evaluate, n_runs=10**20)
    assert (metrics["n_items_processed"], metrics["mean_consistency_at_k"]) == (2.0, 0.5)
    assert upstream_pair(evaluate, n_runs=10**400, consistency=1)["mean_consistency_at_k"] == 1.0
    assert upstream_pair(evaluate, mode_label=T, mode_count=10**400, consistency=1)["mean_consistency_at_k"] == 1.0


@pytest.mark.parametrize("labels", [[1, True], [1, 1.0], [0, False, -0.0], [10**16, 1e16]])
def test_upstream_takes_equal_numbers_for_one_label(evaluate, labels):
    """Truth values, whole numbers and floats of the same value are alike; text is not."""
    metrics = evaluate([record("a", labels)], profile="upstream")
    assert (metrics["stability_at_k"], metrics["mean_entropy"], metrics["mean_flip_rate"]) == (1.0, 0.0, 0.0)
    mixed = evaluate([record("a", [1, "1", 1.5, None])], profile="upstream")
    assert (mixed["mean_consistency_at_k"], mixed["mean_flip_rate"]) == (0.25, 1.0)


ROWS = [item("a"), "{broken", item("b", "weird"), {"question": "q", "correct_answer": T}, "7", item("c")]


@pytest.mark.parametrize("profile", PROFILES)
def test_dataset_rows_that_cannot_be_used_are_reported_and_no_rows(evaluate, read, profile):
    """Broken lines, other values than objects, rows without uuid or with another gold label."""
    records = [record("a", [T]), record("b", [T])]
    found = read(records, ROWS, profile=profile)
    assert reported(found) == [("dataset.jsonl", line) for line in (2, 3, 4, 5)]
    metrics = evaluate(records, ROWS, profile=profile)
    assert (metrics["n_items_total"], metrics["n_items_outside_dataset"]) == (2, 1)


def test_a_row_may_lack_question_and_gold_label(read):
    """It is a task all the same; the record says what its gold label is."""
    found = read([record("a", [T])], [{"uuid": "a"}, {"uuid": "b", "correct_answer": None}])
    assert [(each.id, each.expected.label, each.native.dataset_rows) for each in found] == [("a", T, 1), ("b", None, 1)]


@pytest.mark.parametrize("uuid", [5, "", None, True])
def test_a_row_with_another_kind_of_uuid_is_a_row_upstream_only(evaluate, read, uuid):
    """No record can have it, so it lowers the coverage; documented reports it."""
    records, dataset = [record("a", [T])], [item("a"), item(uuid), item(uuid)]
    assert evaluate(records, dataset, profile="upstream")["n_items_total"] == 3.0
    assert reported(read(records, dataset)) == [("dataset.jsonl", 2), ("dataset.jsonl", 3)]
    for profile in PROFILES:
        assert reported(read(records, [item("a"), item([])], profile=profile)) == [("dataset.jsonl", 2)]


def test_an_unknown_gold_label_is_counted_as_such(evaluate):
    """Its runs were recorded; only what they ought to have been is unknown."""
    metrics = evaluate([record("a", [T, T]), record("b", [T, D], gold="weird")])
    assert (metrics["n_items_processed"], metrics["stability_at_k"]) == (1, 1.0)
    assert (metrics["n_items_without_runs"], metrics["n_items_unknown_gold"]) == (0, 1)
    assert [metrics[f"n_runs_{name}"] for name in ("expected", "recorded", "missing", "failed")] == [4, 4, 0, 0]


def test_runs_that_were_not_recorded_stay_missing_under_an_unknown_gold_label(evaluate):
    """A null is no run, and a task of nothing but nulls has none."""
    metrics = evaluate([record("a", [T, None, I], gold="weird"), record("b", [None], gold="weird")])
    assert (metrics["n_items_without_runs"], metrics["n_items_unknown_gold"]) == (1, 1)
    assert [metrics[f"n_runs_{name}"] for name in ("expected", "recorded", "missing")] == [3, 2, 1]


def sweeps(tmp_path, **files):
    dataset = tmp_path / "dataset.jsonl"
    lines = [item("a"), "{broken", item("b", C)]
    dataset.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines))
    paths = []
    for name, records in files.items():
        paths.append(tmp_path / f"{name}.jsonl")
        paths[-1].write_text("".join(json.dumps(each) + "\n" for each in records))
    return paths, dataset


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("temperatures", [(0.1, 0.9), (0.1, 0.1), (None, None)])
def test_each_of_several_files_is_a_sweep_of_its_own(tmp_path, profile, temperatures):
    """Files that do not name their sweep are kept apart by what the sweep would be called, else by their names."""
    cold, warm = ({} if each is None else {"temperature": each} for each in temperatures)
    paths, dataset = sweeps(
        tmp_path,
        cold=[record("a", [T, T], **cold)],
        warm=[record("a", [T, D], **warm), record("b", [C, C], gold=C, **warm)],
    )
    out = tmp_path / "out"
    grade_files(paths, dataset=dataset, output=out, profile=profile, overrides=["reports=[]"])
    summary = json.loads((out / "summary.json").read_text())
    found = summary["metrics"]["aggregates"]["label"]["stability"]
    assert (found["n_items_total"], found["n_items_processed"], found["tasks_by_k"]) == (4, 3, {"2": 3})
    assert found["mean_consistency_at_k"] == 2.5 / (4 if profile == "upstream" else 3)
    assert summary["bad_records"]["count"] == 1  # the dataset's, once for both files
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    names = [row["facets"]["experiment"] for row in rows]
    expected = ["cold", "warm"]
    if temperatures == (0.1, 0.9):
        expected = ["mcq_stability_k=2_T=0.1", "mcq_stability_k=2_T=0.9"]
    assert names == [name for name, runs in zip(expected, (3, 4), strict=True) for _ in range(runs)]


def test_a_sweep_named_by_its_records_stays_one(tmp_path):
    """Two parts of it are one sweep; a single file without a name needs none."""
    paths, dataset = sweeps(tmp_path, one=[record("a", [T], ckpt_name="s")], two=[record("b", [C], C, ckpt_name="s")])
    out = tmp_path / "out"
    grade_files(paths, output=out, overrides=["reports=[]"])
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [row["facets"] for row in rows] == [{"experiment": "s"}] * 2
    paths, dataset = sweeps(tmp_path, one=[record("a", [T])])
    grade_files(paths, dataset=dataset, output=out, overrides=["reports=[]"])
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert [row["facets"] for row in rows] == [{}] * 2
