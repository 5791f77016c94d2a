"""Intervals of the families' figures against the definition: without each task in turn.

Logit t, Wilson, Hall.
"""

import math
import random
import statistics

import pytest

from gradestack import Grade, Grader, Item, figures, grade, t_quantile

CONFIDENCE = 0.95
LABELS = {"labels": ["a", "b", "c", "rare"]}


def ends_of(all_figures, without, *, share):
    """Return both ends of the interval of a figure, of its values without each task in turn."""
    count = len(without)
    pseudo = []
    for value in without:
        pseudo.append(count * all_figures - (count - 1) * value)
    stderr = statistics.stdev(pseudo) / math.sqrt(count)
    probability = (1 + CONFIDENCE) / 2
    q = t_quantile(probability, count - 1)
    if not share:
        return all_figures - q * stderr, all_figures + q * stderr
    middle = all_figures + q * q / (2 * count)
    variance = all_figures * (1 - all_figures) / count
    half = q * math.sqrt(variance + q * q / (4 * count**2))
    sides = []
    for side in (-1, 1):
        sides.append((middle + side * half) / (1 + q * q / count))
    wilson = [min(1.0, max(0.0, side)) for side in sides]
    if not 0 < all_figures < 1 or stderr <= 1e-12:
        return wilson
    centre = math.log(all_figures / (1 - all_figures))
    half = q * stderr / (all_figures * (1 - all_figures))
    low = 1 / (1 + math.exp(half - centre))
    high = 1 / (1 + math.exp(-half - centre))
    logit = low, high
    if count < 5 or count * min(all_figures, 1 - all_figures) > 1 + 1e-9:
        return logit
    once = 1 - CONFIDENCE ** (1 / count)
    low = min(logit[0], wilson[0])
    high = max(logit[1], wilson[1])
    if all_figures < 0.5:
        return (min(low, once), high)
    return (low, max(high, 1 - once))


def intervals_in(metrics, path=()):
    """Yield the place of every figure with an interval, its value and the interval."""
    for name, part in metrics.items():
        if not isinstance(part, dict):
            continue
        if not name.endswith("_interval"):
            yield from intervals_in(part, (*path, name))
        elif "low" in part:
            value = metrics[name.removesuffix("_interval")]
            yield (*path, name.removesuffix("_interval")), value, part


def figure_at(metrics, path):
    """Return value and number of grades of the figure at a place, None where it is not."""
    *steps, name = path
    for step in steps:
        metrics = metrics.get(step, {})
    return metrics.get(name), metrics.get(f"{name}_interval", {}).get("n")


def check_intervals(metrics, rows, *, least):
    """Check every interval, but for those of rates of a mean that are bounded on one side only."""
    all_figures = figures(metrics, rows)
    checked = 0
    tasks = dict.fromkeys(row[0] for row in rows)
    without = []
    for task in tasks:
        without.append(figures(metrics, [row for row in rows if row[0] != task]))
    for path, value, interval in intervals_in(all_figures):
        left = [figure_at(metrics, path) for metrics in without]
        values = [value for value, n in left if n != interval["n"]]
        if interval["method"] == "skewed_t" or None in values:
            continue
        share = interval["method"] != "t"
        interval_ends = interval["low"], interval["high"]
        ends = ends_of(value, values, share=share)
        if path[-1].startswith("macro_f1"):  # no narrower than its classes, which may be of few
            first_end = ends[0]
            first_interval_end = interval_ends[0]
            ends = min(first_end, first_interval_end), max(ends[1], interval_ends[1])
        assert interval_ends == pytest.approx(ends, abs=1e-9), path
        assert interval["clusters"] == len(values)
        assert interval["confidence"] == CONFIDENCE
        checked += 1
    assert checked >= least
    return all_figures


def by_task(rows, wanted=lambda grade: True):
    grades_of_task = {}
    for task, _, _, grade_of_row in rows:
        grades_of_task.setdefault(task, []).append(grade_of_row)
    return {task: grades for task, grades in grades_of_task.items() if any(map(wanted, grades))}


