"""The first screen: sentence, figures on one axis, findings, map of tasks, funnel of calls."""

import pytest

import gradestack
from gradestack import Declarations
from gradestack.jsonio import dumps, loads
from gradestack_plugins.pages.draw import Shape
from gradestack_plugins.pages.figures import confidence_of, rows_of, words_of
from gradestack_plugins.pages.index import RowIndex
from gradestack_plugins.pages.losses import funnel_of
from gradestack_plugins.pages.overview import findings, made_of, sentence
from gradestack_plugins.pages.tasks import Reliability, reliability_of
from tests.core.outcomes import data

DATA = data(__file__, "lead.yaml")

WORDS = {**words_of({}), "passed": "solved", "lost": "not solved"}
SOLVED = {
    "grader": "reward",
    "rule": "passed by grader reward",
    "words": {"passed": "solved", "failed": "not solved"},
}


def declared(better="higher", unit="share"):
    names = {"mean": "mean", "pass_hat_k": "pass_hat_k.{k}", "far": "far", "gone": "gone"}
    figures = [
        {"name": each, "label": "F", "better": better, "unit": unit} for each in names.values()
    ]
    entries = [
        {"kind": "aggregator", "key": key, "name": key, "of": of, "figures": figures}
        for of in ("reward", "partial", "x", "o", "usage")
        for key in (*names, "plan")
    ]
    return Declarations({"components": entries})


_AIRLINE = Reliability(50, 4, {0: 14, 3: 26, 4: 10})


def success(passed, of, **models):
    return Shape(
        passed=passed, of=of, grader="reward", models=models, many=len(models) > 1, others=0
    )


def told(parts):
    return "".join(part.text for part in parts)


def sentence_of(outcome, reliable=None, words=WORDS, rows=(), total=None):
    reliable = reliable or Reliability(0, None, {})
    return told(
        sentence(
            outcome, words, reliable, rows, outcome.of if outcome and total is None else total or 0
        )
    )


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
        (84, 200, _AIRLINE, "Solved: 84 of 200 runs; in every trial: 10 of 50 tasks"),
        (50, 200, Reliability(50, 4, {1: 50}), ("Solved: 50 of 200 runs; in every trial: 0 of 50 "
                                               "tasks")),
        (1, 9, None, "Solved: 1 of 9 samples"),
        (12, 12, Reliability(6, 2, {2: 6}), "Solved: 12 of 12 runs"),
        (0, 12, Reliability(6, 2, {0: 6}), "Solved: 0 of 12 runs"),
        (1, 1, None, "Solved: 1 of 1 sample"),
    ],
)  # fmt: skip
def test_the_sentence_says_what_was_counted(passed, of, reliable, text):
    assert sentence_of(success(passed, of), reliable) == text


def test_the_sentence_of_other_runs():
    two = success(50, 100, north=(40, 10), south=(10, 40))
    assert sentence_of(two) == "Solved: north 80.0%, south 20.0%"
    figure = {"headline": {"figures": [{"label": "Plan", "figure": "o.plan.mean", "value": 0.5}]}}
    rows = rows_of(figure, declared(), Reliability(0, None, {}))
    assert sentence_of(None, rows=rows, total=3) == "Plan: 0.500"
    assert (
        sentence_of(success(0, 0), rows=rows, total=3)
        == "No result: none of 3 samples graded by reward"
    )
    assert sentence_of(None, total=0) == "This run has no samples."
    assert sentence_of(success(5, 8, **{f"m{n}": (1, 0) for n in range(8)})).endswith(
        "m5 100.0%, 2 more models"
    )


@pytest.mark.parametrize("word", ["passed", "all calls right", "without failed calls", "not lost"])
def test_words_stand_as_they_are_declared(word):
    assert (
        sentence_of(success(1, 8), words={**WORDS, "passed": word}).partition(": ")[0]
        == word[0].upper() + word[1:]
    )


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
    assert made_of({"metrics": {"total": 200}}, reliable) == text


