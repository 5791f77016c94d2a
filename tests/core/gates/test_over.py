"""Tests of the samples a gate's figure is computed over.

Failed and missing samples count against a percentage, and are named otherwise.
"""

import pytest

RAISE = {"recorded": {"do": "raise"}}


@pytest.mark.parametrize(("failed", "warned"), [(1, False), (2, True)])
def test_more_than_five_per_cent_is_a_warning(run_lines, record, failed, warned):
    """One of twenty is not, two of twenty-one are; also without a gate."""
    records = []
    for number in range(19):
        records.append(record(f"a{number}", 1.0))
    records += [record(f"b{number}", **RAISE) for number in range(failed)]
    share = "2 of 21 runs (9.5%) could not be graded by 'quality'"
    lines = run_lines(records)
    warnings = lines.summary["warnings"]
    assert warnings == ([share] if warned else [])


def test_groups_that_lack_samples_are_named(run_lines, record):
    """Where the whole run has few of them, a group may have many."""
    records = []
    for number in range(60):
        records.append(record(f"a{number}", 1.0, model="m"))
    records += [record("b", 1.0, model="n\n"), record("c", model="n\n", **RAISE)]
    lines = run_lines(records, gate={"op": "gte", "value": 0.5, "per": "model"})
    warnings = lines.summary["warnings"]
    assert warnings == [
        (
            "gate quality >= 0.5 per model: n\\n, 1 of 2 runs (50.0%) could not be graded by "
            "'quality' and do not count"
        )
    ]
