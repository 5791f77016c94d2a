"""Why samples were lost: a tree of causes in which every lost sample counts once."""

import pytest

from gradestack_plugins.pages.amounts import amounts_of
from gradestack_plugins.pages.failures import failures_of
from gradestack_plugins.pages.index import RowIndex, index_of
from tests.core.outcomes import data

DATA = data(__file__, "losses.yaml")


def rows_of(fake, samples):
    rows = []
    for number, (state, reasons, *labels) in enumerate(samples):
        passed = {"passed": True, "lost": False}.get(state)
        reason_records = [
            dict(zip(("code", "subject", "pointer"), reason, strict=False)) for reason in reasons
        ]
        row_state = "graded" if passed is not None else state
        named = dict(zip(("gold", "label"), labels, strict=False))
        grade = {
            "state": row_state,
            "score": float(bool(passed)),
            "passed": passed,
            "reasons": reason_records,
            **named,
        }
        row = {
            "sample": {"id": f"t{number}"},
            "state": row_state,
            "passed": passed,
            "model_name": "north",
        }
        rows.append({**row, "grade": grade, "grades": {"partial": grade, "reward": grade}})
    return rows


def lines_by_cause(lines):
    """Return the lines of causes as the cases have them."""
    return {
        path_of(line)[-1]: [line.samples, passed_of(line), lines_by_cause(line.parts)]
        for line in lines
    }


def path_of(line):
    return line.name.search.removeprefix('cause:"').removesuffix('"').split("›")


def passed_of(line):
    if line.also:
        return int(line.also.text.split(" ")[0])
    return 0


@pytest.mark.parametrize("case", DATA["causes"].values(), ids=DATA["causes"])
def test_lost_samples_by_cause(fake, case):
    index = index_of(fake.make_report(rows_of(fake, case["samples"])))
    failures = failures_of(index, case.get("aside", ()))
    assert lines_by_cause(failures.lines) == case["causes"]
    assert failures.failed == case["failed"] == sum(line.samples for line in failures.lines)
    assert [list(line) for line in failures.others] == case.get("others", [])


def test_every_level_sums_to_what_it_is_part_of(fake):
    index = index_of(fake.make_report(fake.realistic_rows(tasks=14, trials=4)))
    failures = failures_of(index)
    states = [
        entry.state
        for entry in index.entries
        if entry.passed is False or entry.state in ("failed", "missing")
    ]
    assert (
        sum(cause_line.samples for cause_line in failures.lines)
        == failures.failed
        == len(states)
        > 9
    )
    for line in failures.lines:
        parts = sum(cause_line.samples for cause_line in line.parts) + line.rest
        assert not line.parts or parts == line.samples
    assert failures_of(RowIndex()).lines == ()


def test_what_a_run_took_is_never_zero_where_it_was_not_recorded(fake):
    rows = rows_of(fake, [("passed", []), ("lost", []), ("lost", [])])
    assert amounts_of(index_of(fake.make_report(rows)), {}) == []
    for row, (cost, seconds) in zip(rows, ((0.01, 1.0), (0.03, None), (None, 3.0)), strict=True):
        row["usage"] = {"cost_usd": cost, "seconds": seconds, "input_tokens": 5}
    (took,) = amounts_of(index_of(fake.make_report(rows)), {})
    assert (took.cost, took.cost_passed, took.tokens) == ("$0.0200", "$0.0400", "")
    assert (took.seconds, took.seconds_95) == ("2.00", "2.90")


def test_models_on_the_frontier_of_quality_and_cost_are_marked(fake):
    """No other model is better for the same cost, or as good for less.

    A model without a verdict is no other.
    """
    worth = {
        "best": (9, 1, 0.09),
        "cheap": (5, 5, 0.01),
        "beaten": (5, 5, 0.02),
        "alike": (5, 5, 0.01),
        "mute": (0, 0, 0.01),
    }
    rows = rows_of(fake, [("passed", [])] * len(worth))
    for row, (name, (_, _, cost)) in zip(rows, worth.items(), strict=True):
        row |= {"model_name": name, "usage": {"cost_usd": cost}}
    lines = amounts_of(
        index_of(fake.make_report(rows)), {name: counts[:2] for name, counts in worth.items()}
    )
    assert [line.model for line in lines if line.is_best] == ["best", "cheap", "alike"]
    assert [line.share for line in lines] == ["90.0%", "50.0%", "50.0%", "50.0%", ""]
