"""Function name, key and value F1 of one trial."""

import json

import pytest

from gradestack import Expectation, Outcome, Sample, ToolCall, ToolSpec
from gradestack_plugins.orchestrationbench.calls import set_f1
from gradestack_plugins.orchestrationbench.graders import OrchestrationCall

PROFILES = ["documented", "upstream"]


@pytest.fixture
def judge(bench, scenario, turns):
    """Grade (gold calls, predicted calls) pairs as the steps of one trial; a text is an answer without calls."""

    def run(pairs, profile, **reader):
        label = turns.label(**{f"_{number}": gold for number, (gold, _) in enumerate(pairs, start=2)})
        answers = [
            turns.answer(str(number), *(((), said) if isinstance(said, str) else (said,)))
            for number, (_, said) in enumerate(pairs, start=2)
        ]
        bench.write("one", scenario(label, sub=answers))
        ((_, grade),) = bench.grades("call", profile, reader=reader)
        return grade

    return run


def part(grade, *names):
    return tuple(grade.parts[name] for name in names)


@pytest.mark.parametrize(
    ("ours", "theirs", "f1"),
    [
        ([], [], 1.0),
        (["a"], [], 0.0),
        ([], ["a"], 0.0),
        (["a"], ["b"], 0.0),
        (["a", "a"], ["a"], 1.0),
        (["a", "b"], ["a"], 2 * 0.5 / 1.5),
        (["a", "b", "c"], ["a", "b", "d", "e"], 2 * (2 / 3 * 0.5) / (2 / 3 + 0.5)),
        ([""], ["a"], 0.0),
    ],
)
def test_set_f1(ours, theirs, f1):
    """Both empty 1, one empty 0, repeats collapse, the empty text is an element like any other."""
    assert set_f1(ours, theirs) == f1


@pytest.mark.parametrize("profile", PROFILES)
def test_a_step_is_one_bag_of_calls(judge, turns, profile):
    """Calls are not paired: values of an argument are pooled over all calls of the step, per key as sets."""
    gold = [turns.call("f", {"x": 1, "y": "a"}), turns.call("g", {"x": 2})]
    said = [turns.call("g", {"x": 1}), turns.call("f", {"x": 2, "y": "a"})]
    assert part(judge([(gold, said)], profile), "name", "key", "value") == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_value_f1_sums_over_keys(judge, turns, profile):
    """tp, fp and fn are added over all keys of the pair before precision and recall."""
    gold = [turns.call("f", {"a": 1, "b": 2, "c": 3})]
    said = [turns.call("f", {"a": 1, "b": 2, "d": 4, "e": 5})]
    grade = judge([(gold, said)], profile)
    assert grade.items[0].counts == {"tp": 2, "fp": 2, "fn": 1}
    precision, recall = 2 / 4, 2 / 3
    assert grade.parts["value"] == 2 * (precision * recall) / (precision + recall)
    assert grade.parts["key"] == round(2 * (0.5 * 2 / 3) / (0.5 + 2 / 3), 4)


@pytest.mark.parametrize("profile", PROFILES)
def test_name_and_key_are_rounded_and_value_is_not(judge, turns, profile):
    """A trial's name and key means have four digits, its value mean has all of them."""
    right = ([turns.call("f", {"a": 1})], [turns.call("f", {"a": 1})])
    wrong = ([turns.call("f", {"a": 1, "b": 1})], [turns.call("g", {"a": 1, "c": 1})])
    grade = judge([right, right, wrong], profile)
    assert part(grade, "name", "key") == (0.6667, 0.8333)
    assert grade.parts["value"] == (1.0 + 1.0 + 0.5) / 3


def test_zeros_are_dropped_from_value_in_upstream(judge, turns):
    """Documented averages value over all pairs, upstream over those above zero."""
    right = ([turns.call("f", {"a": 1})], [turns.call("f", {"a": 1})])
    wrong = ([turns.call("f", {"a": 1})], [turns.call("f", {"b": 1})])
    assert judge([right, wrong], "documented").parts["value"] == 0.5
    assert judge([right, wrong], "upstream").parts["value"] == 1.0


