"""How many tasks a benchmark needs: to measure one rate, and to find a difference.

python how_many_tasks.py            # both tables
python how_many_tasks.py 0.05 0.45  # tasks for 5 points, where differences spread by 0.45
"""

import math
import sys

from gradestack import t_quantile

POWER = 0.8  # a true difference is found in four of five comparisons
CONFIDENCE = 0.95


def tasks_needed(difference: float, spread: float) -> int:
    """Return the fewest tasks with which a paired t test finds a difference."""
    tasks = 5
    while True:
        quantiles = t_quantile((1 + CONFIDENCE) / 2, tasks - 1) + t_quantile(POWER, tasks - 1)
        if quantiles * spread / math.sqrt(tasks) <= difference:
            return tasks
        tasks += 1


def rate_interval(rate: float, tasks: int) -> tuple[float, float]:
    """Return the interval of a rate with one run per task, on the logit scale."""
    error = math.sqrt(rate * (1 - rate) / (tasks - 1))
    half = t_quantile((1 + CONFIDENCE) / 2, tasks - 1) * error / (rate * (1 - rate))
    centre = math.log(rate / (1 - rate))
    return 1 / (1 + math.exp(half - centre)), 1 / (1 + math.exp(-half - centre))


def main() -> None:
    """Print one number, or both tables."""
    if len(sys.argv) == 3:
        print(tasks_needed(float(sys.argv[1]), float(sys.argv[2])))
        return
    print("One rate: 95% interval, one run per task")
    print("tasks   50% pass         80% pass         95% pass")
    for tasks in (20, 50, 100, 200, 500, 1000):
        intervals = [rate_interval(rate, tasks) for rate in (0.5, 0.8, 0.95)]
        texts = [f"{low:6.1%} to {high:6.1%}" for low, high in intervals]
        print(f"{tasks:5}  ", "  ".join(texts))
    print()
    print("A difference: tasks needed, by the share of tasks whose result changes")
    print("difference  10% change  20% change  30% change")
    for points in (2, 3, 5, 10, 15):
        counts = [tasks_needed(points / 100, math.sqrt(share)) for share in (0.1, 0.2, 0.3)]
        print(f"{points:3} points  ", "  ".join(f"{count:10}" for count in counts))


if __name__ == "__main__":
    main()
