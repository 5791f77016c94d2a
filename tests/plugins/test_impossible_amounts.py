"""A number that can be no time, cost or count: the record keeps its run, the amount is not
recorded, and that is said.
"""

import json

import pytest

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "impossible_amounts.yaml")
FILES = {**DATA["files"], **DATA["columns"]}
NUMBERS = ["infinite", "minus infinite", "below 0", "beyond floats"]


def graded(tmp_path, file, amount):
    path = tmp_path / file["name"]
    text = file["text"].replace("@", amount)
    path.write_text(text)
    return gradestack.grade_files(path, engine="serial")


@pytest.mark.parametrize("name", DATA["files"])
@pytest.mark.parametrize("kind", DATA["amounts"])
def test_a_record_keeps_its_run_whatever_its_amounts(tmp_path, name, kind):
    file = DATA["files"][name]
    report = graded(tmp_path, file, DATA["amounts"][kind].format(""))
    total = report.metrics["total"]
    assert total == 1
    bad_records = report.summary["bad_records"]
    assert bad_records["count"] == 0
    rows = iter(report.rows())
    row = next(rows)
    usage = row["sample"].get("usage") or {}
    amounts = usage.values()
    assert all(0 <= amount < 1e100 for amount in amounts), usage
    json.dumps(report.summary, allow_nan=False)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", NUMBERS)
def test_an_amount_that_is_not_recorded_is_said(tmp_path, name, kind):
    amount = DATA["amounts"][kind].format("")
    report = graded(tmp_path, FILES[name], amount)
    total = report.metrics["total"]
    assert total == 1
    bad_records = report.summary["bad_records"]
    assert bad_records["count"] == 0
    warnings = report.summary["warnings"]
    assert "impossible amount" in " ".join(warnings)