def test_a_call_without_arguments(judge, turns):
    """Key F1 is 1; value F1 is undefined in documented and 0 in upstream, where it is dropped again."""
    pair = ([turns.call("f", {})], [turns.call("f", {})])
    documented, upstream = judge([pair], "documented"), judge([pair], "upstream")
    assert part(documented, "name", "key", "value") == (1.0, 1.0, None)
    assert documented.score == 1.0
    assert documented.counts["perfect_calls"] == 1
    assert [reason.code for reason in documented.reasons] == ["no_value"]
    assert part(upstream, "name", "key", "value") == (1.0, 1.0, 0.0)
    assert upstream.counts["perfect_calls"] == 0


def test_an_answer_without_call_is_a_graded_pair_in_upstream(judge, turns):
    """FAILED is no pair in documented; in upstream it is a call of nothing, with name F1 0 and key F1 0."""
    pairs = [([turns.call("f", {"a": 1})], "hm"), ([turns.call("f", {"a": 1})], [turns.call("f", {"a": 1})])]
    assert part(judge(pairs, "documented"), "name", "key", "value") == (1.0, 1.0, 1.0)
    assert part(judge(pairs, "upstream"), "name", "key", "value") == (0.5, 0.5, 1.0)


def test_no_pair_is_skipped_or_zero(judge, turns):
    """Without a graded pair documented has no figure and upstream has zeros and lists the trial as judge failure."""
    documented, upstream = (judge([("I refuse", [turns.call("f", {})])], profile) for profile in PROFILES)
    assert documented.outcome is Outcome.SKIPPED
    assert part(documented, "name", "key", "value") == (None, None, None)
    assert upstream.score == 0.0
    assert part(upstream, "name", "key", "value") == (0.0, 0.0, 0.0)
    assert upstream.metadata["judge_failed"] is True


@pytest.mark.parametrize("profile", PROFILES)
def test_perfect_calls_need_no_right_name(judge, turns, profile):
    """A pair with key and value F1 1 is perfect, whatever function was called."""
    pair = ([turns.call("f", {"a": 1})], [turns.call("g", {"a": 1})])
    assert judge([pair], profile).counts["perfect_calls"] == 1


@pytest.mark.parametrize("profile", PROFILES)
def test_arguments_may_be_an_object(judge, turns, profile):
    """Predicted arguments as an object are read like those given as JSON text."""
    said = [{"function": {"name": "f", "arguments": {"a": 1}}}]
    assert judge([([turns.call("f", {"a": 1})], said)], profile).parts["value"] == 1.0


def test_undecodable_arguments(judge, turns):
    """One wrong value under the key ``error`` in documented; as many as the text has characters in upstream."""
    gold = [turns.call("f", {"a": 1})]
    documented, upstream = (judge([(gold, [turns.call("f", "{oops")])], profile) for profile in PROFILES)
    assert documented.items[0].counts == {"tp": 0, "fp": 1, "fn": 1}
    assert upstream.items[0].counts == {"tp": 0, "fp": len("Invalid JSON in arguments: {oops"), "fn": 1}
    assert documented.parts["key"] == upstream.parts["key"] == 0.0


def test_several_undecodable_calls(judge, turns):
    """In upstream the last text overwrites the others; documented counts each."""
    gold = [turns.call("f", {"a": 1})]
    said = [turns.call("f", "{"), turns.call("f", "{{"), turns.call("f", {"a": 1})]
    documented, upstream = (judge([(gold, said)], profile) for profile in PROFILES)
    assert documented.items[0].counts == {"tp": 1, "fp": 2, "fn": 0}
    assert upstream.items[0].counts == {"tp": 1, "fp": len("Invalid JSON in arguments: {{"), "fn": 0}


