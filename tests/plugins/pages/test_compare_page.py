"""Every number on the page of a comparison, computed anew from the rows of two runs."""

import html
import json
import math
import random
import re
import statistics
from collections import Counter
from decimal import Decimal

import pytest

import gradestack
from gradestack_plugins.pages import comparison as comparing
from gradestack_plugins.pages.blocks import Link
from gradestack_plugins.pages.compare_page import ComparisonPage
from gradestack_plugins.pages.joined import joined
from gradestack_plugins.pages.side_by_side import call_diff

TASKS, TRIALS = 24, 3
SHOWN = 10
"""Tasks that are listed, of those that got better."""
CALL = "book"


def t_quantile(probability, df):
    """Return Student's t by integrating its density (Simpson) and halving."""
    log_ratio = math.lgamma((df + 1) / 2) - math.lgamma(df / 2)
    log_scale = log_ratio - math.log(df * math.pi) / 2

    def density(x):
        return math.exp(log_scale - (df + 1) / 2 * math.log1p(x * x / df))

    def below(x, steps=2000):
        width = x / steps
        inner = sum((4 if at % 2 else 2) * density(at * width) for at in range(1, steps))
        return 0.5 + width / 3 * (density(0) + density(x) + inner)

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < probability else (low, middle)
    return low


def write_runs(folder, seed):
    """Write two result files in which a harder task fails more often, and the second costs more."""
    draw = random.Random(seed)  # noqa: S311 - test data
    for name, rate in (("before", 0.45), ("after", 0.75 if seed % 2 else 0.3)):
        lines = []
        for task in range(TASKS):
            ease = random.Random(task).random()  # noqa: S311 - test data
            for run in range(TRIALS):
                wanted = {"name": CALL, "arguments": {"room": task, "day": 3}}
                wrong = {"name": CALL, "arguments": {"room": task, "day": 4}}
                passed = draw.random() < (rate + ease) / 2 + (rate > 0.5) * 0.2
                made = [wanted] if passed else draw.choice([[wrong], []])
                cost = round(0.01 + (name == "after") * 0.005 + draw.random() / 500, 5)
                line = {"id": f"t{task}", "run": run, "model": "m-1", "expected": [wanted]}
                line |= {"input": f"Please book room {task}", "predicted": made}
                seconds = draw.randint(2, 9)
                usage = {"cost_usd": cost, "seconds": seconds}
                line |= {"usage": usage}
                lines.append(json.dumps(line))
        (folder / f"{name}.jsonl").write_text("\n".join(lines))


@pytest.fixture(scope="module", params=[1, 2, 3, 4])
def compared(request, tmp_path_factory):
    """Return the rows of both runs, the text of the page, and its HTML."""
    folder = tmp_path_factory.mktemp("compared")
    write_runs(folder, request.param)
    rows = {}
    for name in ("before", "after"):
        paths = folder / f"{name}.jsonl"
        output = folder / name
        gradestack.grade_files(paths, output=output)
        results_path = folder / name / "results.jsonl"
        text = results_path.read_text()
        lines = text.splitlines()
        rows[name] = [json.loads(line) for line in lines]
    before_folder = folder / "before"
    after_folder = folder / "after"
    comparison = gradestack.compare(before_folder, after_folder, output=folder / "out")
    out_folder = folder / "out"
    page = (out_folder / "comparison.html").read_text()
    return rows["before"], rows["after"], page, comparison


def text_of(page, section):
    """Return the text of one section of a page."""
    start = page.index(f'id="{section}"')
    index = page.index("</section>", start)
    part = page[start:index]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", part.partition(">")[2])).split())


def passes(rows):
    """Return task -> whether each of its trials passed: every call as expected."""
    tasks = {}
    for row in rows:
        made = row["predicted"]["calls"]
        expected = row["expected"]["calls"]
        same = [{key: call[key] for key in ("name", "arguments")} for call in made] == [
            {key: call[key] for key in ("name", "arguments")} for call in expected
        ]
        tasks.setdefault(row["sample"]["id"], []).append(same)
    return tasks


def shares(tasks):
    return [sum(trials) / len(trials) for trials in tasks.values()]