def every(tasks):
    return [grade for grades in tasks.values() for grade in grades]


def labelled(gold, label, **more):
    return Grade(score=float(gold == label), gold=gold, label=label, **more)


def hall(values):
    """Return both ends of Hall's interval of a mean, with scipy-like moments written out.

    The values are no less than 0.
    """
    n = len(values)
    mean = statistics.fmean(values)
    sd = statistics.stdev(values)
    third, fourth = (sum(((value - mean) / sd) ** power for value in values) for power in (3, 4))
    skewness = third * n / ((n - 1) * (n - 2))
    divisor = (n - 1) * (n - 2) * (n - 3)
    scaled_fourth = fourth * n * (n + 1) / divisor
    normal_kurtosis = 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))
    kurtosis = scaled_fourth - normal_kurtosis
    skewness = max(skewness, 2 * sd / mean * min(1, sd / mean))
    g = skewness / math.sqrt(n)
    spread = max(1.5 * skewness**2, kurtosis)
    degrees_of_freedom = int(2 / (2 / (n - 1) + spread / n) + 1e-9)
    probability = (1 + CONFIDENCE) / 2
    quantile = t_quantile(probability, degrees_of_freedom)
    scale = sd / math.sqrt(n) * 3 / g
    roots = []
    for end in (quantile, -quantile):
        roots.append(math.cbrt(1 + g * (end - g / 6)))
    halls = []
    for root in roots:
        halls.append(mean - scale * (root - 1))
    return halls


def labelled_rows(seed, tasks=14, models=(None,)):
    rng = random.Random(seed)  # noqa: S311 - test data
    rows = []
    for number in range(tasks):
        if number == 0:
            gold = "rare"
        else:
            gold = "abc"[rng.randrange(3)]
        for model in models:
            for run in range(rng.randrange(1, 5)):
                if rng.random() < 0.6:
                    label = gold
                else:
                    label = "abc"[rng.randrange(3)]
                rows.append((f"t{number}", run, model, labelled(gold, label)))
    return rows


def hallucination_rows():
    rng = random.Random(3)  # noqa: S311 - test data
    golds = ("request_for_info", "cannot_answer", "direct")
    for number in range(30):
        gold = golds[number % 3]
        label = rng.choice(["tool_call", "direct", gold])
        yield f"t{number}", None, None, labelled(gold, label, counts={"no_tools": 1})


def deepfabric_rows():
    rng = random.Random(5)  # noqa: S311 - test data
    for number in range(40):
        right = rng.random() < 0.7
        counts = {"tool_selection": int(right), "processed": 1}
        grade = Grade(score=0.4 * right, counts=counts, parts={"response_quality": 0.25})
        yield f"t{number % 25}", number // 25, None, grade


def stability_rows():
    rng = random.Random(8)  # noqa: S311 - test data
    for task in range(12):
        for run in "123":
            label = "b"
            if rng.random() < 0.7:
                label = "a"
            yield f"t{task}", run, None, labelled("a", label)


def call_rows():
    for number in range(8):
        counts = {"ok": number % 3, "error": 1}
        item = Item(id="look", counts=counts)
        parts = {"steps": float(number)}
        yield f"t{number}", 0, None, Grade(score=1.0, counts=counts, items=(item,), parts=parts)


@pytest.mark.parametrize(
    ("metrics", "rows", "least"),
    [
        *[({"classification": LABELS}, labelled_rows(seed), 8) for seed in range(3)],
        (
            {"classification": {"labels": ["a", "b", "c"], "exclude": ["a"]}},
            labelled_rows(7, tasks=60, models=("m", "n")),
            24,
        ),
        ({"hallucination": {}}, [*hallucination_rows()], 3),
        ({"deepfabric": {}}, [*deepfabric_rows()], 6),
        ({"stability": {"labels": ["a", "b"]}}, [*stability_rows()], 8),
        ({"tool_outcomes": {}}, [*call_rows()], 2),
    ],
)
def test_intervals_are_those_of_the_figures_without_each_task_in_turn(metrics, rows, least):
    """Every interval follows from its figure computed again without one task after the other.

    Tasks are those whose grades the figure counts; several models are one cluster a task.
    """
    check_intervals(metrics, rows, least=least)