def interval(low, high, **more):
    return {
        "low": low,
        "high": high,
        "confidence": 0.95,
        "clusters": 50,
        "n": 200,
        "method": "logit_t",
        **more,
    }


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
    return {
        "headline": {"figures": figures},
        "outcome": {**SOLVED, "passed": 4, "failed": 4, **share},
        **more,
    }


def test_every_figure_has_its_place_on_one_axis():
    summary = summary_of()
    rows = rows_of(summary, declared(), Reliability(4, 2, {0: 1, 1: 2, 2: 1}))
    assert [
        (row.title, row.code, row.note, row.value + row.unit, row.interval) for row in rows
    ] == [
        ("Solved", "reward.mean", "4 of 8 runs", "50.0%", "32.0 – 52.7%"),
        ("pass^k, k = 2", "reward.pass_hat_k", "", "0.250", "0.100 – 0.400"),
        ("Credit", "partial.mean", "", "0.596", "0.500 – 0.600"),
        ("Distance", "partial.far", "", "12.500", "3.000 – 20.000"),
        ("Gone", "partial.gone", "nothing to divide by", "n/a", ""),
    ]
    assert [(row.at, row.low, row.high) for row in rows[2:]] == [
        (59.6, 50.0, 60.0),
        (None,) * 3,
        (None,) * 3,
    ]
    assert confidence_of(summary) == "Intervals are 95%, clustered by task."


def test_confidences_are_said_where_they_are_one():
    figures = [
        {"value": 1, "interval": interval(0, 1)},
        {"value": 1, "interval": interval(0, 1, confidence=0.9)},
    ]
    assert confidence_of({"headline": {"figures": figures}}) == ""
    assert (
        confidence_of({"headline": {"figures": figures[1:]}})
        == "Intervals are 90%, clustered by task."
    )


def test_successes_stand_first_even_if_no_figure_is_their_share():
    summary = {"outcome": {**SOLVED, "passed": 1, "failed": 3}, "headline": {"figures": []}}
    (only,) = rows_of(summary, declared(), Reliability(4, 1, {0: 3, 1: 1}))
    assert (only.title, only.value, only.unit, only.note) == (
        "Solved",
        "25.0",
        "%",
        "1 of 4 samples",
    )
    alone = {**summary, "outcome": {**SOLVED, "passed": 1, "failed": 0}}
    (only,) = rows_of(alone, declared(), Reliability(1, 1, {1: 1}))
    assert only.note == "1 of 1 sample"


def test_the_share_of_successes_has_its_own_interval():
    held = {"low": 0.2, "high": 0.4, "confidence": 0.95, "clusters": 4}
    figures = [
        {
            "label": "Partial",
            "figure": "partial.mean",
            "value": 0.7,
            "interval": interval(0, 1, confidence=0.9),
        }
    ]
    summary = {"outcome": {**SOLVED, "passed": 5, "failed": 15, "share_interval": held}}
    row = rows_of(summary, declared(), Reliability(0, None, {}))[0]
    assert (row.title, row.value, row.interval, row.low, row.high) == (
        "Solved",
        "25.0",
        "20.0 – 40.0%",
        20.0,
        40.0,
    )
    assert confidence_of(summary) == "Intervals are 95%, clustered by task."
    assert confidence_of(summary | {"headline": {"figures": figures}}) == ""


@pytest.mark.parametrize(
    ("figure", "ends"), DATA["a_figure_that_equals_the_share_of_successes_by_chance_is_another_one"]
)
def test_a_figure_that_equals_the_share_of_successes_by_chance_is_another_one(figure, ends):
    figures = [{"label": "Other", "figure": figure, "value": 0.5, "interval": interval(*ends)}]
    summary = summary_of(headline={"figures": figures})
    rows = rows_of(summary, declared(), Reliability(0, None, {}))
    expected = [("Solved", "32.0 – 52.7%"), ("Other", f"{ends[0]:.3f} – {ends[1]:.3f}")]
    assert [(row.title, row.interval) for row in rows] == expected


