"""What other tools would say: verdicts of presets beside the outcome's, counted by hand."""

import io
import json
import re

from gradestack import Report
from gradestack_plugins.reporters.page import page_of

PRESETS = {"own": "own@1", "soft": "soft/one@2", "same": "soft/two@2", "broken": "hard@3"}


def grade(score, **more):
    return {"state": "graded", "score": score, **more}


def lost(score, *codes):
    return grade(score, reasons=[{"code": code} for code in codes])


MISSING = {"state": "failed", "score": 0.0, "fault": {"code": "no_calls", "type": ""}}
ROWS = [
    {"own": grade(1.0), "soft": grade(1.0), "same": grade(1.0), "broken": grade(0.5)},
    {"own": lost(0.5, "extra_call"), "soft": grade(1.0), "same": grade(0.6, passed=True), "broken": grade(0.5)},
    {"own": lost(0.2, "extra_call", "odd_thing"), "soft": grade(1.0), "same": grade(1.0), "broken": MISSING},
    {"own": lost(0.0), "soft": grade(0.9), "same": grade(0.9), "broken": grade(1.0)},
]


def report_of(rows=ROWS, presets=PRESETS, outcome="own", **more):
    components = [{"kind": "grader", "key": key, "options": {"preset": name}} for key, name in presets.items()]
    components.append({"kind": "grader", "key": "plain", "options": {}})
    by_metric = {key: {"avg_score_attempted": 0.5, "avg_score_total": 0.5} for key in PRESETS}
    interval = {"mean": {"mean": 0.5, "mean_interval": {"low": 0.4, "high": 0.6, "confidence": 0.95}}}
    metrics = {"total": len(rows), "by_metric": by_metric, "aggregates": {"soft": interval}, "states": {}}
    summary = {"metrics": metrics, "outcome": {"grader": outcome} if outcome else None}
    summary |= {"suite": "s", "gates": [], "gates_passed": None, "config": {}, **more}
    lines = []
    for number, grades in enumerate(rows):
        own = grades["own"]
        passed = own["score"] == 1
        row = {"sample": {"id": f"s{number}"}, "passed": passed, "state": "graded", "grade": own, "grades": grades}
        lines.append(json.dumps(row).encode() + b"\n")
    held = io.BytesIO(b"".join(lines))
    return Report(path=None, header={"components": components}, summary=summary, held=held)


def test_verdicts_are_counted_against_the_outcome():
    """A verdict is a rule's own, else a score of 1; what has none counts on neither side."""
    presets = page_of(report_of()).presets
    own, soft, same, broken = presets.rows
    assert (presets.samples, presets.outcome, own.own) == (4, "own", True)
    assert (soft.name, soft.version, soft.value, soft.interval) == ("soft/one", "2", "0.500", "0.400 – 0.600")
    assert (soft.same, soft.both, soft.softer, soft.harder, soft.silent) == (2, 4, 2, 0, 0)
    assert (same.same, same.softer) == (2, 2)
    assert (broken.same, broken.both, broken.softer, broken.harder, broken.silent) == (1, 3, 1, 1, 1)
    assert presets.others == {"soft", "same", "broken"}


def test_differences_have_causes_and_examples():
    """A sample stands under every reason the outcome grader gave; the example has one reason, where there is such."""
    found = [
        (each.kind, each.cause, each.samples, each.names, each.example)
        for each in page_of(report_of()).presets.differences
    ]
    both = ("soft/one", "soft/two")
    assert found == [
        ("softer", "calls nobody expected cost nothing", 2, both, "s1"),
        ("softer", "odd thing costs nothing", 1, both, "s2"),
        ("softer", "no reason is given", 1, ("hard",), "s3"),
        ("harder", "it asks for more, in a way its options do not say", 1, ("hard",), "s0"),
        ("silent", "the original program raises: no calls", 1, ("hard",), "s2"),
    ]


def test_presets_that_say_the_same_are_one_kind():
    """Agreement is of samples both have a verdict of, in percent, each kind with those before it."""
    presets = page_of(report_of()).presets
    assert presets.kinds == (("own",), ("soft/one", "soft/two"), ("hard",))
    assert presets.agreement == ((), ("50",), ("33", "0"))


def test_one_preset_is_not_compared(html, markdown):
    """Without a second one there is no section."""
    report = report_of(presets={"own": "own@1"})
    assert page_of(report).presets is None
    assert "What other tools would say" not in html(report).text + markdown(report)


def test_a_run_without_an_outcome_shows_figures_only(html):
    """Nothing is compared with nothing; the presets still are with each other."""
    presets = page_of(report_of(outcome="")).presets
    assert (presets.outcome, presets.differences, presets.others) == ("", (), frozenset())
    assert [row.both for row in presets.rows] == [0, 0, 0, 0]
    text = html(report_of(outcome="")).text
    assert "What other tools would say" in text
    assert "same verdict" not in text


def test_an_outcome_without_a_preset_is_compared_with(html):
    """Presets are held against whatever decides a run."""
    rows = [{**grades, "plain": grade(0.0)} for grades in ROWS]
    presets = page_of(report_of(rows, outcome="plain")).presets
    assert (presets.outcome, len(presets.rows)) == ("plain", 4)
    assert [row.softer for row in presets.rows] == [1, 3, 3, 1]
    assert "compared here with plain" in html(report_of(rows, outcome="plain")).text


def test_names_of_presets_are_escaped(html, markdown):
    """What stands in a header is text."""
    evil = {"own": "own@1", "soft": "<img src=x>/`|@2", "same": "**b**", "broken": "x"}
    page = html(report_of(presets=evil))
    assert "<img src=x>/`|" in page.text
    written = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown(report_of(presets=evil)))
    assert "What other tools would say" in written
    assert "<img" not in written
    assert "**b**" not in written


def test_reasons_and_figures_of_presets_are_folded(html):
    """Failures and figures show the outcome grader's; those of rules it is compared with can be opened."""
    page = html(report_of())
    assert page.text.index("1 reason of rules it is compared with") > page.text.index("extra_call")
    own, others = page.html[page.html.index('id="graders"') :].split("Figures of 3 rules it is compared with")
    assert (own.count("<article"), others.count("<article")) == (1, 3)


def test_rules_without_any_grade_make_no_table(html, markdown):
    """Where no rule has a grade of any sample one sentence says so; what is said of one sample is in the singular."""
    left_out = {"state": "skipped", "score": 0.0, "reasons": [{"code": "no_reference"}]}
    silent = report_of([dict.fromkeys(PRESETS, left_out)])
    for text in (html(silent).text, markdown(silent)):
        assert "has a grade of any sample" in " ".join(text.split())
        assert "of verdicts" not in text
        assert "Same verdict" not in text
    one = report_of(ROWS[:1])
    assert "1 sample by 4 rules: 2 different sets of verdicts" in markdown(one)
    assert "The same 1 sample by 4 rules" in " ".join(html(one).text.split())
