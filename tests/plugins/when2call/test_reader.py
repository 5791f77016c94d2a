"""The When2Call reader: dataset rows, every form of prediction, joins, duplicates and broken records."""

from __future__ import annotations

import json
import math

import pytest

from gradestack import BadRecord, DataError, Sample, Status
from gradestack.jsonio import record_ranges
from gradestack_plugins.when2call.reader import When2CallReader
from tests.core.outcomes import data

DATA = data(__file__, "reader.yaml")

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
ALL_INF = [-math.inf] * 4


def judge(uuid, label, raw='{"classification": "direct"}', **more):
    return {"uuid": uuid, "predicted_label": label, "judge_raw": raw, "judge_rationale": None, **more}


def mcq(uuid, label, index=0, raw="0", **more):
    record = {"uuid": uuid, "gold_label": "tool_call", "gold_index": 1, "answer_names": list(LABELS)}
    return {**record, "predicted_index": index, "predicted_label": label, "raw_mcq_output": raw, **more}


def logprob(uuid, labels, **more):
    names = ("norm_bytes", "raw", "norm_tokens", "norm_chars")
    record = {f"predicted_label_{name}": label for name, label in zip(names, labels, strict=True)}
    return {"uuid": uuid, "gold_label": "tool_call", **record, "mode": "llama_scoring", **more}


def samples(found):
    return [each for each in found if isinstance(each, Sample)]


def reasons(found):
    return [each.reason for each in found if isinstance(each, BadRecord)]


def test_a_row_gives_question_gold_tools_and_expectations(read, row):
    """Tools are JSON texts; the expected call is the candidate's; the reference text is that of the gold answer."""
    (sample,) = read([judge("a", "tool_call", target_model="m")], [row("a")])
    assert (sample.id, sample.model, sample.label, sample.status) == ("a", "m", "tool_call", Status.OK)
    assert sample.input == "question a"
    assert [tool.name for tool in sample.tools] == ["search"]
    assert sample.expected.label == "tool_call"
    assert [(call.name, call.arguments) for call in sample.expected.calls] == [("search", {"q": "a"})]
    assert sample.native.no_tools is False
    assert sample.facets == {"source": "s"}
    assert (sample.source.file, sample.source.line) == ("predictions.jsonl", 1)


def test_tools_may_be_objects_too(read, row):
    """A tool given as an object reads like one given as JSON text; what is neither is left out."""
    tools = [{"name": "f", "parameters": {}}, "not json", 7, None]
    (sample,) = read([judge("a", "direct")], [row("a", tools=tools)])
    assert [tool.name for tool in sample.tools] == ["f"]


@pytest.mark.parametrize(
    ("tools", "none"), [([], True), (None, True), ("absent", True), (["{"], False), ([{}], False), ("", True)]
)
def test_no_tools_means_missing_or_empty(read, row, tools, none):
    """A row has no tools when the field is missing, null or empty; one unreadable tool is still a tool."""
    given = row("a", "cannot_answer", tools=tools)
    if tools == "absent":
        del given["tools"]
    (sample,) = read([judge("a", "direct")], [given])
    assert sample.native.no_tools is none


@pytest.mark.parametrize("missing", ["question", "correct_answer", "uuid"])
def test_required_fields_of_a_row(read, row, missing):
    """uuid, question and correct_answer are required; everything else has a default."""
    given = row("a")
    del given[missing]
    assert reasons(read([judge("a", "direct")], [given])) != []
    bare = {"uuid": "a", "question": "q", "correct_answer": "direct"}
    (sample,) = read([judge("a", "direct")], [bare])
    assert (sample.tools, sample.native.no_tools, sample.facets) == ((), True, {})


def test_a_row_without_prediction_is_missing(read, row):
    """The sample says so, keeps its gold label and carries the only model the file names."""
    found = read([judge("a", "direct", target_model="m")], [row("a"), row("b", "direct")])
    assert [each.status for each in found] == [Status.OK, Status.MISSING]
    assert (found[1].expected.label, found[1].model, found[1].native.method) == ("direct", "m", "llm_judge")


def test_a_dataset_uuid_that_occurs_twice_counts_twice(read, row):
    """Both rows get the prediction; the counters of the record count once."""
    found = read([judge("a", "direct", judge_used_retry=True)], [row("a"), row("a", "direct")])
    assert [each.expected.label for each in found] == ["tool_call", "direct"]
    assert [each.native.counts for each in found] == [{"judge_used_retry": 1}, {}]


def test_a_prediction_for_an_unknown_uuid_comes_last_and_is_marked(read, row):
    """It is neither lost nor mixed with the dataset's rows."""
    found = read([judge("x", "direct"), judge("a", "direct")], [row("a")])
    assert [(each.id, each.native.in_dataset) for each in found] == [("a", True), ("x", False)]


