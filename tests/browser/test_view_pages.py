"""The pages of a served run in a real browser."""

import json
import threading
from pathlib import Path

import pytest

import gradestack
from gradestack.report import load_report
from gradestack_plugins.pages.view import ServedRun, Server

CHECKS = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("names.js", "contrast.js")]
HOSTILE = (
    "<img src=https://example.invalid/x.png onerror=\"console.log('ran')\"><script>console.log('ran')</script>&\"'"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    rows = []
    for number in range(60):
        calls = [{"name": f"{HOSTILE} {number % 2}", "arguments": {HOSTILE: number}}]
        talk = [{"role": "system", "content": HOSTILE * 20}, {"role": "user", "content": HOSTILE}]
        row = {"id": f"{HOSTILE} {number // 2}", "run": number % 2, "model": HOSTILE, "messages": talk}
        rows.append(row | {"expected": {"calls": calls}, "predicted": {"calls": calls[: number % 3]}})
    (place / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    suite = {"name": HOSTILE, "target": {"paths": [str(place / "rows.jsonl")]}, "reader": "jsonl"}
    gradestack.run(suite | {"graders": {"partial": "tau_partial"}, "reports": []}, output=place / "out")
    run = ServedRun(load_report(place / "out"), gradestack.discover(limit=""))
    server = Server(run)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.url
    server.shutdown()
    thread.join()
    server.server_close()
    run.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("page", ["", "samples/3", "report.html"])
def test_pages_are_silent_and_can_be_read(tab, url, page, width, scheme):
    tab.visit(url + page, width=width, scheme=scheme)
    tab.wait("document.body.textContent.includes('onerror=')")  # which the page's script draws
    assert tab.run("document.documentElement.scrollWidth") <= width
    names, contrast = (tab.run(check) for check in CHECKS)
    assert (names, contrast["poor"]) == ([], [])
    assert tab.messages() == []
    assert tab.requests() == [url + page]


def test_a_reader_finds_a_sample(tab, url):
    tab.visit(url)
    tab.run(
        "document.querySelector('[name=q]').value = ' 7'; document.querySelector('[name=verdict]').value = 'failed'"
    )
    tab.run("document.querySelector('form').submit()")
    tab.wait("location.search.includes('verdict=failed') && document.readyState === 'complete'")
    assert tab.run("[...document.querySelectorAll('.found th a')].map(one => one.getAttribute('href'))") == [
        "samples/16",
        "samples/55",
    ]
    tab.run("document.querySelector('.found th a').click()")
    tab.wait("location.pathname.endsWith('/samples/16') && document.querySelector('.inside') !== null")
    assert tab.run("document.querySelector('.inside').checkVisibility()")
    tab.run("document.querySelector('[rel=prev]').click()")
    tab.wait("location.pathname.endsWith('/samples/15') && document.querySelector('.inside') !== null")
    tab.run("[...document.querySelectorAll('.pages a')].find(one => one.textContent.startsWith('All trials')).click()")
    tab.wait("location.search.startsWith('?q=') && document.readyState === 'complete'")
    found = tab.run("[...document.querySelectorAll('.found th a')].map(one => one.getAttribute('href'))")
    assert found == ["samples/15", "samples/16"]
    assert tab.messages() == []