def test_entropy_ends_at_zero_and_has_no_interval_without_a_task():
    """It is no share, and has plain t, cut at 0."""
    rows = [row for row in stability_rows() if row[0] in {"t0", "t3"}]
    figures_found = figures({"stability": {"labels": ["a", "b"]}}, rows)["stability"]
    low = figures_found["mean_entropy_interval"]["low"]
    assert low == 0.0 < figures_found["mean_entropy"]
    assert figures_found["mean_entropy_gold_b_interval"] == {"reason": "no task"}


def test_what_runs_took_has_a_skewed_interval():
    rows = [*call_rows()]
    usage_totals = figures({"usage_totals": {}}, rows)["usage_totals"]
    steps = usage_totals["steps"]
    assert steps["max_interval"] == {"reason": "quantile"}
    interval_found = steps["mean_interval"]
    ends = hall([grade.parts["steps"] for *_, grade in rows])
    low = interval_found["low"]
    high = interval_found["high"]
    assert (low, high) == pytest.approx(ends, abs=1e-9)
    assert interval_found["method"] == "skewed_t"


def test_the_mean_f1_of_classes_of_few_tasks_is_as_unsure_as_theirs_together():
    """No narrower than the square root of the sum of squares of theirs.

    None where a class is in no gold label.
    """
    pairs = (
        [("a", "a")] * 30
        + [("a", "b")] * 20
        + [("b", "b")] * 25
        + [("b", "a")] * 25
        + [("c", "c")] * 2
    )
    rows = []
    for number, pair in enumerate(pairs):
        rows.append((f"t{number}", None, None, labelled(*pair)))
    figures_found = figures({"classification": {"labels": ["a", "b", "c"]}}, rows)["classification"]
    classes = [figures_found["per_class"][name] for name in "abc"]
    above = math.hypot(*[class_["f1_interval"]["high"] - class_["f1"] for class_ in classes]) / 3
    below = math.hypot(*[class_["f1"] - class_["f1_interval"]["low"] for class_ in classes]) / 3
    low = figures_found["macro_f1_interval"]["low"]
    assert low == pytest.approx(figures_found["macro_f1"] - below)
    expected = figures_found["macro_f1"] + above
    high = figures_found["macro_f1_interval"]["high"]
    assert high >= expected
    absent = figures({"classification": {"labels": ["a", "b", "c", "d"], "exclude": ["d"]}}, rows)[
        "classification"
    ]
    assert absent["macro_f1_interval"] == {"reason": "no expected label is “d”"}
    assert absent["macro_f1_no_d_interval"] == figures_found["macro_f1_interval"]


def test_what_is_undefined_says_why_in_place_of_an_interval():
    figures_found = figures(
        {"classification": {"labels": ["a", "b"]}}, [("t", 0, None, labelled("a", "a"))]
    )["classification"]
    precision_interval = figures_found["per_class"]["b"]["precision_interval"]
    assert precision_interval == {"reason": "never predicted"}
    assert figures_found["accuracy_interval"] == {"reason": "one task"}
    nothing = figures({"classification": {}, "hallucination": {}, "deepfabric": {}}, [])
    macro_f1_interval = nothing["classification"]["macro_f1_interval"]
    assert macro_f1_interval == {"reason": "no labels"}
    assert nothing["hallucination"]["answer_hallucination_rate_interval"] == {
        "reason": "nothing was graded"
    }
    overall_score_interval = nothing["deepfabric"]["overall_score_interval"]
    assert overall_score_interval == {"reason": "no sample has a reply to judge"}