def paired(before, after):
    """Return the difference of task means, and its 95 % interval by Student's t."""
    pairs = zip(before, after, strict=True)
    gaps = [b - a for a, b in pairs]
    mean = math.fsum(gaps) / len(gaps)
    squares = math.fsum((gap - mean) ** 2 for gap in gaps)
    spread = math.sqrt(squares / (len(gaps) - 1))
    half = t_quantile(0.975, len(gaps) - 1) * spread / math.sqrt(len(gaps))
    return mean, mean - half, mean + half


def test_the_head_and_the_difference(compared):
    before, after, page, _ = compared
    a = shares(passes(before))
    b = shares(passes(after))
    mean, low, high = paired(a, b)
    rate_a, rate_b = (100 * math.fsum(side) / len(side) for side in (a, b))
    if low > 0:
        word = "better"
    else:
        word = "worse" if high < 0 else "not clear"
    head = text_of(page, "overview")
    assert head.startswith(word)
    expected_text = f"{rate_b:.1f}% instead of {rate_a:.1f}%"
    assert expected_text in head
    assert f"{abs(100 * mean):.1f} points {'more' if mean > 0 else 'less'}" in head
    assert f"{TASKS} tasks, {TRIALS} trials each" in head
    shown = text_of(page, "difference")
    assert f"{100 * mean:+.1f} points" in shown
    assert f"95% interval {100 * low:+.1f} to {100 * high:+.1f}" in shown
    assert f"{rate_a:.1f}%" in shown
    assert f"{rate_b:.1f}%" in shown
    assert f": {word} ." in shown


def test_the_tasks_that_changed_and_those_that_did_not(compared):
    before, after, page, _ = compared
    a = passes(before)
    b = passes(after)
    rises = {task: sum(b[task]) - sum(a[task]) for task in a}
    worse = [task for task, rise in rises.items() if rise < 0]
    better = [task for task, rise in rises.items() if rise > 0]
    shown = text_of(page, "changed-tasks")
    head = text_of(page, "overview")
    for tasks, word in ((worse, "worse"), (better, "better")):
        noun = "tasks"
        if len(tasks) == 1:
            noun = "task"
        for text in (shown, head):
            assert (f"{len(tasks)} {noun} got {word}" in text) is bool(tasks)
        tasks.sort(key=lambda task: (-abs(rises[task]), task))
        for task in tasks[:SHOWN]:
            change = f"{sum(a[task])} → {sum(b[task])} of {TRIALS}"
            index = page.index(f'id="task-{task}"')
            part = page[index:].partition("</li>")[0]
            assert change in part
            assert f"{task}<" in part
    unchanged = [sum(a[task]) for task, rise in rises.items() if not rise]
    counts = {
        "never": unchanged.count(0),
        "sometimes": sum(0 < passed < TRIALS for passed in unchanged),
        "always": unchanged.count(TRIALS),
    }
    for name, count in counts.items():
        expected_text = f"{count} {name}"
        assert (expected_text in shown) is bool(count)
    if counts["never"]:
        failed = [task for task, rise in rises.items() if not rise and not sum(a[task])]
        assert text_of(page, "both-fail").endswith(", ".join(failed).replace(",", " ,"))


def test_new_causes_are_in_failed_trials_of_the_second_run_alone(compared):
    before, after, page, comparison = compared

    def causes(rows, task):
        counts = Counter()
        for row in rows:
            if row["sample"]["id"] == task:
                grade = row["grade"]
                reasons = [
                    reason for item in grade.get("items", ()) for reason in item.get("reasons", ())
                ]
                codes = set()
                for reason in [*row["grade"].get("reasons", ()), *reasons]:
                    codes.add(reason["code"])
                counts.update(codes if row["passed"] is False else ())
        return counts

    flips = comparison.data["flips"]
    for task in flips["worse"]["tasks"]:
        old = causes(before, task["task"])
        new = causes(after, task["task"])
        only = {code: times for code, times in new.items() if code not in old}
        if task["cause"] is None:
            continue
        code = task["cause"].partition(":")[0]
        assert new[code] > 0
        index = page.index(f'id="task-{task["task"]}"')
        part = page[index:].partition("</li>")[0]
        assert code.replace("_", " ") in html.unescape(part)
        if only:
            expected = {*only, *new}
            assert code in expected


