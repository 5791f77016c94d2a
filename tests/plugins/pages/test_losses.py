"""The finding about what most lost samples have in common."""

import re

import msgspec
import pytest

from gradestack_plugins.pages.figures import success_of
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.losses import loss_of
from gradestack_plugins.pages.overview import findings


def rows_of(fake, lost, solved=8):
    rows = []
    for number, reasons in enumerate([*lost, *[()] * solved]):
        passed = number >= len(lost)
        told = [{"code": code, "subject": tool, "pointer": place} for code, tool, place in reasons]
        grade = {"state": "graded", "score": float(passed), "passed": passed, "reasons": told}
        row = {"sample": {"id": f"t{number}"}, "state": "graded", "passed": passed, "model_name": "north"}
        rows.append({**row, "grade": grade, "grades": {"partial": grade, "reward": grade}})
    return rows


SEAT, DATE = ("wrong_argument", "book", "/seat/row"), ("missing_argument", "book", "/date")
CALL, OTHER = ("missing_call", "book", ""), ("wrong_argument", "find", "/name")


@pytest.mark.parametrize(
    ("lost", "found"),
    [
        ([[SEAT, SEAT]] * 6 + [[OTHER]] * 4, ("book", "seat", 6, 10)),  # an argument in more than half
        ([[SEAT]] * 5 + [[OTHER]] * 5, None),  # half is not more than half
        ([[SEAT]] * 4 + [[DATE]] * 3 + [[OTHER]] * 3, ("book", "", 7, 10)),  # no argument, yet the tool
        ([[SEAT]] * 6 + [[CALL]] * 4, ("book", "seat", 6, 10)),  # the argument goes before the tool
        ([[SEAT]] * 9, None),  # nine are few
        ([[("database_mismatch", "", "")]] * 12, None),  # no tool at all
    ],
)
def test_what_most_losses_have_in_common(fake, lost, found):
    loss = loss_of(index_of(fake.make_report(rows_of(fake, lost))))
    assert (loss and (loss.tool, loss.argument, loss.lost, loss.of_lost)) == found


@pytest.mark.parametrize(("among", "found"), [(3, "seat"), (4, None)])
def test_what_successes_have_as_well_explains_nothing(fake, among, found):
    rows = rows_of(fake, [[SEAT]] * 6 + [[OTHER]] * 4, solved=10)
    for row in rows[10 : 10 + among]:
        row["grade"]["reasons"].extend({"code": SEAT[0], "subject": SEAT[1], "pointer": SEAT[2]} for _ in range(2))
    loss = loss_of(index_of(fake.make_report(rows)))
    assert (loss and loss.argument) == found


def test_graders_that_are_only_compared_do_not_count(fake):
    index = index_of(fake.make_report(rows_of(fake, [[SEAT]] * 10)))
    assert loss_of(index, {"partial"}).grader == "reward"
    assert loss_of(index, {"partial", "reward"}) is None


def test_the_finding_names_it_with_both_shares(fake):
    rows = rows_of(fake, [[SEAT, ("missing_argument", "book", "/seat")]] * 7 + [[OTHER]] * 5)
    report = fake.make_report(rows)
    unread, found = findings(report.summary, index_of(report), success_of(report.summary), "partial", "samples")
    text = "".join(part.text for part in found.parts)
    assert text == "book.seat is wrong in 7 of 12 samples “not solved”, 0 of 8 “solved” (reasons of partial)."
    kinds = list(index_of(report).given.kinds)
    assert [kinds[number] for number in found.kinds] == [
        ("partial", "wrong_argument", "book", "seat"),
        ("partial", "missing_argument", "book", "seat"),
    ]
    many = msgspec.structs.replace(success_of(report.summary), models={"a": (1, 1), "b": (1, 1)})
    assert findings(report.summary, index_of(report), many, "partial", "samples") == (unread,)


def test_pages_say_it_and_escape_it(fake, html, markdown):
    lost = [[("missing_call", "<img src=x>", "")]] * 11
    page = html(fake.make_report(rows_of(fake, lost)))
    told = "<img src=x> is wrong in 11 of 11 samples “not solved” , 0 of 8 “solved” (reasons of partial)."
    assert f"{told} Show them" in page.text
    links = [each for tag, each in page.tags if tag == "a" and "data-only" in each]
    assert [(each["data-kind"], each["data-only"]) for each in links] == [("0", "1")]
    text = markdown(fake.make_report(rows_of(fake, lost)))
    assert "> **&lt;img src=x&gt; is wrong in 11 of 11 samples “not solved”**, 0 of 8" in text
    assert "<img" not in re.sub("`[^`]*`", "", text)