def test_undecided_values_have_an_upper_bound(judge, turns, tmp_path):
    """Without a judge documented counts leftovers as wrong and shows the best case; upstream loses more."""
    gold = [turns.call("f", {"q": "a"}), turns.call("f", {"q": "b"}), turns.call("f", {"n": 1})]
    said = [turns.call("f", {"q": "a"}), turns.call("f", {"q": "beta"}), turns.call("f", {"n": 1})]
    documented, upstream = (judge([(gold, said)], profile) for profile in PROFILES)
    assert documented.items[0].counts == {"tp": 2, "fp": 1, "fn": 1}
    assert part(documented, "value", "value_upper_bound") == (2 / 3, 1.0)
    assert upstream.items[0].counts == {"tp": 1, "fp": 1, "fn": 1}
    assert part(upstream, "value", "value_upper_bound") == (0.5, 1.0)
    reason = documented.items[0].reasons[0]
    assert (reason.code, reason.pointer, reason.expected, reason.actual) == ("undecided", "/q", ["b"], ["beta"])


@pytest.fixture
def verdicts(tmp_path):
    """Write a verdict file."""

    def write(content):
        path = tmp_path / "verdicts.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("trial", ["run #1", "1"])
@pytest.mark.parametrize("profile", PROFILES)
def test_recorded_verdicts_decide(judge, turns, verdicts, profile, trial):
    """A verdict for file, trial, step and argument takes the place of the leftovers' counts."""
    counts = {"tp_count": 1, "fp_count": 0, "fn_count": 0}
    path = verdicts({"one_out.json": {trial: {"2": {"q": counts}}}})
    pair = ([turns.call("f", {"q": "b"})], [turns.call("f", {"q": "beta"})])
    grade = judge([pair, pair], profile, verdicts=path)
    assert [item.parts["value"] for item in grade.items] == [1.0, 0.0]
    assert [key["reason"] for item in grade.items for key in item.metadata["keys"]] == ["judged", "undecided"]


@pytest.mark.parametrize("profile", PROFILES)
def test_an_empty_verdict_decides_nothing(judge, turns, verdicts, profile):
    """The argument stays undecided; with any count, the counts left out are 0."""
    pair = ([turns.call("f", {"q": "b"})], [turns.call("f", {"q": "beta"})])
    for counts, reason in (({}, "undecided"), ({"tp_count": 1}, "judged")):
        (item,) = judge([pair], profile, verdicts=verdicts({"one_out.json": {"1": {"2": {"q": counts}}}})).items
        assert [key["reason"] for key in item.metadata["keys"]] == [reason]
        assert item.parts["value"] == (1.0 if counts else 0.0)


def test_a_judge_shifts_perfect_calls_in_upstream(judge, turns, verdicts):
    """The original lists judged pairs before the others and assigns by position, so perfect calls may be miscounted."""
    path = verdicts({"one_out.json": {"1": {"4": {"q": {"tp_count": 0, "fp_count": 1, "fn_count": 1}}}}})
    exact = ([turns.call("f", {"a": 1})], [turns.call("f", {"a": 1})])
    partly = ([turns.call("f", {"a": 1, "b": 2})], [turns.call("f", {"a": 1, "c": 2})])
    judged = ([turns.call("f", {"q": "b"})], [turns.call("f", {"q": "beta"})])
    pairs = [exact, partly, judged]
    # Value F1s 1, 0.5, 0 are listed as 0, 1, 0.5, so no pair has both key F1 and value F1 1.
    asked, skipped = judge(pairs, "upstream", verdicts=path), judge(pairs, "upstream")
    assert (asked.counts["perfect_calls"], skipped.counts["perfect_calls"]) == (0, 1)
    assert asked.parts["value"] == skipped.parts["value"] == 0.75
    assert judge(pairs, "documented", verdicts=path).counts["perfect_calls"] == 1


