"""How often the intervals hold the true figure, by simulation: scenarios of tasks, runs and rates, and what is asked.

    python benchmarks/coverage.py [--repetitions 400] [--set NAME ...]

A task's success probability is drawn from a beta distribution of mean mu and intra-class correlation rho, its runs
from that probability. Seeds stand in this file: the same repetitions give the same table. A scenario below 93 % is run
again ten times as often and must then reach 90.5 %; the average of a set must lie between 93 and 97.5 %. Exit code 1
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

from gradestack import Estimate, interval, jackknife
from gradestack_plugins.statistics.classification import MatrixIntervals

Ends = tuple[float, float]
Draw = Callable[[random.Random], Ends]
"""Draws one data set and returns the ends of its interval."""
Scenario = tuple[str, float, Draw]
"""Name, true figure, and how a data set of it is drawn."""

RATES = ((0.5, 0.5), (0.42, 0.55), (0.1, 0.4), (0.03, 0.3), (0.95, 0.4), (0.99, 0.3))
"""Mean and intra-class correlation; (.42, .55) is close to gpt-4o on tau-bench's airline."""
TASKS = (50, 100, 200)
SEED = 20261122
LEAST, LEAST_AGAIN, AGAIN = 0.93, 0.905, 10
MEAN_LEAST, MEAN_MOST = 0.93, 0.975


def beta(rng: random.Random, mu: float, rho: float) -> float:
    """Return a task's probability."""
    size = 1 / rho - 1
    return rng.betavariate(mu * size, (1 - mu) * size)


def passes(rng: random.Random, probability: float, runs: int) -> int:
    """Return how many of a task's runs pass."""
    return sum(rng.random() < probability for _ in range(runs))


def ends_of(figure: Callable[..., Mapping[str, float | None]], cells: Counter[tuple[float, ...]], width: int) -> Ends:
    """Return the ends of the interval of the one figure of sums."""
    found = interval(next(iter(jackknife(figure, cells, width).values())), 1)
    return found["low"], found["high"]


def mean(samples: float, scores: float) -> dict[str, float | None]:
    """Return the mean of scores."""
    return {"mean": scores / samples}


def rates() -> Iterator[Scenario]:
    """Rates of runs that pass."""
    for tasks, runs, (mu, rho) in product(TASKS, (1, 4, 8), RATES):

        def draw(rng: random.Random, tasks: int = tasks, runs: int = runs, mu: float = mu, rho: float = rho) -> Ends:
            return ends_of(mean, Counter((runs, passes(rng, beta(rng, mu, rho), runs)) for _ in range(tasks)), 2)

        yield f"{tasks} x {runs}, {mu}, {rho}", mu, draw


def pass_hat_k(rates: Sequence[tuple[float, float]]) -> Iterator[Scenario]:
    """pass^k of eight runs a task, and of four."""
    for tasks, (runs, k), (mu, rho) in product(TASKS, ((4, 2), (4, 4), (8, 4)), rates):
        a, b = mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)
        true = math.prod((a + step) / (a + b + step) for step in range(k))

        def draw(
            rng: random.Random, tasks: int = tasks, runs: int = runs, k: int = k, mu: float = mu, rho: float = rho
        ) -> Ends:
            passed = (passes(rng, beta(rng, mu, rho), runs) for _ in range(tasks))
            return ends_of(mean, Counter((1, math.comb(each, k) / math.comb(runs, k)) for each in passed), 2)

        yield f"{tasks} x {runs}, pass^{k}, {mu}, {rho}", true, draw


def scores_between() -> Iterator[Scenario]:
    """Scores between 0 and 1, many of them at both ends."""
    for tasks, runs, (mu, rho) in product(TASKS, (1, 4), ((0.6, 0.4), (0.85, 0.3))):

        def draw(rng: random.Random, tasks: int = tasks, runs: int = runs, mu: float = mu, rho: float = rho) -> Ends:
            cells: Counter[tuple[float, ...]] = Counter()
            for _ in range(tasks):
                chance = beta(rng, mu, rho)
                steps = [passes(rng, chance, 4) / 4 for _ in range(runs)]
                cells[runs, sum(steps)] += 1
            return ends_of(mean, cells, 2)

        yield f"{tasks} x {runs}, {mu}, {rho}", mu, draw