@pytest.mark.parametrize(
    "figure", ["reward.mean", "reward.mean.mean", "reward.classification.accuracy"]
)
def test_the_share_of_successes_is_said_once(figure):
    held = {"value": 0.5, "interval": interval(0.32, 0.527)}
    summary = summary_of(headline={"figures": [{"label": "Mean", "figure": figure, **held}]})
    (row,) = rows_of(summary, declared(), Reliability(0, None, {}))
    assert (row.title, row.value, row.interval) == ("Solved", "50.0", "32.0 – 52.7%")
    summary["outcome"]["per_model"] = [{**summary["outcome"], "model_name": name} for name in "ab"]
    summary["headline"]["figures"][0]["models"] = {"a": held, "b": held}
    assert [row.title for row in rows_of(summary, declared(), Reliability(0, None, {}))] == [
        "Solved"
    ] * 2


def test_a_figure_that_is_no_share_has_no_place_on_the_axis():
    figures = [
        {
            "label": "Steps a run",
            "figure": "usage.mean",
            "value": 1.0,
            "interval": interval(0.5, 1.5, method="t"),
        }
    ]
    rows = [
        rows_of({"headline": {"figures": figures}}, each, Reliability(0, None, {}))[0]
        for each in _UNITS
    ]
    assert [(row.value, row.interval, row.at, row.low, row.high) for row in rows] == [
        (value, "0.500 – 1.500", None, None, None) for value in ("1.000", "1.000 s", "1.000")
    ]


_UNITS = [declared("neither", "count"), declared("lower", "seconds"), Declarations({})]


@pytest.mark.parametrize(
    ("better", "note"), [("lower", "lower is better"), ("higher", ""), ("neither", "")]
)
def test_which_way_is_better_is_what_was_declared(better, note):
    figures = [{"label": "Slips", "figure": "x.mean", "value": 0.5}]
    (row,) = rows_of({"headline": {"figures": figures}}, declared(better), Reliability(0, None, {}))
    assert (row.title, row.note) == ("Slips", note)


def test_models_have_a_row_each():
    models = {"north": {"value": 0.5}, "south": {"value": None, "reason": "nothing graded"}}
    summary = {
        "headline": {"figures": [{"label": "Accuracy", "figure": "x.mean", "models": models}]}
    }
    rows = rows_of(summary, declared(), Reliability(4, 1, {}))
    assert [(row.title, row.code, row.value) for row in rows] == [
        ("Accuracy", "north", "0.500"),
        ("Accuracy", "south", "n/a"),
    ]


def found(index, outcome, summary, noun="runs"):
    return [told(finding.parts) for finding in findings(summary, index, outcome, "reward", noun)]


