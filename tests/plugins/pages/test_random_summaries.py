"""Every page of every family, from random summaries that a run could have written: no figure is
defined, nothing was graded, one model is left, counts are 0 or huge.
"""

import copy
import random

import attrs
import pytest

import gradestack
from gradestack.outcome.pages import rewrite_pages
from tests.plugins.test_family_panels import EXAMPLES, SHOWN, suites_in

FAMILIES = (*SHOWN, "letta")
PAGES = ("html", "markdown")
COUNTS = (0, 1, 10**9)
VALUES = (None, 0.0, -0.0, 0.5, 1.0, -1.0, 1e-308, 1e308, -1e308)
MAY_BE_EMPTY = frozenset({"models", "gates", "figures", "undefined", "warnings", "statements"})
MAY_BE_NONE = frozenset({"per_model", "outcome", "gates_passed", "pass_rule"})
SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.proof) for seed in range(2, 60))]


class Mutation:
    """Changes a summary at random, ``often`` being the share of its places that change."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 - the same every time
        self.often = self.random.choice((0.02, 0.2, 0.7))

    def of(self, value, name=""):
        changes = self.random.random() < self.often
        if isinstance(value, dict):
            return self.of_mapping(value, name, changes=changes)
        if isinstance(value, list):
            if changes and name in {*MAY_BE_EMPTY, *MAY_BE_NONE}:
                return [] if name in MAY_BE_EMPTY else None
            return [self.of(item) for item in value]
        if changes and isinstance(value, int) and not isinstance(value, bool):
            return self.random.choice(COUNTS)
        if changes and isinstance(value, float):
            return self.random.choice(VALUES)
        return value

    def of_mapping(self, value, name, *, changes):
        if changes and name in MAY_BE_EMPTY:
            first = dict(list(value.items())[:1])
            return self.random.choice(({}, first))
        if changes and name in MAY_BE_NONE:
            return None
        if changes and (name.endswith("interval") or "low" in value):
            return {"reason": "one task"}
        return {key: self.of(item, key) for key, item in value.items()}

    def of_summary(self, summary):
        """Return a changed copy; of some summaries a metric failed, of some nothing was graded."""
        changed = self.of(copy.deepcopy(summary))
        changed["metrics"]["total"] = summary["metrics"]["total"]  # else the rows are another run's
        aggregates = changed["metrics"]["aggregates"]
        for metrics in aggregates.values():
            for name in metrics:
                if self.random.random() < self.often / 4:
                    metrics[name] = {"error": "ValueError: nothing to compute"}
        return changed


def assert_pages(report, folder):
    """Both pages are written, and nothing is left out of them."""
    messages = []
    registry = gradestack.discover(limit="")
    pages = rewrite_pages(report, registry, PAGES, folder, messages.append)
    names = {page.name for page in pages}
    assert names >= {"report.html", "report.md"}
    assert messages == []


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folders = tmp_path_factory.mktemp("suites")
    suites = suites_in(folders)
    suites["letta"] = EXAMPLES / "letta/suite.yaml"
    folder = tmp_path_factory.mktemp("runs")
    processes_by_family = {}
    for family, suite in suites.items():
        output = folder / family
        processes_by_family[family] = gradestack.run(suite, output=output, overrides=["reports=[]"])
    return processes_by_family


@pytest.mark.parametrize("family", FAMILIES)
def test_pages_are_made_where_every_metric_failed(runs, family, tmp_path):
    changed = copy.deepcopy(runs[family].summary)
    aggregates = changed["metrics"]["aggregates"]
    for metrics in aggregates.values():
        for name in metrics:
            metrics[name] = {"error": "ValueError: nothing to compute"}
    run = runs[family]
    report = attrs.evolve(run, summary=changed, shared={}, warnings=[])
    assert_pages(report, tmp_path)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_pages_are_made_of_any_summary(runs, family, seed, tmp_path):
    report = runs[family]
    mutation = Mutation(f"{family} {seed}")
    summary = mutation.of_summary(report.summary)
    if seed % 3 == 1:
        header = {**report.header, "rows": False}
    else:
        header = report.header
    changed = attrs.evolve(report, summary=summary, header=header, shared={}, warnings=[])
    assert_pages(changed, tmp_path)
