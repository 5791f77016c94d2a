"""Intervals of the families' figures against the definition: without each task in turn.

Logit t, Wilson, Hall.
"""

import math
import random
import statistics

import pytest

from gradestack import Grade, Grader, Item, figures, grade, skipped, t_quantile

CONFIDENCE = 0.95


def expected(figure, tasks, share=True):
    count, whole = len(tasks), figure(tasks)
    if count < 2:
        return None
    pseudo = [
        count * whole
        - (count - 1) * figure({name: each for name, each in tasks.items() if name != left})
        for left in tasks
    ]
    stderr, q = (
        statistics.stdev(pseudo) / math.sqrt(count),
        t_quantile((1 + CONFIDENCE) / 2, count - 1),
    )
    if not share:
        return whole - q * stderr, whole + q * stderr
    middle, half = (
        whole + q * q / (2 * count),
        q * math.sqrt(whole * (1 - whole) / count + q * q / (4 * count**2)),
    )
    wilson = [min(1.0, max(0.0, (middle + side * half) / (1 + q * q / count))) for side in (-1, 1)]
    if not 0 < whole < 1 or stderr <= 1e-12:
        return wilson
    centre, half = math.log(whole / (1 - whole)), q * stderr / (whole * (1 - whole))
    logit = 1 / (1 + math.exp(half - centre)), 1 / (1 + math.exp(-half - centre))
    if count < 5 or count * min(whole, 1 - whole) > 1 + 1e-9:
        return logit
    once = 1 - CONFIDENCE ** (1 / count)
    low, high = min(logit[0], wilson[0]), max(logit[1], wilson[1])
    return (min(low, once), high) if whole < 0.5 else (low, max(high, 1 - once))


def hall(values):
    """Hall's interval of a mean, with scipy-like moments written out.

    Of values that are no less than 0.
    """
    n, mean, sd = len(values), statistics.fmean(values), statistics.stdev(values)
    third, fourth = (sum(((each - mean) / sd) ** power for each in values) for power in (3, 4))
    skewness = third * n / ((n - 1) * (n - 2))
    kurtosis = fourth * n * (n + 1) / ((n - 1) * (n - 2) * (n - 3)) - 3 * (n - 1) ** 2 / (
        (n - 2) * (n - 3)
    )
    skewness = max(skewness, 2 * sd / mean * min(1, sd / mean))
    g = skewness / math.sqrt(n)
    q = t_quantile(
        (1 + CONFIDENCE) / 2, int(2 / (2 / (n - 1) + max(1.5 * skewness**2, kurtosis) / n) + 1e-9)
    )
    return [
        mean - sd / math.sqrt(n) * 3 / g * (math.cbrt(1 + g * (x - g / 6)) - 1) for x in (q, -q)
    ]


def same(found, figure, tasks, share=True):
    ends = expected(figure, tasks, share)
    if ends is None:
        assert found == {"reason": "one task"}
    else:
        assert (found["low"], found["high"]) == pytest.approx(ends, abs=1e-9)
        assert (found["clusters"], found["confidence"]) == (len(tasks), CONFIDENCE)


def by_task(rows, wanted=lambda grade: True):
    found = {}
    for task, _, _, each in rows:
        found.setdefault(task, []).append(each)
    return {task: grades for task, grades in found.items() if any(map(wanted, grades))}


def every(tasks):
    return [each for grades in tasks.values() for each in grades]


def labelled(gold, label, **more):
    return Grade(score=float(gold == label), gold=gold, label=label, **more)


def labelled_rows(seed, tasks=14, models=(None,)):
    rng = random.Random(seed)  # noqa: S311 - test data
    rows = []
    for number in range(tasks):
        gold = "rare" if number == 0 else "abc"[rng.randrange(3)]
        for model in models:
            for run in range(rng.randrange(1, 5)):
                label = gold if rng.random() < 0.6 else "abc"[rng.randrange(3)]
                rows.append((f"t{number}", run, model, labelled(gold, label)))
    return rows