def test_a_score_that_tells_nothing_is_said():
    rows = [row(str(n % 10), n // 10, n % 2 == 0, [0.0, 0.5, 1.0][n % 3]) for n in range(60)]
    for each in rows[:10]:
        each["expected"] = {"calls": []}
    summary = summary_of()
    (finding,) = findings(summary, index_of(rows), success(30, 60), "reward", "runs")
    assert told(finding.parts) == (
        "Credit does not separate “solved” from “not solved”. Mean: solved 0.50 (30 runs), not "
        "solved 0.50 (30 runs)."
    )
    assert [(bar.label, bar.left, bar.right) for bar in finding.chart.bars][:2] == [
        ("1", 10, 10),
        ("[0.8,\u00a01)", 0, 0),
    ]
    assert finding.more == (
        "No call is expected in 10 runs of 10 tasks, where any call scores 0: 2 of these “solved”."
    )


def test_a_score_that_tells_something_is_not_a_finding():
    apart = [row(str(n), 0, n % 2 == 0, 0.9 if n % 2 == 0 else 0.2) for n in range(60)]
    few = [row(str(n), 0, n % 2 == 0, 0.5) for n in range(18)]
    assert found(index_of(apart), success(30, 60), summary_of()) == []
    assert found(index_of(few), success(9, 18), summary_of()) == []


def test_lost_input_and_lost_grades_come_first():
    lost = {
        "bad_records": {"count": 136},
        "metrics": {"total": 266, "states": {"reward": {"graded": 90, "failed": 8, "missing": 2}}},
    }
    assert found(index_of([]), None, lost) == [
        "136 of 402 records could not be read (33.8%) and are in no figure.",
        ("10 of 100 samples have no grade by reward (8 failed and 2 missing); averages of graded "
        "samples leave them out."),
    ]  # fmt: skip
    one = {"metrics": {"total": 6, "states": {"reward": {"graded": 5, "failed": 1}}}}
    assert found(index_of([]), None, one) == [
        "1 of 6 samples have no grade by reward (1 failed); averages of graded samples leave them out."
    ]
    few = {
        "bad_records": {"count": 1},
        "metrics": {"total": 266, "states": {"reward": {"graded": 265, "failed": 1}}},
    }
    assert found(index_of([]), None, few) == []


def test_what_is_said_of_tasks_goes_by_the_outcome():
    rows = [row("18", run, passed=True) for run in range(2)]
    rows += [
        row("3", 0, False, 0.5),
        row("3", 1, True, 1.0),
        row("9", 0, False, 1.0),
        row("9", 1, False),
    ]
    reliable = reliability_of(index_of(rows), outcome=True)
    assert [part[:2] for part in reliable.parts] == [
        ("in every trial", 1),
        ("in some", 1),
        ("in none", 1),
    ]


def call(tool, score, made, *pointers):
    reasons = [
        {"code": "wrong_argument", "subject": tool, "pointer": pointer} for pointer in pointers
    ]
    return {"gold": tool, "score": score, "metadata": {"call": made}, "reasons": reasons}


def test_the_funnel_ranks_tools_by_calls_lost():
    items = (
        [call("find", 1.0, 0)] * 9 + [call("find", 0.0, None)] + [call("book", 0.5, 0, "/day")] * 2
    )
    grade = {"state": "graded", "score": 0.5, "items": items}
    found = funnel_of(
        index_of([{"sample": {"id": "a"}, "grade": grade, "grades": {"calls": grade}}])
    )
    assert [
        (tool.name, tool.expected, tool.right, tool.wrong, tool.absent) for tool in found.tools
    ] == [
        ("book", 2, 0, 2, 0),
        ("find", 10, 9, 0, 1),
    ]
    assert funnel_of(index_of([])) is None


def test_calls_that_nothing_was_expected_for_are_extra_ones(tmp_path):
    said = [{"name": "find", "arguments": {}}, {"name": "book", "arguments": {"day": 1}}]
    record = {
        "id": "a",
        "expected": said,
        "predicted": [*said, said[1], {"name": "pay", "arguments": {}}],
    }
    report = gradestack.grade([record], reports=["html"], output=str(tmp_path / "out"))
    found = funnel_of(index_of(report.rows()))
    assert [
        (tool.name, tool.expected, tool.right, tool.absent, tool.extra) for tool in found.tools
    ] == [
        ("book", 1, 1, 0, 1),
        ("pay", 0, 0, 0, 1),
        ("find", 1, 1, 0, 0),
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert ">extra</th>" in page
    gradestack.grade([record], "tau_partial", reports=["html"], output=str(tmp_path / "other"))
    assert ">extra</th>" not in (tmp_path / "other" / "report.html").read_text()
    calls = [
        (line["side"], line["matched"], line["score"]) for line in report.table("calls").rows()
    ]
    assert calls[:2] == [("expected", 0, 1.0), ("expected", 1, 1.0)]
