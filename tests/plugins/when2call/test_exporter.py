"""native/when2call.json: the suite's keys in the suite's order."""

import pytest

from tests.golden.pages import check_golden_file
from tests.plugins.when2call.when2call_records import judge, logprob

SETS = {
    "judge": [
        judge("a", "tool_call", judge_parse_failed_first=True, judge_used_retry=True),
        judge(
            "b",
            "tool_call",
            judge_parse_failed_first=True,
            judge_parse_failed_second=True,
            judge_fallback_to_cannot_answer=True,
        ),
        judge("x", "tool_call", judge_used_retry=True),
        {"uuid": "c", "predicted_label": "direct", "judge_raw": None, "judge_used_retry": True},
    ],
    "mcq": [
        {"uuid": "a", "predicted_label": "invalid", "predicted_index": -1, "raw_mcq_output": "?"},
        {"uuid": "b", "predicted_label": "tool_call", "predicted_index": 1, "raw_mcq_output": "1"},
    ],
    "scoring": [
        logprob("a", "tool_call"),
        logprob("b", "tool_call", mode="string_fallback", string_fallback_pred_idx=-1),
        logprob("x", "tool_call", mode="string_fallback", string_fallback_pred_idx=1),
        logprob("y", "tool_call", mode=None),
    ],
}


@pytest.mark.parametrize("method", SETS)
def test_golden_file_of_predictions(evaluate, run_program, row, method):
    """Ours and the evaluation suite's, with the counters of each method; a row stands twice."""
    dataset = [row(uuid) for uuid in "abcdd"]
    ours = evaluate(SETS[method], dataset).text
    check_golden_file(f"when2call_{method}_documented.json", ours)
    program = run_program(SETS[method], dataset)
    theirs = program.files["when2call.json"]
    check_golden_file(f"when2call_{method}_upstream.json", theirs)
