import re

import attrs
import pytest
from markdown_it import MarkdownIt

from gradestack_plugins.pages.markdown import MarkdownReporter, code, prose
from gradestack_plugins.pages.prose import Fold, folded
from tests.core.outcomes import data

DATA = data(__file__, "markdown.yaml")

HOSTILE = (
    "# h\n| a | b |\n<script>alert(1)</script> `code` ``two`` **bold** "
    "[link](https://example.org) ![i](x) @team ~~s~~ "
    "&lt; \\ <!-- \x1b\u202e\ud83d"
)
RENDER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def rendered(text):
    return RENDER.render(text)


def test_hostile_texts_stay_texts(fake, markdown):
    rows = fake.realistic_rows(tasks=2, trials=1)
    for row in rows:
        row["sample"]["id"], row["model_name"] = f"id {HOSTILE}", HOSTILE
        row["grade"]["reasons"] = [
            {"code": HOSTILE, "subject": HOSTILE, "expected": HOSTILE, "message": HOSTILE}
        ]
    report = fake.make_report(rows)
    summary = {
        **report.summary,
        "warnings": [HOSTILE],
        "bad_records": {"count": 1, "listed": [{"reason": HOSTILE}]},
    }
    aggregates = {"partial": {HOSTILE: {HOSTILE: HOSTILE, "k": {HOSTILE: 1, "b": 2}}}}
    summary["metrics"] = {**summary["metrics"], "aggregates": aggregates}
    page = markdown(attrs.evolve(report, summary={**summary, "suite": HOSTILE}))
    html = rendered(page)
    assert not re.search(r"<((script|a|img|em|s|del)\b|strong>bold|!--)", html)
    assert html.count("<h1>") == 1
    assert "\x1b" not in page
    assert "\u202e" not in page
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        lines = block.splitlines()
        match_counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(match_counts) == 1, block


@pytest.mark.parametrize(
    "text", ["a|b", "`", "``` x", "<b>", "*", "\\", "a\nb", " lead", "x`y``z", "\\|", "&amp;"]
)
def test_code_spans_show_the_text_itself(text):
    html = rendered(f"| h |\n| --- |\n| {code(text)} |\n")
    match = re.search(r"<td><code>(.*?)</code></td>", html)
    shown = match[1]
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(entity, char)
    expected = " ".join(text.split())
    assert shown == expected
    assert code("") == ""


@pytest.mark.parametrize("text", DATA["prose_shows_the_text_itself"])
def test_prose_shows_the_text_itself(text):
    for template, cell in (("| h |\n| --- |\n| {} |\n", "td"), ("{}\n", "p"), ("a\n{}\n", "p")):
        html = rendered(template.format(prose(text)))
        match = re.search(f"<{cell}>(?:a\n)?(.*?)</{cell}>", html)
        shown = re.sub("</?code>", "", match[1])
        for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            shown = shown.replace(entity, char)
        assert shown == text


LINKED = (
    "http://x.y https://x.y/z?a=b ftp://x.y www.x.y (www.x.y) WWW.x.y a@b.c mailto:a@b.c @team "
    "@a/b #12 a/b#12 GH-12 "
    "!12 $12 $x$ %2 ~bug &9 a1b2c3d 0123456789abcdef0123456789abcdef01234567 :smile: :+1: "
    "x|@team|#1 `@team` `` ``#1``"
)


def test_words_that_would_become_links_stand_as_code():
    inline = RENDER.parseInline(prose(f"to {LINKED} or"))
    tokens = inline[0].children
    types = {token.type for token in tokens}
    assert types == {"text", "code_inline"}
    text = "".join(token.content for token in tokens if token.type == "text")
    assert text.split() == ["to", "x||", "``", "or"]
    expected_text = f"to {LINKED} or"
    assert "".join(token.content for token in tokens) == expected_text


@pytest.mark.parametrize(
    "text", ["pass^4", "Stability@3", "12:30:45", "0.5 – 1", "a, b; c: d!", "C# 100% x=1 R2-D2"]
)
def test_words_that_link_nowhere_stay_text(text):
    assert "`" not in prose(text)


@pytest.mark.parametrize("most", [60_000, 20_000, 9_000])
def test_the_page_stays_a_comment(fake, markdown, most):
    rows = fake.realistic_rows(tasks=120, trials=4, models=("north-1",))
    for row in rows:
        row["sample"]["id"] += " x" * 150
    report = fake.make_report(rows)
    warnings = []
    for number in range(200):
        warnings.append(f"warning {number} {'y ' * 400}")
    summary = {
        **report.summary,
        "warnings": warnings,
    }
    page = markdown(attrs.evolve(report, summary=summary), max_characters=most, max_samples=500)
    assert most / 3 < len(page) <= most
    html = rendered(page)
    assert html.count("<details>") == html.count("</details>") > 0
    matches = re.findall(r"^(\d+) more (?:tasks|runs|warnings) are in ", page, re.MULTILINE)
    lines_shown = [int(number) for number in matches]
    tasks, failed_tasks = page.count("\n| journey-"), page.count("\n### `journey-")
    assert tasks == 100 or 100 - tasks in lines_shown
    assert any(count + failed_tasks >= 100 for count in lines_shown)


def test_room_left_by_one_section_goes_to_the_next():
    short = Fold("One", "a", ["b"], "\n", "lines", "x")
    long = Fold("Two", "a", ["b" * 100] * 10, "\n", "lines", "y")
    text = folded([short, long], [0.5, 0.5], 1000)
    assert text.count("b" * 100) == 7
    assert "3 more lines are in y." in text
    assert len(text) <= 1000
    folds = [Fold("Big", "a" * 900, [], "", "", "")]
    assert folded(folds, [1.0], 1000) == "Big: in report.html.\n"


@pytest.mark.parametrize("option", ["max_samples", "max_tasks", "max_characters"])
def test_negative_limits_are_refused(option):
    match = f"{option} must not be negative, got -1"
    with pytest.raises(ValueError, match=match):
        MarkdownReporter(**{option: -1})
