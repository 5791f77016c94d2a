"""Statistics against libraries that compute the same.

Run by `make oracles`, in an environment of its own.
"""
# ruff: noqa: S311 - test data

import math
import random

import pytest

from gradestack import Grade, figures
from gradestack_plugins.statistics.agreement import alpha

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]


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
