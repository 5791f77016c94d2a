"""Pairing of predictions with gold, and the counting table."""

import pytest

AWAIT, VIOLATE = "AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION"


@pytest.fixture
def judge(bench, scenario, turns):
    def run(gold, reply, **changes):
        label = turns.label(_2=gold)
        bench.write(
            "one",
            scenario({**label, **changes}, sub=reply if isinstance(reply, list) else [reply]),
        )
        ((_, grade),) = bench.grades()
        return grade

    return run


CALL = [{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}]


def test_reasons_name_the_mistake(judge, turns):
    def codes(gold, answer):
        grade = judge(gold, answer)
        first_item = grade.items[0]
        return [(r.code, r.expected, r.actual) for r in first_item.reasons]

    assert codes(AWAIT, turns.answer("2", CALL)) == [("overaction", AWAIT, "FC")]
    assert codes(CALL, turns.answer("2", [], AWAIT)) == [("underaction", "FC", AWAIT)]
    assert codes(AWAIT, turns.answer("2", [], VIOLATE)) == [("rejection_type", AWAIT, VIOLATE)]
    assert codes(CALL, turns.answer("2", [], "")) == [("failed_generation", "FC", "FAILED")]
    assert codes(CALL, turns.answer("2", CALL)) == []
    first_code = codes(CALL, [])[0]
    assert first_code[0] == "no_prediction"
