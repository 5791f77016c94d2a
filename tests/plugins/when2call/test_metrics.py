"""The When2Call grader and its metrics in both profiles, against numbers by hand and a slow
calculation of its own.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradestack import Fault, Outcome, Status, ToolSpec, figures
from gradestack.suites.options import Problems, structure
from gradestack_plugins.when2call.aggregators import When2Call
from tests.core.outcomes import at, data
from tests.plugins.when2call.when2call_records import LABELS, PROFILES, judge, sample

VARIANTS = ("norm_bytes", "raw", "norm_tokens", "norm_chars")


def reference(rows, predictions):
    """Metrics of the evaluation suite straight from their definitions.

    Rows are (uuid, gold, has no tools).
    """
    matrix = {gold: dict.fromkeys(LABELS, 0) for gold in LABELS}
    missing = invalid = 0
    tool, answer, parameter = [0, 0], [0, 0], [0, 0]
    for uuid, gold, no_tools in rows:
        missing += uuid not in predictions
        label = predictions.get(uuid, "invalid")
        if label not in LABELS:
            invalid += 1
            label = "cannot_answer"
        matrix[gold][label] += 1
        answer = [answer[0] + (label == "direct" != gold), answer[1] + 1]
        if gold == "request_for_info":
            parameter = [parameter[0] + (label == "tool_call"), parameter[1] + 1]
        if gold == "cannot_answer" and no_tools:
            tool = [tool[0] + (label == "tool_call"), tool[1] + 1]
    f1 = {}
    for label in LABELS:
        hits, support = matrix[label][label], sum(matrix[label].values())
        predicted = sum(row[label] for row in matrix.values())
        p = hits / predicted if predicted else 0.0
        r = hits / support if support else 0.0
        f1[label] = 2 * p * r / (p + r) if p + r else 0.0
    n = len(rows)
    return {
        "accuracy": sum(matrix[label][label] for label in LABELS) / n if n else 0.0,
        "macro_f1": (f1["direct"] + f1["tool_call"] + f1["request_for_info"] + f1["cannot_answer"])
        / 4,
        "macro_f1_no_direct": (f1["tool_call"] + f1["request_for_info"] + f1["cannot_answer"]) / 3,
        "per_class_f1": f1,
        "per_class_support": {label: sum(matrix[label].values()) for label in LABELS},
        "confusion_matrix": matrix,
        "tool_hallucination_rate": tool[0] / tool[1] if tool[1] else None,
        "answer_hallucination_rate": answer[0] / answer[1] if answer[1] else None,
        "parameter_hallucination_rate": parameter[0] / parameter[1] if parameter[1] else None,
        "n_total": n,
        "n_missing_uuid": missing,
        "n_invalid_label": invalid,
        "n_converted_to_cannot_answer": invalid,
    }


def logprob(uuid, labels):
    return {"uuid": uuid, "mode": "llama_scoring"} | {
        f"predicted_label_{name}": label for name, label in zip(VARIANTS, labels, strict=True)
    }


def mcq(uuid, label):
    index = -1 if label == "invalid" else 0
    return {"uuid": uuid, "predicted_label": label, "predicted_index": index, "raw_mcq_output": ""}


def fallback(uuid, label):
    raw = json.dumps({"classification": label})
    return judge(uuid, "cannot_answer", raw, judge_fallback_to_cannot_answer=True)


FORMS = {
    "mcq": mcq,
    "logprob": lambda uuid, label: logprob(uuid, [label] * 4),
    "fallback": fallback,
}


@pytest.mark.parametrize("case", data(__file__, "published.yaml"), ids=lambda case: case["name"])
def test_published_figures(evaluate, row, case):
    """Rounded as they were published; of every prediction set."""
    pairs = [(gold, label) for gold, label, number in case["cells"] for _ in range(number)]
    records = [FORMS[case["form"]](f"u{n}", label) for n, (_, label) in enumerate(pairs)]
    dataset = [row(f"u{n}", gold) for n, (gold, _) in enumerate(pairs)]
    found = evaluate(records, dataset, **{"profile": "upstream", **case.get("options", {})})
    native = found.native["metrics"]
    assert set(VARIANTS) == native.keys() if case["form"] == "logprob" else "accuracy" in native
    several = native.values() if case["form"] == "logprob" else [native]
    for part, places in (
        ("native", several),
        ("classes", [found.classes]),
        ("counts", [found.counts]),
    ):
        for name, value in case.get(part, {}).items():
            digits = len(repr(value).partition(".")[2])
            assert {round(at(each, name), digits) for each in places} == {value}, name


cases = st.lists(
    st.tuples(
        st.sampled_from(LABELS),
        st.booleans(),
        st.sampled_from([*LABELS, "invalid", "direct_answer", "Direct", None]),
    ),
    max_size=25,
)


@given(cases)
def test_upstream_equals_the_slow_calculation(given_cases):
    """Every figure of the native metrics equals its definition over dataset rows, bit for bit."""
    rows = [(f"u{n}", gold, no_tools) for n, (gold, no_tools, _) in enumerate(given_cases)]
    predictions = {
        f"u{n}": label for n, (_, _, label) in enumerate(given_cases) if label is not None
    }
    assert block(given_cases, "upstream") == reference(rows, predictions)


def block(given_cases, profile):
    from gradestack_plugins.when2call.aggregators import metrics_block

    grader, rows = When2Call(profile=profile), []
    for gold, no_tools, label in given_cases:
        tools = () if no_tools else (ToolSpec(name="f"),)
        status = Status.MISSING if label is None else Status.OK
        rows.append(
            ("x", None, None, grader.grade(sample(gold, label, tools=tools, status=status)))
        )
    if not rows:
        rows = [("x", None, None, grader.grade(sample(None, None)))]
    metrics = {"classification": {"labels": LABELS, "exclude": ["direct"]}, "hallucination": {}}
    return metrics_block(*figures(metrics, rows, profile=profile).values())


@given(cases, st.sampled_from(PROFILES))
def test_rates_lie_between_zero_and_one_and_the_matrix_sums_to_n(given_cases, profile):
    """The identities hold for any predictions, in both profiles.

    Documented N leaves the missing out.
    """
    found = block(given_cases, profile)
    missing = sum(label is None for _, _, label in given_cases)
    assert (
        sum(map(sum, (row.values() for row in found["confusion_matrix"].values())))
        == found["n_total"]
    )
    assert found["n_total"] == len(given_cases) - (missing if profile == "documented" else 0)
    assert found["n_missing_uuid"] == missing
    rates = [
        found[name] for name in found if name.endswith("_rate") or name in ("accuracy", "macro_f1")
    ]
    assert all(rate is None or 0 <= rate <= 1 for rate in rates)
    if profile == "documented":
        assert found["n_converted_to_cannot_answer"] == 0


def test_a_failed_run_fails_in_documented_and_is_missing_upstream():
    """The recorded error is kept in documented; upstream knows only that there is no label."""
    fault = Fault(category="target", code="timeout", message="no answer")
    broken = sample("direct", None, status=Status.FAILED, error=fault)
    grade = When2Call().grade(broken)
    assert (grade.outcome, grade.fault, grade.gold) == (Outcome.FAILED, fault, "direct")
    coerced = When2Call(profile="upstream").grade(broken)
    assert (coerced.label, coerced.counts["missing"]) == ("cannot_answer", 1)


@pytest.mark.parametrize(
    ("aliases", "said"),
    [
        ({"x": "maybe"}, "x must stand for one of"),
        ({"direct": "tool_call"}, "direct is a label of its own"),
    ],
)
def test_senseless_aliases_are_refused(aliases, said):
    """An alias stands for one of the four labels and is none itself."""
    with pytest.raises(Problems, match=said):
        structure({"aliases": aliases}, When2Call)
