"""The mean with error bars.

Figures by hand, and the clustered formula by independent code.
"""

import math
import random
from fractions import Fraction

import pytest

from gradestack import Grade, figures, t_quantile


def finished(*pairs, **options):
    named = []
    for name, grade in pairs:
        named.append((name if isinstance(name, tuple) else (name, None), grade))
    return figures(
        {"mean": options}, [(task, None, model, grade) for (task, model), grade in named]
    )["mean"]


def ends(mean_found):
    low = mean_found["mean_interval"]["low"]
    return [low, mean_found["mean_interval"]["high"]]


def scores(*values):
    return [(str(number), Grade(score=value)) for number, value in enumerate(values)]


def test_many_degrees_are_the_normal_distribution():
    """1.96 at 95 %, and no jump where the formula changes."""
    assert t_quantile(0.975, 10**9) == pytest.approx(1.95996398454, rel=1e-8)
    assert t_quantile(0.975, 5000) == pytest.approx(1.9604385517, rel=1e-10)
    steps = []
    for df in (998, 999, 1000):
        steps.append(t_quantile(0.975, df) - t_quantile(0.975, df + 1))
    first_step = steps[0]
    assert steps == pytest.approx([first_step] * 3, rel=1e-2)
    assert t_quantile(0.025, 7) == -t_quantile(0.975, 7)


def test_runs_of_a_task_depend_on_each_other():
    """Tasks (1, 1), (0, 0).

    Mean 0.5, sums of deviations 1 and -1, error sqrt(2/1 x 2)/4 = 0.5, t(1) = 12.7062.
    """
    mean_found = finished(
        ("a", Grade(score=1.0)),
        ("b", Grade(score=0.0)),
        ("a", Grade(score=1.0)),
        ("b", Grade(score=0.0)),
    )
    assert mean_found["mean"] == 0.5
    assert mean_found["stderr"] == 0.5
    assert mean_found["clusters"] == 2
    assert mean_found["n"] == 4
    half = 12.7062047364 * 0.5 / 0.25
    low = 1 / (1 + math.exp(half))
    high = 1 / (1 + math.exp(-half))
    assert ends(mean_found) == pytest.approx([low, high], rel=1e-10)
    assert mean_found["mean_interval"]["n"] == 4
    clusters = mean_found["mean_interval"]["clusters"]
    assert clusters == 2


def test_a_score_beyond_the_unit_interval_is_no_share():
    mean_found = finished(*scores(0.0, 1.0, 1.5))
    method = mean_found["mean_interval"]["method"]
    assert method == "t"
    half = 4.30265272991 * mean_found["stderr"]
    assert ends(mean_found) == pytest.approx([mean_found["mean"] - half, mean_found["mean"] + half])


def by_fractions(groups):
    """Return mean and standard error, every step but the last exact."""
    sums = []
    for group in groups:
        total_fractions = sum(map(Fraction, group), Fraction(0))
        sums.append(total_fractions)
    n = sum(map(len, groups))
    count = len(groups)
    total_sums = sum(sums, Fraction(0))
    middle = total_sums / n
    pairs = zip(groups, sums, strict=True)
    fraction = Fraction(0)
    squares = sum(
        ((task_sum - len(group) * middle) ** 2 for group, task_sum in pairs),
        fraction,
    )
    return float(middle), math.sqrt(float(squares * count / (count - 1))) / n


@pytest.mark.parametrize("seed", range(8))
def test_figures_are_rounded_once(seed):
    """Scores of all magnitudes, one to five of a task: the mean and its error to the last bit."""
    rng = random.Random(seed)  # noqa: S311 - test data
    odd = [0.1, 1.0, -0.0, 5e-324, 1e-300, 1e100, -1e100, 1 / 3, 0.7]
    groups = []
    for _ in range(40):
        groups.append(
            [
                rng.choice([rng.random(), rng.choice(odd[: 3 + seed])])
                for _ in range(rng.randrange(1, 6))
            ]
        )
    pairs = []
    for at, group in enumerate(groups):
        for score in group:
            pairs.append((f"t{at}", Grade(score=score)))
    rng.shuffle(pairs)
    mean_found = finished(*pairs)
    assert (mean_found["mean"], mean_found["stderr"]) == by_fractions(groups)
