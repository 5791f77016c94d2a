"""The first screen: sentence, figures on one axis, findings, map of tasks, funnel of calls."""

import pytest

import gradestack
from gradestack import RowIndex
from gradestack.jsonio import dumps, loads
from gradestack_plugins.reporters.estimate_rows import confidence_of, rows_of
from gradestack_plugins.reporters.findings import findings
from gradestack_plugins.reporters.funnel import funnel_of
from gradestack_plugins.reporters.headline import Success, success_of, words_of
from gradestack_plugins.reporters.lede import made_of, sentence
from gradestack_plugins.reporters.phrases import behind, those, verb
from gradestack_plugins.reporters.reliability import Reliability, reliability_of
from gradestack_plugins.reporters.taskmap import about, maps_of

WORDS = {**words_of({}), "passed": "solved", "lost": "not solved"}
SOLVED = {"grader": "reward", "rule": "verdict of reward", "words": {"passed": "solved", "failed": "not solved"}}


_AIRLINE = Reliability(50, 4, {0: 14, 3: 26, 4: 10})


def success(passed, of, **models):
    return Success(passed=passed, of=of, share="", rule="", grader="reward", models=models)


def told(parts):
    return "".join(part.text for part in parts)


def sentence_of(outcome, reliable=None, words=WORDS, rows=(), total=None):
    reliable = reliable or Reliability(0, None, {})
    return told(sentence(outcome, words, reliable, rows, outcome.of if outcome and total is None else total or 0))


def index_of(rows):
    return RowIndex.of(((0, 0, dumps(row).encode()) for row in rows), lambda _, line: loads(line))


def row(id_, run, passed, partial=0.0, **more):
    grade = {"state": "graded", "score": partial}
    reward = {"state": "graded", "score": float(passed), "passed": passed}
    named = {"sample": {"id": id_}, "run": run, "passed": passed, "state": "graded"}
    return {**named, "grade": grade, "grades": {"partial": grade, "reward": reward}, **more}


@pytest.mark.parametrize(
    ("passed", "of", "reliable", "text"),
    [
        (84, 200, _AIRLINE, "42 runs in 100 are solved, yet only one task in five every time."),
        (190, 200, Reliability(50, 4, {2: 5, 4: 45}), "95 runs in 100 are solved, and 45 of 50 tasks every time."),
        (50, 200, Reliability(50, 4, {1: 50}), "25 runs in 100 are solved, but no task every time."),
        (7, 12, Reliability(6, 2, {1: 4, 2: 2}), "7 of 12 runs are solved, yet only one task in three every time."),
        (1, 9, None, "1 of 9 samples is solved."),
        (12, 12, Reliability(6, 2, {2: 6}), "All 12 runs are solved."),
        (0, 12, Reliability(6, 2, {0: 6}), "None of the 12 runs are solved."),
        (0, 1, None, "The only sample is not solved."),
        (1, 1, None, "The only sample is solved."),
        (1, 1000, None, "1 of 1,000 samples is solved."),
        (10, 1000, None, "1 sample in 100 is solved."),
        (996, 1000, None, "996 of 1,000 samples are solved."),
    ],
)  # fmt: skip
def test_the_sentence_says_what_was_counted(passed, of, reliable, text):
    """How many are a success, in the run's word, and how many tasks every time."""
    assert sentence_of(success(passed, of), reliable) == text


