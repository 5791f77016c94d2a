"""How often the intervals hold the true figure, by simulation.

Scenarios of tasks, runs and rates, and what is asked.

    python benchmarks/coverage.py [--repetitions 400] [--set NAME ...]

A task's success probability is drawn from a beta distribution of mean mu and intra-class
correlation rho, its runs from that probability. Seeds stand in this file: the same repetitions give
the same table. A scenario below 93 % is run again ten times as often and must then reach 91 %; the
average of a set must lie between 93 and 97.5 %, of what lies near its ends or hangs on few tasks
above 93 %. Data sets whose figure has no interval, but a reason, are counted apart. Exit code 1
otherwise.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from gradestack import Estimate, Interval, interval, jackknife
from gradestack_plugins.judges.calibrated import CELLS, Calibrated
from gradestack_plugins.statistics.classification import Counted

Ends = tuple[float, float] | None
Draw = Callable[[random.Random], Ends]
"""Draws one data set and returns the ends of its interval; None where there is a reason instead."""
Scenario = tuple[str, float, Draw]
"""Name, true figure, and how a data set of it is drawn."""

RATES = ((0.5, 0.5), (0.42, 0.55), (0.1, 0.4), (0.03, 0.3), (0.95, 0.4), (0.99, 0.3))
"""Mean and intra-class correlation; (.42, .55) is close to gpt-4o on tau-bench's airline."""
TASKS = (50, 100, 200)
FEW = (10, 20, 50, 100)
OF_K = ((4, 2), (4, 4), (8, 4))
"""Runs of a task, and k."""
NEAR_ENDS = ((0.1, 0.4), (0.03, 0.3), (0.05, 0.4), (0.01, 0.3), (0.2, 0.2), (0.1, 0.1))
"""Rates of pass^k near 0, and of failures for pass@k near 1."""
JUDGES = (
    (500, 100, 0.736, 0.9, 0.67, False),
    (500, 50, 0.736, 0.9, 0.67, False),
    (500, 100, 0.736, 0.9, 0.67, True),
    (500, 100, 0.5, 0.7, 0.6, False),
    (500, 200, 0.9, 0.95, 0.6, False),
    (2000, 200, 0.3, 0.8, 0.9, False),
    (200, 60, 0.6, 0.85, 0.8, False),
    (2000, 100, 0.8, 0.97, 0.5, True),
)
"""Samples, labels, share people pass, sensitivity, specificity, and whether half the labels are of
its passes.
"""
SEED = 20261122
LEAST, LEAST_AGAIN, AGAIN = 0.93, 0.91, 10
MEAN_LEAST, MEAN_MOST = 0.93, 0.975


def beta(rng: random.Random, mu: float, rho: float) -> float:
    """Return a task's probability."""
    size = 1 / rho - 1
    return rng.betavariate(mu * size, (1 - mu) * size)


def passes(rng: random.Random, probability: float, runs: int) -> int:
    """Return how many of a task's runs pass."""
    return sum(rng.random() < probability for _ in range(runs))


def ends_of(
    figure: Callable[..., Mapping[str, float | None]],
    cells: Counter[tuple[float, ...]],
    width: int,
    *,
    amount: bool = False,
) -> Ends:
    """Return the ends of the interval of the one figure of sums."""
    return both(
        interval(
            next(iter(jackknife(figure, cells, width).values())), 1, share=not amount, amount=amount
        )
    )


def both(found: Interval) -> Ends:
    """Return both ends of an interval."""
    return (found["low"], found["high"]) if "low" in found else None


def mean(samples: float, scores: float) -> dict[str, float | None]:
    """Return the mean of scores."""
    return {"mean": scores / samples}


def rates() -> Iterator[Scenario]:
    """Rates of runs that pass."""
    for tasks, runs, (mu, rho) in product(TASKS, (1, 4, 8), RATES):

        def draw(
            rng: random.Random,
            tasks: int = tasks,
            runs: int = runs,
            mu: float = mu,
            rho: float = rho,
        ) -> Ends:
            return ends_of(
                mean,
                Counter((runs, passes(rng, beta(rng, mu, rho), runs)) for _ in range(tasks)),
                2,
            )

        yield f"{tasks} x {runs}, {mu}, {rho}", mu, draw


def pass_hat_k(
    rates: Sequence[tuple[float, float]],
    sizes: Sequence[int] = TASKS,
    of: Sequence[tuple[int, int]] = OF_K,
) -> Iterator[Scenario]:
    """pass^k of eight runs a task, and of four; pass@k is 1 less that of failures."""
    for tasks, (runs, k), (mu, rho) in product(sizes, of, rates):
        a, b = mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)
        true = math.prod((a + step) / (a + b + step) for step in range(k))

        def draw(
            rng: random.Random,
            tasks: int = tasks,
            runs: int = runs,
            k: int = k,
            mu: float = mu,
            rho: float = rho,
        ) -> Ends:
            passed = (passes(rng, beta(rng, mu, rho), runs) for _ in range(tasks))
            return ends_of(
                mean, Counter((1, math.comb(each, k) / math.comb(runs, k)) for each in passed), 2
            )

        yield f"{tasks} x {runs}, pass^{k}, {mu}, {rho}", true, draw


