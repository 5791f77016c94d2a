"""Figures are declared.

What an aggregator gives wrongly costs only its own figures, and directions are followed.
"""

import json
import math

import attrs
import pytest

import gradestack
from gradestack import Aggregator, Figure, Grade, Numbers, ratio
from tests.core.outcomes import data

DATA = data(__file__, "declared_figures.yaml")


GRADER = DATA["grader"]
NUMBERS, ESTIMATE = (
    'return {"samples": 1, "slips": grade.score}',
    'return {"slip_rate": ratio(slips, samples)}',
)
SUITE = """
name: slips
target: {paths: [PATH], reader: jsonl}
graders: {slips: {kind: "./slips.py:Slips"}}
metrics: {rate: {kind: "./slips.py:Rate", of: slips}}
headline: {figures: {Slips: slips.rate.slip_rate}}
gates: [{figure: slips.rate.slip_rate, op: lte, value: 0.5}]
"""


@pytest.fixture
def run(tmp_path, command):
    def graded(name, slips, *more, better="lower", numbers=NUMBERS, estimate=ESTIMATE, gates=None):
        text = (
            GRADER.replace("{better}", better)
            .replace("{numbers}", numbers)
            .replace("{estimate}", estimate)
        )
        (tmp_path / "slips.py").write_text(text.replace('"mean", "./slips.py:Rate"', '"mean",'))
        rows = [
            {"id": f"t{number}", "recorded": {"slip": slip}} for number, slip in enumerate(slips)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        suite = SUITE.replace("PATH", f"{name}.jsonl")
        if gates is not None:
            suite = (
                "\n".join(line for line in suite.splitlines() if not line.startswith("gates"))
                + f"\ngates: {gates}\n"
            )
        (tmp_path / f"{name}.yaml").write_text(suite)
        args = [
            "run",
            str(tmp_path / f"{name}.yaml"),
            "--allow-code",
            "-o",
            str(tmp_path / name),
            *more,
        ]
        return command(*args), tmp_path / name

    return graded


FEW, MANY = [0] * 36 + [1] * 4, [0] * 12 + [1] * 28


@pytest.mark.parametrize(
    ("better", "word"), [("lower", "worse"), ("higher", "better"), ("neither", "higher")]
)
def test_console_page_comparison_and_gate_follow_the_declared_direction(
    run, command, tmp_path, better, word
):
    run("before", FEW, better=better)
    by_figure = "{figure: slips.rate.slip_rate, baseline: before, not_worse_than: 0.05}"
    gate = f"[{{metric_key: slips, baseline: before, not_worse_than: 0.05}}, {by_figure}]"
    if better == "neither":
        refused, _ = run("after", MANY, better=better, gates=gate)
        assert (
            refused.code,
            "slips.rate.slip_rate has no direction in which it is better" in refused.err,
        ) == (2, True)
        gate = "[]"  # which no baseline gate can have
    result, _ = run("after", MANY, better=better, gates=gate)
    compared = command(
        "compare", str(tmp_path / "before"), str(tmp_path / "after"), "-o", str(tmp_path / "c")
    )
    data = json.loads((tmp_path / "c/comparison.json").read_text())
    assert data["metrics"]["slips"]["verdict"] == word
    assert data["metrics"]["slips"]["label"] == "Slips"
    assert f"after is {word} than before by 60.0 points" in compared.out
    assert f">{word}</small>" in (tmp_path / "c/comparison.html").read_text()
    assert f"| {word} |" in (tmp_path / "c/comparison.md").read_text()
    assert (result.code == 0) == (better != "lower"), result
    if better != "neither":
        verdicts = json.loads((tmp_path / "after/summary.json").read_text())["gates"]
        assert {each["passed"] for each in verdicts} == {better != "lower"}
        assert {round(each["actual"], 9) for each in verdicts} == {0.6}
    shown = [
        result.out,
        *((tmp_path / "after" / f"report.{kind}").read_text() for kind in ("html", "md")),
    ]
    assert ["lower is better" in each for each in shown] == [better == "lower"] * 3
    command("index", str(tmp_path))
    assert ("lower is better" in (tmp_path / "index.html").read_text()) == (better == "lower")


@pytest.mark.parametrize(
    ("numbers", "estimate", "said"),
    DATA["a_metric_that_is_wrong_costs_its_own_figures"],
)
def test_a_metric_that_is_wrong_costs_its_own_figures(run, numbers, estimate, said):
    result, place = run(
        "wrong",
        FEW,
        numbers=numbers,
        estimate=estimate,
        gates="[{metric_key: slips, op: gte, value: 0}]",
    )
    summary = json.loads((place / "summary.json").read_text())
    assert result.code == 0, result
    assert said in summary["metrics"]["aggregates"]["slips"]["rate"]["error"]
    assert any("slips/rate" in each and said in each for each in summary["warnings"])
    assert summary["metrics"]["aggregates"]["slips"]["mean"]["mean"] == 0.1
    result, _ = run("strict", FEW, "--strict", numbers=numbers, estimate=estimate)
    assert result.code == 4, result
    assert "slips/rate" in result.err


def test_a_metric_that_takes_too_long_costs_its_own_figures(monkeypatch):
    monkeypatch.setattr("gradestack.grading.metrics.SECONDS", 0.2)

    @attrs.frozen
    class Slow(Aggregator):
        """Never ends."""

        def compute(self, grades):
            while True:
                pass

    from gradestack.grading.metrics import figures_of
    from gradestack.testing import _grades

    with pytest.raises(TimeoutError, match="took longer than"):
        figures_of(Slow(), _grades(Slow(), [[]]))


class Shares(Aggregator):
    """A share with an interval, of tasks with several samples."""

    figures = (Figure("share", "Passed", divisor="graded"),)

    def numbers(self, grade: Grade) -> Numbers | None:
        return None if grade.score is None else {"graded": 1, "passed": grade.score}

    def estimate(self, graded, passed):
        return {"share": ratio(passed, graded)}


def test_the_kernel_gives_figures_their_intervals_and_those_of_models():
    """By leaving out one task at a time, over all models and within each."""
    from gradestack.grading.metrics import figures_of
    from gradestack.model import Key
    from gradestack.testing import _grades

    rows = [(Key(id=f"t{task}", model=model, run=run), Grade(score=float((task + run) % 3 > 0)))
            for model in ("x", "y") for task in range(5) for run in range(2)]  # fmt: skip
    found = figures_of(Shares(), _grades(Shares(), [rows]))
    values = [[grade.score for key, grade in rows if key.id == f"t{task}"] for task in range(5)]
    total, left = (
        sum(map(sum, values)),
        [sum(map(sum, values[:at] + values[at + 1 :])) / 16 for at in range(5)],
    )
    pseudo = [5 * total / 20 - 4 * each for each in left]
    mean = sum(pseudo) / 5
    stderr = math.sqrt(sum((each - mean) ** 2 for each in pseudo) / 4 / 5)
    assert found["share"] == total / 20
    expected = gradestack.interval(gradestack.Estimate(total / 20, stderr, 5), 20)
    assert found["share_interval"]["low"] == pytest.approx(expected["low"], rel=1e-12)
    assert found["share_interval"]["n"] == 20
    assert list(found["models"]) == ["x", "y"]
    assert found["models"]["x"]["share_interval"]["clusters"] == 5
