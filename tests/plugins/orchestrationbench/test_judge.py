"""What a judge's verdicts decide, and the conversation before a step."""

import pytest

from gradestack_plugins.orchestrationbench.calls import CallRules, grade_calls
from gradestack_plugins.orchestrationbench.decisions import steps_of
from gradestack_plugins.orchestrationbench.trial import Verdict, history_before, system_message

PROFILES = ["documented", "upstream"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_verdict_decides_what_is_left(turns, profile):
    """Only undecided arguments of its step take one; without one the leftovers do not match."""
    label = turns.label(_2={"role": "user", "content": "hello"}, _3=[turns.call("f", {})])
    tools = {
        "f": {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "number"}}},
        "g": {"type": "object", "properties": {}},
    }
    said = [turns.call("f", {"q": "A", "n": 2, "shy": "y"}), turns.call("f", {"q": "a"})]
    label["3-1"]["tool_calls"] = [turns.call("f", {"q": "a", "n": 1, "shy": "x"}), turns.call("f", {"q": "b"})]
    verdicts = {"3": {"q": Verdict(1, 0, 0), "n": Verdict(1, 0, 0)}, "2": {"shy": Verdict(1, 0, 0)}}
    rules = CallRules(profile=profile, tools=tools, verdicts=verdicts)
    figures = grade_calls(steps_of(label, [turns.answer("3", said)], profile), rules)
    results = {result.key: result for result in figures.pairs[0].keys}
    assert {key: (each.reason, each.tp, each.fp, each.fn) for key, each in results.items()} == {
        "n": ("type_mismatch", 0, 1, 1),
        "q": ("judged", 2 if profile == "documented" else 1, 0, 0),
        "shy": ("undecided", 0, 1, 1),
    }
    assert (results["q"].predicted, results["q"].gold) == (("A",), ("b",))


def test_history_before_a_step(turns):
    """Turns with calls become what the user would have asked; results, empty and system turns are left out."""
    label = {
        **turns.label(
            _2={"role": "user", "content": "first"},
            _3=[
                turns.call("f", {"refinedQuery": "find it"}),
                turns.call("f", {"refinedQuery": "now"}),
                turns.call("f", {}),
            ],
            _4="AWAITING_USER_INPUT",
            _5={"role": "assistant", "content": ""},
            _10={"role": "user", "content": "last"},
        ),
    }
    everything = [
        {"role": "user", "content": "first"},
        {"role": "user", "content": "find it now"},
        {"role": "assistant", "content": "AWAITING_USER_INPUT"},
        {"role": "user", "content": "last"},
    ]
    assert history_before(label, "11") == everything
    assert history_before(label, "10") == everything[:3]
    assert history_before(label, "3") == everything[:1]
    assert history_before(label, 3) == everything
    label["3-2"]["role"] = "assistant"
    label["10-1"] = {"role": "assistant", "content": "no calls"}
    assert history_before(label, "11") == [*everything[:3], {"role": "assistant", "content": "no calls"}]


def test_system_message(turns):
    assert system_message(turns.label()) == "Today is Monday"
    assert system_message({"1": {"role": "user", "content": "x"}}) == ""
    with pytest.raises(KeyError):
        system_message({})