def test_the_sentence_of_other_runs():
    """Several models, no outcome, nothing graded and no samples each have their own."""
    two = success(50, 100, north=(40, 10), south=(10, 40))
    assert sentence_of(two) == "north has most solved, 80 samples in 100; south fewest, 20 samples in 100."
    figure = {"headline": {"figures": [{"label": "Plan", "figure": "o.plan", "value": 0.5}]}}
    rows = rows_of(figure, None, WORDS, Reliability(0, None, {}))
    assert sentence_of(None, rows=rows, total=3) == "Plan comes to 0.500."
    assert sentence_of(success(0, 0), rows=rows, total=3) == "3 samples."
    assert sentence_of(None, total=0) == "This run has no samples."
    assert [sentence_of(success(0, 0), total=n) for n in (1, 2)] == [
        "1 sample, which is not graded.",
        "2 samples, none of them graded.",
    ]
    assert (
        sentence_of(success(5, 6, a=(5, 0), b=(0, 1))) == "a has most solved, all 5 samples; b fewest, 0 of 1 sample."
    )
    same = success(4, 8, a=(2, 2), b=(2, 2))
    assert sentence_of(same) == "2 models, all with the same share of solved samples."


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("solved", ["is not solved", "is solved", "are solved", "is solved", "are solved"]),
        ("not lost", ["is lost", "is not lost", "are not lost", "is not lost", "are not lost"]),
        ("passed", ["did not pass", "passed", "passed", "passed", "passed"]),
        (
            "all calls right",
            [
                "does not have all calls right",
                "has all calls right",
                *["have all calls right", "has all calls right"] * 2,
            ],
        ),
        (
            "without failed calls",
            [
                "has failed calls",
                "is without failed calls",
                *["are without failed calls", "is without failed calls"] * 2,
            ],
        ),
        (
            "well done",
            [
                "does not count as “well done”",
                "counts as “well done”",
                *["count as “well done”", "counts as “well done”"] * 2,
            ],
        ),
    ],
)
def test_the_sentence_is_english_whatever_the_words(word, said):
    """Of none, one, some and all samples, and of a single one."""
    counts = [(0, 1), (1, 1), (0, 8), (1, 8), (4, 8)]
    heads = ["The only sample", "The only sample", "None of the 8 samples", "1 of 8 samples", "4 of 8 samples"]
    words = {**WORDS, "passed": word}
    found = [sentence_of(success(*each), words=words) for each in counts]
    assert found == [f"{head} {text}." for head, text in zip(heads, said[:5], strict=True)]
    assert sentence_of(success(8, 8), words=words) == f"All 8 samples {said[2]}."


def test_the_words_of_every_stack_make_a_sentence():
    """None has to be quoted."""
    registry = gradestack.discover(limit="")
    words = set()
    for name in registry.names("stack"):
        headline = registry.load("stack", name)().get("headline") or {}
        words |= {headline[key] for key in ("passed", "failed") if key in headline}
    words |= {"the right text", "another text"}  # of files that expect texts alone
    assert {"solved", "not all calls right", "without failed calls"} <= words
    assert not [word for word in words if "“" in verb(word, single=True) + behind(word)]


@pytest.mark.parametrize(
    ("reliable", "text"),
    [
        (Reliability(50, 4, {}), "50 tasks × 4 trials = 200 runs"),
        (Reliability(50, 4, {}, 2), "25 tasks × 2 models × 4 trials = 200 runs"),
        (Reliability(200, 1, {}), "200 samples"),
        (Reliability(50, None, {}), "200 samples"),
        (Reliability(49, 4, {}), "200 samples"),
    ],
)
def test_what_a_run_is_made_of(reliable, text):
    """Tasks, models and trials where they multiply to the samples there are, else samples."""
    assert made_of({"metrics": {"total": 200}}, reliable) == text


def interval(low, high, **more):
    return {"low": low, "high": high, "confidence": 0.95, "clusters": 50, "n": 200, "method": "logit_t", **more}


def summary_of(**more):
    second = interval(0.1, 0.4)
    figures = [
        {"label": "Average reward", "figure": "reward.mean", "value": 0.5, "interval": interval(0.32, 0.527)},
        {"label": "pass^k", "figure": "reward.pass_hat_k", "value": {"1": 0.5, "2": 0.25}, "interval": {"2": second}},
        {"label": "Credit", "figure": "partial.mean", "value": 0.596, "interval": interval(0.5, 0.6)},
        {"label": "Distance", "figure": "partial.far", "value": 12.5, "interval": interval(3.0, 20.0)},
        {"label": "Gone", "figure": "partial.gone", "value": None, "reason": "nothing to divide by"},
    ]  # fmt: skip
    share = {"share": 0.5, "share_interval": interval(0.32, 0.527)}
    return {"headline": {"figures": figures}, "outcome": {**SOLVED, "passed": 4, "failed": 4, **share}, **more}


def test_every_figure_has_its_place_on_one_axis():
    """Shares of successes are percent, other figures fractions; what is off the axis or undefined has no place."""
    summary = summary_of()
    rows = rows_of(summary, success_of(summary), WORDS, Reliability(4, 2, {0: 1, 1: 2, 2: 1}))
    assert [(row.title, row.code, row.note, row.value + row.unit, row.interval) for row in rows] == [
        ("Solved", "reward.mean", "4 of 8 runs", "50.0%", "32.0 – 52.7%"),
        ("Solved every time", "pass^2", "1 of 4 tasks", "25.0%", "10.0 – 40.0%"),
        ("Credit", "partial.mean", "", "0.596", "0.500 – 0.600"),
        ("Distance", "partial.far", "", "12.500", "3.000 – 20.000"),
        ("Gone", "partial.gone", "nothing to divide by", "n/a", ""),
    ]
    assert [(row.at, row.low, row.high) for row in rows[2:]] == [(59.6, 50.0, 60.0), (None,) * 3, (None,) * 3]
    assert confidence_of(summary) == "Intervals are 95%, clustered by task."


