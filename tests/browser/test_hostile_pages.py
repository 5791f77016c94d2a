"""Texts that try to be more than texts, in every page a run can have, in a real browser."""

import io
import itertools
import json

import attrs
import pytest
from markdown_it import MarkdownIt

import gradestack
from gradestack.jsonio import dumps
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.markdown import MarkdownReporter
from tests.core.outcomes import some_of

PAYLOADS = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    (
        "</style></title></textarea></noscript><img src=https://example.invalid/a.png "
        "onerror=alert(3)>"
    ),
    '" onmouseover="alert(4)" autofocus onfocus="alert(4)',
    "'><svg/onload=alert(5)>",
    (
        "<iframe srcdoc='<script>parent.alert(6)</script>'></iframe><object "
        "data=https://example.invalid/b></object>"
    ),
    "![x](https://example.invalid/c.png) [y](javascript:alert(7)) <https://example.invalid/d>",
    "```\n</code></pre><img src=x onerror=alert(8)>\n| a | b |\n",
    "{{ 7*7 }}{% raw %}<!-- ]]> --><base href=https://example.invalid/>",
    (
        '<meta http-equiv=refresh content="0;url=https://example.invalid/e"><link rel=stylesheet '
        "href=//example.invalid/f>"
    ),
    (
        "<style>@import 'https://example.invalid/g'; body { background: "
        "url(https://example.invalid/h) }</style>"
    ),
    (
        "\x00\x1b[31m\u202edesrever\u2066\u200b\ud83d\ufffe &lt;script&gt;alert(9)&lt;/script&gt; "
        "\r\n\u2028"
    ),
)
KEPT = {"graded", "failed", "skipped", "missing", "passed", "undecided", "no_data"}
"""States and outcomes of gates: a file with others is refused."""
HOOK = """globalThis.ran = [];
for (const name of ['alert', 'confirm', 'prompt', 'open', 'eval']) {
  globalThis[name] = (...given) => ran.push([name, ...given]);
}"""


def hostile(value, texts, depth=0):
    if isinstance(value, dict):
        return {
            key if depth < 3 else f"{key}{next(texts)}": hostile(item, texts, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [hostile(item, texts, depth + 1) for item in value]
    if isinstance(value, str) and value not in KEPT:
        return next(texts)
    return value


@pytest.fixture
def report(fake):
    realistic_rows = fake.realistic_rows(tasks=5, trials=2)
    good = fake.make_report(realistic_rows)
    texts = itertools.cycle(PAYLOADS)
    rows = good.rows()
    lines = "".join(f"{dumps(hostile(row, texts))}\n" for row in rows)
    summary = hostile(good.summary, texts)
    header = hostile(fake.HEADER, texts)
    bytes_io = io.BytesIO(lines.encode())
    return attrs.evolve(good, summary=summary, header=header, row_buffer=bytes_io)


@pytest.fixture
def watched(tab):
    hook = tab.send("Page.addScriptToEvaluateOnNewDocument", source=HOOK)

    def watch(path, samples=0):
        tab.visit(path.as_uri(), width=1440)
        if samples:
            tab.wait("document.documentElement.classList.contains('ready')")
        for row in range(samples):
            tab.run(f"location.hash = '#s{row + 1}'")
            tab.wait("document.querySelector('#one .inside') !== null")
        tab.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        tab.run(
            "document.querySelectorAll('*').forEach(one => { one.dispatchEvent(new "
            "Event('mouseover')); })"
        )
        tab.run(
            "document.querySelectorAll('a, button, input, [tabindex]').forEach(one => { "
            "one.focus(); })"
        )
        tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 200)))")
        assert tab.run("ran") == []
        assert (
            tab.run(
                "document.querySelectorAll('img, iframe, object, embed, base, svg script').length"
            )
            == 0
        )
        messages = tab.messages()
        assert messages == []
        report_data_folder = path.parent / "report_data"
        data_folder = report_data_folder.as_uri()
        requests = tab.requests()
        return [address for address in requests if not address.startswith(data_folder)]

    yield watch
    tab.send("Page.removeScriptToEvaluateOnNewDocument", identifier=hook["identifier"])


@pytest.mark.parametrize(
    "options", some_of([{"max_bytes": 0, "max_samples": 6}, {}, {"max_samples": 0}], 3)
)
def test_the_page_of_a_run(watched, report, tmp_path, options):
    html_reporter = HtmlReporter(**options)
    (path,) = html_reporter.write(report, tmp_path)
    assert watched(path, samples=20) == [path.as_uri()]


def render(source):
    """Write a page of Markdown beside its source."""
    markdown_it = MarkdownIt("commonmark", {"html": True})
    renderer = markdown_it.enable("table")
    text = source.read_text(encoding="utf-8")
    body = renderer.render(text)
    page = source.with_name("rendered.html")
    head = "<!doctype html><meta charset=utf-8><link rel=icon href=data:,>"
    page.write_text(head + body, encoding="utf-8")
    return page


def test_markdown(watched, report, tmp_path):
    """Rendered with HTML allowed and no policy, which is worse than what forges do, it asks for
    nothing.
    """
    (source,) = MarkdownReporter().write(report, tmp_path)
    page = render(source)
    assert watched(page) == [page.as_uri()]


def test_a_comparison(watched, tmp_path):
    """A comparison of runs with hostile names does nothing, as a page and as Markdown."""
    sides = []
    for side, name in enumerate(("<img src=x onerror=alert(1)>", '" onload="alert(2)')):
        lines = []
        for task, text in enumerate(itertools.islice(itertools.cycle(PAYLOADS), 24)):
            call = {"name": text, "arguments": {text: text}}
            if (task + side) % 3:
                made = [call]
            else:
                made = []
            model = text[:9]
            row = {
                "id": f"{task} {text}",
                "model": model,
                "input": text,
                "facets": {"kind": text},
                "expected": [call],
            }
            lines.append(json.dumps({**row, "model": name, "predicted": made}))
        (tmp_path / f"{side}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        output = tmp_path / name
        gradestack.grade_files([tmp_path / f"{side}.jsonl"], output=output, engine="serial")
        sides.append(tmp_path / name)
    out = tmp_path / "out"
    gradestack.compare(*sides, by="kind", output=out)
    paths = out.iterdir()
    pages = {entry.name for entry in paths}
    assert {"comparison.html", "comparison.md"} <= pages
    comparison_path = out / "comparison.html"
    expected = comparison_path.read_text(encoding="utf-8")
    assert "onerror=alert(3)" in expected
    tab = out / "comparison.html"
    assert watched(tab) == [(out / "comparison.html").as_uri()]
    source = out / "comparison.md"
    page = render(source)
    assert watched(page) == [page.as_uri()]


def test_what_runs_is_seen(watched, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html>{PAYLOADS[2]}", encoding="utf-8")
    with pytest.raises(AssertionError):
        watched(page)
