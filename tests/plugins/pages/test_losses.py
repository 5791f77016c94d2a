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
        reason_records = []
        for reason in reasons:
            reason_records.append(dict(zip(("code", "subject", "pointer"), reason, strict=False)))
        row_state = "graded" if passed is not None else state
        pairs = zip(("gold", "label"), labels, strict=False)
        named = dict(pairs)
        score = float(bool(passed))
        grade = {
            "state": row_state,
            "score": score,
            "passed": passed,
            "reasons": reason_records,
            **named,
        }
        sample = {"id": f"t{number}"}
        row = {
            "sample": sample,
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
    rows = rows_of(fake, case["samples"])
    report = fake.make_report(rows)
    index = index_of(report)
    aside = case.get("aside", ())
    failures = failures_of(index, aside)
    assert lines_by_cause(failures.lines) == case["causes"]
    failed = case["failed"]
    assert failures.failed == failed == sum(line.samples for line in failures.lines)
    lines = [list(line) for line in failures.others]
    others = case.get("others", [])
    assert lines == others


def test_every_level_sums_to_what_it_is_part_of(fake):
    realistic_rows = fake.realistic_rows(tasks=14, trials=4)
    report = fake.make_report(realistic_rows)
    index = index_of(report)
    failures = failures_of(index)
    states = []
    for entry in index.entries:
        if entry.passed is False or entry.state in ("failed", "missing"):
            states.append(entry.state)
    total = sum(cause_line.samples for cause_line in failures.lines)
    assert total == failures.failed == len(states) > 9
    for line in failures.lines:
        parts = sum(cause_line.samples for cause_line in line.parts) + line.rest
        assert not line.parts or parts == line.samples
    assert failures_of(RowIndex()).lines == ()


def test_what_a_run_took_is_never_zero_where_it_was_not_recorded(fake):
    rows = rows_of(fake, [("passed", []), ("lost", []), ("lost", [])])
    report = fake.make_report(rows)
    amounts = amounts_of(index_of(report), {})
    assert amounts == []
    for row, (cost, seconds) in zip(rows, ((0.01, 1.0), (0.03, None), (None, 3.0)), strict=True):
        row["usage"] = {"cost_usd": cost, "seconds": seconds, "input_tokens": 5}
    index = index_of(fake.make_report(rows))
    (took,) = amounts_of(index, {})
    assert took.cost == "$0.0200"
    assert took.cost_passed == "$0.0400"
    assert took.tokens == ""
    assert took.seconds == "2.00"
    assert took.seconds_95 == "2.90"


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
    samples = [("passed", [])] * len(worth)
    rows = rows_of(fake, samples)
    for row, (name, (_, _, cost)) in zip(rows, worth.items(), strict=True):
        row |= {"model_name": name, "usage": {"cost_usd": cost}}
    report = fake.make_report(rows)
    index = index_of(report)
    counts_by_name = {name: counts[:2] for name, counts in worth.items()}
    lines = amounts_of(index, counts_by_name)
    models = [line.model for line in lines if line.is_best]
    assert models == ["best", "cheap", "alike"]
    shares = [line.share for line in lines]
    assert shares == ["90.0%", "50.0%", "50.0%", "50.0%", ""]
