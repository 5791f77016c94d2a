"""Causes of failures add up on the page, in Markdown, and on the console."""

import json
import re
from collections import Counter

import pytest

from gradestack import causes_of_run, error_kind, find_causes, grade_files, most_often
from gradestack.cli import results as console
from gradestack_plugins.pages.failures import MOST_CAUSES
from gradestack_plugins.pages.index import index_of
from gradestack_plugins.pages.page import page_of
from tests.core.outcomes import data
from tests.plugins.pages.conftest import Page

TOOLS = 930
"""Each fails in three ways: 2,790 kinds of reasons, and a few of error."""


def record(number):
    """Return a record that fails, of a tool of its own as long as there are any."""
    tool = f"tool_{number % TOOLS}"
    way = number // 7 % 3
    wanted = {"name": tool, "arguments": {"city": "Rome"}}
    expected_calls = [
        [],
        [{"name": tool, "arguments": {"city": "Oslo"}}],
        [{"name": tool, "arguments": {"city": "Rome"}}, {"name": "wait", "arguments": {}}],
    ][way]
    return {"id": f"t{number}", "input": "x", "expected": [wanted], "predicted": expected_calls}


def graded(path, number):
    right = {**record(0), "predicted": record(0)["expected"]}
    crashed = {"id": "crashed", "input": "x", "expected": [], "error": "TypeError: no 'x' in 7"}
    shards = range(number - 1)
    records = [*map(record, shards), {**right, "id": "right"}, crashed]
    source = path / "runs.jsonl"
    source.write_text(
        "".join(f"{json.dumps(written_record)}\n" for written_record in records), encoding="utf-8"
    )
    output = path / "out"
    return grade_files([source], output=output)


SIZES = [10, 2_300, pytest.param(100_000, marks=pytest.mark.proof)]


@pytest.fixture(scope="module", params=SIZES)
def run(request, tmp_path_factory):
    """Return a run of so many failures, and their number."""
    path = tmp_path_factory.mktemp("causes")
    return graded(path, request.param), request.param


def printed(report):
    """Return the failures on the console, and the numbers of the lines below."""
    why = r"Why ([\d,]+) of [\d,]+ runs failed:\n((?:  .*\n?)+)"
    results = console.results(report)
    block = re.search(why, results)
    lines = re.findall(r"^ +([\d,]+) \([\d.]+%\)  (.*)$", block[2], re.MULTILINE)
    return whole(block[1]), [(whole(number), text) for number, text in lines]


def whole(number):
    return int(number.replace(",", ""))


@pytest.mark.slow
def test_the_console_prints_the_three_largest_and_the_rest(run):
    report, number = run
    failed, lines = printed(report)
    expected = sum(samples for samples, _ in lines)
    assert failed == expected == number
    causes = Counter(dict(page_causes(report)))
    for samples, text in lines[:3]:
        cause = causes[text.partition(" (")[0]]
        assert cause == samples
    assert [samples for samples, _ in lines[:3]] == sorted(causes.values(), reverse=True)[:3]


def page_causes(report):
    page = page_of(report)
    causes = page.failures.causes[:MOST_CAUSES]
    return [(cause.name, cause.samples) for cause in causes]


def numbers(text):
    matches = re.findall(r"[\d,]*\d", text)
    return [int(number_text.replace(",", "")) for number_text in matches]


def test_the_page_adds_up(run):
    report, number = run
    report_path = report.path / "report.html"
    html = report_path.read_text(encoding="utf-8")
    section = html[html.index('id="failures"') :]
    index = section.index("</section>")
    section = section[:index]
    page = Page(section)
    expected_text = f"{number:,} of"
    assert expected_text in page.text
    tops = re.findall(
        r'class="leaf top-cause".*?<span class="n">([\d,]+)</span>', section, re.DOTALL
    )
    rest = re.findall(r"all other causes: ([\d,]+)", section)
    total = sum(sum(numbers(text)) for text in (*tops, *rest))
    assert total == number
    for line in page_of(report).failures.lines:
        parts = sum(text.samples for text in line.parts)
        if line.parts:
            assert parts + line.rest == line.samples
            assert not line.rest or f"all other tools: {line.rest:,}" in Page(section).text


def test_markdown_adds_up(run):
    report, number = run
    report_path = report.path / "report.md"
    text = report_path.read_text(encoding="utf-8")
    index = text.index("| Cause | About |")
    table = text[index:].split("\n\n")[0]
    lines = []
    for line in table.splitlines()[2:]:
        lines.append(line.split(" | "))
    total = sum(numbers(line[-2])[0] for line in lines)
    assert total == number


def test_the_run_adds_up(run):
    report, number = run
    causes = causes_of_run(report)
    total = sum(cause.samples for cause in causes)
    assert total == number
    for cause in causes:
        assert not cause.parts or sum(part.samples for part in cause.parts) == cause.samples


def test_every_failed_sample_is_in_one_cause(run):
    report, number = run
    index = index_of(report)
    failures = page_of(report).failures
    kinds = list(index.reasons.kinds)
    samples_by_cause = Counter()
    for entry, grades in zip(index.entries, index.reasons.by_run, strict=True):
        if entry.passed is False or entry.state in ("failed", "missing"):
            main = failures.main.get(grades)
            samples_by_cause["no_reason" if main is None else kinds[main][1]] += 1
    total = samples_by_cause.total()
    assert total == number
    assert dict(samples_by_cause.most_common(MOST_CAUSES)) == dict(page_causes(report))


@pytest.mark.parametrize(
    ("reasons", "often"),
    [
        (
            {("a", "x"): 17, ("a", "y"): 14, ("b", ""): 16, ("c", "z"): 15},
            ("most often", "a.x", 17),
        ),
        ({("a", "x"): 3, ("b", "x"): 3, ("c", "x"): 3}, None),
        ({("a", "x"): 6, ("a", "y"): 3, ("b", ""): 1}, ("mostly", "a.x", 6)),
        ({("a", "x"): 4, ("a", "y"): 4, ("b", ""): 2}, ("mostly", "a", 8)),
        ({("a", "x"): 5}, ("always", "a.x", 5)),
        ({("a", ""): 3, ("", ""): 7}, ("most often", "a", 3)),
        ({("a", ""): 5, ("b", ""): 4, ("c", ""): 1}, ("most often", "a", 5)),
        ({("", ""): 7}, None),
    ],
)
def test_what_a_cause_is_mostly_about(reasons, often):
    """Half is not most, and of two that are as frequent neither is named."""
    kinds = [("g", "wrong", *about) for about in reasons]
    sets = {(number,): samples for number, samples in enumerate(reasons.values())}
    (cause,) = find_causes(kinds, sets).tree
    subject = most_often(cause)
    assert (subject and (subject[0], ".".join(subject[1]), subject[2])) == often


@pytest.mark.parametrize("case", data(__file__, "errors.yaml"), ids=lambda case: case["text"][:40])
def test_errors_of_one_kind(case):
    assert error_kind(case["text"]) == case["kind"]
