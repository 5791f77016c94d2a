import pytest

from gradestack_plugins.pages.sample import calls_of, reason_text, went
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
    return {
        "id": "x",
        "outcome": "graded",
        "score": score,
        "metadata": {"call": number},
        "reasons": list(reasons),
    }


def statuses(pair):
    return {argument.name: argument.status for argument in pair.arguments}


def test_the_grader_decides_pairs_and_marks():
    reason = {
        "code": "wrong_argument",
        "pointer": "/legs/1/day",
        "expected": "b",
        "actual": "c",
        "subject": "book",
    }
    expected = [call("book", id=1, legs=[{"day": "a"}, {"day": "b"}])]
    actual = [call("look"), call("book", id=1, legs=[{"day": "a"}, {"day": "c"}], more=True)]
    found = calls_of(row(expected, actual, [item(1, 0.8, reason)]))
    (pair,) = found.pairs
    assert (pair.status, pair.number, pair.score, found.by_grader) == ("differs", 2, 0.8, True)
    assert statuses(pair) == {"id": "same", "legs": "differs", "more": "extra"}
    assert pair.reasons == ['wrong_argument /legs/1/day: expected "b", got "c"']
    assert found.others == [(1, call("look"))]


def test_what_the_grader_does_not_blame_is_not_marked():
    expected, actual = [call("book", tags=[1, 2], note="x")], [call("book", tags=[2, 1], note="X")]
    (pair,) = calls_of(row(expected, actual, [item(0, 1.0)])).pairs
    assert pair.status == "matched"
    assert statuses(pair) == {"tags": "same", "note": "same"}


def test_a_call_nobody_made_is_absent():
    reason = {"code": "missing_call", "subject": "book", "expected": {"id": 1}}
    found = calls_of(row([call("book", id=1)], [], [item(None, 0.0, reason)]))
    (pair,) = found.pairs
    assert (pair.status, pair.actual, pair.reasons, statuses(pair)) == (
        "absent",
        None,
        [],
        {"id": "missing"},
    )


def test_without_a_grader_calls_are_paired_by_name_and_arguments():
    expected = [call("book", id=1), call("book", id=2), call("pay")]
    actual = [call("book", id=2), call("book", id=9), call("look"), call("look")]
    found = calls_of(row(expected, actual))
    assert [(pair.status, pair.number) for pair in found.pairs] == [
        ("differs", 2),
        ("matched", 1),
        ("absent", 0),
    ]
    assert statuses(found.pairs[0]) == {"id": "differs"}
    assert [made["name"] for _, made in found.others] == ["look", "look"]
    assert not found.by_grader


def test_true_is_not_one():
    wanted = {"a": 1, "b": [{"c": 0}], "d": 1}
    given = {"a": True, "b": [{"c": False}], "d": 1.0}
    (pair,) = calls_of(row([call("f", **wanted)], [call("f", **given)])).pairs
    assert statuses(pair) == {"a": "differs", "b": "differs", "d": "same"}


def test_the_one_call_left_answers_the_one_expected():
    found = calls_of(row([call("pay", id=1), call("look")], [call("look"), call("refund", id=1)]))
    assert [(pair.name, pair.actual["name"], pair.status) for pair in found.pairs] == [
        ("pay", "refund", "differs"),
        ("look", "look", "matched"),
    ]
    assert found.others == []


def test_one_call_may_answer_several():
    found = calls_of(row([call("a"), call("a")], [call("a")], [item(0, 1.0), item(0, 1.0)]))
    assert [pair.number for pair in found.pairs] == [1, 1]
    assert found.others == []


def test_arguments_that_are_no_object_match_nothing():
    actual = [{"name": "book", "arguments": None, "raw_arguments": '{"id": 1'}]
    (pair,) = calls_of(row([call("book", id=1)], actual)).pairs
    assert (pair.status, statuses(pair)) == ("differs", {"id": "missing"})


def test_odd_items_and_calls_never_raise():
    odd = row(
        [call("a"), None, 3],
        ["x", call(None), {}],
        [item(99, 2.0), item(True, None), {"metadata": {"call": -1}}],
    )
    assert [pair.status for pair in calls_of(odd).pairs] == ["absent", "absent", "absent"]
    assert calls_of({}).pairs == []
    assert calls_of({"expected": [], "predicted": 3, "grades": [], "grade": None}).others == []


def test_reasons_read_on_one_line():
    reason = {
        "code": "c",
        "subject": "s",
        "pointer": "/a",
        "expected": None,
        "actual": "x",
        "message": "why",
    }
    assert reason_text(reason) == 'c s /a: expected null, got "x" – why'
    assert reason_text({"code": "c", "message": "why"}, known="why") == "c"
    assert reason_text({"message": "why"}) == "why"
    assert reason_text({}) == ""


@pytest.mark.parametrize(("call", "said"), DATA["how_a_call_went_is_said_where_recorded"])
def test_how_a_call_went_is_said_where_recorded(call, said):
    assert went({"name": "look", "arguments": {}, **call}) == said
