"""What a judge is asked, and the conversation it is shown."""

import pytest

from gradestack_plugins.orchestrationbench.calls import CallRules, grade_calls
from gradestack_plugins.orchestrationbench.decisions import steps_of
from gradestack_plugins.orchestrationbench.trial import Leftover, Verdict, history_before, system_message

PROFILES = ["documented", "upstream"]


class Lenient:
    """Takes everything for equal and remembers what it was asked."""

    def __init__(self):
        self.requests = []

    def decide(self, request):
        self.requests.append(request)
        return {
            left.argument: Verdict(min(len(left.predicted), len(left.gold)), 0, 0)
            for left in request.leftovers
            if left.argument != "shy"
        }


@pytest.mark.parametrize("profile", PROFILES)
def test_a_judge_gets_leftovers_schema_and_history(turns, profile):
    """One request per step covers its undecided arguments, with the called tools' schema and what was said before."""
    label = turns.label(
        _2={"role": "user", "content": "hello"},
        _3=[turns.call("f", {"q": "a", "n": 1, "shy": "x"})],
    )
    tools = {
        "f": {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "number"}}},
        "g": {"type": "object", "properties": {}},
    }
    said = [turns.call("f", {"q": "A", "n": 2, "shy": "y"}), turns.call("f", {"q": "a"})]
    judge = Lenient()
    rules = CallRules(profile=profile, tools=tools, judge=judge, label=label)
    gold = [turns.call("f", {"q": "a", "n": 1, "shy": "x"}), turns.call("f", {"q": "b"})]
    label["3-1"]["tool_calls"] = gold
    figures = grade_calls(steps_of(label, [turns.answer("3", said)], profile), rules)
    (request,) = judge.requests
    assert request.step == "3"
    assert request.leftovers == (
        Leftover(argument="q", predicted=("A",), gold=("b",)),
        Leftover(argument="shy", predicted=("y",), gold=("x",)),
    )
    assert list(request.schema) == ["f"]
    assert request.system == "Today is Monday"
    assert request.history() == [{"role": "user", "content": "hello"}]
    reasons = {result.key: (result.reason, result.tp, result.fp, result.fn) for result in figures.pairs[0].keys}
    assert reasons == {
        "n": ("type_mismatch", 0, 1, 1),
        "q": ("judged", 2 if profile == "documented" else 1, 0, 0),
        "shy": ("undecided", 0, 1, 1),
    }


def test_nothing_undecided_asks_nobody(turns):
    """A judge is not called for steps whose values are decided."""
    label = turns.label(_2=[turns.call("f", {"a": 1})])
    judge = Lenient()
    grade_calls(
        steps_of(label, [turns.answer("2", [turns.call("f", {"a": 1})])], "documented"),
        CallRules(judge=judge, label=label),
    )
    assert judge.requests == []


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
    """Only a first turn with the role system has one."""
    assert system_message(turns.label()) == "Today is Monday"
    assert system_message({"1": {"role": "user", "content": "x"}}) == ""
    with pytest.raises(KeyError):
        system_message({})
