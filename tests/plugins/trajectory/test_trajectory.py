"""What needs no reference: how calls went, what a run took, and a page from a file alone."""

import json

import pytest

import gradestack
from gradestack import Message, Outcome, Sample, ToolCall, Usage
from gradestack_plugins.trajectory.tool_success import ToolSuccess
from gradestack_plugins.trajectory.usage import RunUsage


def calls(*states):
    return tuple(
        ToolCall(name=name, status=state, error="boom" if state == "error" else None) for name, state in states
    )


def test_success_is_the_share_of_executed_calls_without_error():
    made = calls(("f", "ok"), ("f", "error"), ("f", "denied"), ("g", "not_run"), ("g", None), ("g", "ok"))
    grade = ToolSuccess().grade(Sample(id="a", calls=made))
    assert grade.score == pytest.approx(2 / 3)
    assert grade.counts == {
        "calls": 6,
        "ok": 2,
        "error": 1,
        "denied": 1,
        "not_run": 1,
        "unknown": 1,
        "retried": 1,
        "recovered": 0,
    }
    assert [each.code for each in grade.reasons] == ["call_failed", "call_denied", "call_not_run", "no_result"]
    assert [(item.id, item.score) for item in grade.items] == [("f", 0.5), ("g", 1.0)]


def test_an_error_is_recovered_by_a_later_success_of_the_same_tool():
    """Another tool's success does not count, nor an earlier one."""
    made = calls(("f", "ok"), ("f", "error"), ("f", "error"), ("g", "ok"), ("f", "ok"), ("g", "error"))
    counts = ToolSuccess().grade(Sample(id="a", calls=made)).counts
    assert (counts["error"], counts["retried"], counts["recovered"]) == (3, 2, 2)


@pytest.mark.parametrize(
    ("made", "code"), [(None, "calls_not_recorded"), ((), "no_calls"), (calls(("f", None)), "execution_not_recorded")]
)
def test_what_is_not_recorded_is_skipped(made, code):
    """Not a zero: nothing was executed, or nobody says."""
    grade = ToolSuccess().grade(Sample(id="a", calls=made))
    assert (grade.outcome, grade.score, grade.reasons[0].code) == (Outcome.SKIPPED, None, code)


def test_a_result_says_that_a_call_was_executed():
    """Formats without a status record results and errors."""
    made = (ToolCall(name="f", result="x"), ToolCall(name="f", error="no"))
    assert ToolSuccess().grade(Sample(id="a", calls=made)).score == 0.5


def test_usage_keeps_what_was_not_recorded_apart_from_zero():
    """The score is the figure asked for; without it the run is skipped."""
    talk = ((Message(role="user"), Message(role="assistant"), Message(role="assistant")), (Message(role="user"),))
    sample = Sample(id="a", turns=talk, calls=(), usage=Usage(requests=1, input_tokens=0))
    grade = RunUsage().grade(sample)
    assert grade.score == 2
    assert {name: grade.parts[name] for name in ("steps", "turns", "calls", "input_tokens", "output_tokens")} == {
        "steps": 2,
        "turns": 2,
        "calls": 0,
        "input_tokens": 0,
        "output_tokens": None,
    }
    assert grade.parts["executed_calls"] == 0
    known, unknown = calls(("f", "ok"), ("f", "denied"), ("f", "error")), calls(("f", None))
    for made, number in ((known, 2), (known + unknown, None), (None, None)):
        assert RunUsage().grade(Sample(id="a", turns=talk, calls=made)).parts["executed_calls"] == number
    assert RunUsage(score="input_tokens").grade(sample).score == 0
    assert RunUsage(score="seconds").grade(sample).outcome is Outcome.SKIPPED
    assert RunUsage().grade(Sample(id="b", turns=((Message(role="user"),),))).outcome is Outcome.SKIPPED


def plain(figures):
    return {name: each for name, each in figures.items() if not name.endswith("_interval")}


