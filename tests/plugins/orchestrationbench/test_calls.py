"""Function name, key and value F1 of one trial."""

import json

import pytest

from gradestack_plugins.orchestrationbench.decisions import set_f1
from tests.core.outcomes import data

DATA = data(__file__, "calls.yaml")


@pytest.fixture
def judge(bench, scenario, turns):
    """Grade (gold calls, predicted calls) pairs as the steps of one trial.

    A text is an answer without calls.
    """

    def run(pairs, **reader):
        label = turns.label(
            **{f"_{number}": gold for number, (gold, _) in enumerate(pairs, start=2)}
        )
        answers = []
        for number, (_, call) in enumerate(pairs, start=2):
            answers.append(
                turns.answer(str(number), *(((), call) if isinstance(call, str) else (call,)))
            )
        bench.write("one", scenario(label, sub=answers))
        ((_, grade),) = bench.grades(reader=reader)
        return grade

    return run


@pytest.mark.parametrize(
    ("ours", "theirs", "f1"),
    [
        *DATA["set_f1"],
        (["a", "b"], ["a"], 2 * 0.5 / 1.5),
        (["a", "b", "c"], ["a", "b", "d", "e"], 2 * (2 / 3 * 0.5) / (2 / 3 + 0.5)),
    ],
)
def test_set_f1(ours, theirs, f1):
    """Both empty 1, one empty 0, repeats collapse, the empty text is an element like any other."""
    assert set_f1(ours, theirs) == f1


@pytest.fixture
def verdicts(tmp_path):
    def write(content):
        path = tmp_path / "verdicts.json"
        text = json.dumps(content)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_an_empty_verdict_decides_nothing(judge, turns, verdicts):
    """The argument stays undecided; with any count, the counts left out are 0."""
    pair = ([turns.call("f", {"q": "b"})], [turns.call("f", {"q": "beta"})])
    for counts, reason in (({}, "undecided"), ({"tp_count": 1}, "judged")):
        (item,) = judge(
            [pair], verdicts=verdicts({"one_out.json": {"1": {"2": {"q": counts}}}})
        ).items
        keys = item.metadata["keys"]
        reasons = [key["reason"] for key in keys]
        assert reasons == [reason]
        assert item.parts["value"] == (1.0 if counts else 0.0)
