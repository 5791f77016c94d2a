"""The pages of a served run in a real browser."""

import json
import threading
from pathlib import Path

import pytest

import gradestack
from gradestack.report import load_report
from gradestack_plugins.pages.served_run import ServedRun
from gradestack_plugins.pages.view import Server

CHECKS = [
    (Path(__file__).parent / name).read_text(encoding="utf-8")
    for name in ("names.js", "contrast.js")
]
HOSTILE = (
    "<img src=https://example.invalid/x.png "
    "onerror=\"console.log('ran')\"><script>console.log('ran')</script>&\"'"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    rows = []
    for number in range(60):
        calls = [{"name": f"{HOSTILE} {number % 2}", "arguments": {HOSTILE: number}}]
        talk = [{"role": "system", "content": HOSTILE * 20}, {"role": "user", "content": HOSTILE}]
        row = {
            "id": f"{HOSTILE} {number // 2}",
            "run": number % 2,
            "model": HOSTILE,
            "messages": talk,
        }
        predicted = {"calls": calls[: number % 3]}
        rows.append(row | {"expected": {"calls": calls}, "predicted": predicted})
    rows_path = folder / "rows.jsonl"
    rows_path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    paths = [str(folder / "rows.jsonl")]
    suite = {"name": HOSTILE, "target": {"paths": paths}, "reader": "jsonl"}
    output = folder / "out"
    gradestack.run(suite | {"graders": {"partial": "tau_partial"}, "reports": []}, output=output)
    path = folder / "out"
    report = load_report(path)
    run = ServedRun(report, gradestack.discover(limit=""))
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
def test_the_page_is_silent_and_can_be_read(tab, url, width, scheme):
    tab.visit(url, width=width, scheme=scheme)
    tab.wait("document.documentElement.classList.contains('ready')")
    tab.run("location.hash = '#s3'")
    tab.wait("document.querySelector('#one .inside')?.textContent.includes('onerror=')")
    assert tab.run("document.documentElement.scrollWidth") <= width
    names, contrast = (tab.run(check) for check in CHECKS)
    assert names == []
    assert contrast["poor"] == []
    messages = tab.messages()
    assert messages == []
    requests = {request.removeprefix(url) for request in tab.requests()}
    assert requests <= {
        "",
        "report_data/chunk-s1.js",
        "report_data/chunk-s3.js",
        "report_data/chunk-text.js",
    }


def test_a_reader_finds_a_sample(tab, url):
    """By the list every report has; its row and what panels show of it are asked for one by one."""
    tab.visit(f"{url}#samples")
    tab.wait("document.documentElement.classList.contains('ready')")
    tab.run("document.getElementById('find').value = 'passed:no \" 7\"'")
    tab.run("document.getElementById('find').dispatchEvent(new Event('input', {bubbles: true}))")
    tab.wait("document.getElementById('shown-count').textContent.startsWith('1 of 60')")
    tab.wait("document.querySelector('#one .inside') !== null")
    assert (
        tab.run("document.querySelector('#one .one-head a').getAttribute('href')") == "rows/16.json"
    )
    assert tab.run("document.querySelectorAll('.trials button').length") == 2
    tab.run("document.querySelectorAll('.trials button')[0].click()")
    tab.wait("document.querySelector('#one .one-head a').getAttribute('href') === 'rows/15.json'")
    tab.wait("document.querySelector('#one .inside') !== null")
    messages = tab.messages()
    assert messages == []
