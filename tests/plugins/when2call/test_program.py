"""The evaluation suite's program: its metrics file.

Against numbers by hand, published figures, and a slow calculation of its own.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack_plugins.judges.journal import Reply
from gradestack_plugins.when2call.aggregators import When2Call
from gradestack_plugins.when2call.program import ScoredRow, compute_metrics
from tests.core.outcomes import at, data
from tests.plugins.when2call.when2call_records import LABELS, MAKERS, VARIANTS, judge, record_of

JUDGES = Path(__file__).parents[1] / "judges" / "test_judges.py"


@pytest.mark.parametrize("case", data(__file__, "program.yaml"), ids=lambda case: case["name"])
def test_native_file(run_program, row, case):
    """A part of the metrics file for each rule of the suite."""
    records = [record_of(prediction) for prediction in case["predictions"]]
    rows = None
    if "rows" in case:
        rows = [row(**row_fields) for row_fields in case["rows"]]
    limit = case.get("limit")
    options = {"limit": limit, **case.get("options", {})}
    program = run_program(records, rows, **options)
    text = program.files["when2call.json"]
    native = json.loads(text)
    paths = case["native"]
    assert {path: at(native, path) for path in paths} == case["native"]


@pytest.mark.parametrize("case", data(__file__, "published.yaml"), ids=lambda case: case["name"])
def test_published_figures(evaluate, run_program, row, case):
    """Rounded as they were published; of every prediction set."""
    cells = case["cells"]
    pairs = [(gold, label) for gold, label, number in cells for _ in range(number)]
    records = []
    for n, (_, label) in enumerate(pairs):
        form = case["form"]
        records.append(MAKERS[form](f"u{n}", label))
    dataset = [row(f"u{n}", gold) for n, (gold, _) in enumerate(pairs)]
    program = run_program(records, dataset)
    text = program.files["when2call.json"]
    document = json.loads(text)
    metrics = document["metrics"]
    if case["form"] == "logprob":
        sets = [metrics[name] for name in VARIANTS]
    else:
        sets = [metrics]
    ours = evaluate(records, dataset)
    for part, places in (("native", sets), ("classes", [ours.classes]), ("counts", [ours.counts])):
        for name, value in case.get(part, {}).items():
            digits = len(repr(value).partition(".")[2])
            assert {round(at(path, name), digits) for path in places} == {value}, name


def slow_metrics(rows):
    """Metrics of the evaluation suite straight from their definitions."""
    matrix = {gold: dict.fromkeys(LABELS, 0) for gold in LABELS}
    missing = invalid = 0
    tool, direct, parameter = [0, 0], [0, 0], [0, 0]
    for gold, no_tools, predicted in rows:
        missing += predicted is None
        invalid += predicted not in LABELS
        label = predicted if predicted in LABELS else "cannot_answer"
        matrix[gold][label] += 1
        direct = [direct[0] + (label == "direct" != gold), direct[1] + 1]
        if gold == "request_for_info":
            parameter = [parameter[0] + (label == "tool_call"), parameter[1] + 1]
        if gold == "cannot_answer" and no_tools:
            tool = [tool[0] + (label == "tool_call"), tool[1] + 1]
    f1 = {}
    for label in LABELS:
        hits = matrix[label][label]
        support = sum(matrix[label].values())
        predicted = sum(row[label] for row in matrix.values())
        precision = hits / predicted if predicted else 0.0
        recall = hits / support if support else 0.0
        total = precision + recall
        f1[label] = 2 * precision * recall / total if total else 0.0
    n = len(rows)
    n_right = sum(matrix[label][label] for label in LABELS)
    tool_call = f1["tool_call"]
    cannot_answer = f1["cannot_answer"]
    f1_of_four = f1["direct"] + tool_call + f1["request_for_info"] + cannot_answer
    request_for_info = f1["request_for_info"]
    f1_of_three = f1["tool_call"] + request_for_info + f1["cannot_answer"]
    tool_hallucination_rate = None
    if tool[1]:
        tool_hallucination_rate = tool[0] / tool[1]
    per_class_support = {label: sum(matrix[label].values()) for label in LABELS}
    accuracy = n_right / n if n else 0.0
    macro_f1 = f1_of_four / 4
    macro_f1_no_direct = f1_of_three / 3
    return {
        "accuracy": accuracy,
        "macro_f1": macro_f1,
        "macro_f1_no_direct": macro_f1_no_direct,
        "per_class_f1": f1,
        "per_class_support": per_class_support,
        "confusion_matrix": matrix,
        "tool_hallucination_rate": tool_hallucination_rate,
        "answer_hallucination_rate": direct[0] / direct[1] if direct[1] else None,
        "parameter_hallucination_rate": parameter[0] / parameter[1] if parameter[1] else None,
        "n_total": n,
        "n_missing_uuid": missing,
        "n_invalid_label": invalid,
        "n_converted_to_cannot_answer": invalid,
    }


rows_of = st.lists(
    st.tuples(
        st.sampled_from(LABELS),
        st.booleans(),
        st.sampled_from([*LABELS, "invalid", "direct_answer", "Direct", None]),
    ),
    max_size=25,
)


@given(rows_of)
def test_the_metrics_equal_the_slow_calculation(rows):
    """Bit for bit, and in the suite's order."""
    scored = [ScoredRow(gold, no_tools, {"": label}) for gold, no_tools, label in rows]
    metrics = compute_metrics(scored)
    text = json.dumps(metrics)
    expected = json.dumps(slow_metrics(rows))
    assert text == expected


@pytest.mark.parametrize("case", data(JUDGES, "when2call.yaml"), ids=lambda case: case["what"])
def test_a_reply_without_label_is_cannot_answer(run_program, row, case):
    """It is counted as a fall-back; a reply is strict JSON, whatever ended it."""

    class Answered(When2Call):
        """A grader with one reply on record."""

        journal = SimpleNamespace(replies=lambda keys: [Reply(content=case["content"])] * len(keys))

    records = [{"uuid": "a", "raw_text": "I cannot."}]
    grader = Answered(judgements="J.jsonl")
    run = run_program(records, [row("a", "cannot_answer")], grader=grader)
    text = run.files["when2call.json"]
    document = json.loads(text)
    metrics = document["metrics"]
    assert metrics["accuracy"] == case["upstream"]
    fallback = case.get("fallback", False)
    assert metrics["n_judge_fallback_to_cannot_answer"] == fallback


def test_its_figures_stand_beside_ours(run_program, row):
    """Each names ours by its path; of scoring, those of the grader's own variant."""
    grade = judge("a", "tool_call")
    run = run_program([grade], [row("a"), row("b", "cannot_answer")])
    figures = {figure.figure: figure.value for figure in run.figures}
    assert figures["label.classification.accuracy"] == 1.0
    assert figures["label.hallucination.tool_hallucination_rate"] is None
    records = [MAKERS["logprob"]("a", ["tool_call", "direct", "direct", "direct"])]
    run = run_program(records, [row("a")], grader=When2Call(variant="raw"))
    first_figure = run.figures[0]
    assert first_figure.value == 0.0
