"""Pairing of predictions with gold, and the counting table."""

import pytest

from tests.core.outcomes import data

DATA = data(__file__, "decisions.yaml")


PROFILES = ["documented", "upstream"]
AWAIT, VIOLATE = "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION"

MATRIX = DATA["matrix"]


@pytest.fixture
def judge(bench, scenario, turns):
    def run(gold, answer, profile, **changes):
        label = turns.label(_2=gold)
        bench.write(
            "one",
            scenario({**label, **changes}, sub=answer if isinstance(answer, list) else [answer]),
        )
        ((_, grade),) = bench.grades("decision", profile)
        return grade

    return run


def counted(grade):
    return {
        name
        for name in (*MATRIX, "rejection_type_mismatch", "failed_generation")
        if grade.counts.get(name)
    }


CALL = [{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.parametrize(
    ("gold", "calls", "content", "documented", "upstream"),
    DATA["counting_table"],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_counting_table(judge, turns, profile, gold, calls, content, documented, upstream):
    """Each row of the counting table.

    An answer without call and marker is FAILED, in upstream a call of nothing.
    """
    grade = judge(gold, turns.answer("2", calls, content), profile)
    expected = {
        "fc_fc": {"true_negative_reject", "true_positive_fc"},
        "fc_reject": {"false_positive_reject", "false_negative_fc"},
        "fc_failed": {"failed_generation", "false_negative_fc"},
        "reject_fc": {"false_negative_reject", "false_positive_fc"},
        "reject_reject": {"true_positive_reject", "true_negative_fc"},
        "reject_reject mismatch": {
            "true_positive_reject",
            "true_negative_fc",
            "rejection_type_mismatch",
        },
        "reject_failed": {"failed_generation", "true_negative_fc"},
    }[documented if profile == "documented" else upstream]
    assert counted(grade) == expected
    assert sum(grade.counts[name] for name in ("fc_fc", "fc_reject", "fc_failed")) == (
        1 if gold == CALL else 0
    )
    right = {"true_negative_reject", "true_positive_reject"} & expected
    assert grade.score == (1.0 if right else 0.0)


def test_reasons_name_the_mistake(judge, turns):
    def codes(gold, answer):
        return [
            (r.code, r.expected, r.actual)
            for r in judge(gold, answer, "documented").items[0].reasons
        ]

    assert codes(AWAIT, turns.answer("2", CALL)) == [("overaction", AWAIT, "FC")]
    assert codes(CALL, turns.answer("2", [], AWAIT)) == [("underaction", "FC", AWAIT)]
    assert codes(AWAIT, turns.answer("2", [], VIOLATE)) == [("rejection_type", AWAIT, VIOLATE)]
    assert codes(CALL, turns.answer("2", [], "")) == [("failed_generation", "FC", "FAILED")]
    assert codes(CALL, turns.answer("2", CALL)) == []
    assert codes(CALL, [])[0][0] == "no_prediction"