def test_confidences_are_said_where_they_are_one():
    """Intervals of two confidences are said by none."""
    figures = [{"value": 1, "interval": interval(0, 1)}, {"value": 1, "interval": interval(0, 1, confidence=0.9)}]
    assert confidence_of({"headline": {"figures": figures}}) == ""
    assert confidence_of({"headline": {"figures": figures[1:]}}) == "Intervals are 90%, clustered by task."


def test_successes_stand_first_even_if_no_figure_is_their_share():
    """A stack whose headline has other figures says them after it."""
    summary = {"outcome": {**SOLVED, "passed": 1, "failed": 3}, "headline": {"figures": []}}
    (only,) = rows_of(summary, success_of(summary), WORDS, Reliability(4, 1, {0: 3, 1: 1}))
    assert (only.title, only.value, only.unit, only.note) == ("Solved", "25.0", "%", "1 of 4 samples")
    alone = {**summary, "outcome": {**SOLVED, "passed": 1, "failed": 0}}
    (only,) = rows_of(alone, success_of(alone), WORDS, Reliability(1, 1, {1: 1}))
    assert only.note == "1 of 1 sample"


def test_the_share_of_successes_has_its_own_interval():
    """Where no figure of the headline is that share; its confidence is one of those that must agree."""
    held = {"low": 0.2, "high": 0.4, "confidence": 0.95, "clusters": 4}
    figures = [{"label": "Partial", "figure": "partial.mean", "value": 0.7, "interval": interval(0, 1, confidence=0.9)}]
    summary = {"outcome": {**SOLVED, "passed": 5, "failed": 15, "share_interval": held}}
    row = rows_of(summary, success_of(summary), WORDS, Reliability(0, None, {}))[0]
    assert (row.title, row.value, row.interval, row.low, row.high) == ("Solved", "25.0", "20.0 – 40.0%", 20.0, 40.0)
    assert confidence_of(summary) == "Intervals are 95%, clustered by task."
    assert confidence_of(summary | {"headline": {"figures": figures}}) == ""


@pytest.mark.parametrize(
    ("figure", "ends"),
    [
        ("reward.partial_statistics.argument_precision", (0.32, 0.527)),
        ("reward.tool_outcomes.success_rate", (0.32, 0.527)),
        ("partial.mean", (0.32, 0.527)),
        ("reward.mean", (0.1, 0.9)),
    ],
)
def test_a_figure_that_equals_the_share_of_successes_by_chance_is_another_one(figure, ends):
    """Both are said, each under its own name; only the outcome grader's mean with the same interval is that share."""
    figures = [{"label": "Other", "figure": figure, "value": 0.5, "interval": interval(*ends)}]
    summary = summary_of(headline={"figures": figures})
    rows = rows_of(summary, success_of(summary), WORDS, Reliability(0, None, {}))
    expected = [("Solved", "32.0 – 52.7%"), ("Other", f"{ends[0]:.3f} – {ends[1]:.3f}")]
    assert [(row.title, row.interval) for row in rows] == expected


@pytest.mark.parametrize("figure", ["reward.mean", "reward.mean.mean", "reward.classification.accuracy"])
def test_the_share_of_successes_is_said_once(figure):
    """A mean of zeros and ones, or an accuracy, with the interval of the share of successes stands in its place."""
    figures = [{"label": "Mean", "figure": figure, "value": 0.5, "interval": interval(0.32, 0.527)}]
    summary = summary_of(headline={"figures": figures})
    (row,) = rows_of(summary, success_of(summary), WORDS, Reliability(0, None, {}))
    assert (row.title, row.value, row.interval) == ("Solved", "50.0", "32.0 – 52.7%")


def test_a_figure_that_is_no_share_has_no_place_on_the_axis():
    """One step a run, give or take a half, is not all of anything, though it is 1."""
    figures = [
        {"label": "Steps a run", "figure": "usage.mean", "value": 1.0, "interval": interval(0.5, 1.5, method="t")}
    ]
    (row,) = rows_of({"headline": {"figures": figures}}, None, WORDS, Reliability(0, None, {}))
    assert (row.value, row.interval, row.at, row.low, row.high) == ("1.000", "0.500 – 1.500", None, None, None)


