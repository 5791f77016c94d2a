"""One truth in all media: console, page, Markdown, JUnit and summary.json of a run.

All media of a comparison.
"""

import html
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from gradestack import Declarations, compared_rows
from gradestack.cli.commands import main
from gradestack.output import state_text
from gradestack_plugins.pages.compare_text import claim_of, verdict_text
from gradestack_plugins.pages.figures import OVER_K
from tests.core.outcomes import some_of

ROOT = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted(path.parent.name for path in ROOT.glob("*/suite.yaml"))
STATES = ("graded", "skipped", "failed", "missing")


@pytest.fixture
def run(capsys):
    """Return a function that runs a command and returns what it prints."""

    def printed(*arguments):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as ended:
            code = ended.code
        assert code in (None, 0, 1, 3)
        return capsys.readouterr().out

    return printed


def text_of(page):
    """Return the text of a part of a page on one line, in which there is a space for each tag."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.replace("<wbr>", ""))).split())


def plain(markdown):
    """Return Markdown without its escapes."""
    return html.unescape(re.sub(r"[\\*`]", "", markdown))


def rows_of(page):
    """Return title, value and interval of the results without spaces."""
    index = page.index('id="estimates"')
    results = page[index:].partition("</section>")[0]
    rows = []
    for row in re.split('<li class="row[^"]*">', results)[1:]:
        match = re.search(r"<b>(.*?)</b>", row)
        title = text_of(match[1])
        values = re.findall(
            r'(?:"num[^"]*">|</code> <b>)(.*?)(?:</span>|</b></span>)', row, re.DOTALL
        )
        ends = re.findall("<small>(.*?)</small>", row[row.index('class="plot"') :])
        for pair in zip(values, ends, strict=True):
            rows.append((title, *(text_of(cell).replace(" ", "") for cell in pair)))
    return rows


def expected(summary, known):
    """Yield label, value, interval and whether it is a share, of each figure of the headline.

    Of one over k the last k, but for k = 1, which is the share of successes.
    """
    has_outcome = summary["outcome"] is not None
    word = ""
    if has_outcome:
        words = summary["outcome"]["words"]
        passed = words["passed"]
        word = passed.capitalize()
    for figure in summary["headline"]["figures"]:
        models = figure.get("models", {"": figure})
        for figure_of_model in models.values():
            label = figure["label"]
            value = figure_of_model["value"]
            interval = figure_of_model.get("interval") or {}
            path = figure["figure"]
            if isinstance(value, dict):
                k = max(value, key=int)
                if k == "1" and has_outcome:
                    continue
                label = OVER_K[path.rpartition(".")[2]].format(passed=word, k=k)
                value = value[k]
                interval = interval.get(k) or {}
                path = f"{path}.{k}"
            if "low" in interval:
                ends = [interval["low"], interval["high"]]
            else:
                ends = []
            meaning = known.at(path)
            if meaning is None:
                unit = ""
            else:
                unit = meaning.unit
            is_share = unit == "share" or (unit == "score" and meaning.bounds[1] <= 1)
            yield label, value, ends, unit, is_share


def texts_of(value, ends, unit, *, is_share):
    """Return a figure and its interval as the page writes them, without spaces."""
    if value is None:
        return "n/a", ""
    if is_share:
        shown = "to".join(f"{100 * end:.1f}" for end in ends)
        return f"{100 * value:.1f}%", f"{shown}%" if ends else ""
    bits = "bits" if unit == "bits" else ""
    shown = "to".join(f"{end:.3f}" for end in ends)
    if isinstance(value, int):
        number = f"{value:,}"
    else:
        number = f"{value:.3f}"
    return f"{number}{bits}", f"{shown}{bits}" if ends else ""


LED = {"sessions", "stability", "when2call"}
"""Examples whose sentence is that of their family's panel; their tests are of that."""


def outcome_word(outcome):
    if outcome:
        return outcome["words"]["passed"].capitalize()
    return ""


