"""native/when2call.json.

The suite's keys in the suite's order, and the summary of the audit file.
"""

import json

import pytest

from gradestack_plugins.when2call.aggregators import summarise
from tests.core.outcomes import data
from tests.golden.pages import check_golden_file

DATA = data(__file__, "exporter.yaml")


def judge(uuid, label="tool_call", **more):
    return {"uuid": uuid, "predicted_label": label, "judge_raw": "{}", **more}


def scores(uuid, mode, **more):
    names = ("norm_bytes", "raw", "norm_tokens", "norm_chars")
    labels = {f"predicted_label_{name}": "tool_call" for name in names}
    return {"uuid": uuid, "mode": mode, **labels, **more}


SETS = {
    "judge": [
        judge("a", judge_parse_failed_first=True, judge_used_retry=True),
        judge(
            "b",
            judge_parse_failed_first=True,
            judge_parse_failed_second=True,
            judge_fallback_to_cannot_answer=True,
        ),
        judge("x", judge_used_retry=True),
        {"uuid": "c", "predicted_label": "direct", "judge_raw": None, "judge_used_retry": True},
    ],
    "mcq": [
        {"uuid": "a", "predicted_label": "invalid", "predicted_index": -1, "raw_mcq_output": "?"},
        {"uuid": "b", "predicted_label": "tool_call", "predicted_index": 1, "raw_mcq_output": "1"},
    ],
    "scoring": [
        scores("a", "llama_scoring"),
        scores("b", "string_fallback", string_fallback_pred_idx=-1),
        scores("x", "string_fallback", string_fallback_pred_idx=1),
        scores("y", None),
    ],
}


@pytest.mark.parametrize("profile", ["documented", "upstream"])
@pytest.mark.parametrize("method", SETS)
def test_golden_file_of_predictions(evaluate, row, method, profile):
    """The suite's keys in its order, counters of each method, a row that stands twice once."""
    dataset = [row(uuid) for uuid in "abcdd"]
    found = evaluate(SETS[method], dataset, profile=profile)
    check_golden_file(f"when2call_{method}_{profile}.json", found.text)


def test_the_audit_summary_counts_events_and_uuids():
    """Most frequent first, then by name; forced kinds are those that decided a label."""
    summary = summarise(DATA["events"], "audit.jsonl")
    assert json.dumps(summary) == json.dumps(DATA["summary"])
