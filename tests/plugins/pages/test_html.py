import base64
import hashlib
import io
import json
import re

import attrs
import pytest

from gradestack_plugins.pages.html import HtmlReporter

HOSTILE = (
    '<script>alert("x")</script></script><img src=x onerror=alert(1)>" onclick="alert(1)" '
    "'</textarea><!-- ]]> "
    "{{ 7*7 }}{% raw %}\x00\x1b[31m\u202edesrever\u2066\u200b\ud83d\ufffe &lt; &amp;amp; \r\n\u2028"
)


def hostile(value, depth=0):
    if isinstance(value, dict):
        return {
            key if depth < 3 else f"{key}{HOSTILE}": hostile(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [hostile(item, depth + 1) for item in value]
    if isinstance(value, str) and value not in {"graded", "failed", "skipped", "missing", "passed"}:
        return HOSTILE
    return value


def test_hostile_texts_stay_texts(fake, html):
    realistic_rows = fake.realistic_rows(tasks=3, trials=2)
    report = fake.make_report(realistic_rows)
    summary = hostile(report.summary)
    header = hostile(fake.HEADER)
    rows = [hostile(row) for row in report.rows()]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    bytes_io = io.BytesIO(lines.encode())
    page = html(attrs.evolve(report, summary=summary, header=header, row_buffer=bytes_io))
    assert '<script>alert("x")</script>' in page.text
    assert "{{ 7*7 }}{% raw %}" in page.text
    assert not set(page.html) & set("\x00\x1b\u202e\u2066\u200b\u2028\ufffe\r")
    assert "⟨U+202E⟩desrever" in page.text
    assert "⟨U+D83D⟩" in page.text


def test_the_policy_allows_exactly_the_inline_texts(fake, html):
    realistic_rows = fake.realistic_rows(tasks=2, trials=1)
    report = fake.make_report(realistic_rows)
    page = html(report)
    match = re.search(r'Policy" content="([^"]+)"', page.html)
    policy = dict(part.split(" ", 1) for part in match[1].replace("&#39;", "'").split("; "))

    def hashes(tag):
        texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page.html, re.DOTALL)
        return [
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for text in texts
        ]

    assert policy["default-src"] == "'none'"
    assert policy["script-src"].split() == hashes("script")
    assert policy["style-src"].split() == hashes("style")
    hash_count = len(hashes("script"))
    assert hash_count == 2


def test_nothing_points_outside_the_page(fake, html):
    realistic_rows = fake.realistic_rows(tasks=3, trials=1)
    report = fake.make_report(realistic_rows)
    page = html(report)
    matches = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+", page.html)
    assert matches == []
    links = page.values("href")
    assert {link for link in links if not link.startswith("#")} == {"data:,"}


@pytest.mark.parametrize("option", ["max_samples", "max_text", "max_bytes"])
def test_negative_limits_are_refused(option):
    match = f"{option} must not be negative, got -1"
    with pytest.raises(ValueError, match=match):
        HtmlReporter(**{option: -1})