def scores_between() -> Iterator[Scenario]:
    """Scores between 0 and 1, many of them at both ends."""
    for tasks, runs, (mu, rho) in product(TASKS, (1, 4), ((0.6, 0.4), (0.85, 0.3))):

        def draw(
            rng: random.Random,
            tasks: int = tasks,
            runs: int = runs,
            mu: float = mu,
            rho: float = rho,
        ) -> Ends:
            cells: Counter[tuple[float, ...]] = Counter()
            for _ in range(tasks):
                chance = beta(rng, mu, rho)
                steps = [passes(rng, chance, 4) / 4 for _ in range(runs)]
                cells[runs, sum(steps)] += 1
            return ends_of(mean, cells, 2)

        yield f"{tasks} x {runs}, {mu}, {rho}", mu, draw


def macro_f1(sizes: Sequence[int] = TASKS, rare: Sequence[float] = (0.1,)) -> Iterator[Scenario]:
    """Macro-F1 of four classes, one of them rare."""
    labels = "abcd"
    for tasks, runs, right, least in product(sizes, (1, 4), (0.5, 0.7, 0.9), rare):
        shares = [*[each * (1 - least) / 0.9 for each in (0.4, 0.3, 0.2)], least]
        predicted = [right * share + (1 - right) * (1 - share) / 3 for share in shares]
        true = statistics.fmean(
            2 * right * share / (share + made)
            for share, made in zip(shares, predicted, strict=True)
        )

        def draw(
            rng: random.Random,
            tasks: int = tasks,
            runs: int = runs,
            right: float = right,
            shares: Sequence[float] = shares,
        ) -> Ends:
            found: Counter[tuple[tuple[tuple[str, str | None], int], ...]] = Counter()
            for _ in range(tasks):
                (gold,), chance = rng.choices(labels, shares), beta(rng, right, 0.3)
                wrong = labels.replace(gold, "")
                made = [gold if rng.random() < chance else rng.choice(wrong) for _ in range(runs)]
                found[tuple(sorted(Counter((gold, each) for each in made).items()))] += 1
            return both(Counted(found, labels, 0.95).macro_f1(labels))

        yield f"{tasks} x {runs}, {right}, {least}", true, draw


def amounts() -> Iterator[Scenario]:
    """Means of tokens, seconds, dollars.

    Lognormal by task, sigma the deviation of logarithms, half of it by run.
    """
    for tasks, runs, sigma in product((10, 20, 50, 100, 200), (1, 4), (0.5, 1, 1.25, 1.5)):
        true = math.exp((sigma**2 + (sigma / 2) ** 2 * (runs > 1)) / 2)

        def draw(
            rng: random.Random, tasks: int = tasks, runs: int = runs, sigma: float = sigma
        ) -> Ends:
            cells: Counter[tuple[float, ...]] = Counter()
            for _ in range(tasks):
                level = rng.gauss(0, sigma)
                cells[
                    runs,
                    math.fsum(
                        math.exp(level + (runs > 1) * rng.gauss(0, sigma / 2)) for _ in range(runs)
                    ),
                ] += 1
            return ends_of(mean, cells, 2, amount=True)

        yield f"{tasks} x {runs}, sigma {sigma}", true, draw


def counts() -> Iterator[Scenario]:
    """Means of counts: steps of a run, 1 and more, and calls of one kind, few or none, geometric by
    task.
    """
    for tasks, (least, level) in product(
        (10, 20, 50, 100, 200), ((1, 4.0), (1, 12.0), (0, 0.5), (0, 2.0))
    ):

        def draw(
            rng: random.Random, tasks: int = tasks, least: int = least, level: float = level
        ) -> Ends:
            stop = math.log(level / (1 + level))
            drawn = (least + int(math.log(1 - rng.random()) / stop) for _ in range(tasks))
            return ends_of(mean, Counter((1, float(each)) for each in drawn), 2, amount=True)

        yield f"{tasks}, from {least}, {level}", least + level, draw


def paired() -> Iterator[Scenario]:
    """The difference of two models on the same tasks."""
    for tasks, runs, (mu, rho) in product(TASKS, (1, 4, 8), ((0.5, 0.5), (0.9, 0.3))):

        def draw(
            rng: random.Random,
            tasks: int = tasks,
            runs: int = runs,
            mu: float = mu,
            rho: float = rho,
        ) -> Ends:
            chances = [beta(rng, mu, rho) for _ in range(tasks)]
            gaps = [
                (passes(rng, 0.9 * each, runs) - passes(rng, each, runs)) / runs for each in chances
            ]
            stderr = statistics.stdev(gaps) / math.sqrt(tasks)
            return both(
                interval(Estimate(statistics.fmean(gaps), stderr, tasks), tasks, share=False)
            )

        yield f"{tasks} x {runs}, {mu}, {rho}", -0.1 * mu, draw


