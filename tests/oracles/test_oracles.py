"""Statistics against libraries that compute the same.

Run by `make oracles`, in an environment of its own.
"""
# ruff: noqa: S311 - test data

import math
import random

import pytest

from gradestack_plugins.statistics.coefficients import alpha

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(5))
def test_alpha_is_that_of_krippendorff(seed, level):
    """Three raters, values missing at random."""
    library = pytest.importorskip("krippendorff")
    rng = random.Random(seed)
    table = []
    for _ in range(3):
        table.append([rng.choice([1.0, 2.0, 3.0, 5.0, math.nan]) for _ in range(40)])
    units = {}
    for values in zip(*table, strict=True):
        values_held = tuple(sorted(value for value in values if not math.isnan(value)))
        units[values_held] = units.get(values_held, 0) + 1
    assert alpha(units, level) == pytest.approx(
        library.alpha(table, level_of_measurement=level), rel=1e-9
    )