def f1(tasks, label):
    grades = every(tasks)
    hits = sum(each.gold == each.label == label for each in grades)
    occurs = sum((each.gold == label) + (each.label == label) for each in grades)
    return 2 * hits / occurs if occurs else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_accuracy_and_f1_of_a_confusion_matrix(seed):
    """Accuracy and macro-F1 are of every task.

    Figures of a class of those in which it occurs, as the figure asks.
    """
    rows = labelled_rows(seed)
    found, tasks, labels = (
        figures({"classification": {}}, rows)["classification"],
        by_task(rows),
        "abc",
    )
    names = [*labels, "rare"]
    same(
        found["accuracy_interval"],
        lambda held: statistics.fmean(g.gold == g.label for g in every(held)),
        tasks,
    )
    same(
        found["macro_f1_interval"],
        lambda held: statistics.fmean(f1(held, name) for name in names),
        tasks,
    )
    assert found["macro_f1_interval"]["n"] == len(rows)
    for label in names:
        fields = found["per_class"][label]
        either = by_task(rows, lambda each, label=label: label in (each.gold, each.label))
        same(fields["f1_interval"], lambda held, label=label: f1(held, label), either)
        if fields["predicted"]:
            hits = lambda held, label=label: statistics.fmean(  # noqa: E731
                each.gold == label for each in every(held) if each.label == label
            )
            same(
                fields["precision_interval"],
                hits,
                by_task(rows, lambda each, label=label: each.label == label),
            )


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
    rows = [(f"t{number}", None, None, labelled(*pair)) for number, pair in enumerate(pairs)]
    found = figures({"classification": {"labels": ["a", "b", "c"]}}, rows)["classification"]
    classes = [found["per_class"][name] for name in "abc"]
    above = math.hypot(*[each["f1_interval"]["high"] - each["f1"] for each in classes]) / 3
    below = math.hypot(*[each["f1"] - each["f1_interval"]["low"] for each in classes]) / 3
    assert found["macro_f1_interval"]["low"] == pytest.approx(found["macro_f1"] - below)
    assert found["macro_f1_interval"]["high"] >= found["macro_f1"] + above
    absent = figures({"classification": {"labels": ["a", "b", "c", "d"], "exclude": ["d"]}}, rows)[
        "classification"
    ]
    assert absent["macro_f1_interval"] == {"reason": "no gold label is d"}
    assert absent["macro_f1_no_d_interval"] == found["macro_f1_interval"]


def test_several_models_are_one_cluster_a_task_and_each_has_its_own():
    """Pooled: what a task brings under two models is left out together.

    Within a model it is that model's alone.
    """
    rows = labelled_rows(7, models=("m", "n"))
    found = figures({"classification": {"exclude": ["a"]}}, rows)["classification"]
    accuracy = lambda held: statistics.fmean(g.gold == g.label for g in every(held))  # noqa: E731
    same(found["accuracy_interval"], accuracy, by_task(rows))
    for model in "mn":
        own = [row for row in rows if row[2] == model]
        same(found["models"][model]["accuracy_interval"], accuracy, by_task(own))
        assert found["models"][model]["accuracy"] == accuracy(by_task(own))
        assert "macro_f1_no_a_interval" in found["models"][model]


def test_what_is_undefined_says_why_in_place_of_an_interval():
    found = figures(
        {"classification": {"labels": ["a", "b"]}}, [("t", 0, None, labelled("a", "a"))]
    )["classification"]
    assert found["per_class"]["b"]["precision_interval"] == {"reason": "never predicted"}
    assert found["accuracy_interval"] == {"reason": "one task"}
    nothing = figures({"classification": {}, "hallucination": {}, "deepfabric": {}}, [])
    assert nothing["classification"]["macro_f1_interval"] == {"reason": "no labels"}
    assert nothing["hallucination"]["answer_hallucination_rate_interval"] == {
        "reason": "nothing was graded"
    }
    assert nothing["deepfabric"]["overall_score_interval"] == {
        "reason": "there is no sample to divide by"
    }


def test_hallucination_rates_are_of_the_tasks_in_their_divisor():
    rng = random.Random(3)  # noqa: S311 - test data
    rows = []
    for number in range(30):
        gold = ("request_for_info", "cannot_answer", "direct")[number % 3]
        label = rng.choice(["tool_call", "direct", gold])
        rows.append((f"t{number}", None, None, labelled(gold, label, counts={"no_tools": 1})))
    found = figures({"hallucination": {}}, rows)["hallucination"]
    asked = by_task(rows, lambda each: each.gold == "request_for_info")
    rate = lambda held: statistics.fmean(each.label == "tool_call" for each in every(held))  # noqa: E731
    same(found["parameter_hallucination_rate_interval"], rate, asked)
    answered = lambda held: statistics.fmean(g.label == "direct" != g.gold for g in every(held))  # noqa: E731
    same(found["answer_hallucination_rate_interval"], answered, by_task(rows))


