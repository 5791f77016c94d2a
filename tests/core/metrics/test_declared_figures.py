"""Figures are declared.

What an aggregator gives wrongly costs only its own figures, and directions are followed.
"""

import json

import pytest

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
