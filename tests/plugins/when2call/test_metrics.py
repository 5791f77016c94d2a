"""The When2Call grader and its metrics: identities that hold for any predictions."""

from hypothesis import given
from hypothesis import strategies as st

from gradestack import Expectation, Fault, Outcome, Sample, Status, ToolSpec, figures
from gradestack_plugins.when2call.aggregators import When2Call, metrics_block
from tests.plugins.when2call.when2call_records import LABELS, logprob


def sample(gold, label, **more):
    expectation = Expectation(label=gold)
    return Sample(id="x", expected=expectation, label=label, **more)


rows_of = st.lists(
    st.tuples(
        st.sampled_from(LABELS),
        st.booleans(),
        st.sampled_from([*LABELS, "invalid", "direct_answer", "Direct", None]),
    ),
    min_size=1,
    max_size=25,
)


@given(rows_of)
def test_rates_lie_between_zero_and_one_and_the_matrix_sums_to_n(rows):
    """N leaves the missing out; nothing is converted."""
    grades = []
    for gold, no_tools, label in rows:
        if no_tools:
            tools = ()
        else:
            tools = (ToolSpec(name="f"),)
        if label is None:
            status = Status.MISSING
        else:
            status = Status.OK
        grade = When2Call().grade(sample(gold, label, tools=tools, status=status))
        grades.append(("x", None, None, grade))
    metrics = {"classification": {"labels": LABELS, "exclude": ["direct"]}, "hallucination": {}}
    block = metrics_block(*figures(metrics, grades).values())
    missing = sum(label is None for _, _, label in rows)
    confusion_matrix = block["confusion_matrix"].values()
    cells = [count for counts in confusion_matrix for count in counts.values()]
    n_total = block["n_total"]
    assert sum(cells) == n_total == len(rows) - missing
    assert block["n_missing_uuid"] == missing
    names = ("accuracy", "macro_f1", *(name for name in block if name.endswith("_rate")))
    assert all(block[name] is None or 0 <= block[name] <= 1 for name in names)


def test_a_failed_run_fails():
    """The recorded error is kept."""
    fault = Fault(category="target", code="timeout", message="no answer")
    grade = When2Call().grade(sample("direct", None, status=Status.FAILED, error=fault))
    assert grade.outcome == Outcome.FAILED
    assert grade.fault == fault
    assert grade.gold == "direct"


def test_a_variant_may_be_missing_everywhere(evaluate, row):
    """Rates of the other prediction sets are computed all the same, each with its interval."""
    records = [logprob(uuid, [None, "direct", "direct", "direct"]) for uuid in "ab"]
    rates = evaluate(records, [row("a"), row("b", "direct")]).rates
    assert rates["answer_hallucination_rate"] is None
    assert rates["sets"]["raw"]["answer_hallucination_rate"] == 0.5
    assert rates["sets"]["raw"]["answer_hallucination_rate_interval"]["n"] == 2
