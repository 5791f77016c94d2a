"""native/when2call.json.

The suite's keys in the suite's order, and the summary of the audit file.
"""

import json

import pytest

from gradestack_plugins.when2call.aggregators import summarise
from gradestack_plugins.when2call.reader import read_events
from tests.core.outcomes import data

DATA = data(__file__, "exporter.yaml")


LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
METRICS = DATA["metrics"]
FORCED = DATA["forced"]


def judge(uuid, label="tool_call", **more):
    return {"uuid": uuid, "predicted_label": label, "judge_raw": "{}", **more}


def test_a_judge_run_has_the_suites_keys_in_its_order(evaluate, row):
    records = [
        judge("a", judge_parse_failed_first=True, judge_used_retry=True),
        judge(
            "b",
            judge_parse_failed_first=True,
            judge_parse_failed_second=True,
            judge_fallback_to_cannot_answer=True,
        ),
        judge("x", judge_used_retry=True),
        {"uuid": "c", "predicted_label": "direct", "judge_raw": None, "judge_used_retry": True},
    ]
    found = evaluate(records, [row("a"), row("b"), row("c"), row("d")], profile="upstream")
    assert list(found.native) == ["header", "metrics"]
    assert found.native["header"] == {"method": "llm_judge"}
    counters = [
        f"n_judge_{name}" for name in ("parse_failed_first", "parse_failed_second", "used_retry")
    ]
    counters += ["n_judge_fallback_to_cannot_answer", "judge_fallback_to_cannot_answer_rate"]
    assert list(found.native["metrics"]) == [*METRICS, *counters, "audit_fallbacks_summary"]
    assert [found.native["metrics"][name] for name in counters] == [2, 1, 2, 1, 0.25]
    assert list(found.native["metrics"]["confusion_matrix"]) == list(LABELS)
    assert list(found.native["metrics"]["confusion_matrix"]["direct"]) == list(LABELS)
    assert found.text == json.dumps(found.native, indent=2)


def test_a_multiple_choice_run_has_its_own_counters(evaluate, row):
    """Index -1 and invalid labels as recorded.

    The rate is over N, so it differs between the profiles.
    """
    records = [
        {"uuid": "a", "predicted_label": "invalid", "predicted_index": -1, "raw_mcq_output": "?"},
        {"uuid": "b", "predicted_label": "tool_call", "predicted_index": 1, "raw_mcq_output": "1"},
    ]
    dataset = [row("a"), row("b"), row("c"), row("d")]
    names = [
        "n_mcq_predicted_index_minus1",
        "n_mcq_predicted_label_invalid_raw",
        "mcq_predicted_index_minus1_rate",
    ]
    for profile, rate in (("documented", 0.5), ("upstream", 0.25)):
        native = evaluate(records, dataset, profile=profile).native
        assert native["header"] == {"method": "mcq"}
        assert list(native["metrics"]) == [*METRICS, *names, "audit_fallbacks_summary"]
        assert [native["metrics"][name] for name in names] == [1, 1, rate]


def test_a_scoring_run_is_keyed_by_variant(evaluate, row):
    """Four metric blocks, the mode counts over the whole file, and the fall-backs."""
    names = ("norm_bytes", "raw", "norm_tokens", "norm_chars")

    def record(uuid, mode, **more):
        return {
            "uuid": uuid,
            "mode": mode,
            **{f"predicted_label_{name}": "tool_call" for name in names},
            **more,
        }

    records = [
        record("a", "llama_scoring"),
        record("b", "string_fallback", string_fallback_pred_idx=-1),
        record("x", "string_fallback", string_fallback_pred_idx=1),
        record("y", None),
    ]
    native = evaluate(records, [row("a"), row("b")], profile="upstream").native
    assert list(native) == ["header", "metrics", "mode_counts", "fallbacks"]
    assert native["header"] == {"method": "mcq_logprob"}
    assert list(native["metrics"]) == list(names)
    assert all(list(metrics) == METRICS for metrics in native["metrics"].values())
    assert list(native["mode_counts"].items()) == [
        ("llama_scoring", 1),
        ("string_fallback", 2),
        ("UNKNOWN", 1),
    ]
    assert list(native["fallbacks"]) == DATA["a_scoring_run_is_keyed_by_variant"]
    assert native["fallbacks"]["n_string_fallback"] == 2
    assert native["fallbacks"]["n_string_fallback_pred_idx_minus1"] == 1