def same(interval, figure, tasks):
    """Check an interval by a function of grades by task."""
    parts = []
    for left in tasks:
        tasks_by_name = {name: task for name, task in tasks.items() if name != left}
        parts.append(tasks_by_name)
    all_figures = figure(tasks)
    without = [figure(part) for part in parts]
    ends = ends_of(all_figures, without, share=True)
    low = interval["low"]
    high = interval["high"]
    assert (low, high) == pytest.approx(ends, abs=1e-9)
    assert interval["clusters"] == len(tasks)


def orchestration_rows(tasks=9):
    rng = random.Random(2)  # noqa: S311 - test data
    rows = []
    for task in range(tasks):
        for run in range(2):
            tp, fp, fn, tn = (rng.randrange(3) for _ in range(4))
            pairs = zip(_CELLS, (tp, fp, fn, tn), strict=True)
            counts = {
                **{f"{cell}_reject": n for cell, n in pairs},
                **{f"{cell}_fc": n for cell, n in zip(_CELLS, (tn, fn, fp, tp), strict=True)},
                "plans": 1,
                "plans_parsed": 1,
            }
            parts = {}
            for name in ("name", "key", "value"):
                parts[name] = rng.randrange(1, 100) / 99
            plan_scores = [rng.random()]
            made = Grade(
                score=1.0, counts=counts, parts=parts, metadata={"plan_scores": plan_scores}
            )
            rows.append((f"t{task}", run, None, made))
    return rows


_CELLS = ("true_positive", "false_positive", "false_negative", "true_negative")


def test_orchestrationbenchs_key_metrics_leave_out_a_scenario_before_anything_is_rounded():
    """The matrix is the sum without its cells, means are over the files left, and the average is of
    these.
    """
    rows = orchestration_rows()
    figures_found = figures({"orchestrationbench": {}}, rows)["orchestrationbench"]
    tasks = by_task(rows)

    def score(grades_left, view):
        tp, fp, fn, _ = (
            sum(g.counts[f"{cell}_{view}"] for g in every(grades_left)) for cell in _CELLS
        )
        return 2 * tp / (2 * tp + fp + fn)

    def decision(grades_left):
        return (score(grades_left, "reject") + score(grades_left, "fc")) / 2

    call = lambda grades_left: statistics.fmean(  # noqa: E731
        statistics.fmean(g.parts[name] for g in grades)
        for grades in grades_left.values()
        for name in ("name", "key", "value")
    )
    plan = lambda grades_left: statistics.fmean(  # noqa: E731
        statistics.fmean(g.metadata["plan_scores"][0] for g in grades)
        for grades in grades_left.values()
    )
    same(figures_found["call_rejection_accuracy_interval"], decision, tasks)
    same(figures_found["fc_interval"], call, tasks)
    same(figures_found["plan_interval"], plan, tasks)
    average_interval = figures_found["average_interval"]
    same(
        average_interval,
        lambda grades_left: (decision(grades_left) + call(grades_left) + plan(grades_left)) / 3,
        tasks,
    )
    assert figures_found["fc_interval"]["n"] == len(rows)


class Seconds(Grader):
    """A grader whose scores happen to lie within [0, 1] here, and need not."""

    needs = frozenset({"label"})
    bounds = (0.0, math.inf)
    metrics = ("mean", "binary")

    def grade(self, sample):
        return Grade(score=float(sample.label))


def test_bounds_of_a_grader_decide_that_an_average_is_no_share():
    samples = []
    for number in range(4):
        predicted = str(number / 10)
        samples.append({"id": str(number), "predicted": predicted})
    graders = {"seconds": Seconds()}
    with grade(samples, graders=graders) as report:
        figures_found = report.aggregates["seconds"]
    mean_interval = figures_found["mean"]["mean_interval"]
    method = mean_interval["method"]
    assert method == "skewed_t"
    average_interval = figures_found["binary"]["average_interval"]
    assert average_interval["method"] == "t"
    success_rate_interval = figures_found["binary"]["success_rate_interval"]
    assert success_rate_interval["method"] == "wilson"