def test_totals_divide_by_the_runs_that_record_a_figure():
    """By hand: two runs record tokens, three steps."""
    talk = ((Message(role="assistant"),),)
    usages = (Usage(input_tokens=4), None, Usage(input_tokens=8))
    samples = [Sample(id=str(n), turns=talk, calls=(), usage=usage) for n, usage in enumerate(usages)]
    rows = [(sample.id, None, None, RunUsage().grade(sample)) for sample in samples]
    found = gradestack.figures({"usage_totals": {}}, rows)["usage_totals"]
    assert (found["input_tokens"]["mean_interval"]["n"], found["input_tokens"]["mean_interval"]["clusters"]) == (2, 2)
    figures = {name: plain(each) for name, each in found.items() if name != "runs"}
    assert figures["input_tokens"] == {"total": 12.0, "mean": 6.0, "min": 4.0, "max": 8.0, "n": 2}
    assert figures["steps"] == {"total": 3.0, "mean": 1.0, "min": 1.0, "max": 1.0, "n": 3}
    assert "output_tokens" not in figures


def test_outcomes_are_counted_by_tool():
    runs = calls(("f", "ok"), ("g", "error")), calls(("f", "ok"), ("f", "ok"))
    rows = [("a", None, None, ToolSuccess().grade(Sample(id="a", calls=made))) for made in runs]
    figures = gradestack.figures({"tool_outcomes": {}}, rows)["tool_outcomes"]
    assert (figures["runs"], figures["executed"], figures["success_rate"]) == (2, 4, 0.75)
    assert {name: each["success_rate"] for name, each in figures["tools"].items()} == {"f": 1.0, "g": 0.0}


def test_rates_stand_beside_those_of_each_model():
    """A call without a tool's name is one call of all; the rate of every model has an interval of its own."""
    runs = {"m": calls(("", "ok"), ("f", "error")), "n": calls(("f", "ok"))}
    grades = {model: ToolSuccess().grade(Sample(id="a", calls=made)) for model, made in runs.items()}
    found = gradestack.figures(
        {"tool_outcomes": {}}, [(task, None, model, grade) for task in "ab" for model, grade in grades.items()]
    )["tool_outcomes"]
    assert (found["executed"], found["success_rate_interval"]["n"]) == (6, 6)
    models = {
        model: (each["success_rate"], each["success_rate_interval"]["n"]) for model, each in found["models"].items()
    }
    assert models == {"m": (0.5, 4), "n": (1.0, 2)}


@pytest.mark.parametrize("reader", ["openai", "anthropic"])
def test_a_log_alone_gives_a_page(tmp_path, reader):
    """No suite, no reference, no ids: one call, and what was made up or left out is said."""
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answers = {"openai": {"tool_calls": [call], "content": None}, "anthropic": {"content": [block]}}
    results = {
        "openai": {"role": "tool", "tool_call_id": "a", "content": "Error: no"},
        "anthropic": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": "no"}],
        },
    }
    picture = {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {}}]}
    talk = [picture, {"role": "assistant", **answers[reader]}, results[reader]]
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"messages": talk}) + "\n" + json.dumps({"messages": talk}) + "\n")
    report = gradestack.grade_files([path], output=tmp_path / "out")
    assert (tmp_path / "out/report.html").is_file()
    assert report.metrics["avg_score_attempted"] == 0.0
    kind = "part:image" if reader == "openai" else "block:image"
    assert report.header["ignored"] == {kind: 2}
    assert report.header["ids_made"] == 2
    assert report.summary["remarks"][kind] == {"count": 2, "first": "log.jsonl:1"}
    assert report.summary["warnings"][:2] == [
        "2 tasks: no task ids found: records were numbered, repeated runs are not grouped (--id)",
        f"not used: 2 {kind} (first at log.jsonl:1)",
    ]
    assert [row["remarks"] for row in report.rows()] == [{kind: 1, "id_made": 1}] * 2


def test_no_interval_of_steps_goes_below_zero():
    """Neither of their mean nor of a gate on it: there are no negative steps."""
    samples = [
        {"id": str(task), "messages": [{"role": "assistant", "content": "x"}] * steps}
        for task, steps in enumerate((*[1] * 9, 8))
    ]
    gate = {"metric_key": "usage", "op": "lte", "value": 100}
    report = gradestack.grade(samples, graders={"usage": {"kind": "usage"}}, gate=gate)
    found = report.aggregates["usage"]
    sure = (
        found["mean"]["mean_interval"],
        found["usage_totals"]["steps"]["mean_interval"],
        report.gates[0]["interval"],
    )
    assert {(round(each["low"], 9), round(each["high"], 6), each["method"]) for each in sure} == {
        (round(sure[0]["low"], 9), round(sure[0]["high"], 6), "skewed_t")
    }
    assert (sure[0]["low"], sure[0]["high"] > 1.7) == (0.0, True)