def several_models() -> Iterator[Scenario]:
    """The mean over models on the same tasks, a task being one cluster."""
    for tasks, models in product(TASKS, (2, 5)):

        def draw(rng: random.Random, tasks: int = tasks, models: int = models) -> Ends:
            chances = [beta(rng, 0.42, 0.55) for _ in range(tasks)]
            return ends_of(
                mean, Counter((4 * models, passes(rng, each, 4 * models)) for each in chances), 2
            )

        yield f"{tasks}, {models} models", 0.42, draw


def judged() -> Iterator[Scenario]:
    """The share that people would pass, by a judge's verdicts and labels of some samples.

    Drawn, or half by verdict.
    """

    def rate(judged: float, passed: float, *cells: float) -> dict[str, float | None]:
        totals = {"judged": judged, "passed": passed, **dict(zip(CELLS, cells, strict=True))}
        no_votes = dict.fromkeys(("repeated", "agreeing", "unlike"), 0)
        found = Calibrated().figures_of({**no_votes, **totals})
        return {"rate": found["rate"]}

    for size, labels, share, sensitivity, specificity, picked in JUDGES:

        def draw(
            rng: random.Random,
            size: int = size,
            labels: int = labels,
            share: float = share,
            chances: tuple[float, float] = (1 - specificity, sensitivity),
            picked: bool = picked,
        ) -> Ends:
            people = [rng.random() < share for _ in range(size)]
            runs = [(good, rng.random() < chances[good]) for good in people]
            if picked:
                runs.sort(key=lambda run: run[1])
                runs = [
                    runs[at]
                    for pair in zip(range(size), reversed(range(size)), strict=True)
                    for at in pair
                ][:size]
            cells: Counter[tuple[float, ...]] = Counter()
            for at, (good, passed) in enumerate(runs):
                cell = 2 * (not passed) + (not good)
                cells[
                    1, passed, *(float(at < labels and each == cell) for each in range(len(CELLS)))
                ] += 1
            return ends_of(rate, cells, 2 + len(CELLS))

        yield (
            (
                f"{size}, {labels} labels{' by verdict' * picked}, {share}, {sensitivity}, "
                f"{specificity}"
            ),
            share,
            draw,
        )


NEAR, RARE, UNEVEN = (
    "pass^k and 1 - pass@k near 0",
    "macro-F1, a class of 2 to 10 %",
    "tokens, seconds, dollars",
)
WIDE = {NEAR, RARE, UNEVEN}
"""Whose average may be above 97.5 %: few tasks decide."""
SETS: dict[str, Callable[[], Iterator[Scenario]]] = {
    "rates": rates,
    "pass^k": partial(pass_hat_k, RATES[:2] + RATES[4:]),
    NEAR: partial(pass_hat_k, NEAR_ENDS, FEW, (*OF_K, (8, 8))),
    "partial scores": scores_between,
    "macro-F1": macro_f1,
    RARE: partial(macro_f1, FEW[1:], (0.02, 0.05, 0.1)),
    UNEVEN: amounts,
    "counts": counts,
    "paired difference": paired,
    "mean over models": several_models,
    "judge's rate, corrected": judged,
}


def covered(scenario: Scenario, repetitions: int) -> tuple[float, float]:
    """Return the share of intervals that hold the true figure, and that of data sets without an
    interval.
    """
    name, true, draw = scenario
    rng = random.Random(f"{SEED} {name} {repetitions}")
    held = none = 0
    for _ in range(repetitions):
        ends = draw(rng)
        none += ends is None
        held += ends is not None and ends[0] <= true <= ends[1]
    return held / max(1, repetitions - none), none / repetitions


def main() -> int:
    """Print the table; return 1 where what is asked does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--set", dest="sets", action="append", choices=SETS)
    given = parser.parse_args()
    print("| figures | scenarios | least | mean | 93 to 97 | below 93 | above 97 | without |")
    print("|---|---|---|---|---|---|---|---|")
    problems = []
    for name in given.sets or SETS:
        shares, without = [], 0.0
        for scenario in SETS[name]():
            share, none = covered(scenario, given.repetitions)
            if share < LEAST:
                share, none = covered(scenario, AGAIN * given.repetitions)
            without = max(without, none)
            if share < LEAST_AGAIN:
                problems.append(f"{name}: {scenario[0]}: {share:.3f}")
            shares.append(share)
        average = statistics.fmean(shares)
        if average < MEAN_LEAST or (average > MEAN_MOST and name not in WIDE):
            problems.append(f"{name}: {average:.3f} on average")
        below, above = sum(each < LEAST for each in shares), sum(each > 0.97 for each in shares)
        row = (
            name,
            len(shares),
            f"{min(shares):.3f}",
            f"{average:.3f}",
            len(shares) - below - above,
            below,
            above,
        )
        print(f"| {' | '.join(map(str, (*row, f'{without:.2f}')))} |", flush=True)
    for problem in problems:
        print(f"not held: {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
