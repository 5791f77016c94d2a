"""Records that overwrite, records too short to tell their form, and dataset rows that cannot be
used.
"""

import pytest

from gradestack import BadRecord, Status
from gradestack_plugins.when2call.reader import When2CallReader
from tests.plugins.when2call.when2call_records import judge, logprob, mcq


def bad(records):
    bads = []
    for record in records:
        if isinstance(record, BadRecord):
            bads.append((record.source.file, record.source.line))
    return bads


@pytest.mark.parametrize(
    "mark", ["judge_model", "judge_rationale", "judge_exception_first", "judge_exception_second"]
)
def test_a_judges_marks_make_a_decision_but_no_prediction(read, row, tmp_path, mark):
    """Beside a label they tell a judge's record; on their own they tell nothing."""
    (sample,) = read([{"uuid": "a", "predicted_label": "direct", mark: "x"}], [row("a")])
    assert sample.status == Status.MISSING
    assert sample.native.method == "llm_judge"
    records = read([{"uuid": "a", mark: "x"}], [row("a")])
    bad_count = len(bad(records))
    assert bad_count == 1
    x_folder = tmp_path / "x"
    assert When2CallReader.sniff(x_folder, b'{"uuid": "a", "%s": "x"}' % mark.encode()) == 0.0


@pytest.mark.parametrize("options", [{}, {"method": "mcq"}])
def test_a_label_alone_in_a_multiple_choice_file_is_a_choice(evaluate, row, options):
    """It is counted as one, in a file of its form or when the method is named."""
    records = [{"uuid": "b", "predicted_label": "invalid"}, *([] if options else [mcq("a")])]
    result = evaluate(records, [row("a"), row("b")], **options)
    header = result.native["header"]
    assert header["method"] == "mcq"
    metrics = result.native["metrics"]
    assert metrics["n_mcq_predicted_label_invalid_raw"] == 1


@pytest.mark.parametrize(
    ("index", "number"),
    [
        (-1, 1),
        (-1.0, 1),
        ("-1", 1),
        (-1.9, 1),
        (True, 0),
        (1, 0),
        ("x", 0),
        (None, 0),
        ([], 0),
        (float("inf"), 0),
    ],
)
def test_an_index_of_minus_one_may_be_a_float_or_text(evaluate, row, index, number):
    """As int() reads it, for choices and for the fall-back of scoring."""
    choice = evaluate([mcq("a", predicted_index=index)], [row("a")])
    metrics = choice.native["metrics"]
    assert metrics["n_mcq_predicted_index_minus1"] == number
    record = logprob("a", mode="string_fallback", string_fallback_pred_idx=index)
    fallbacks = evaluate([record], [row("a")]).native["fallbacks"]
    assert fallbacks["n_string_fallback_pred_idx_minus1"] == number


@pytest.mark.parametrize(
    "change",
    [{"correct_answer": "weird"}, {"correct_answer": None}, *({"uuid": u} for u in (5, "", None))],
)
def test_the_prediction_of_a_row_that_cannot_be_used_is_outside_the_dataset(
    evaluate, read, row, change
):
    """It is neither lost nor left out of the counters of its file."""
    grade = judge("a", "direct")
    records = [grade, judge("b", "direct", judge_used_retry=True)]
    dataset = [row("a"), {**row("b"), **change}]
    result = evaluate(records, dataset)
    not_in_dataset = result.counts["not_in_dataset"]
    assert not_in_dataset == 1
    judge_used_retry = result.counts["judge_used_retry"]
    assert judge_used_retry == 1
    metrics = result.native["metrics"]
    assert metrics["n_total"] == 1
    assert bad(read(records, dataset)) == [("dataset.jsonl", 2)]