def test_schemas_come_from_the_agent_cards(judge, turns, tmp_path):
    """The reader's agent cards type the arguments of the predicted tool."""
    cards = tmp_path / "cards"
    cards.mkdir()
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"q": {"type": "number"}}}}
    (cards / "a.json").write_text(json.dumps({"agent_card": {}, "tools": [tool]}), encoding="utf-8")
    pair = ([turns.call("f", {"q": 1})], [turns.call("f", {"q": 2})])
    with_cards, without = judge([pair], "documented", agent_cards=cards), judge([pair], "documented")
    assert with_cards.items[0].metadata["keys"][0]["reason"] == "type_mismatch"
    assert without.items[0].metadata["keys"][0]["reason"] == "undecided"


def test_a_broken_schema_falls_back_to_keys_in_upstream(judge, turns, tmp_path):
    """A schema type the original does not know turns all value F1s of the trial into key F1s."""
    cards = tmp_path / "cards"
    cards.mkdir()
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"q": {"type": "uri"}}}}
    (cards / "a.json").write_text(json.dumps({"tools": [tool]}), encoding="utf-8")
    pairs = [
        ([turns.call("f", {"q": "a"})], [turns.call("f", {"q": "b"})]),
        ([turns.call("f", {"a": 1, "b": 2})], [turns.call("f", {"a": 9})]),
    ]
    upstream = judge(pairs, "upstream", agent_cards=cards)
    assert [item.parts["value"] for item in upstream.items] == [1.0, 2 / 3]
    assert upstream.parts["value"] == (1.0 + 2 / 3) / 2
    assert upstream.metadata["judge_failed"] is True
    assert upstream.counts["perfect_calls"] == 1
    documented = judge(pairs, "documented", agent_cards=cards)
    assert documented.parts["value"] == 0.0
    assert documented.metadata["judge_failed"] is False


@pytest.mark.parametrize(
    ("config", "fallback"),
    [
        ("judge: {model: {model: m}, generation_params: {}}\n", False),
        ("judge: {model: {model: m}}\n", True),
        ("evaluation_params: {agent_change_weight: 0.8}\n", True),
        ("", True),
    ],
)
def test_a_config_without_judge_section_falls_back_to_keys_in_upstream(judge, turns, tmp_path, config, fallback):
    """Upstream needs the judge's model and parameters in a given config; documented does not care."""
    path = tmp_path / "eval.yaml"
    path.write_text(config, encoding="utf-8")
    pair = ([turns.call("f", {"q": "a"})], [turns.call("f", {"q": "b"})])
    upstream = judge([pair], "upstream", config=path)
    assert upstream.parts["value"] == (1.0 if fallback else 0.0)
    assert upstream.metadata["judge_failed"] is fallback
    assert judge([pair], "documented", config=path).parts["value"] == 0.0


def test_a_name_that_is_no_text(judge, turns):
    """A list as name falls back to keys in upstream, an object fails the file; in documented it is no name."""
    gold = [turns.call("f", {"a": 1})]
    listed = judge([(gold, [{"function": {"name": ["f"], "arguments": "{}"}}])], "upstream")
    assert listed.metadata["judge_failed"] is True
    odd = [{"function": {"name": {"x": 1}, "arguments": '{"a": 1}'}}]
    assert judge([(gold, odd)], "upstream").outcome is Outcome.FAILED
    documented = judge([(gold, odd)], "documented")
    assert part(documented, "name", "key", "value") == (0.0, 1.0, 1.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_samples_of_other_readers(profile):
    """Calls, expected calls and tools of any sample are enough."""
    tool = ToolSpec(name="f", parameters={"type": "object", "properties": {"n": {"type": "number"}}})
    sample = Sample(
        id="x",
        calls=(ToolCall(name="f", arguments={"n": 1, "m": 2}),),
        expected=Expectation(calls=(ToolCall(name="f", arguments={"n": 3, "m": 2}),)),
        tools=(tool,),
    )
    grade = OrchestrationCall(profile=profile).grade(sample)
    assert part(grade, "name", "key", "value", "value_upper_bound") == (1.0, 1.0, 0.5, 0.5)
    assert OrchestrationCall(profile=profile).grade(Sample(id="y")).outcome is Outcome.SKIPPED
