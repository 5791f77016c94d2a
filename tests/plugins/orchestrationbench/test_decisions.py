"""Pairing of predictions with gold, and the counting table."""

import pytest

from gradestack import Expectation, ExpectedCall, Outcome, Rule, Sample, Status, ToolCall, replace
from gradestack_plugins.orchestrationbench.graders import OrchestrationCall, OrchestrationDecision

PROFILES = ["documented", "upstream"]
AWAIT, VIOLATE = "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION"

MATRIX = [
    "true_positive_reject",
    "true_negative_reject",
    "false_positive_reject",
    "false_negative_reject",
    "true_positive_fc",
    "false_positive_fc",
    "false_negative_fc",
    "true_negative_fc",
]


@pytest.fixture
def judge(bench, scenario, turns):
    """Grade one gold turn against one answer and return the grade."""

    def run(gold, answer, profile, **changes):
        label = turns.label(_2=gold)
        bench.write("one", scenario({**label, **changes}, sub=answer if isinstance(answer, list) else [answer]))
        ((_, grade),) = bench.grades("decision", profile)
        return grade

    return run


def counted(grade):
    return {name for name in (*MATRIX, "rejection_type_mismatch", "failed_generation") if grade.counts.get(name)}


CALL = [{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("gold", "calls", "content", "documented", "upstream"),
    [
        (CALL, CALL, None, "fc_fc", "fc_fc"),
        (CALL, [], AWAIT, "fc_reject", "fc_reject"),
        (CALL, [], "hm", "fc_failed", "fc_fc"),
        (AWAIT, CALL, None, "reject_fc", "reject_fc"),
        (AWAIT, [], f"<status>{AWAIT}</status>", "reject_reject", "reject_reject"),
        (VIOLATE, [], VIOLATE, "reject_reject", "reject_reject"),
        (AWAIT, [], VIOLATE, "reject_reject mismatch", "reject_reject mismatch"),
        ("I refuse", [], AWAIT, "reject_reject mismatch", "reject_reject mismatch"),
        (AWAIT, [], "hm", "reject_failed", "reject_fc"),
        ("I refuse", [], "", "reject_failed", "reject_fc"),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_counting_table(judge, turns, profile, gold, calls, content, documented, upstream):
    """Each row of the counting table; an answer without call and marker is FAILED, in upstream a call of nothing."""
    grade = judge(gold, turns.answer("2", calls, content), profile)
    expected = {
        "fc_fc": {"true_negative_reject", "true_positive_fc"},
        "fc_reject": {"false_positive_reject", "false_negative_fc"},
        "fc_failed": {"failed_generation", "false_negative_fc"},
        "reject_fc": {"false_negative_reject", "false_positive_fc"},
        "reject_reject": {"true_positive_reject", "true_negative_fc"},
        "reject_reject mismatch": {"true_positive_reject", "true_negative_fc", "rejection_type_mismatch"},
        "reject_failed": {"failed_generation", "true_negative_fc"},
    }[documented if profile == "documented" else upstream]
    assert counted(grade) == expected
    assert sum(grade.counts[name] for name in ("fc_fc", "fc_reject", "fc_failed")) == (1 if gold is CALL else 0)
    right = {"true_negative_reject", "true_positive_reject"} & expected
    assert grade.score == (1.0 if right else 0.0)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("text", "gold"),
    [(f"{VIOLATE} {AWAIT}", AWAIT), (f"x {VIOLATE}", VIOLATE), ("awaiting_user_input", "GENERAL_REJECTION")],
)
def test_gold_rejection_type(judge, turns, profile, text, gold):
    """AWAITING is looked for first, then the violation, else the rejection is general; case matters."""
    grade = judge(text, turns.answer("2", [], AWAIT), profile)
    assert grade.items[0].gold == grade.gold == gold
    assert grade.items[0].label == AWAIT


@pytest.mark.parametrize("profile", PROFILES)
def test_an_argument_named_like_a_marker_is_a_rejection(judge, turns, profile):
    """A call with a marker for an argument name rejects, whatever the content says."""
    answer = turns.answer("2", [turns.call("f", {VIOLATE: "too hot"})], content=AWAIT)
    assert judge(VIOLATE, answer, profile).items[0].label == VIOLATE
    both = turns.answer("2", [turns.call("f", {VIOLATE: 1, AWAIT: 2})])
    assert judge(AWAIT, both, profile).items[0].label == AWAIT


@pytest.mark.parametrize("profile", PROFILES)
def test_with_calls_the_content_is_ignored(judge, turns, profile):
    """A marker in the text beside a call does not make it a rejection."""
    assert judge(CALL, turns.answer("2", CALL, content=AWAIT), profile).items[0].label == "FC"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_step_without_label_is_a_general_rejection(judge, turns, profile):
    """A prediction the label knows nothing of counts against a general rejection, and says so."""
    grade = judge(CALL, [turns.answer("2", CALL), turns.answer("9", CALL)], profile)
    assert [item.gold for item in grade.items] == ["FC", "GENERAL_REJECTION"]
    assert [reason.code for reason in grade.items[1].reasons] == ["no_label", "overaction"]


@pytest.mark.parametrize("profile", PROFILES)
def test_denominators_come_from_the_label(judge, turns, profile):
    """Steps not predicted count as cases and enter no cell; a repeated prediction is counted twice in the matrix."""
    missing = judge(CALL, [], profile, **{"3": {"role": "assistant", "agent_id": "a", "content": AWAIT}})
    assert (missing.counts["function_call_cases"], missing.counts["rejection_cases"]) == (1, 1)
    assert counted(missing) == set()
    assert missing.score == 0.0
    assert [str(item.outcome) for item in missing.items] == ["missing", "missing"]
    twice = judge(CALL, [turns.answer("2", CALL), turns.answer("2", [], AWAIT)], profile)
    assert (
        twice.counts["function_call_cases"],
        twice.counts["true_positive_fc"],
        twice.counts["false_negative_fc"],
    ) == (1, 1, 1)
    assert [item.id for item in twice.items] == ["2", "2 (again 1)"]
    assert twice.score == 0.5


@pytest.mark.parametrize("profile", PROFILES)
def test_main_agent_turns_are_no_cases(judge, turns, profile):
    """Only label turns with an agent_id and without a dash count as cases."""
    grade = judge(CALL, [turns.answer("2", CALL)], profile, **{"3": {"role": "assistant", "content": "done"}})
    assert (grade.counts["function_call_cases"], grade.counts["rejection_cases"]) == (1, 0)


def test_reasons_name_the_mistake(judge, turns):
    """Every lost point has a coded reason with the expected and the actual decision."""

    def codes(gold, answer):
        return [(r.code, r.expected, r.actual) for r in judge(gold, answer, "documented").items[0].reasons]

    assert codes(AWAIT, turns.answer("2", CALL)) == [("overaction", AWAIT, "FC")]
    assert codes(CALL, turns.answer("2", [], AWAIT)) == [("underaction", "FC", AWAIT)]
    assert codes(AWAIT, turns.answer("2", [], VIOLATE)) == [("rejection_type", AWAIT, VIOLATE)]
    assert codes(CALL, turns.answer("2", [], "")) == [("failed_generation", "FC", "FAILED")]
    assert codes(CALL, turns.answer("2", CALL)) == []


def test_no_step_at_all_is_skipped(judge):
    """A trial without sub-agent turns has no decision to judge."""
    label = {"1": {"role": "system", "content": ""}}
    assert judge({"role": "assistant", "content": "hello"}, [], "documented", **label).outcome is Outcome.SKIPPED


@pytest.mark.parametrize(
    ("sample", "documented", "upstream"),
    [
        ({"calls": (), "text": "hm", "expected": Expectation(calls=(ToolCall(name="f"),))}, "fc_failed", "fc_fc"),
        ({"calls": (ToolCall(name="f"),), "expected": Expectation(calls=())}, "reject_fc", "reject_fc"),
        ({"label": AWAIT, "expected": Expectation(label=AWAIT)}, "reject_reject", "reject_reject"),
        ({"text": f"so {AWAIT}", "expected": Expectation(label=VIOLATE)}, "reject_reject", "reject_reject"),
        ({"label": "GENERAL_REJECTION", "expected": Expectation(calls=())}, "reject_reject", "reject_reject"),
        ({"calls": (), "text": "x", "expected": Expectation(label="other")}, None, None),
        ({"expected": Expectation(calls=())}, None, None),
        ({"calls": (), "status": Status.FAILED, "expected": Expectation(calls=())}, "failed", "failed"),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_samples_of_other_readers(profile, sample, documented, upstream):
    """Expected calls or a rejection label are gold; calls, label or text the prediction; else it is skipped."""
    grade = OrchestrationDecision(profile=profile).grade(Sample(id="x", **sample))
    cell = documented if profile == "documented" else upstream
    if cell == "failed":
        assert grade.outcome is Outcome.FAILED
    elif cell is None:
        assert grade.outcome is Outcome.SKIPPED
    else:
        assert grade.items[0].counts == {cell: 1}


WANTED = ExpectedCall(name="f")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "expected",
    [
        Expectation(calls=(WANTED,), alternatives=((),)),
        Expectation(calls=(WANTED,), forbidden=("g",)),
        Expectation(calls=(ExpectedCall(name="f", optional=True),)),
        Expectation(calls=(ExpectedCall(names=("f", "g")),)),
        Expectation(calls=(ExpectedCall(name="f", rules={"x": Rule(ignore=True)}),)),
        Expectation(calls=(ExpectedCall(name="f", arguments=None),)),
    ],
    ids=["alternatives", "forbidden", "optional", "names", "rules", "arguments not compared"],
)
def test_a_reference_that_is_not_plain_is_skipped(profile, expected):
    """Neither decisions nor calls can be held against it; a rejection needs no calls."""
    sample = Sample(id="a", expected=expected, calls=(ToolCall(name="f"),))
    for grader in (OrchestrationDecision(profile=profile), OrchestrationCall(profile=profile)):
        grade = grader.grade(sample)
        assert (grade.outcome, grade.score) == (Outcome.SKIPPED, None)
        assert [reason.code for reason in grade.reasons] == ["reference_not_plain"]
    rejected = replace(sample, expected=replace(expected, label=AWAIT), calls=(), text=AWAIT)
    assert OrchestrationDecision(profile=profile).grade(rejected).score == 1.0