def test_multiple_choice_labels_are_taken_as_recorded(read, row):
    """No normalisation: an invalid label stays what it is; a label that is not text is no prediction."""
    records = [mcq("a", "invalid", -1, "none"), mcq("b", "Tool_Call"), mcq("c", 3)]
    found = read(records, [row("a"), row("b"), row("c")])
    assert [each.label for each in found] == ["invalid", "Tool_Call", None]
    assert [each.status for each in found] == [Status.OK, Status.OK, Status.MISSING]
    assert found[0].native.counts == {"mcq_predicted_index_minus1": 1, "mcq_predicted_label_invalid_raw": 1}
    assert found[1].native.counts["mcq_predicted_label_invalid_raw"] == 1
    assert found[0].text == "none"


def test_log_probability_records_hold_four_prediction_sets(read, row):
    """Each variant keeps its own label; a variant that is not text is missing alone."""
    labels = ("direct", "tool_call", "cannot_answer", None)
    (sample,) = read([logprob("a", labels, scores_raw=[-1.0, -math.inf, -2, -3])], [row("a")])
    assert sample.native.labels == dict(zip(("norm_bytes", "raw", "norm_tokens", "norm_chars"), labels, strict=True))
    assert (sample.label, sample.status, sample.native.method) == ("direct", Status.OK, "mcq_logprob")


@pytest.mark.parametrize(("mode", "index", "counts"), DATA["scoring_modes_are_counted"])
def test_scoring_modes_are_counted(read, row, mode, index, counts):
    record = logprob("a", ["direct"] * 4, mode=mode, string_fallback_pred_idx=index)
    (sample,) = read([record], [row("a")])
    assert sample.native.counts == counts


def test_nvidia_judge_results_carry_their_item(read, row):
    """The dataset item inside gives question, gold label and tools; no dataset is needed."""
    item = row("a", "cannot_answer", tools=[])
    record = {"judge_prompt": "p", "judge_response": {"classification": "direct_answer"}, "model_response": "hi"}
    (sample,) = read([{**record, "question": item}])
    assert (sample.id, sample.label, sample.text) == ("a", "direct_answer", "hi")
    assert (sample.expected.label, sample.native.no_tools, sample.input) == ("cannot_answer", True, "question a")
    (textual,) = read([{**record, "judge_response": '{"classification": "tool_call"}', "question": item}])
    assert textual.label == "tool_call"


def test_lm_eval_lines_name_the_choice_by_its_number(read, row):
    """The second number of macro_f1 is the predicted index in the item's own order of answers."""
    doc = {**row("a"), "answers": {"tool_call": "{}", "direct": "x"}, "target_index": 0}
    found = read([{"doc": doc, "macro_f1": [0, 1], "acc": 0.0}])
    assert [(each.label, each.expected.label, each.native.method) for each in found] == [("direct", "tool_call", "mcq")]
    assert read([{"doc": doc, "macro_f1": [0, 3]}])[0].label == "invalid"
    assert read([{"doc": doc, "macro_f1": None}])[0].status is Status.MISSING


def test_records_may_carry_the_gold_label_themselves(read):
    """Without a dataset the checkpoint's gold label is used; tools are then unknown."""
    (sample,) = read([mcq("a", "direct")])
    assert (sample.expected.label, sample.tools, sample.native.no_tools) == ("tool_call", None, None)
    (without,) = read([judge("a", "direct")])
    assert without.expected.label is None
    assert "gold_label must be one of" in reasons(read([mcq("a", "direct", gold_label="x")]))[0]


def fallback(uuid, raw):
    return judge(uuid, "cannot_answer", raw, judge_fallback_to_cannot_answer=True)


WELL = '{"classification": "request_for_info"}'


def relabelled(read, row, records, **options):
    found = read(records, [row(record["uuid"]) for record in records], **options)
    return [each.label for each in found], [each.native.counts.get("relabelled", 0) for each in found]


def test_documented_reads_again_where_the_judge_fell_back(read, row):
    """A fall-back with a well-formed answer is corrected; one without, and a label that is no fall-back, are kept."""
    records = [fallback("a", WELL), fallback("b", "I think so"), judge("c", "direct", WELL)]
    labels, changed = relabelled(read, row, records)
    assert labels == ["request_for_info", "cannot_answer", "direct"]
    assert changed == [1, 0, 0]


def test_upstream_keeps_the_recorded_label(read, row):
    """The record stands, and how many would differ is counted."""
    records = [fallback("a", WELL), fallback("b", "I think so"), judge("c", "direct", WELL)]
    labels, changed = relabelled(read, row, records, profile="upstream")
    assert labels == ["cannot_answer", "cannot_answer", "direct"]
    assert changed == [0, 0, 0]
    found = read(records, [row("a"), row("b"), row("c")], profile="upstream")
    assert [each.native.counts.get("relabel_differs", 0) for each in found] == [1, 0, 1]


