"""A page whose samples stand beside it, in a real browser, from a file."""

import io

import attrs
import pytest

from gradestack.jsonio import dumps
from gradestack_plugins.pages import blocks
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.text import clean
from tests.core.outcomes import some_of
from tests.placed import panel_of, with_panels

BOOM = {"category": "target", "code": "boom", "message": "bad"}
READY = "document.documentElement.classList.contains('ready')"


@pytest.fixture
def opened(tab, fake, tmp_path):
    def write(rows=None, more=(), panels=(), **options):
        report = fake.make_report(rows or fake.realistic_rows(tasks=6, trials=2))
        buffer = io.BytesIO(
            report.row_buffer.getvalue() + "".join(f"{dumps(row)}\n" for row in more).encode()
        )
        report = with_panels(attrs.evolve(report, row_buffer=buffer), *panels)
        html_reporter = HtmlReporter(**{"max_bytes": 0, "max_samples": 0, **options})
        (path,) = html_reporter.write(report, tmp_path)
        tab.visit(path.as_uri(), width=1440)
        tab.wait(READY)
        return tab, path

    return write


ALL_TEXT = """(() => { const found = [];
  const walk = document.createTreeWalker(document.getElementById('one'), 4);
  while (walk.nextNode()) { found.push(walk.currentNode.data); } return found.join(' '); })()"""


def show(tab, row):
    """Open the sample of a row and wait until it is there."""
    tab.run(f"location.hash = '#s{row + 1}'")
    tab.wait("document.querySelector('#one .inside') !== null")


def test_a_sample_beside_the_page_is_read_when_it_is_looked_at(opened):
    tab, path = opened()
    show(tab, 7)
    assert tab.run("document.querySelectorAll('#one .pair').length") > 0
    assert tab.run("document.querySelectorAll('#one .m').length") > 2
    assert tab.run("document.querySelectorAll('#one .grade').length") > 0
    assert "Row 8 of results.jsonl" in tab.run("document.getElementById('one').textContent")
    messages = tab.messages()
    assert messages == []
    requests = tab.requests()
    expected = [path.as_uri(), (path.parent / "report_data" / "chunk-1.js").as_uri()]
    assert requests == expected


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        (
            {
                "expected": {"label": "no", "plan": ["deep"]},
                "predicted": {"label": "yes", "plan": {"a": [1]}},
            },
            [
                "Label Expected no Predicted yes",
                'Expected plan ["deep"]',
                'Predicted plan {"a": [1]}',
            ],
        ),
        (
            {"sample": {"id": "a", "input": ["one", ["two", "three"], {"four": 4}]}},
            ['one two three {"four": 4}'],
        ),
        (
            {"expected": {"text": "It is so."}, "predicted": {}},
            ["Expected answer It is so.", "Answer No, thank you."],
        ),
        (
            {"expected": {"calls": []}, "predicted": {"calls": []}},
            ["No call was expected, and none was made."],
        ),
        (
            {
                "expected": {"calls": [{"name": "f", "arguments": {"x": 1}}]},
                "predicted": {
                    "calls": [
                        {"name": "g", "arguments": None, "raw_arguments": "{no", "seconds": 0.25}
                    ]
                },
                "grade": {},
                "grades": {},
            },
            [
                "paired by name and arguments",
                "closest call: no. 1",
                "0.250 s",
                "Arguments are no object {no",
            ],
        ),
        (
            {
                "error": BOOM,
                "grade": {},
                "grades": {"g": {"state": "failed", "fault": BOOM, "rationale": "bad"}},
            },
            ["Recorded run failed target boom: bad Task", "Grades g error Metadata"],
        ),
        (
            {
                "grade": {"state": "skipped", "score": 0.0},
                "grades": {"g": {"state": "skipped", "score": 0.0}},
            },
            ["Grades g not applicable Metadata"],
        ),
        (
            {
                "grade": {},
                "grades": {
                    "g": {
                        "score": 0.5,
                        "items": [
                            {
                                "id": "i",
                                "outcome": "graded",
                                "score": 0.57,
                                "reasons": [{"code": "c"}],
                            }
                        ],
                        "reasons": [{"code": "c"}, {"code": "d", "message": "why"}],
                        "counts": {"n": 2, "none": 0},
                        "fault": {"code": "f", "type": "E"},
                        "label": "l",
                        "gold": 3,
                    }
                },
            },
            ["g 0.500 label l , expected 3 f (E) d – why", "i 0.570 c", "Counts and parts n 2"],
        ),
        (
            {
                "ended": "limit",
                "usage": {"cost_usd": 0.00012, "seconds": 1234.5, "tokens": 12345678},
                "tools": ["t"],
            },
            [
                "Ended limit",
                "Took cost_usd 0.00012, seconds 1,234.5, tokens 12,345,678",
                "Tools (1) t",
            ],
        ),
        (
            {"trajectory": [[{"role": "user", "content": "a"}], [{"content": "b"}]]},
            ["Turn 1 user a Turn 2 unknown"],
        ),
        (
            {
                "trajectory": [
                    [{"role": "tool", "content": "{}", "reasoning": "Think", "name": "t"}]
                ]
            },
            ["1 message", "tool t", "Reasoning 5 characters Think {}"],
        ),
        (
            {"trajectory": [[{"role": "user", "content": "a"}] * 203]},
            ["203 messages", "3 more messages in results"],
        ),
        (
            {"trajectory": [[{"role": "user", "content": "x" * 20_000}]]},
            ["10,000 more characters in results.jsonl"],
        ),
    ],
)
def test_what_a_row_has_is_shown(opened, fake, change, texts):
    graded_row = fake.graded_row(2, 0, "m")
    tab, _ = opened([graded_row], [{**fake.graded_row(1, 0, "m"), **change}])
    show(tab, 1)
    tab.wait("document.querySelector('#one').textContent.includes('Row 2 of')")
    shown = " ".join(tab.run(ALL_TEXT).split())
    assert [text for text in texts if text not in shown] == []
    messages = tab.messages()
    assert messages == []


