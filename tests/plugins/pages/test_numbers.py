"""Every number of a first screen is computed here from the rows and files of the run."""

import json
import math
import os
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

import gradestack
from gradestack_plugins.pages.page import page_of
from tests.plugins.pages.conftest import Page

DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA, reason="GRADESTACK_REFERENCE_DATA is not set"),
]


def first_screen(report):
    """Return the text of the first screen, and the rows of the run."""
    report_path = report.path / "report.html"
    html = report_path.read_text(encoding="utf-8")
    start = html.index('<div class="view now"')
    end = html.index('<div class="view" ')
    page = Page(html[start:end])
    text = "".join(page.words)
    return re.sub(r"\s+", " ", text), list(report.rows())


def shares_of(report):
    """Return the figures of the results by label and model: percent with one decimal."""
    panels = page_of(report).first
    (section,) = [panel for panel in panels if panel.id == "estimates"]
    shares = {}
    for block in section.blocks:
        for figure in block.figures:
            if figure.unit == "share" and figure.value is not None:
                shares[(figure.label, figure.model)] = f"{100 * figure.value:.1f}%"
    return shares


def percent(part, whole):
    return f"{100 * part / whole:.1f}%"


def test_numbers_of_tau(tmp_path):
    tau_bench_folder = Path(DATA) / "tau-bench"
    source = tau_bench_folder / "gpt-4o-airline.json"
    output = tmp_path / "out"
    report = gradestack.grade_files(source, output=output)
    text, rows = first_screen(report)
    trials = json.loads(source.read_text(encoding="utf-8"))
    solved = Counter(trial["task_id"] for trial in trials if trial["reward"] > 0.99)
    tasks = {trial["task_id"] for trial in trials}
    runs = len(trials)
    k = len(trials) // len(tasks)
    every = sum(solved[task] == k for task in tasks)
    none = sum(solved[task] == 0 for task in tasks)
    solved_always = f"{every} of {len(tasks)} tasks in every trial"
    assert f"Solved: {solved.total()} of {runs} runs; {solved_always}" in text
    some = len(tasks) - every - none
    assert f"{every} pass in every trial, {some} in some, {none} in none" in text
    shares = shares_of(report)
    expected = percent(solved.total(), runs)
    assert shares["Solved", ""] == expected
    share = shares[f"Solved in all {k} trials", ""]
    assert share == percent(every, len(tasks))
    assert shares[f"Solved in at least one of {k}", ""] == percent(len(tasks) - none, len(tasks))
    partial = math.fsum(row["grades"]["partial"]["score"] for row in rows)
    assert shares["Partial credit", ""] == percent(partial, runs)
    rows_without_calls = [row for row in rows if row["expected"]["calls"] == []]
    called = [row for row in rows_without_calls if row["grades"]["partial"]["score"] == 0]
    ids = {row["sample"]["id"] for row in rows_without_calls}
    quiet_tasks = len(ids)
    runs_without_calls = f"{quiet_tasks} tasks ({len(rows_without_calls)} runs)"
    assert f"In {runs_without_calls} nothing should be called. {len(called)}" in text
    solved_anyway = sum(row["passed"] for row in called)
    assert f"yet the outcome of {solved_anyway} of them is “solved”" in text
    failed = [row for row in rows if not row["passed"]]
    page = page_of(report)
    assert sum(line.samples for line in page.failures.lines) == len(failed)
    means = [
        math.fsum(row["grades"]["partial"]["score"] for row in rows if row["passed"] is passed)
        for passed in (True, False)
    ]
    total = solved.total()
    counts = (total, runs - solved.total())
    shown = []
    for mean, count in zip(means, counts, strict=True):
        shown.append(f"{100 * mean / count:.0f}%")
    assert f"runs get the same ({shown[0]} and {shown[1]})" in text
    (curve,) = [
        panel for panel in page_of(report).panels.panels if panel.title == "With more trials"
    ]
    (lines,) = curve.blocks
    for line, is_every in zip(lines.lines, (True, False), strict=True):
        for point in line.points:
            size = int(point.label)
            values = [_share_of(solved[task], k, size, every=is_every) for task in tasks]
            assert point.value == percent(sum(values), len(tasks))


def _share_of(passed, of, k, *, every):
    """Return the share of samples of k trials that are all, or at least once, passed."""
    trials = [True] * passed + [False] * (of - passed)
    pairs = combinations(trials, k)
    samples_of_trials = list(pairs)
    total = sum(all(outcomes) if every else any(outcomes) for outcomes in samples_of_trials)
    return total / len(samples_of_trials)