def deepfabric_rows():
    rng = random.Random(5)  # noqa: S311 - test data
    rows = []
    for number in range(40):
        right = rng.random() < 0.7
        made = Grade(
            score=0.4 * right,
            counts={"tool_selection": int(right)},
            parts={"response_quality": 0.25},
        )
        rows.append((f"t{number % 25}", number // 25, None, made))
    return rows


def test_deepfabrics_figures_have_intervals():
    rows = deepfabric_rows()
    found, tasks = figures({"deepfabric": {}}, rows)["deepfabric"], by_task(rows)
    selected = lambda held: statistics.fmean(each.counts["tool_selection"] for each in every(held))  # noqa: E731
    same(found["tool_selection_accuracy_interval"], selected, tasks)
    same(found["tool_selection_accuracy_attempted_interval"], selected, tasks)
    same(
        found["overall_score_interval"],
        lambda held: statistics.fmean(g.score for g in every(held)),
        tasks,
    )
    same(found["response_quality_interval"], lambda _: 0.25, tasks)


def test_stability_leaves_out_one_item_and_entropy_is_in_bits():
    """Means over items; the entropy, which is no share, has plain t."""
    rng = random.Random(8)  # noqa: S311 - test data
    rows = [
        (f"t{task}", run, None, labelled("a", "a" if rng.random() < 0.7 else "b"))
        for task in range(12)
        for run in "123"
    ]
    found = figures({"stability": {"labels": ["a", "b"]}}, rows)["stability"]
    tasks = by_task(rows)
    stable = lambda held: statistics.fmean(  # noqa: E731
        len({g.label for g in each}) == 1 for each in held.values()
    )
    same(found["stability_at_k_interval"], stable, tasks)
    assert found["stability_at_k_interval"]["n"] == 36

    def entropy(held):
        shares = [
            [sum(g.label == name for g in each) / 3 for name in "ab"] for each in held.values()
        ]
        return statistics.fmean(-sum(p * math.log2(p) for p in each if p) for each in shares)

    same(found["mean_entropy_interval"], entropy, tasks, share=False)
    assert found["mean_entropy_interval"]["method"] == "t"
    few = figures(
        {"stability": {"labels": ["a", "b"]}}, [row for row in rows if row[0] in {"t0", "t3"}]
    )["stability"]
    assert few["mean_entropy_interval"]["low"] == 0.0 < few["mean_entropy"]
    assert found["mean_flip_rate_gold_b_interval"] == {"reason": "no task"}


def test_stability_over_all_items_of_a_dataset_counts_those_without_runs():
    """With the divisor ``items`` an item without a label is a task whose share is 0."""
    rows = [
        (f"t{task}", run, None, labelled("a", "a" if task % 3 else "ab"[run]))
        for task in range(6)
        for run in (0, 1)
    ]
    rows += [(f"u{task}", 0, None, skipped("no_label", "nothing")) for task in range(3)]
    found = figures({"stability": {"labels": ["a", "b"], "divisor": "items"}}, rows)["stability"]
    assert found["stability_at_k"] == pytest.approx(4 / 9)
    values = {f"t{task}": float(task % 3 > 0) for task in range(6)} | {
        f"u{task}": 0.0 for task in range(3)
    }
    same(found["stability_at_k_interval"], lambda held: statistics.fmean(held.values()), values)


def orchestration_rows(tasks=9):
    rng = random.Random(2)  # noqa: S311 - test data
    rows = []
    for task in range(tasks):
        for run in range(2):
            tp, fp, fn, tn = (rng.randrange(3) for _ in range(4))
            counts = {
                **{f"{cell}_reject": n for cell, n in zip(_CELLS, (tp, fp, fn, tn), strict=True)},
                **{f"{cell}_fc": n for cell, n in zip(_CELLS, (tn, fn, fp, tp), strict=True)},
                "plans": 1,
                "plans_parsed": 1,
            }
            parts = {name: rng.randrange(1, 100) / 99 for name in ("name", "key", "value")}
            made = Grade(
                score=1.0, counts=counts, parts=parts, metadata={"plan_scores": [rng.random()]}
            )
            rows.append((f"t{task}", run, None, made))
    return rows


_CELLS = ("true_positive", "false_positive", "false_negative", "true_negative")


def test_orchestrationbenchs_key_metrics_leave_out_a_scenario_before_anything_is_rounded():
    """The matrix is the sum without its cells, means are over the files left, and the average is of
    these.
    """
    rows = orchestration_rows()
    found, tasks = figures({"orchestrationbench": {}}, rows)["orchestrationbench"], by_task(rows)

    def score(held, view):
        tp, fp, fn, _ = (sum(g.counts[f"{cell}_{view}"] for g in every(held)) for cell in _CELLS)
        return 2 * tp / (2 * tp + fp + fn)

    decision = lambda held: (score(held, "reject") + score(held, "fc")) / 2  # noqa: E731
    call = lambda held: statistics.fmean(  # noqa: E731
        statistics.fmean(g.parts[name] for g in grades)
        for grades in held.values()
        for name in ("name", "key", "value")
    )
    plan = lambda held: statistics.fmean(  # noqa: E731
        statistics.fmean(g.metadata["plan_scores"][0] for g in grades) for grades in held.values()
    )
    same(found["call_rejection_accuracy_interval"], decision, tasks)
    same(found["fc_interval"], call, tasks)
    same(found["plan_interval"], plan, tasks)
    same(
        found["average_interval"],
        lambda held: (decision(held) + call(held) + plan(held)) / 3,
        tasks,
    )
    assert found["fc_interval"]["n"] == len(rows)


def test_orchestrationbenchs_figures_of_several_models_are_not_pooled():
    rows = [
        (task, run, model, each) for task, run, _, each in orchestration_rows(4) for model in "mn"
    ]
    found = figures({"orchestrationbench": {}}, rows)["orchestrationbench"]
    assert found["average_interval"] == {
        "reason": "several models, each has its own under `models`"
    }
    assert found["models"]["m"]["average_interval"]["clusters"] == 4


def test_tool_calls_and_what_runs_took():
    rows = []
    for number in range(8):
        item = Item(id="look", counts={"ok": number % 3, "error": 1})
        made = Grade(
            score=1.0,
            counts={"ok": number % 3, "error": 1},
            items=(item,),
            parts={"steps": float(number)},
        )
        rows.append((f"t{number}", 0, None, made))
    found, tasks = figures({"tool_outcomes": {}, "usage_totals": {}}, rows), by_task(rows)

    def rate(held):
        ok = sum(each.counts["ok"] for each in every(held))
        return ok / (ok + len(every(held)))

    same(found["tool_outcomes"]["success_rate_interval"], rate, tasks)
    assert (
        found["tool_outcomes"]["tools"]["look"]["success_rate_interval"]
        == (found["tool_outcomes"]["success_rate_interval"])
    )
    assert found["usage_totals"]["steps"]["max_interval"] == {"reason": "quantile"}
    mean = lambda held: statistics.fmean(each.parts["steps"] for each in every(held))  # noqa: E731
    sure = found["usage_totals"]["steps"]["mean_interval"]
    assert (sure["low"], sure["high"]) == pytest.approx(
        hall([mean({task: tasks[task]}) for task in tasks]), abs=1e-9
    )
    assert sure["method"] == "skewed_t"


class Seconds(Grader):
    """A grader whose scores happen to lie within [0, 1] here, and need not."""

    needs = frozenset({"label"})
    bounds = (0.0, math.inf)
    aggregators = ("mean", "binary")

    def grade(self, sample):
        return Grade(score=float(sample.label))


def test_bounds_of_a_grader_decide_that_an_average_is_no_share():
    samples = [{"id": str(number), "predicted": str(number / 10)} for number in range(4)]
    with grade(samples, graders={"seconds": Seconds()}) as report:
        found = report.aggregates["seconds"]
    assert found["mean"]["mean_interval"]["method"] == "skewed_t"
    assert found["binary"]["average_interval"]["method"] == "t"
    assert found["binary"]["success_rate_interval"]["method"] == "wilson"
