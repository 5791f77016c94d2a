"""The section on agreement of graders: pairs, folded once with the rows."""

import pytest

import gradestack
from gradestack_plugins.statistics.agreement_table import agreements_of


def graded(tmp_path, number=24, **options):
    """Grade two runs of each task by three graders, two of which always agree."""
    samples = []
    for task in range(number):
        for run in range(2):
            if task % 3:
                predicted = "x"
            else:
                predicted = "xx" if task % 2 else "y"
            samples.append(
                {
                    "id": f"t{task}",
                    "run": run,
                    "expected": "x",
                    "predicted": predicted,
                }
            )
    graders = {
        "rules": {"kind": "exact_match"},
        "same": {"kind": "exact_match"},
        "judge": {"kind": "contains"},
    }
    output = tmp_path / "out"
    return gradestack.grade(
        samples, graders=graders, output=output, reports=["html", "markdown"], **options
    )


def test_pairs_of_graders_say_whether_they_agree(tmp_path):
    metrics = {"agreement": {"of": "rules", "raters": ["same", "judge"]}}
    report = graded(tmp_path, metrics=metrics)
    agreements = agreements_of(report)
    pairs = {(pair.a, pair.b): pair for pair in agreements}
    assert list(pairs) == [("rules", "same"), ("rules", "judge"), ("same", "judge")]
    rules = report.aggregates["rules"]
    known = rules["agreement"]["pairs"]["rules, judge"]
    pair = pairs["rules", "judge"]
    sure = known["percent_agreement_interval"]
    assert pair.both == 48
    assert pair.only_a == 0
    assert pair.only_b == 8
    numbers = []
    for number in (pair.kappa, pair.ac1, pair.alpha):
        numbers.append(round(number, 9))
    expected = [round(known[name], 9) for name in ("kappa", "ac1", "alpha")]
    assert numbers == expected
    assert pair.interval == (sure["low"], sure["high"])
    assert pair.agree == "too few samples to tell"
    assert pairs["rules", "same"].same == 1.0
    shown = f"{100 * sure['low']:.1f} to {100 * sure['high']:.1f}%"
    pages = []
    for kind in ("html", "md"):
        out_folder = tmp_path / "out"
        text = (out_folder / f"report.{kind}").read_text(encoding="utf-8")
        pages.append(text)
    assert all("Do the graders agree?" in page and shown in page for page in pages)


@pytest.mark.slow
def test_graders_agree_or_not_only_where_the_interval_says_so(tmp_path):
    pairs = {}
    report = graded(tmp_path, 120)
    for pair in agreements_of(report):
        pairs[(pair.a, pair.b)] = pair.agree
    assert pairs["rules", "same"] == "yes"
    assert pairs["rules", "judge"] == "no"
