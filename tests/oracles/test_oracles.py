"""Statistics against libraries that compute the same.

Run by `make oracles`, in an environment of its own.
"""
# ruff: noqa: S311 - test data

import math
import random

import pytest

from gradestack import Grade, figures
from gradestack.comparison.paired import holm
from gradestack_plugins.statistics.agreement import ac1, alpha, kappa

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def stats():
    return pytest.importorskip("scipy.stats")


@pytest.fixture(scope="module")
def statsmodels():
    return pytest.importorskip("statsmodels.api")


def test_holm_is_statsmodels(statsmodels):
    """Adjusted p-values of several metrics."""
    ps = [0.01, 0.04, 0.03, 0.005, 0.5]
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assert statsmodels is not None
    assert holm(ps) == pytest.approx(list(multitest.multipletests(ps, method="holm")[1]), rel=1e-12)


def test_the_standard_error_of_a_mean_is_the_cluster_robust_one(statsmodels):
    """Of an intercept, with the small-sample correction C / (C - 1)."""
    rng = random.Random(4)
    rows = [
        (f"t{task}", run, None, rng.random()) for task in range(15) for run in range(task % 4 + 1)
    ]
    scores, clusters = [row[3] for row in rows], [int(row[0][1:]) for row in rows]
    model = statsmodels.OLS(scores, [1.0] * len(scores)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}
    )
    assert figures({"mean": {}}, rows)["mean"]["stderr"] == pytest.approx(model.bse[0], rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_scored_as_scikit_learn_does(seed):
    """Accuracy, macro-F1 over the label set, kappa."""
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(seed)
    gold, said = ([rng.choice("abc") for _ in range(60)] for _ in range(2))
    graded = [
        (f"t{task}", None, None, Grade(score=float(a == b), gold=a, label=b))
        for task, (a, b) in enumerate(zip(gold, said, strict=True))
    ]
    found = figures({"classification": {"labels": list("abcd")}, "agreement": {}}, graded)
    assert found["classification"]["accuracy"] == pytest.approx(metrics.accuracy_score(gold, said))
    macro = metrics.f1_score(gold, said, labels=list("abcd"), average="macro", zero_division=0)
    assert found["classification"]["macro_f1"] == pytest.approx(macro, rel=1e-12)
    assert found["agreement"]["kappa"] == pytest.approx(
        metrics.cohen_kappa_score(gold, said), rel=1e-10
    )


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_krippendorff(seed, level):
    """Three raters, values missing at random."""
    library, rng = pytest.importorskip("krippendorff"), random.Random(seed)
    table = [[rng.choice([1.0, 2.0, 3.0, 5.0, math.nan]) for _ in range(40)] for _ in range(3)]
    units = {}
    for values in zip(*table, strict=True):
        held = tuple(sorted(value for value in values if not math.isnan(value)))
        units[held] = units.get(held, 0) + 1
    assert alpha(units, level) == pytest.approx(
        library.alpha(table, level_of_measurement=level), rel=1e-9
    )


def test_the_intra_class_correlation_is_that_of_the_analysis_of_variance(statsmodels):
    """Mean squares between and within tasks, with unequal numbers of runs."""
    frames, formula = pytest.importorskip("pandas"), pytest.importorskip("statsmodels.formula.api")
    rng = random.Random(9)
    rows = [
        (f"t{task}", run, None, float(rng.random() < chance))
        for task, chance in enumerate(rng.random() for _ in range(20))
        for run in range(rng.randrange(2, 6))
    ]
    frame = frames.DataFrame(rows, columns=["task", "run", "model", "score"])
    table = statsmodels.stats.anova_lm(formula.ols("score ~ C(task)", frame).fit())
    between, within = table["mean_sq"]
    sizes = frame.groupby("task").size()
    size = (len(frame) - (sizes**2).sum() / len(frame)) / (len(sizes) - 1)
    known = (between - within) / (between + (size - 1) * within)
    assert figures({"flakiness": {}}, rows)["flakiness"]["icc"] == pytest.approx(known, rel=1e-9)


def test_ac1_of_a_published_table():
    """Of rules and a judge, as irrCAC has it to three digits.

    That library pins an old scipy, so by its figure.
    """
    table = {("1", "1"): 8, ("1", "0"): 1, ("0", "1"): 1}
    assert round(ac1(table), 3) == 0.756
    assert round(kappa(table), 3) == -0.111


TABLES = [((66, 9, 7, 18), 380, 500), ((20, 20, 19, 21), 300, 500), ((40, 3, 9, 70), 90, 400)]


@pytest.mark.parametrize(("table", "passes", "graded"), TABLES)
def test_judges_are_calibrated_as_numpy_and_scipy_have_it(stats, table, passes, graded):
    """Figures from columns of verdicts, the interval by leaving out each sample in turn, all to
    1e-9.
    """
    numpy = pytest.importorskip("numpy")
    kinds = {(1, 1.0): table[0], (1, 0.0): table[1], (0, 1.0): table[2], (0, 0.0): table[3]}
    kinds |= {
        (1, math.nan): passes - table[0] - table[1],
        (0, math.nan): graded - passes - table[2] - table[3],
    }
    cells = [cell for cell, number in kinds.items() for _ in range(number)]
    golds = {1.0: "pass", 0.0: "fail"}
    rows = [
        (f"t{n}", None, None, Grade(score=float(judge), passed=bool(judge), gold=golds.get(people)))
        for n, (judge, people) in enumerate(cells)
    ]
    found = figures({"calibrated": {}}, rows)["calibrated"]
    verdicts, labels = numpy.array(cells).T

    def rate_of(verdicts, labels):
        share = verdicts.mean()
        return share * numpy.nanmean(labels[verdicts == 1]) + (1 - share) * numpy.nanmean(
            labels[verdicts == 0]
        )

    both = ~numpy.isnan(labels)
    judge, people = verdicts[both], labels[both]
    p, a, b, same = passes / graded, judge.mean(), people.mean(), (judge == people).mean()
    sensitivity, specificity, q = (
        judge[people == 1].mean(),
        1 - judge[people == 0].mean(),
        (a + b) / 2,
    )
    youden, chance = sensitivity + specificity - 1, a * b + (1 - a) * (1 - b)
    known = {"rate": rate_of(verdicts, labels), "youden": youden, "percent_agreement": same}
    known["rogan_gladen"] = numpy.clip((p + specificity - 1) / youden, 0, 1)
    known |= {
        "kappa": (same - chance) / (1 - chance),
        "ac1": (same - 2 * q * (1 - q)) / (1 - 2 * q * (1 - q)),
    }
    assert {name: found[name] for name in known} == pytest.approx(known, abs=1e-9)
    left = numpy.array(
        [rate_of(numpy.delete(verdicts, at), numpy.delete(labels, at)) for at in range(graded)]
    )
    spread = numpy.sqrt((graded - 1) / graded * ((left - left.mean()) ** 2).sum())
    wide = spread / (known["rate"] * (1 - known["rate"])) * stats.t.ppf(0.975, graded - 1)
    ends = stats.logistic.cdf(stats.logistic.ppf(known["rate"]) + numpy.array([-wide, wide]))
    assert [found["rate_interval"][end] for end in ("low", "high")] == pytest.approx(ends, abs=1e-9)
