"""The When2Call reader.

Dataset rows, every form of prediction, joins, duplicates and broken records.
"""

import json
import math

import msgspec
import pytest

from gradestack import BadRecord, Status
from gradestack_plugins.when2call.reader import When2CallReader
from tests.core.outcomes import at, data

DATA = data(__file__, "reader.yaml")

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
ALL_INF = [-math.inf] * 4


def judge(uuid, label, raw='{"classification": "direct"}', **more):
    return {
        "uuid": uuid,
        "predicted_label": label,
        "judge_raw": raw,
        "judge_rationale": None,
        **more,
    }


def mcq(uuid, label, index=0, raw="0", **more):
    record = {
        "uuid": uuid,
        "gold_label": "tool_call",
        "gold_index": 1,
        "answer_names": list(LABELS),
    }
    return {
        **record,
        "predicted_index": index,
        "predicted_label": label,
        "raw_mcq_output": raw,
        **more,
    }


def logprob(uuid, labels, **more):
    names = ("norm_bytes", "raw", "norm_tokens", "norm_chars")
    pairs = zip(names, labels, strict=True)
    record = {f"predicted_label_{name}": label for name, label in pairs}
    return {"uuid": uuid, "gold_label": "tool_call", **record, "mode": "llama_scoring", **more}


def reasons(records):
    return [record.reason for record in records if isinstance(record, BadRecord)]


def test_a_row_gives_question_gold_tools_and_expectations(read, row):
    """Tools are JSON texts; the expected call is the candidate's.

    The reference text is that of the gold answer.
    """
    grade = judge("a", "tool_call", target_model="m")
    (sample,) = read([grade], [row("a")])
    assert sample.id == "a"
    assert sample.model == "m"
    assert sample.label == "tool_call"
    assert sample.status == Status.OK
    assert sample.input == "question a"
    names = [tool.name for tool in sample.tools]
    assert names == ["search"]
    assert sample.expected.label == "tool_call"
    calls = sample.expected.calls
    assert [(call.name, call.arguments) for call in calls] == [("search", {"q": "a"})]
    assert sample.facets == {"source": "s"}
    assert sample.source.file == "predictions.jsonl"
    assert sample.source.line == 1


@pytest.mark.parametrize("missing", ["question", "correct_answer", "uuid"])
def test_required_fields_of_a_row(read, row, missing):
    """uuid, question and correct_answer are required; everything else has a default."""
    item = row("a")
    del item[missing]
    grade = judge("a", "direct")
    records = read([grade], [item])
    assert reasons(records) != []
    bare = {"uuid": "a", "question": "q", "correct_answer": "direct"}
    (sample,) = read([judge("a", "direct")], [bare])
    assert sample.tools == ()
    assert sample.facets == {}


def test_log_probability_records_hold_four_prediction_sets(read, row):
    """Each variant keeps its own label; a variant that is not text is missing alone."""
    labels = ("direct", "tool_call", "cannot_answer", None)
    scores_raw = [-1.0, -math.inf, -2, -3]
    (sample,) = read([logprob("a", labels, scores_raw=scores_raw)], [row("a")])
    pairs = zip(("norm_bytes", "raw", "norm_tokens", "norm_chars"), labels, strict=True)
    assert sample.native.labels == dict(pairs)
    assert sample.label == "direct"
    assert sample.status == Status.OK
    assert sample.native.method == "mcq_logprob"


@pytest.mark.parametrize("case", DATA["read"], ids=lambda case: case["name"])
def test_what_is_read(read, row, case):
    makers = {"judge": judge, "mcq": mcq, "logprob": logprob}
    predictions = map(dict, case["predictions"])
    records = [
        next(
            (
                makers[kind](*prediction.pop(kind), **prediction)
                for kind in makers
                if kind in prediction
            ),
            prediction,
        )
        for prediction in predictions
    ]
    rows = None
    if "rows" in case:
        rows = [row(**row_fields) for row_fields in case["rows"]]
    options = case.get("options", {})
    read_records = read(records, rows, **options)
    for sample, wanted in zip(read_records, case["is"], strict=True):
        assert msgspec.to_builtins({path: at(sample, path) for path in wanted}) == wanted


def test_minus_infinity_is_read(read, write, row):
    """Scores hold a word that is no standard JSON."""
    labels = ["direct"] * 4
    line = json.dumps(logprob("a", labels, scores_raw=ALL_INF))
    assert "-Infinity" in line
    label = read(write("p.jsonl", [line]), [row("a")])[0].label
    assert label == "direct"


def head_of(records, *, as_list=False):
    if as_list:
        text = json.dumps(records, indent=2)
    else:
        text = "\n".join(map(json.dumps, records))
    return text.encode()


@pytest.mark.parametrize("as_list", [False, True])
def test_every_form_is_recognised(row, tmp_path, as_list):
    """The first record's keys tell.

    Stability sweeps, the dataset and other JSON are not claimed.
    """
    path = tmp_path / "x.jsonl"
    item = row("a")
    grade = judge("a", "direct")
    ours = [
        grade,
        mcq("a", "direct"),
        logprob("a", ["direct"] * 4),
        {"judge_response": {}, "question": item},
        {"doc": item, "macro_f1": [0, 0]},
        {"uuid": "a", "predicted_label": "direct"},
    ]
    for record in ours:
        head = head_of([record], as_list=as_list)
        assert When2CallReader.sniff(path, head) > 0.5
    others = [
        item,
        {"uuid": "a", "run_labels": [], "judge_model": "j"},
        {"id": 1},
        {"doc": {"a": 1}},
        [1],
    ]
    for record in others:
        assert When2CallReader.sniff(path, head_of([record], as_list=as_list)) == 0.0
    assert When2CallReader.sniff(path, b"\x00\xff") == 0.0
    assert When2CallReader.sniff(tmp_path, b"") == 0.0