def questions_of(category):
    data_path = Path(DATA)
    bfcl_folder = data_path / "bfcl"
    lines = (bfcl_folder / f"BFCL_v4_{category}.json").read_text(encoding="utf-8")
    documents = []
    for line in lines.splitlines():
        if line.strip():
            documents.append(json.loads(line))
    return documents


def written_answers(folder):
    """Write results of two models for irrelevant questions; return which of them called nothing."""
    category, right = "irrelevance", {}
    name = f"BFCL_v4_{category}.json"
    questions = questions_of(category)
    (folder / name).write_text(
        "\n".join(json.dumps(question) for question in questions), encoding="utf-8"
    )
    for model_number, model in enumerate(("north-FC", "south-FC")):
        results = []
        for number, question in enumerate(questions):
            calls = number % (5 - 2 * model_number) == 0
            right[model, question["id"]] = not calls
            tool = question["function"][0]["name"]
            result = [{tool: "{}"}] if calls else "None."
            results.append({"id": question["id"], "result": result})
        result_folder = folder / "result"
        non_live_folder = result_folder / model / "non_live"
        path = non_live_folder / f"BFCL_v4_{category}_result.json"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(map(json.dumps, results)), encoding="utf-8")
    return right


def test_numbers_of_bfcl(tmp_path):
    right = written_answers(tmp_path)
    output = tmp_path / "out"
    report = gradestack.grade_files(tmp_path, output=output)
    text, rows = first_screen(report)
    assert len(rows) == len(right)
    for row in rows:
        model_name = row["model_name"]
        sample = row["sample"]
        assert row["passed"] is right[model_name, sample["id"]]
    shares = shares_of(report)
    passed = Counter(model for (model, _), is_right in right.items() if is_right)
    half = len(right) // 2
    for model in ("north-FC", "south-FC"):
        assert shares["Correct", model] == percent(passed[model], half)
    named = ", ".join(
        f"{model} {percent(passed[model], half)}" for model in ("north-FC", "south-FC")
    )
    assert f"Correct: {named}" in text
    south_fc = passed["south-FC"]
    north_fc = passed["north-FC"]
    points = 100 * (south_fc - north_fc) / half
    expected_text = f"by {abs(points):.1f} points"
    assert expected_text in text
    (line,) = page_of(report).failures.block_of_two(6).lines
    expected = half - passed["north-FC"]
    assert line.samples == expected
    assert line.samples_b == half - passed["south-FC"]


def test_numbers_of_when2call(tmp_path):
    data_path = Path(DATA)
    when2call_folder = data_path / "when2call"
    gold = when2call_folder / "when2call_test_llm_judge.jsonl"
    items = []
    for line in gold.read_text(encoding="utf-8").splitlines():
        items.append(json.loads(line))
    labels, labels_given = ("tool_call", "request_for_info", "cannot_answer"), {}
    lines = []
    for number, item in enumerate(items):
        if number % 50 == 7:
            continue
        if number % 3:
            chosen = item["correct_answer"]
        else:
            chosen = labels[number % 9 // 3]
        labels_given[item["uuid"]] = (item["correct_answer"], chosen)
        judge_raw = json.dumps({"classification": chosen})
        parsed = {"judge_raw": judge_raw, "target_model": "m"}
        flags = ("parse_failed_first", "parse_failed_second", "used_retry")
        parsed |= {f"judge_{flag}": False for flag in flags}
        parsed |= {"judge_fallback_to_cannot_answer": False, "judge_model": "j"}
        uuid = item["uuid"]
        lines.append(json.dumps({"uuid": uuid, "predicted_label": chosen, **parsed}))
    judged_path = tmp_path / "judged.jsonl"
    judged_path.write_text("\n".join(lines), encoding="utf-8")
    paths = tmp_path / "judged.jsonl"
    output = tmp_path / "out"
    report = gradestack.grade_files(paths, dataset=gold, output=output)
    text, _ = first_screen(report)
    counts = Counter(labels_given.values())
    right = sum(count for (expected, chosen), count in counts.items() if expected == chosen)
    expected_text = f"Right label in {percent(right, len(labels_given))}"
    assert expected_text in text
    graded = len(labels_given)
    assert f"{len(items)} runs; {graded} graded, {len(items) - graded} not recorded" in text
    shares = shares_of(report)
    share = shares["Correct", ""]
    assert share == percent(right, len(labels_given))
    wrong = {pair: count for pair, count in counts.items() if pair[0] != pair[1]}
    assert f"({max(wrong.values())} runs)" in text
    page = page_of(report)
    panels = page.panels.panels
    (matrix,) = [shape for panel in panels for shape in panel.blocks if shape.kind == "matrix"]
    for name, cells in matrix.rows:
        for column, cell in zip(matrix.columns, cells, strict=True):
            assert cell.text == str(counts[name, column])