def test_relabelling_scores_takes_the_best_of_each_variant(read, row):
    """Each variant has its own best score; the names are those of the dataset row."""
    scores = {
        "scores_raw": [-1.0, -2.0, -3.0, -4.0],
        "scores_norm_bytes": [-4.0, -1.0, -1.0, -2.0],
        "scores_norm_tokens": [-math.inf, -math.inf, -math.inf, -1.0],
        "scores_norm_chars": "lost",
    }
    (sample,) = read([logprob("a", ["direct"] * 4, **scores)], [row("a")], relabel="from_raw")
    assert sample.native.labels == {
        "norm_bytes": "tool_call",
        "raw": "direct",
        "norm_tokens": "cannot_answer",
        "norm_chars": "direct",
    }
    assert sample.native.counts["relabelled"] == 1


def test_hopeless_scores_use_the_string_answer_for_all_variants(read, row):
    """All raw scores minus infinity: the answer of the string question decides all four."""
    record = logprob("a", ["invalid"] * 4, scores_raw=ALL_INF, scores_norm_bytes=ALL_INF)
    text = {**record, "string_fallback_raw_output": "2", "string_fallback_answer_names": list(LABELS)}
    index = {**record, "string_fallback_pred_idx": 3}
    nothing = {**record, "string_fallback_raw_output": "?"}
    for given, label in ((text, "request_for_info"), (index, "cannot_answer"), (nothing, "invalid")):
        (sample,) = read([given], [row("a")], relabel="from_raw")
        assert set(sample.native.labels.values()) == {label}


def test_minus_infinity_is_read(read, write, row):
    """Scores hold a word that is no standard JSON."""
    line = json.dumps(logprob("a", ["direct"] * 4, scores_raw=ALL_INF))
    assert "-Infinity" in line
    assert read(write("p.jsonl", [line]), [row("a")])[0].label == "direct"


def test_the_method_can_be_named(read, row):
    """An option replaces what the first record suggests."""
    plain = {"uuid": "a", "predicted_label": "direct"}
    assert read([plain], [row("a")])[0].native.method == "llm_judge"
    assert [each.native.method for each in read([plain], [row("a"), row("b")], method="mcq")] == ["mcq", "mcq"]


def test_an_audit_file_that_is_not_there_is_said_before_reading(read, row, tmp_path):
    """A wrong path is an unusable input."""
    with pytest.raises(DataError, match="audit file does not exist"):
        read([judge("a", "direct")], [row("a")], audit=tmp_path / "none.jsonl")


@pytest.mark.parametrize("as_list", [False, True])
def test_a_large_dataset_is_read_in_several_shards(read, row, write, monkeypatch, as_list):
    """Ranges of the dataset, lines or list, give the same samples and bad records as one piece, places included."""
    rows = [row(f"u{n}") for n in range(40)]
    rows[7], rows[20], rows[30] = "no row", {"question": "no uuid"}, row("u8")
    rows = rows if as_list else [json.dumps(each) for each in rows]
    dataset = write("rows.json", rows, as_list=as_list)
    predictions = write("p.json", [judge(f"u{n}", LABELS[n % 4]) for n in range(40)], as_list=as_list)
    whole = read(predictions, dataset)
    assert len(reasons(whole)) == 2
    monkeypatch.setattr("gradestack.jsonio.records.SHARD_BYTES", 1000)
    assert len(list(record_ranges(dataset))) > 3
    assert read(predictions, dataset) == whole


def head_of(records, *, as_list=False):
    text = json.dumps(records, indent=2) if as_list else "\n".join(map(json.dumps, records))
    return text.encode()


@pytest.mark.parametrize("as_list", [False, True])
def test_every_form_is_recognised(row, tmp_path, as_list):
    """The first record's keys tell; stability sweeps, the dataset and other JSON are not claimed."""
    path = tmp_path / "x.jsonl"
    item = row("a")
    ours = [
        judge("a", "direct"),
        mcq("a", "direct"),
        logprob("a", ["direct"] * 4),
        {"judge_response": {}, "question": item},
        {"doc": item, "macro_f1": [0, 0]},
        {"uuid": "a", "predicted_label": "direct"},
    ]
    for record in ours:
        assert When2CallReader.sniff(path, head_of([record], as_list=as_list)) > 0.5
    others = [item, {"uuid": "a", "run_labels": [], "judge_model": "j"}, {"id": 1}, {"doc": {"a": 1}}, [1]]
    for record in others:
        assert When2CallReader.sniff(path, head_of([record], as_list=as_list)) == 0.0
    assert When2CallReader.sniff(path, b"\x00\xff") == 0.0
    assert When2CallReader.sniff(tmp_path, b"") == 0.0


def test_a_first_record_longer_than_the_head_is_recognised():
    """Its keys near the beginning are enough."""
    from pathlib import Path

    head = b'{"uuid": "a", "judge_response": {"classification": "direct"}, "question": "' + b"x" * 70_000
    assert When2CallReader.sniff(Path("x.jsonl"), head[:65_536]) > 0.5