@pytest.mark.parametrize("name", some_of(EXAMPLES, 2))
def test_all_media_of_a_run_agree(name, tmp_path, run):
    """Outcome's words and counts, figures, intervals, states by grader, notes and the verdicts of
    gates.
    """
    out, reports = (
        tmp_path / "run",
        "reports=[html, {kind: markdown, max_characters: 10000000}, junit]",
    )
    console = run("run", ROOT / name / "suite.yaml", "-o", out, "--set", reports)
    summary, header = (
        json.loads((out / f"{group}.json").read_text()) for group in ("summary", "header")
    )
    page, markdown = (out / "report.html").read_text(), plain((out / "report.md").read_text())
    first = text_of(page[page.index('<section id="overview"') :].partition("</section>")[0])
    junit = ET.parse(out / "junit.xml")  # noqa: S314 - our own file
    suites = {group.get("name"): group for group in junit.getroot()}
    rows = rows_of(page)
    outcome, letta = summary["outcome"], summary["headline"]["letta"]
    if outcome:
        of, word = outcome["passed"] + outcome["failed"], outcome["words"]["passed"].capitalize()
        ends = [f"{100 * outcome['share_interval'][end]:.1f}" for end in ("low", "high")]
        counts = f"{word}: {outcome['passed']} of {of} "
        percent = f"{100 * outcome['passed'] / of:.1f}"
        line = f"{counts}({percent}%; 95% interval {' to '.join(ends)}%); {outcome['rule']}"
        errors = summary["metrics"]["states"][outcome["grader"]].get("failed", 0)
        line += f"; {errors} more ended in an error, not counted\n" if errors else "\n"
        assert (line in console) is not letta
        if name not in LED:
            assert counts in first
            assert counts in markdown
        if name != "stability":  # whose ten figures have it by their own names
            assert (word, f"{percent}%", f"{'to'.join(ends)}%") in rows
        assert int(suites[outcome["grader"]].get("failures")) == outcome["failed"]
    known = Declarations(header)
    for label, value, ends, unit, is_share in expected(summary, known):
        shown = texts_of(value, ends, unit, is_share=is_share)
        same = outcome and value == outcome["share"]
        assert (label, *shown) in rows or same
        form = ",d" if isinstance(value, int) else ",.3f"
        number = "n/a" if value is None else format(value, form)
        interval = " to ".join(f"{end:.3f}" for end in ends)
        if label.partition(" in ")[0] != outcome_word(outcome):
            assert letta or re.search(f"{re.escape(label)}.*{number}.*{interval}", console)
    for title, value, interval in rows[:6]:
        cells = re.search(
            rf"^\| {re.escape(title)}[^|]*\| (.*) \| (.*) \|$", markdown, re.MULTILINE
        )
        assert tuple(group.replace(" ", "") for group in cells.groups()) == (value, interval)
    for key, states in summary["metrics"]["states"].items():
        counts = [states.get(state, 0) for state in STATES]
        others = [state_text(state, n) for state, n in states.items() if n and state != "graded"]
        shown = ", ".join([f"{counts[0]} graded", *others])
        assert re.search(rf"^  {key} +avg \S+  {shown}$", console, re.MULTILINE)
        cells = " | ".join(map(str, counts))
        assert re.search(rf"^\| {key} \|.*\| {re.escape(cells)} \|$", markdown, re.MULTILINE)
        tests, skipped, errors = (
            int(suites[key].get(group)) for group in ("tests", "skipped", "errors")
        )
        assert (tests, skipped, errors) == (sum(counts), counts[1], counts[2] + counts[3])
    for note in header.get("notes", ()):
        assert all(note in medium for medium in (console, text_of(page), markdown))
    for gate in summary["gates"]:
        verdict = ("PASSED", "✓ passed") if gate["passed"] else ("FAILED", "✗ failed")
        assert f"Gate ({gate['text']}): {verdict[0]}" in console
        assert f"{verdict[1]} {gate['text']}" in first
        assert re.search(
            rf"^\| {re.escape(gate['text'])} \|.*\| {verdict[1]}", markdown, re.MULTILINE
        )
        assert int(suites["gates"].get("failures")) == sum(
            not group["passed"] for group in summary["gates"]
        )


