"""What each family's runs are summed up by.

The headline its stack declares, over the family's example.
"""

from pathlib import Path

import pytest

import gradestack
from gradestack.cli import console
from tests.core.outcomes import data

EXAMPLES = Path(__file__).parents[2] / "examples"
HEADLINES = data(__file__, "headlines.yaml")


def run(name, output, *overrides):
    return gradestack.run(
        EXAMPLES / name / "suite.yaml", output=output, overrides=["reports=[]", *overrides]
    )


def at(report, path):
    found = report.aggregates
    for key in path.split("."):
        found = found[key]
    return found


@pytest.mark.parametrize("profile", ["documented", "upstream"])
@pytest.mark.parametrize("name", HEADLINES)
def test_every_family_has_its_own_headline(name, profile, tmp_path):
    """Outcome grader, word for success, and three to five figures that the aggregators
    really have.
    """
    grader, word, labels = HEADLINES[name]
    report = run(name, tmp_path / "run", f"profile={profile}")
    outcome, figures = report.summary["outcome"], report.summary["headline"]["figures"]
    assert (outcome and outcome["grader"], outcome and outcome["words"]["passed"]) == (grader, word)
    assert [figure["label"] for figure in figures] == labels
    for figure in figures:
        found = at(report, figure["figure"])
        shown = figure["value"]
        assert found == shown or shown in (
            found.get("mean"),
            found.get("pass_hat_k"),
            found.get("pass_at_k"),
        )
        assert f"  {figure['label']}: " in console.results(report)
    verdicts = [row["passed"] for row in report.rows()]
    if outcome is None:
        assert set(verdicts) == {None}
    else:
        assert (verdicts.count(True), verdicts.count(False)) == (
            outcome["passed"],
            outcome["failed"],
        )
        assert f"  {word.capitalize()}: {outcome['passed']} of " in console.results(report)


def test_without_an_outcome_pages_have_no_chip_for_it(tmp_path):
    """Neither passed nor not passed is said of any OrchestrationBench trial."""
    gradestack.run(EXAMPLES / "orchestration" / "suite.yaml", output=tmp_path / "run")
    page, markdown = (
        (tmp_path / "run" / name).read_text() for name in ("report.html", "report.md")
    )
    assert 'name="verdict"' not in page
    assert "assed" not in markdown.replace("tests passed", "")
    assert "| Plan (plan) | 0.723 |" in markdown
