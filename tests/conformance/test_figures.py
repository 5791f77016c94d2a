"""Every figure of every example has an interval within what the figure can be, or the reason why it
has none.
"""

import json
import math
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradestack.cli.commands import cli
from gradestack.registry import discover
from tests.core.outcomes import data, some_of

EXAMPLES = Path(__file__).parents[2] / "examples"
AGREEMENT = """
name: agree
target: {paths: [PATH]}
stack: tau-bench
metrics:
  agreement: {of: reward, raters: [partial]}
  flakiness: {of: reward}
"""
DATA = Path(os.environ.get("GRADESTACK_REFERENCE_DATA") or ".")
REFERENCE = data(__file__, "figures.yaml")["reference"]


def numbers(figures_map, above=()):
    """Yield the path and value of whatever may be a figure, of each model, too."""
    for name, value in figures_map.items():
        if name.endswith("_interval"):
            continue
        if isinstance(value, dict):
            yield from numbers(value, (*above, name))
        elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield (*above, name), value


def interval_beside(figures_map, path):
    """Return the interval, or the reason for none, beside a figure or beside the map it is in.

    None where neither stands there.
    """
    for cut in range(len(path) - 1, -1, -1):
        at = figures_map
        for name in path[:cut]:
            at = at[name]
        for name in (f"{path[cut]}_interval", *path[cut + 1 :]):
            if isinstance(at, dict) and "reason" not in at:
                at = at.get(name)
        if isinstance(at, dict):
            return at
    return None


def checked(out):
    """Check the figures of a run.

    Return the number of figures with an interval, and a text for each wrong figure.
    """
    summary, header = (
        json.loads((out / f"{name}.json").read_text()) for name in ("summary", "header")
    )
    registry = discover()
    components = header["components"]
    entries = {
        (component.get("of"), component["key"]): component
        for component in components
        if component["kind"] == "aggregator"
    }
    known, wrong = 0, []
    aggregates = summary["metrics"]["aggregates"]
    for grader, metrics in aggregates.items():
        for key, figures_map in metrics.items():
            entry = entries[grader, key]
            for path, value in numbers(figures_map):
                name = ".".join(path[2:] if path[0] == "models" else path)
                figures = registry.load("aggregator", entry["name"]).figures
                figure = next(
                    (figure for figure in figures if figure.covers(name)),
                    None,
                )
                if name == "alpha" and "alpha_nominal" in figures_map:
                    # the same figure, whose interval has this name; alpha_interval is another
                    # figure
                    continue
                if figure is None:
                    continue
                interval, (low, high) = interval_beside(figures_map, path), figure.bounds
                if interval is None or not ("reason" in interval or value is not None):
                    wrong.append(f"{grader}.{key}.{name}: no interval and no reason")
                elif "low" in interval:
                    known += 1
                    ends = interval["low"], value, interval["high"]
                    if not (
                        all(map(math.isfinite, ends))
                        and low <= ends[0]
                        and ends[2] <= high
                        and sorted(ends) == [*ends]
                    ):
                        wrong.append(f"{grader}.{key}.{name}: {ends}, bounds {low} to {high}")
    return known, wrong


def results(*words, out):
    made = CliRunner().invoke(cli, [*map(str, words), "--output", str(out), "--quiet"])
    assert made.exit_code in {0, 1}, made.output
    return checked(out)


@pytest.mark.parametrize("profile", some_of(["documented", "upstream"], 2))
@pytest.mark.parametrize(
    "suite", sorted(EXAMPLES.glob("*/suite.yaml")), ids=lambda path: path.parent.name
)
def test_every_figure_of_an_example_has_an_interval_or_a_reason(suite, profile, tmp_path):
    out_folder = tmp_path / "out"
    known, wrong = results("run", suite, "--profile", profile, out=out_folder)
    assert (known > 3 or profile == "upstream") is True
    assert wrong == []


@pytest.mark.parametrize("stack", ["tool_calls", "trajectory"])
def test_rates_of_tools_and_checks_have_one_too(stack, tmp_path):
    results_path = EXAMPLES / "airline/results.json"
    out_folder = tmp_path / "out"
    known, wrong = results("grade", results_path, "--stack", stack, out=out_folder)
    assert known > 10
    assert wrong == []


def test_agreement_and_flakiness_have_one_too(tmp_path):
    suite = tmp_path / "agree.yaml"
    results_path = EXAMPLES / "airline/results.json"
    agreement = AGREEMENT.replace("PATH", str(results_path))
    suite.write_text(agreement)
    out_folder = tmp_path / "out"
    known, wrong = results("run", suite, "--allow-outside", out=out_folder)
    assert wrong == []
    summary_path = tmp_path / "out/summary.json"
    text = summary_path.read_text()
    document = json.loads(text)
    aggregates = document["metrics"]["aggregates"]["reward"]
    for metric, names in (
        ("agreement", ("kappa", "ac1", "alpha_nominal", "alpha_interval")),
        ("flakiness", ("icc", "within_variance")),
    ):
        assert all(aggregates[metric][f"{name}_interval"]["clusters"] == 13 for name in names)
    assert known > 20


@pytest.mark.skipif(
    "GRADESTACK_REFERENCE_DATA" not in os.environ, reason="GRADESTACK_REFERENCE_DATA is not set"
)
@pytest.mark.proof
@pytest.mark.parametrize("profile", ["documented", "upstream"])
@pytest.mark.parametrize("path", REFERENCE)
def test_every_figure_of_published_data_has_an_interval_or_a_reason(path, profile, tmp_path):
    out_folder = tmp_path / "out"
    known, wrong = results("grade", DATA / path, "--profile", profile, out=out_folder)
    assert (known > 1 or profile == "upstream" or "bfcl" in path) is True
    assert wrong == []
