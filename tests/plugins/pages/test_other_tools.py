"""Verdicts of other tools' rules: verdicts of presets beside the outcome's, counted by hand."""

import io
import json
from urllib.parse import unquote_plus

import attrs

from gradestack import Report
from gradestack_plugins.pages.panel import Placed
from gradestack_plugins.tool_calls.panels import other_tools
from tests.golden.pages import check_golden_file
from tests.placed import with_panels

PRESETS = {"own": "own@1", "soft": "soft/one@2", "same": "soft/two@2", "broken": "hard@3"}


def grade(score, **more):
    return {"state": "graded", "score": score, **more}


def failed_grade(score, *codes):
    reasons = [{"code": code} for code in codes]
    return grade(score, reasons=reasons)


MISSING = {"state": "failed", "score": 0.0, "fault": {"code": "no_calls", "type": ""}}
ROWS = [
    {"own": grade(1.0), "soft": grade(1.0), "same": grade(1.0), "broken": grade(0.5)},
    {
        "own": failed_grade(0.5, "extra_call"),
        "soft": grade(1.0),
        "same": grade(0.6, passed=True),
        "broken": grade(0.5),
    },
    {
        "own": failed_grade(0.2, "extra_call", "odd_thing"),
        "soft": grade(1.0),
        "same": grade(1.0),
        "broken": MISSING,
    },
    {"own": failed_grade(0.0), "soft": grade(0.9), "same": grade(0.9), "broken": grade(1.0)},
]


def report_of(rows=ROWS, presets=PRESETS, outcome="own", **more):
    components = [
        {"kind": "grader", "key": key, "options": {"preset": name}} for key, name in presets.items()
    ]
    components.append({"kind": "grader", "key": "plain", "options": {}})
    by_metric = {key: {"avg_score_attempted": 0.5, "avg_score_total": 0.5} for key in PRESETS}
    interval = {
        "mean": {"mean": 0.5, "mean_interval": {"low": 0.4, "high": 0.6, "confidence": 0.95}}
    }
    metrics = {
        "total": len(rows),
        "by_metric": by_metric,
        "aggregates": {"soft": interval},
        "states": {},
    }
    summary = {"metrics": metrics, "outcome": {"grader": outcome} if outcome else None}
    summary |= {"suite": "s", "gates": [], "gates_passed": None, "config": {}, **more}
    lines = []
    for number, grades in enumerate(rows):
        own_grader = grades["own"]
        passed = own_grader["score"] == 1
        sample = {"id": f"s{number}"}
        row = {
            "sample": sample,
            "passed": passed,
            "state": "graded",
            "grade": own_grader,
            "grades": grades,
        }
        text = json.dumps(row)
        lines.append(text.encode() + b"\n")
    buffer = io.BytesIO(b"".join(lines))
    panel = Placed("other_tools", "tool_calls", other_tools)
    report = Report(
        path=None, header={"components": components}, summary=summary, row_buffer=buffer
    )
    return with_panels(
        report,
        panel,
    )


def test_golden_page_of_other_tools(markdown):
    """Verdicts against the outcome, differences with causes and examples, presets that say the
    same; without an outcome, beside one without a preset, with odd names, without any grade.
    """
    plain = [{**grades, "plain": grade(0.0)} for grades in ROWS]
    silent = {"state": "skipped", "score": 0.0, "reasons": [{"code": "no_reference"}]}
    odd = {"own": "own@1", "soft": "<img src=x>/`|@2", "same": "**b**", "broken": "x"}
    reports = [
        report_of(),
        report_of(outcome=""),
        report_of(plain, outcome="plain"),
        report_of(presets={"own": "own@1", "soft": "same@1", "same": "same@1"}),
        report_of(presets=odd),
        report_of([dict.fromkeys(PRESETS, silent)]),
        report_of(ROWS[:1]),
    ]
    pages = []
    for report in reports:
        pages.append(markdown(report).partition("Verdicts of other tools' rules")[2])
    page = "\n".join(pages)
    check_golden_file("other_tools.md", page)


def test_one_preset_is_not_compared(html, markdown):
    report = report_of(presets={"own": "own@1"})
    assert other_tools(report) is None
    expected = html(report).text + markdown(report)
    assert "Verdicts of other tools' rules" not in expected


def test_a_run_without_rows_has_no_such_section():
    report = report_of()
    header = {**report.header, "rows": False}
    about = attrs.evolve(report, header=header)
    assert other_tools(about) is None


def test_reasons_of_presets_that_are_only_compared_are_no_causes(html):
    page = html(report_of())
    links = []
    for tag, attributes in page.tags:
        if tag == "a":
            links.append(attributes.get("href", ""))
    causes = []
    for link in links:
        if "cause" in link:
            causes.append(unquote_plus(link).partition("cause:")[2])
    assert set(filter(None, causes)) == {'"extra_call"', '"no_reason"'}
