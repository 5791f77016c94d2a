import pytest

from gradestack_plugins.pages.sample import compare, reason_text
from tests.core.outcomes import data

DATA = data(__file__, "calls.yaml")


def row(expected, actual, items=None, **grade):
    found = {"score": 0.5, "state": "graded", **grade}
    if items is not None:
        found["items"] = items
    return {
        "expected": {"calls": expected},
        "predicted": {"calls": actual},
        "grade": found,
        "grades": {"partial": found},
    }


def call(name, **arguments):
    return {"name": name, "arguments": arguments}


def item(number, score, *reasons):
    return {"id": "x", "outcome": "graded", "score": score, "metadata": {"call": number}, "reasons": list(reasons)}


def statuses(pair):
    return {argument.name: argument.status for argument in pair.arguments}


def test_the_grader_decides_pairs_and_marks():
    reason = {"code": "wrong_argument", "pointer": "/legs/1/day", "expected": "b", "actual": "c", "subject": "book"}
    expected = [call("book", id=1, legs=[{"day": "a"}, {"day": "b"}])]
    actual = [call("look"), call("book", id=1, legs=[{"day": "a"}, {"day": "c"}], more=True)]
    found = compare(row(expected, actual, [item(1, 0.8, reason)]), 1000)
    (pair,) = found.pairs
    assert (pair.status, pair.actual_number, pair.score, found.by_grader) == ("differs", 2, 0.8, True)
    assert statuses(pair) == {"id": "same", "legs": "differs", "more": "extra"}
    legs = pair.arguments[1]
    assert [line.text for line in legs.expected if line.marked] == ['"day": "b"']
    assert [line.text for line in legs.actual if line.marked] == ['"day": "c"']
    assert pair.reasons == ('wrong_argument /legs/1/day: expected "b", got "c"',)
    assert [(made.number, made.name) for made in found.others] == [(1, "look")]


def test_what_the_grader_does_not_blame_is_not_marked():
    expected, actual = [call("book", tags=[1, 2], note="x")], [call("book", tags=[2, 1], note="X")]
    (pair,) = compare(row(expected, actual, [item(0, 1.0)]), 1000).pairs
    assert pair.status == "matched"
    assert statuses(pair) == {"tags": "same", "note": "same"}
    assert not any(line.marked for argument in pair.arguments for line in (*argument.expected, *argument.actual))


def test_a_call_nobody_made_is_absent():
    reason = {"code": "missing_call", "subject": "book", "expected": {"id": 1}}
    found = compare(row([call("book", id=1)], [], [item(None, 0.0, reason)]), 1000)
    (pair,) = found.pairs
    assert (pair.status, pair.actual_name, pair.reasons) == ("absent", "", ())
    assert [(argument.name, argument.status, argument.actual) for argument in pair.arguments] == [("id", "missing", ())]


def test_without_a_grader_calls_are_paired_by_name_and_arguments():
    expected = [call("book", id=1), call("book", id=2), call("pay")]
    actual = [call("book", id=2), call("book", id=9), call("look"), call("look")]
    found = compare(row(expected, actual), 1000)
    assert [(pair.status, pair.actual_number) for pair in found.pairs] == [
        ("differs", 2),
        ("matched", 1),
        ("absent", 0),
    ]
    assert statuses(found.pairs[0]) == {"id": "differs"}
    assert [made.name for made in found.others] == ["look", "look"]
    assert not found.by_grader


def test_true_is_not_one():
    wanted = {"a": 1, "b": [{"c": 0}], "d": 1}
    given = {"a": True, "b": [{"c": False}], "d": 1.0}
    (pair,) = compare(row([call("f", **wanted)], [call("f", **given)]), 100).pairs
    assert statuses(pair) == {"a": "differs", "b": "differs", "d": "same"}


def test_the_one_call_left_answers_the_one_expected():
    found = compare(row([call("pay", id=1), call("look")], [call("look"), call("refund", id=1)]), 1000)
    assert [(pair.name, pair.actual_name, pair.status) for pair in found.pairs] == [
        ("pay", "refund", "differs"),
        ("look", "look", "matched"),
    ]
    assert found.others == ()


def test_one_call_may_answer_several():
    found = compare(row([call("a"), call("a")], [call("a")], [item(0, 1.0), item(0, 1.0)]), 1000)
    assert [pair.actual_number for pair in found.pairs] == [1, 1]
    assert found.others == ()


def test_arguments_that_are_no_object_are_shown_as_recorded():
    actual = [{"name": "book", "arguments": None, "raw_arguments": '{"id": 1'}]
    (pair,) = compare(row([call("book", id=1)], actual), 1000).pairs
    assert (pair.unreadable, pair.status) == ('{"id": 1', "differs")


def test_no_reference_and_an_empty_one_are_different():
    nothing, empty = compare(row(None, None), 1000), compare(row([], [call("look")]), 1000)
    assert (nothing.known, nothing.recorded) == (False, False)
    assert (empty.known, empty.expected, empty.actual) == (True, 0, 1)


def test_odd_items_and_calls_never_raise():
    odd = row(
        [call("a"), None, 3], ["x", call(None), {}], [item(99, 2.0), item(True, None), {"metadata": {"call": -1}}]
    )
    assert [pair.status for pair in compare(odd, 1000).pairs] == ["absent", "absent", "absent"]
    assert compare({}, 1000).pairs == ()
    assert compare({"expected": [], "predicted": 3, "grades": [], "grade": None}, 10).others == ()


def test_many_calls_are_cut_and_counted():
    found = compare(row([call("a")] * 70, [call("b")] * 65), 1000)
    assert (len(found.pairs), len(found.others), found.left_out) == (60, 60, 15)


def test_reasons_read_on_one_line():
    reason = {"code": "c", "subject": "s", "pointer": "/a", "expected": None, "actual": "x", "message": "why"}
    assert reason_text(reason) == 'c s /a: expected null, got "x" – why'
    assert reason_text({"code": "c", "message": "why"}, known="why") == "c"
    assert reason_text({"message": "why"}) == "why"
    assert reason_text({}) == ""


@pytest.mark.parametrize(("call", "said"), DATA["how_a_call_went_is_said_where_recorded"])
def test_how_a_call_went_is_said_where_recorded(call, said):
    made = {"name": "look", "arguments": {}, **call}
    row = {"expected": {"calls": [{"name": "look", "arguments": {}}]}, "predicted": {"calls": [made, made]}}
    found = compare(row, 100)
    assert [found.pairs[0].went, found.others[0].went] == [said, said]