def test_nothing_graded_is_no_result_in_the_first_line_of_all_media(tmp_path, run):
    """And what was recognised stands beside it.

    A policy of one's own has no label of the stack's policy.
    """
    text = json.dumps({"question": "?", "tool_calls": [{"name": "f", "arguments": {}}]})
    lines = [text] * 3
    log_path = tmp_path / "log.jsonl"
    log_path.write_text("\n".join(lines))
    policy = (
        "--stack",
        "trajectory",
        "--set",
        "graders.tool_policy.deny=[g]",
        "--set",
        "reports=[html, markdown]",
    )
    out_folder = tmp_path / "out"
    console = run("grade", tmp_path / "log.jsonl", *policy, "-o", out_folder)
    page, markdown = (
        (tmp_path / "out" / f"report.{ending}").read_text() for ending in ("html", "md")
    )
    index = page.index('<section id="overview"')
    first = text_of(page[index:].partition("</section>")[0])
    assert "Without failed calls: no result\n" in console
    assert "No result : none of 3 runs graded by tool_success" in first
    assert markdown.startswith("# log: no result\n")
    assert "**No result**: none of 3 runs graded by tool" in markdown
    for medium in (console, text_of(page), plain(markdown)):
        assert "Recognised (own_data@1): calls = tool_calls, input = question" in medium
        assert "The same as: gradestack grade " in medium
        assert "log.jsonl --map calls=tool_calls" in medium
    for medium in (console, text_of(page), markdown):
        assert "Runs within the policy" in medium
        assert "No pointless repeats" not in medium


def test_all_media_of_a_comparison_agree(tmp_path, run):
    """The verdict of every figure, the sentence and the leaderboard, which the index repeats."""
    folder = tmp_path / "runs"
    for name, wrong in (("a", 0), ("b", 1), ("c", 9)):
        lines = []
        for n in range(12):
            predicted = "y" if n < wrong or n == 11 else "x"
            lines.append(json.dumps({"id": f"t{n}", "expected": "x", "predicted": predicted}))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        run(
            "grade",
            tmp_path / f"{name}.jsonl",
            "--grader",
            "exact_match",
            "--grader",
            "contains",
            "-o",
            folder / name,
        )
    out = folder / "compared"
    console = run("compare", *(folder / name for name in "abc"), "-o", out)
    run("index", folder)
    comparison_path = out / "comparison.json"
    data = json.loads(comparison_path.read_text())
    page = (out / "comparison.html").read_text()
    text = (out / "comparison.md").read_text()
    markdown = plain(text)
    index_path = folder / "index.html"
    index = text_of(index_path.read_text())
    assert all(data["sentence"] in medium for medium in (console, index))
    assert markdown.startswith(f"### ⚪ {plain(claim_of(data))}")
    answers = text_of(page[page.index("Ship?") :].partition("</section>")[0])
    size = re.search(r"a true difference of (\S+) points", data["sentence"])[1]
    chance = f"differences below {size} points are easily missed"
    for words_said in ("may be chance", "26.7 points less to 10.0 points more", "12 tasks", chance):
        assert words_said in answers
    words = set()
    for pair in data["pairs"]:
        block = console[console.index(f"{pair['a']} -> {pair['b']}, ") :].partition("\n\n")[0]
        first_pair = data["pairs"][0]
        place = "differences" if pair is first_pair else "pairs"
        section = text_of(page[page.index(f'<section id="{place}"') :].partition("</section>")[0])
        if place == "pairs":
            section = section[section.index(f"{pair['b']} against {pair['a']}") :]
        for row in compared_rows(pair):
            words.add(row["verdict"])
            label, verdict = re.escape(row["label"]), verdict_text(row)
            line = rf"^  {label} .*?(\S+) -> (\S+)  (\S+) points .*  {verdict}  "
            match = re.search(line, block, re.MULTILINE)
            before, after, change = match.groups()
            assert f"{before} → {after} {change} {verdict}" in section
    assert {"worse", "no evidence"} <= words
    letters = {group_data["name"]: group_data["groups"] for group_data in data["groups"]}
    for pair in data["pairs"]:  # those that differ share no letter
        letter = set(letters[pair["a"]])
        same = letter & set(letters[pair["b"]])
        assert bool(same) is (pair["outcome"]["verdict"] not in ("better", "worse"))
    for name, group in letters.items():
        assert re.search(rf"^  {name} .*  {group}$", console, re.MULTILINE)
        assert re.search(rf"\| {name} \|.*\| {group} \|", markdown)
        assert re.search(rf"{name} [\d.]+% [\d–]+ {group}\b", text_of(page))