def of_sample(row):
    if row["run"] % 2:
        return [blocks.Words(f"<b>of</b> {row['sample']['id']}")]
    return None


@pytest.fixture
def panel():
    return panel_of(of_sample, "sample", name="own", title="<i>Own")


OWN = (
    "[...document.querySelectorAll('#one .panel')].map(one => "
    "one.textContent.split(/\\s+/).join(' ').trim())"
)


@pytest.mark.parametrize(
    "options",
    some_of(
        [{"max_samples": 3, "max_bytes": 30_000}, {"max_samples": 3, "max_bytes": 10**7}, {}], 3
    ),
)
def test_panels_stand_in_samples(opened, panel, options):
    tab, _ = opened(panels=[panel], **options)
    for row in range(24):
        show(tab, row)
        tab.wait(f"document.querySelector('#one').textContent.includes('Row {row + 1} of')")
        task, trial = (
            tab.run("document.querySelector('#one h3').textContent")
            .removeprefix("Task ")
            .split(", trial ")
        )
        assert tab.run(OWN) == ([f"<i>Own <b>of</b> {task}"] if trial == "1" else [])
        if trial == "1":
            assert tab.run(
                "document.querySelector('#one .panel').nextElementSibling.textContent"
            ).startswith("Calls")
    messages = tab.messages()
    assert messages == []


def test_numbers_keep_their_digits(opened, fake):
    row = fake.graded_row(1, 0, "m")
    row["expected"]["calls"][0]["arguments"] = {"many": 12345678901234567890, "one": 1.0, "two": 2}
    graded_row = fake.graded_row(2, 0, "m")
    tab, _ = opened([row, graded_row])
    show(tab, 0)
    cells = "[...document.querySelector('#one .pair').querySelectorAll('tr td:nth-child(2)')]"
    script = f"{cells}.map(one => one.textContent).slice(0, 3)"
    assert tab.run(script) == [
        "12345678901234567890",
        "1.0",
        "2",
    ]


def test_hidden_characters_are_visible(opened, fake):
    row = fake.graded_row(1, 0, "m")
    far = (*range(0x2000, 0x2100), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0100))
    text = "".join(map(chr, (*range(0x250), 0x61C, 0x180E, *far, 0xD83D))) + "\r\n"
    grades = row["grades"].values()
    for grade in (row["grade"], *grades):
        grade["rationale"] = text
    tab, _ = opened([row])
    show(tab, 0)
    shown = tab.run(
        "[...document.querySelector('#one .rationale').textContent].map(one => one.codePointAt(0))"
    )
    assert "".join(map(chr, shown)) == clean(text)


def test_a_page_without_its_chunks_says_so(opened):
    tab, path = opened()
    tab.open("about:blank")
    report_data_folder = path.parent / "report_data"
    (report_data_folder / "chunk-1.js").unlink()
    tab.open(path.as_uri())
    tab.wait(READY)
    note = "report_data/chunk-1.js is not beside this page: see results.jsonl, line"
    tab.wait(f"document.getElementById('one').textContent.includes({note!r})")


def test_a_chunk_of_another_page_is_not_shown(opened):
    tab, path = opened()
    tab.open("about:blank")
    report_data_folder = path.parent / "report_data"
    chunk = report_data_folder / "chunk-1.js"
    chunk.write_text(
        'globalThis.gradestackChunk = "H4sIAAAAAAAAAwMAAAAAAAAAAAA=";\n', encoding="ascii"
    )
    tab.open(path.as_uri())
    tab.wait(READY)
    tab.wait("document.getElementById('one').textContent.includes('chunk-1.js is of another page')")
    assert tab.run("document.querySelector('#one .inside')") is None


def test_a_long_list_is_read_from_beside_the_page(opened, monkeypatch):
    monkeypatch.setattr("gradestack_plugins.pages.html._LONGEST_LIST", 100)
    tab, _ = opened()
    assert tab.run("document.getElementById('shown-count').textContent") == "24 of 24"
    show(tab, 3)
    messages = tab.messages()
    assert messages == []


def test_the_worst_samples_stay_in_the_page(opened):
    tab, path = opened(max_bytes=8_000, max_samples=5)
    assert tab.run("[...document.querySelectorAll('script[id^=chunk]')].length") == 1
    tab.open("about:blank")
    report_data_folder = path.parent / "report_data"
    for entry in report_data_folder.iterdir():
        entry.unlink()
    tab.open(path.as_uri())
    tab.wait(READY)
    tab.wait("document.querySelector('#one .inside') !== null")
    tab.visit(path.as_uri(), scripts=False)
    assert tab.run("document.querySelectorAll('noscript tr .what').length") == 5
    assert "5 of 24 runs, failures first" in tab.run("document.body.innerText")
    assert tab.run("document.getElementById('list').checkVisibility()") is False
    tab.emulate()