def three_digits(value):
    """Return a positive number with three significant digits, in decimal notation."""
    rounded = f"{Decimal(value):.2e}"
    return f"{Decimal(rounded):f}"


def test_what_a_run_takes(compared):
    before, after, page, _ = compared

    def means(rows, name):
        tasks = {}
        for row in rows:
            sample = row["sample"]
            tasks.setdefault(sample["id"], []).append(row["usage"][name])
        return [math.fsum(trials) / len(trials) for trials in tasks.values()]

    shown = text_of(page, "takes")
    for name, label, form in (
        ("cost_usd", "Cost", "${}"),
        ("seconds", "Seconds", "{}"),
    ):
        a = means(before, name)
        b = means(after, name)
        values = []
        for side in (a, b):
            values.append(form.format(three_digits(math.fsum(side) / len(side))))
        mean, low, high = paired(a, b)
        sign = "+" if mean > 0 else "-"
        size = form.format(three_digits(abs(mean)))
        ends = " to ".join(("-" if end < 0 else "") + three_digits(abs(end)) for end in (low, high))
        is_clear = low > 0 or high < 0
        row = f"{label} of a run {values[0]} → {values[1]} {sign}{size} ({ends})"
        word = "worse" if mean > 0 else "better"
        assert f"{row} {word if is_clear else 'not clear'}" in shown
        medians = [
            statistics.median(row["usage"][name] for row in side) for side in (before, after)
        ]
        shown_medians = [form.format(three_digits(median)) for median in medians]
        change = f"{100 * (medians[1] / medians[0] - 1):+.0f}%"
        line = f"{label} of a run, median {shown_medians[0]} → {shown_medians[1]} {change} –"
        assert line in shown
    per_passed = []
    for side in (before, after):
        cost = math.fsum(row["usage"]["cost_usd"] for row in side)
        per_passed.append(cost / sum(row["passed"] for row in side))
    texts = [f"${three_digits(cost)}" for cost in per_passed]
    change = f"{100 * (per_passed[1] / per_passed[0] - 1):+.0f}%"
    expected_text = f"Cost per passed run {texts[0]} → {texts[1]} {change} –"
    assert expected_text in shown
    head = text_of(page, "overview")
    assert f"{texts[1]} per passed run instead of {texts[0]}." in head


def test_every_figure_before_and_after(compared):
    """Each is computed anew from calls; its difference stands beside its interval and verdict."""
    before, after, page, _ = compared
    shown = text_of(page, "differences")
    a = shares(passes(before))
    b = shares(passes(after))
    mean, low, high = paired(a, b)
    rate_a, rate_b = (100 * math.fsum(side) / len(side) for side in (a, b))
    expected_text = f"All calls right {rate_a:.1f}% → {rate_b:.1f}% {100 * mean:+.1f}"
    assert expected_text in shown
    assert f"{100 * low:.1f} to {100 * high:.1f} points" in shown
    pairs = zip(a, b, strict=True)
    up = sum(y > x for x, y in pairs)
    down = sum(y < x for x, y in zip(a, b, strict=True))
    assert f"{up} better, {down} worse, {TASKS - up - down} the same of {TASKS} tasks" in shown
    for label, figure in (("Precision", precision), ("Recall", recall)):
        values = [100 * figure(side) for side in (before, after)]
        before_after = f"{label} {values[0]:.1f}% → {values[1]:.1f}% "
        assert before_after in shown
        gap = shown.partition(before_after)[2].partition(" ")[0]
        first_value = values[0]
        assert float(gap) == pytest.approx(values[1] - first_value, abs=0.051)


def count_calls(rows):
    """Return the credit of all calls (half a point per right argument), calls made and expected."""
    credit = made = 0
    for row in rows:
        (expected,) = row["expected"]["calls"]
        for call in row["predicted"]["calls"]:
            made += 1
            wanted = expected["arguments"].items()
            count = sum(call["arguments"][name] == value for name, value in wanted)
            credit += count / 2
    return credit, made, len(rows)


def precision(rows):
    credit, made, _ = count_calls(rows)
    return credit / made


def recall(rows):
    credit, _, expected = count_calls(rows)
    return credit / expected


