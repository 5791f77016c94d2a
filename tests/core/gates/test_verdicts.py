"""Verdicts of gates, from ``verdicts.yaml``: what each comes to over the scores of whole runs."""

import math
import random

import attrs
import pytest

import gradestack
from gradestack import Grade, Grader, Status, skipped
from gradestack.gates.measures import Scores, quantile
from gradestack.gates.rules import SimpleGate
from gradestack.gates.verdicts import judge
from gradestack.table import Table, Wanted
from tests.core.outcomes import data


@attrs.frozen(kw_only=True)
class Recorded(Grader):
    """Gives the score recorded under a name, also of runs that failed.

    Skips what has none, and may raise.
    """

    name: str

    needs, compares = frozenset({"recorded"}), frozenset()
    bounds = (-math.inf, math.inf)
    graded_statuses = frozenset({Status.OK, Status.FAILED})

    def grade(self, sample):
        score = sample.recorded[self.name]
        if score == "raise":
            raise ValueError
        if score is None:
            return skipped("nothing", "not recorded")
        return Grade(score=score)


def graded(scores, *, ran=None, models=None, **suite):
    """Return the report of graders over their scores.

    ``[score, times]`` stands for several of one score.
    """
    scores = {
        key: [
            score
            for entry in column
            for score in ([entry[0]] * entry[1] if isinstance(entry, list) else [entry])
        ]
        for key, column in scores.items()
    }
    shards = scores.values()
    count = max(map(len, shards))
    columns = {}
    for key, score in scores.items():
        columns[key] = [*score, *[None] * (count - len(score))]
    samples = []
    for number in range(count):
        recorded = {key: column[number] for key, column in columns.items()}
        sample = {"id": str(number), "recorded": recorded}
        if ran is not None and not ran[number]:
            sample["error"] = "it failed"
        if models is not None:
            sample["model"] = models[number]
        samples.append(sample)
    return gradestack.grade(samples, {key: Recorded(name=key) for key in scores}, **suite)


@pytest.mark.parametrize("case", data(__file__, "verdicts.yaml"), ids=str)
def test_a_verdict(case):
    fields = {
        "scores": {"q": [0.2, 1.0, 0.6], "r": [1.0, 0.0], "empty": []},
        "min_graded": 0,
    } | case
    wanted = fields.pop("is")
    with graded(**fields) as report:
        if "passes" in wanted:
            passed_attempts = report.metrics["passed_attempts"]
            assert passed_attempts == wanted.pop("passes")
        for name, value in wanted.items():
            (gate_row,) = report.gates
            if name == "groups":
                groups = gate_row["groups"].items()
                outcomes_by_group = {
                    group: judged_group["outcome"] for group, judged_group in groups
                }
                assert outcomes_by_group == value
                continue
            assert gate_row[name] == (
                pytest.approx(value, rel=1e-14) if isinstance(value, float | dict) else value
            )


def test_quantiles_interpolate_linearly():
    """Position q x (n - 1) between neighbours; ends and single values are themselves."""
    rng = random.Random(2)  # noqa: S311 - test data
    values = sorted(rng.random() for _ in range(37))
    for q in (0.1, 0.5, 0.95, 0.99):
        low = math.floor(36 * q)
        if low < 36:
            step = values[low + 1] - values[low]
            between = values[low] + step * (36 * q - low)
        else:
            between = values[-1]
        percent = round(100 * q)
        assert quantile(values, percent) == pytest.approx(between, rel=1e-14)


@pytest.mark.parametrize(
    ("rule", "passed", "outcome"), [("fail", False, "undecided"), ("pass", True, "no_data")]
)
def test_a_run_that_was_interrupted_before_its_first_sample_has_no_data(rule, passed, outcome):
    wanted = Wanted(parts={"q": ()})
    table = Table.of(wanted, [], {"q": []})
    nothing = Scores(table)
    for per in (None, "model"):
        gate = SimpleGate(metric_key="q", op="gte", value=0.5, per=per, on_no_data=rule)
        gate_row = judge(gate, nothing)
        assert gate_row.passed == passed
        assert gate_row.outcome == outcome