def test_models_have_a_row_each():
    """Under the figure's name, with the model's beside it."""
    models = {"north": {"value": 0.5}, "south": {"value": None, "reason": "nothing graded"}}
    summary = {"headline": {"figures": [{"label": "Accuracy", "figure": "x.mean", "models": models}]}}
    rows = rows_of(summary, success(2, 4, north=(1, 1), south=(1, 1)), WORDS, Reliability(4, 1, {}))
    assert [(row.title, row.code, row.value) for row in rows] == [
        ("Accuracy", "north", "0.500"),
        ("Accuracy", "south", "n/a"),
    ]


def found(index, outcome, summary, noun="runs"):
    rows = rows_of(summary, outcome, WORDS, Reliability(0, None, {}))
    return [told(finding.parts) for finding in findings(summary, index, outcome, rows, "reward", noun)]


def test_a_score_that_tells_nothing_is_said():
    """Where a grader scores successes and the others alike, with both means, the chart, and who expects no call."""
    rows = [row(str(n % 10), n // 10, n % 2 == 0, [0.0, 0.5, 1.0][n % 3]) for n in range(60)]
    for each in rows[:10]:
        each["expected"] = {"calls": []}
    summary = summary_of()
    (finding,) = findings(summary, index_of(rows), success(30, 60), (), "reward", "runs")
    assert told(finding.parts) == (
        "Credit does not tell solved from not solved runs here: it averages 0.50 in the 30 solved and 0.50 in the 30"
        " not solved."
    )
    assert [(bar.label, bar.left, bar.right) for bar in finding.chart.bars][:2] == [("1", 10, 10), ("0.8–1", 0, 0)]
    assert finding.more == (
        "10 tasks (10 runs) expect no call at all: any call counts against them, so 2 solved runs score 0."
    )


def test_a_finding_is_english_whatever_the_words():
    """With words that stand behind what they are said of."""
    rows = [row(str(n % 10), n // 10, n % 2 == 0, [0.0, 0.5, 1.0][n % 3]) for n in range(60)]
    rows[0]["expected"] = {"calls": []}
    outcome = {**SOLVED, "words": {"passed": "all calls right", "failed": "not all calls right"}}
    (finding,) = findings(summary_of(outcome=outcome), index_of(rows), success(30, 60), (), "reward", "runs")
    assert told(finding.parts) == (
        "Credit does not tell runs with all calls right from runs without all calls right here: it averages 0.50 in the"
        " 30 with all calls right and 0.50 in the 30 without all calls right."
    )
    assert finding.more == (
        "1 task (1 run) expects no call at all: any call counts against it, so 1 run with all calls right scores 0."
    )


@pytest.mark.parametrize(
    ("word", "runs"),
    [
        ("wrong", "wrong runs"),
        ("not solved", "not solved runs"),
        ("with failed calls", "runs with failed calls"),
        ("not all calls right", "runs without all calls right"),
        ("something wrong", "runs with something wrong"),
        ("not within budget", "runs that are not within budget"),
        ("badly done", "runs that count as “badly done”"),
        ("not badly done", "runs that do not count as “badly done”"),
        ("", "runs"),
    ],
)
def test_samples_by_a_word(word, runs):
    """An adjective stands before them, all else behind."""
    assert those(word, "runs") == runs


def test_a_score_that_tells_something_is_not_a_finding():
    """Neither is one over too few samples."""
    apart = [row(str(n), 0, n % 2 == 0, 0.9 if n % 2 == 0 else 0.2) for n in range(60)]
    few = [row(str(n), 0, n % 2 == 0, 0.5) for n in range(18)]
    assert found(index_of(apart), success(30, 60), summary_of()) == []
    assert found(index_of(few), success(9, 18), summary_of()) == []


def test_lost_input_and_lost_grades_come_first():
    """More than one in a hundred unread, failed or missing; less than that is no finding."""
    lost = {
        "bad_records": {"count": 136},
        "metrics": {"total": 266, "states": {"reward": {"graded": 90, "failed": 8, "missing": 2}}},
    }
    assert found(index_of([]), None, lost) == [
        "136 of 402 records could not be read (33.8%). No figure contains them.",
        "10 of 100 samples have no grade by reward: 8 failed and 2 missing. Means over what was graded leave them out.",
    ]  # fmt: skip
    one = {"metrics": {"total": 6, "states": {"reward": {"graded": 5, "failed": 1}}}}
    assert found(index_of([]), None, one) == [
        "1 of 6 samples has no grade by reward: 1 failed. Means over what was graded leave them out."
    ]
    few = {"bad_records": {"count": 1}, "metrics": {"total": 266, "states": {"reward": {"graded": 265, "failed": 1}}}}
    assert found(index_of([]), None, few) == []


@pytest.mark.parametrize(("south", "count"), [(0.55, 1), (0.9, 0)])
def test_two_models_within_noise(south, count):
    """Said where each one's figure lies in the other's interval, and only there."""
    models = {
        "north": {"value": 0.5, "interval": interval(0.4, 0.6)},
        "south": {"value": south, "interval": interval(south - 0.1, south + 0.1)},
    }
    summary = {"headline": {"figures": [{"label": "Accuracy", "figure": "x.mean", "models": models}]}}
    assert len(found(index_of([]), success(2, 4, north=(1, 1), south=(1, 1)), summary)) == count


def test_the_map_goes_by_the_outcome():
    """A task solved in all trials is in the last group whatever its score; other trials are filled to their score."""
    rows = [row("18", run, passed=True) for run in range(2)]
    rows += [row("3", 0, False, 0.5), row("3", 1, True, 1.0), row("9", 0, False, 1.0), row("9", 1, False)]
    index = index_of(rows)
    (found,) = maps_of(index, WORDS, outcome=True)
    assert [(group.title, group.count) for group in found.groups] == [("never", 1), ("1 of 2", 1), ("always", 1)]
    assert [cell.kind for cell in found.groups[2].columns[0].cells] == ["passed", "passed"]
    cell = found.groups[1].columns[0].cells[0]
    assert (cell.kind, cell.fill, cell.title) == ("lost", 11.5, "task 3, trial 0: not solved, 0.500")
    reliable = reliability_of(index, outcome=True)
    assert told(about(reliable, WORDS)) == "1 task is solved every time, 1 never, and 1 only sometimes."
    right = {**WORDS, "passed": "all calls right"}
    assert told(about(reliable, right)) == "1 task has all calls right every time, 1 never, and 1 only sometimes."


def test_the_map_keeps_what_was_not_graded_apart():
    """A task nobody graded is neither solved nor not; without an outcome there are no groups."""
    rows = [row("a", 0, True), {**row("b", 0, False), "passed": None, "state": "failed"}]
    (found,) = maps_of(index_of(rows), WORDS, outcome=True)
    assert [(group.title, group.columns[0].cells[0].kind) for group in found.groups] == [
        ("no grade", "error"),
        ("solved", "passed"),
    ]
    (found,) = maps_of(index_of(rows), WORDS, outcome=False)
    assert [(group.title, group.count) for group in found.groups] == [("", 2)]


def test_labels_of_the_map_have_room():
    """Ids of three characters stand below their column, of four upright, longer ones nowhere."""
    found = []
    for ids in (("1", "22"), ("1", "333"), ("1", "4444"), ("1", "55555")):
        (shown,) = maps_of(index_of([row(id_, 1, True) for id_ in ids]), WORDS, outcome=True)
        labels = [column.label for group in shown.groups for column in group.columns]
        found.append((labels, shown.turned, shown.height - shown.size))
    assert found == [
        (["1", "22"], False, 18),
        (["1", "333"], False, 18),
        (["1", "4444"], True, 34),
        (["", ""], False, 4),
    ]


def test_too_many_cells_are_no_map():
    """What nobody could see is left to the table."""
    assert maps_of(index_of([row(str(n), 0, True) for n in range(801)]), WORDS, outcome=True) == ()


def call(tool, score, made, *pointers):
    reasons = [{"code": "wrong_argument", "subject": tool, "pointer": pointer} for pointer in pointers]
    return {"gold": tool, "score": score, "metadata": {"call": made}, "reasons": reasons}


def test_the_funnel_ranks_tools_by_calls_lost():
    """Expected, right, wrong and not called of each; the sentence is about the one that loses most of its own."""
    items = [call("find", 1.0, 0)] * 9 + [call("find", 0.0, None)] + [call("book", 0.5, 0, "/day")] * 2
    grade = {"state": "graded", "score": 0.5, "items": items}
    found = funnel_of(index_of([{"sample": {"id": "a"}, "grade": grade, "grades": {"calls": grade}}]))
    assert [(tool.name, tool.expected, tool.right, tool.wrong, tool.absent) for tool in found.tools] == [
        ("book", 2, 0, 2, 0),
        ("find", 10, 9, 0, 1),
    ]
    assert (found.worst_tool, found.worst) == ("book", "is made all 2 times and is never right.")
    assert [(each.tool, each.name, each.samples) for each in found.arguments] == [("book", "day", 1)]
    assert funnel_of(index_of([])) is None
