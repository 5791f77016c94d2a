"""Verdicts of other tools' rules: verdicts of presets beside the outcome's, counted by hand."""

import io
import json
import re

import attrs

from gradestack import Report
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.panel import Placed
from gradestack_plugins.tool_calls.panels import OtherTools
from tests.placed import with_panels

PRESETS = {"own": "own@1", "soft": "soft/one@2", "same": "soft/two@2", "broken": "hard@3"}


def grade(score, **more):
    return {"state": "graded", "score": score, **more}


def lost(score, *codes):
    return grade(score, reasons=[{"code": code} for code in codes])


MISSING = {"state": "failed", "score": 0.0, "fault": {"code": "no_calls", "type": ""}}
ROWS = [
    {"own": grade(1.0), "soft": grade(1.0), "same": grade(1.0), "broken": grade(0.5)},
    {
        "own": lost(0.5, "extra_call"),
        "soft": grade(1.0),
        "same": grade(0.6, passed=True),
        "broken": grade(0.5),
    },
    {
        "own": lost(0.2, "extra_call", "odd_thing"),
        "soft": grade(1.0),
        "same": grade(1.0),
        "broken": MISSING,
    },
    {"own": lost(0.0), "soft": grade(0.9), "same": grade(0.9), "broken": grade(1.0)},
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
        own = grades["own"]
        passed = own["score"] == 1
        row = {
            "sample": {"id": f"s{number}"},
            "passed": passed,
            "state": "graded",
            "grade": own,
            "grades": grades,
        }
        lines.append(json.dumps(row).encode() + b"\n")
    held = io.BytesIO(b"".join(lines))
    panel = Placed("other_tools", "tool_calls", OtherTools())
    return with_panels(
        Report(path=None, header={"components": components}, summary=summary, held=held), panel
    )


def shown(report):
    return list(OtherTools().show(report))


def tables(report):
    def plain(cell):
        if isinstance(cell, blocks.Figure):
            return cell.value, cell.interval
        return cell.text if isinstance(cell, blocks.Link) else cell

    return {
        block.title: {name: [plain(each) for each in row] for name, row in block.rows.items()}
        for block in shown(report)
        if isinstance(block, blocks.Table)
    }


def test_verdicts_are_counted_against_the_outcome():
    (table,) = (
        block for block in shown(report_of()) if getattr(block, "title", "") == "Every rule"
    )
    assert table.columns == [
        "average",
        "same verdict",
        "of",
        "passes more",
        "less",
        "no grade",
        "version",
    ]
    assert tables(report_of())["Every rule"] == {
        "own": [(0.5, None), "", "", "", "", 0, "1"],
        "soft/one": [(0.5, (0.4, 0.6)), 2, 4, 2, 0, 0, "2"],
        "soft/two": [(0.5, None), 2, 4, 2, 0, 0, "2"],
        "hard": [(0.5, None), 1, 3, 1, 1, 1, "3"],
    }


def test_differences_have_causes_and_examples():
    found = tables(report_of())
    assert found["Pass where own does not"] == {
        "Unexpected calls cost nothing": [2, "s1", 2, "soft"],
        "Odd thing costs nothing": [1, "s2", 2, "soft"],
        "No reason is given": [1, "s3", 1, "hard"],
    }
    more = {"It is stricter in a way its options do not name": [1, "s0", 1, "hard"]}
    assert found["Do not pass where own does"] == more
    silent = {"The original program raises: no calls": [1, "s2", 1, "hard"]}
    assert found["No verdict where own has one"] == silent
    (named,) = (
        block for block in shown(report_of()) if getattr(block, "title", "") == "The rules by cause"
    )
    assert named.folded
    assert named.blocks[0].rows["Odd thing costs nothing"] == ["soft/one, soft/two"]


def test_an_example_is_a_link_to_its_sample(html):
    links = [item.get("href") for tag, item in html(report_of()).tags if tag == "a"]
    assert {"#s1", "#s2", "#s3", "#s4"} <= set(links)


def test_presets_that_say_the_same_are_one_kind():
    section = shown(report_of())[-1]
    kinds, matrix = section.blocks
    assert section.folded
    assert kinds.rows == {"1": ["own"], "2": ["soft/one, soft/two"], "3": ["hard"]}
    assert (matrix.rows, matrix.columns, matrix.values) == (
        ["2", "3"],
        ["1", "2"],
        [[50, None], [33, 0]],
    )


def test_two_graders_of_one_preset_stand_apart():
    report = report_of(presets={"own": "own@1", "soft": "same@1", "same": "same@1"})
    assert list(tables(report)["Every rule"]) == ["own", "same (soft)", "same (same)"]


def test_one_preset_is_not_compared(html, markdown):
    report = report_of(presets={"own": "own@1"})
    assert OtherTools().show(report) is None
    assert "Verdicts of other tools' rules" not in html(report).text + markdown(report)


def test_a_run_without_rows_has_no_such_section():
    report = report_of()
    assert OtherTools().show(attrs.evolve(report, header={**report.header, "rows": False})) is None


def test_a_run_without_an_outcome_shows_figures_only(html):
    report = report_of(outcome="")
    table, agreement = shown(report)[1:]
    assert (list(table.columns), agreement.title) == (
        ["average", "no grade", "version"],
        "Pairwise agreement",
    )
    text = html(report).text
    assert "Verdicts of other tools' rules" in text
    assert "same verdict" not in text


def test_an_outcome_without_a_preset_is_compared_with(html):
    rows = [{**grades, "plain": grade(0.0)} for grades in ROWS]
    found = tables(report_of(rows, outcome="plain"))["Every rule"]
    assert [row[3] for row in found.values()] == [1, 3, 3, 1]
    assert "compared here with plain" in html(report_of(rows, outcome="plain")).text


def test_names_of_presets_are_escaped(html, markdown):
    evil = {"own": "own@1", "soft": "<img src=x>/`|@2", "same": "**b**", "broken": "x"}
    page = html(report_of(presets=evil))
    assert "<img src=x>/`|" in page.text
    written = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown(report_of(presets=evil)))
    assert "Verdicts of other tools' rules" in written
    assert "<img" not in written
    assert "**b**" not in written


def test_reasons_of_presets_that_are_only_compared_are_no_causes(html):
    page = html(report_of())
    causes = [each["data-cause"] for tag, each in page.tags if tag == "a" and "data-cause" in each]
    assert set(causes) == {"extra_call", "no_reason"}


def test_rules_without_any_grade_make_no_table(html, markdown):
    left_out = {"state": "skipped", "score": 0.0, "reasons": [{"code": "no_reference"}]}
    silent = report_of([dict.fromkeys(PRESETS, left_out)])
    for text in (html(silent).text, markdown(silent)):
        assert "rules graded a sample" in " ".join(text.split())
        assert "of verdicts" not in text
        assert "same verdict" not in text
    one = report_of(ROWS[:1])
    assert "The same 1 sample by 4 rules: 2 different sets of verdicts" in markdown(one)
    assert "The same 1 sample by 4 rules" in " ".join(html(one).text.split())