def macro_f1() -> Iterator[Scenario]:
    """Macro-F1 of four classes, one of them rare."""
    labels, shares = "abcd", (0.4, 0.3, 0.2, 0.1)
    for tasks, runs, right in product(TASKS, (1, 4), (0.5, 0.7, 0.9)):
        predicted = [right * share + (1 - right) * (1 - share) / 3 for share in shares]
        true = statistics.fmean(
            2 * right * share / (share + made) for share, made in zip(shares, predicted, strict=True)
        )

        def draw(rng: random.Random, tasks: int = tasks, runs: int = runs, right: float = right) -> Ends:
            found: Counter[tuple[tuple[tuple[str, str | None], int], ...]] = Counter()
            for _ in range(tasks):
                (gold,), chance = rng.choices(labels, shares), beta(rng, right, 0.3)
                wrong = labels.replace(gold, "")
                made = [gold if rng.random() < chance else rng.choice(wrong) for _ in range(runs)]
                found[tuple(sorted(Counter((gold, each) for each in made).items()))] += 1
            held = MatrixIntervals(found, labels, 0.95).macro_f1(labels)
            return held["low"], held["high"]

        yield f"{tasks} x {runs}, {right}", true, draw


def paired() -> Iterator[Scenario]:
    """The difference of two models on the same tasks."""
    for tasks, runs, (mu, rho) in product(TASKS, (1, 4, 8), ((0.5, 0.5), (0.9, 0.3))):

        def draw(rng: random.Random, tasks: int = tasks, runs: int = runs, mu: float = mu, rho: float = rho) -> Ends:
            chances = [beta(rng, mu, rho) for _ in range(tasks)]
            gaps = [(passes(rng, 0.9 * each, runs) - passes(rng, each, runs)) / runs for each in chances]
            stderr = statistics.stdev(gaps) / math.sqrt(tasks)
            found = interval(Estimate(statistics.fmean(gaps), stderr, tasks), tasks, share=False)
            return found["low"], found["high"]

        yield f"{tasks} x {runs}, {mu}, {rho}", -0.1 * mu, draw


def several_models() -> Iterator[Scenario]:
    """The mean over models on the same tasks, a task being one cluster."""
    for tasks, models in product(TASKS, (2, 5)):

        def draw(rng: random.Random, tasks: int = tasks, models: int = models) -> Ends:
            chances = [beta(rng, 0.42, 0.55) for _ in range(tasks)]
            return ends_of(mean, Counter((4 * models, passes(rng, each, 4 * models)) for each in chances), 2)

        yield f"{tasks}, {models} models", 0.42, draw


RARE = "pass^k, rates of .1 and .03"
"""Shown, and nothing is asked of it: figures near 0 that hang on one or two tasks."""
SETS: dict[str, Callable[[], Iterator[Scenario]]] = {
    "rates": rates,
    "pass^k": partial(pass_hat_k, RATES[:2] + RATES[4:]),
    RARE: partial(pass_hat_k, RATES[2:4]),
    "partial scores": scores_between,
    "macro-F1": macro_f1,
    "paired difference": paired,
    "mean over models": several_models,
}


def covered(scenario: Scenario, repetitions: int) -> float:
    """Return the share of intervals that hold the true figure."""
    name, true, draw = scenario
    rng = random.Random(f"{SEED} {name} {repetitions}")
    held = 0
    for _ in range(repetitions):
        low, high = draw(rng)
        held += low <= true <= high
    return held / repetitions


def main() -> int:
    """Print the table; return 1 where what is asked does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--set", dest="sets", action="append", choices=SETS)
    given = parser.parse_args()
    print("| figures | scenarios | least | mean | 93 to 97 | below 93 | above 97 |")
    print("|---|---|---|---|---|---|---|")
    problems = []
    for name in given.sets or SETS:
        shares = []
        for scenario in SETS[name]():
            share = covered(scenario, given.repetitions)
            if share < LEAST:
                share = covered(scenario, AGAIN * given.repetitions)
            if share < LEAST_AGAIN and name != RARE:
                problems.append(f"{name}: {scenario[0]}: {share:.3f}")
            shares.append(share)
        average = statistics.fmean(shares)
        if not MEAN_LEAST <= average <= MEAN_MOST and name != RARE:
            problems.append(f"{name}: {average:.3f} on average")
        below, above = sum(each < LEAST for each in shares), sum(each > 0.97 for each in shares)
        row = (name, len(shares), f"{min(shares):.3f}", f"{average:.3f}", len(shares) - below - above, below, above)
        print(f"| {' | '.join(map(str, row))} |", flush=True)
    for problem in problems:
        print(f"not held: {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