def test_the_four_answers(compared):
    before, after, page, _ = compared
    a = passes(before)
    b = passes(after)
    _, low, high = paired(shares(a), shares(b))
    head = text_of(page, "overview")
    if low > 0:
        decision = "Yes"
    else:
        decision = "No" if high < 0 else "Not decided"
    assert f"Ship? {decision} " in head
    sizes = [100 * abs(end) for end in (low, high)]
    words = ["more" if end > 0 else "less" for end in (low, high)]
    within = f"{sizes[0]:.1f} points {words[0]} to {sizes[1]:.1f} points {words[1]}"
    if words[0] == words[1]:
        within = f"{min(sizes):.1f} to {max(sizes):.1f} points {words[0]}"
    assert f"95% interval of the difference: {within} (p " in head
    falls = {task: sum(a[task]) - sum(b[task]) for task in a}
    worse = sorted((task for task in falls if falls[task] > 0), key=lambda t: (-falls[t], t))
    for task in worse[:3]:
        expected = head.replace("  ", " ")
        expected_text = f"{task} ({sum(a[task])} → {sum(b[task])} of {TRIALS}"
        assert expected_text in expected


def test_reasons_before_and_after(compared):
    before, after, page, _ = compared

    def counts(rows):
        cause_counts = Counter()
        for row in rows:
            reasons = [*row["grade"].get("reasons", ())]
            for item in row["grade"].get("items", ()):
                reasons += item.get("reasons", ())
            codes = {reason["code"] for reason in reasons}
            cause_counts.update(codes)
        return cause_counts

    a = counts(before)
    b = counts(after)
    shown = text_of(page, "why")
    keys = a.keys()
    for code in keys | b.keys():
        expected_text = f"{code.replace('_', ' ')} {a[code]} → {b[code]}"
        assert expected_text in shown
        change = 100 * (b[code] - a[code]) / TASKS / TRIALS
        assert f"{a[code]} → {b[code]} {change:+.1f}" in shown or not change


def test_a_cause_that_is_clearly_more_frequent_is_named_beside_the_tasks_that_broke(tmp_path):
    wanted = [{"name": CALL, "arguments": {"day": 3}}]
    wrong = [{"name": CALL, "arguments": {"day": 4}}]
    made = {"before": lambda task: wrong if task < 4 else wanted}
    made["after"] = lambda task: [] if task >= 12 else made["before"](task)
    for name, predicted in made.items():
        samples = [
            {"id": f"t{task}", "expected": wanted, "predicted": predicted(task)}
            for task in range(24)
        ]
        gradestack.grade(samples, graders={"g": "tool_calls"}, output=tmp_path / name)
    before_folder = tmp_path / "before"
    after_folder = tmp_path / "after"
    output = tmp_path / "out"
    gradestack.compare(before_folder, after_folder, output=output)
    page = (tmp_path / "out/comparison.html").read_text()
    assert "Clearly more often: missing call (12 runs instead of 0) ." in text_of(page, "overview")


def test_side_by_side_are_the_first_that_passed_and_the_first_that_failed(compared):
    before, after, _, comparison = compared
    with joined(comparison, None) as report:
        comparison_page = ComparisonPage(comparison.data, report)
        sections = comparison_page.below()
        blocks = [block for section in sections for block in section.blocks]
        folded = [block.blocks for block in blocks if type(block).__name__ == "Section"]
        blocks += [block for inside in folded for block in inside]
    a = passes(before)
    b = passes(after)
    diffs = [block for block in blocks if type(block).__name__ == "CallDiff"]
    flips = comparison.data["flips"]
    tasks = flips["worse"]["tasks"]
    worse = [task["task"] for task in tasks]
    usable = [task for task in worse if any(a[task]) and not all(b[task])]
    expected = min(6, len(usable))
    assert len(diffs) == expected
    for task, diff in zip(usable, diffs, strict=False):
        rows = [row for row in before if row["sample"]["id"] == task]
        first = rows[a[task].index(True)]
        index = b[task].index(False)
        failed = [row for row in after if row["sample"]["id"] == task][index]
        (took,) = diff.facts
        for row, text in zip((first, failed), took.values, strict=True):
            cost = row["usage"]["cost_usd"]
            seconds = row["usage"]["seconds"]
            assert text.endswith(f"${three_digits(cost)}, {seconds:.2f} s")
        (pair,) = diff.pairs
        assert pair.marks[0] == "equal"
        made = failed["predicted"]["calls"]
        assert pair.marks[1] == ("different" if made else "not called")