def test_documented_adds_the_invalid_column_and_its_own_counts(evaluate, row):
    """The predicted-only column is there even when empty.

    The added counts stand under one key at the end.
    """
    native = evaluate([judge("a"), judge("x")], [row("a")]).native
    assert list(native) == ["header", "metrics", "gradestack"]
    assert list(native["metrics"]["confusion_matrix"]["tool_call"]) == [*LABELS, "invalid"]
    assert native["gradestack"] == {
        "n_relabelled": 0,
        "n_relabel_differs": 0,
        "n_predictions_not_in_dataset": 1,
    }


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_a_duplicated_dataset_row_does_not_count_a_record_twice(evaluate, row, profile):
    metrics = evaluate(
        [judge("a", judge_used_retry=True)], [row("a"), row("a")], profile=profile
    ).native["metrics"]
    assert (metrics["n_total"], metrics["n_judge_used_retry"]) == (2, 1)


def events():
    return [
        {"uuid": "a", "fallback_type": "z", "stage": "s", "severity": "info"},
        {"uuid": "b", "fallback_type": "z", "stage": "s", "severity": "info"},
        {"uuid": "a", "fallback_type": "y", "stage": "t", "severity": "error"},
        {"uuid": "a", "fallback_type": "x", "stage": "t", "severity": None},
        {"uuid": "a", "fallback_type": FORCED[0], "stage": "s"},
        {"uuid": "a", "fallback_type": FORCED[0], "stage": "s"},
        {"uuid": "", "fallback_type": FORCED[3], "stage": "s"},
        {"uuid": 5, "fallback_type": None, "stage": ""},
    ]


def test_the_audit_summary_counts_events_and_uuids():
    """Most frequent first, then by name; forced kinds are those that decided a label."""
    found = summarise(events(), "audit.jsonl")
    assert (
        list(found) == data(__file__, "exporter.yaml")["the_audit_summary_counts_events_and_uuids"]
    )
    assert (found["audit_path"], found["n_events_total"], found["n_uuids_with_any_event"]) == (
        "audit.jsonl",
        8,
        2,
    )
    kinds = [(FORCED[0], 2), ("z", 2), ("UNKNOWN", 1), (FORCED[3], 1), ("x", 1), ("y", 1)]
    assert list(found["events_by_fallback_type"].items()) == kinds
    assert list(found["events_by_stage"].items()) == [("s", 5), ("t", 2), ("UNKNOWN", 1)]
    assert list(found["events_by_severity"].items()) == [("UNKNOWN", 5), ("info", 2), ("error", 1)]
    assert list(found["uuids_by_fallback_type"].items()) == [
        ("z", 2),
        (FORCED[0], 1),
        ("x", 1),
        ("y", 1),
    ]
    assert (found["n_forced_fallback_events"], found["n_forced_fallback_uuids"]) == (3, 1)
    assert found["forced_fallback_types"] == FORCED


def test_no_audit_file_means_no_events():
    """The summary keeps its form."""
    found = summarise(read_events(None), None)
    assert (found["audit_path"], found["n_events_total"], found["events_by_stage"]) == (None, 0, {})


def test_a_broken_audit_line_ends_the_reading_upstream_only(write):
    """The suite reads nothing behind it; documented leaves just that line out.

    A line without object never counts.
    """
    path = write("audit.jsonl", [{"uuid": "a"}, "[1]", "{", {"uuid": "b"}])
    assert [event["uuid"] for event in read_events(path)] == ["a", "b"]
    assert [event["uuid"] for event in read_events(path, stop_at_broken_line=True)] == ["a"]


def test_the_audit_file_is_shown_by_name_alone(evaluate, row, write):
    """The artefact does not depend on where the file lies."""
    path = write("audit_fallbacks.jsonl", events())
    summary = evaluate([judge("a")], [row("a")], audit=path).native["metrics"][
        "audit_fallbacks_summary"
    ]
    assert (summary["audit_path"], summary["n_events_total"]) == ("audit_fallbacks.jsonl", 8)