def message(role, text="", **arguments):
    calls = [{"function": {"name": CALL, "arguments": json.dumps(arguments)}}]
    return {"role": role, "content": text} | ({"tool_calls": calls} if arguments else {})


@pytest.mark.parametrize(
    ("one", "other", "folded", "note"),
    [
        ("book 1, done", "book 1, done", 4, "4 messages before, the same 1 call"),
        ("book 1, book 2", "book 1, book 3", 3, "3 messages before, the same 1 call"),
        ("sorry", "book 1", 1, "1 message before"),
    ],
)
def test_conversations_open_where_they_part(one, other, folded, note):
    """Words may differ before: what is called in the same order is the shared beginning."""

    def trajectory(text):
        messages = [message("user", "Please book.")]
        for part in text.split(", "):
            word, _, room = part.partition(" ")
            messages.append(
                message("assistant", "", room=room) if room else message("assistant", word)
            )
            messages += [message("tool", "ok")] if room else []
        return {"trajectory": [messages], "predicted": {"calls": []}}

    rows = [trajectory(one), trajectory(other)]
    link = Link("a")
    sides = [link, Link("b")]
    diff = call_diff(sides, rows, "side-1")
    for conversation in diff.conversations:
        assert len(conversation.folded) == folded
        assert conversation.note == note
        assert conversation.left_out == 0
    shown = [list(conversation.messages)[:1] for conversation in diff.conversations]
    assert shown[0] != shown[1] or one == other


def test_runs_of_any_number_are_compared_on_the_page_of_their_evaluation(tmp_path, monkeypatch):
    """Many runs are compared by the question alone, without figures that are no means."""
    samples = []
    for model, best in (("a", 4), ("b", 9)):
        for task in range(12):
            predicted = "x" if task < best else "y"
            samples.append(
                {
                    "id": f"t{task}",
                    "model": model,
                    "expected": "x",
                    "predicted": predicted,
                }
            )
    monkeypatch.setattr(comparing, "_MOST_COMPARED", 3)
    output = tmp_path / "run"
    report = gradestack.grade(samples, graders={"g": "exact_match"}, output=output)
    data = comparing.compared_models(report)
    difference = data["outcome"]["difference"]
    assert difference == pytest.approx(5 / 12)
    assert "figures" not in data


def test_several_models_have_a_matrix_of_all_pairs(tmp_path):
    samples = [
        {
            "id": f"t{task}",
            "model": model,
            "expected": "x",
            "predicted": "x" if task < best else "y",
        }
        for model, best in (("a", 4), ("b", 9), ("c", 20))
        for task in range(30)
    ]
    output = tmp_path / "run"
    gradestack.grade(samples, graders={"g": "exact_match"}, output=output, reports=["html"])
    run_folder = tmp_path / "run"
    out_folder = tmp_path / "out"
    gradestack.compare(run_folder, output=out_folder)
    comparison_path = tmp_path / "out/comparison.html"
    shown = text_of(comparison_path.read_text(), "pairs")
    for gap in ("+16.7", "-16.7", "+53.3", "-53.3", "+36.7", "-36.7"):
        assert gap in shown
    for claim in (
        "c against a: Exact match 66.7% instead of 13.3%: 53.3 points more",
        "c against b: Exact match 66.7% instead of 30.0%: 36.7 points more",
        "16 tasks got better",
        "11 tasks got better",
    ):
        assert claim in shown
    report_path = tmp_path / "run/report.html"
    run_page = text_of(report_path.read_text(), "overview")
    assert "Exact match: b is better than a by 16.7 points" in run_page
    assert "Exact match: c is better than a by 53.3 points" in run_page
    page = (tmp_path / "out/comparison.html").read_text()
    ids = re.findall(r' id="([^"]+)"', page)
    id_count = len(set(ids))
    assert len(ids) == id_count
