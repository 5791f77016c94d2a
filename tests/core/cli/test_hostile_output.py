"""Texts from data on their way out.

No command prints them, and no page shows them, as anything but texts.
"""

import json
import re
import warnings
from html.parser import HTMLParser

import pytest
import yaml
from markdown_it import MarkdownIt

import gradestack
from gradestack import Registry
from gradestack.registry import Plugin
from tests.core.outcomes import data, files_but_headers

FORGED = "✓ FORGED"
HOSTILE = (
    f"m\n{FORGED}\n::error::x\r\x1b[31mred\x1b]0;t\x07\x9b1m\u202e\u2066\u2028{FORGED}"
    "\u0085##[error]y ##vso[x]z "
    "# h | c ` `` **b** <b>i</b> <script>1</script> [l](http://l.example) ![i](i.png) @team #12 "
    "GH-12 "
    'http://e.example www.e.example a@e.example $x$ &amp; {{ 7*7 }} "q" \' \ud83d'
)
FILE = (
    f"m\n{FORGED}\n::error::x\x1b[31m\u202e\u2028##[error] `b` | @team #12 www.e.example "
    "a@e.example"
)
"""No slash, and no longer than the name of a file may be."""
PLAIN = "name"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LINKED = re.compile(r"\w://|www\.|@\w|#\d|GH-\d|\$")


def text_of(hostile, what):
    return f"{what} {HOSTILE if hostile else PLAIN}"


def records(*, hostile):
    """Return records whose texts are all hostile or all plain, one of them failed."""
    recorded_samples = []
    for number, predicted in enumerate(["a", "b", "c"]):
        text = text_of(hostile, "text")
        calls = [
            {"name": text_of(hostile, "tool"), "arguments": {text: [text, number]}, "error": text}
        ]
        recorded_samples.append(
            {
                "id": text_of(hostile, f"id {number}"),
                "model": text_of(hostile, f"model {number % 2}"),
                "run": text_of(hostile, "run"),
                "messages": [
                    {"role": text, "content": text},
                    {"role": "assistant", "content": text},
                ],
                "expected": {
                    "calls": [*calls, {"name": text, "arguments": {"x": text}}],
                    "text": "a",
                },
                "predicted": {"calls": calls, "text": predicted},
                "facets": {text_of(hostile, "facet"): text_of(hostile, f"group {number}")},
            }
        )
    first_recorded_sample = recorded_samples[0]
    recorded_samples.append(
        {
            **first_recorded_sample,
            "id": text_of(hostile, "id failed"),
            "error": {"message": text, "type": text},
        }
    )
    recorded_samples.append({**recorded_samples[0], "id": text_of(hostile, "id wrong"), text: text})
    return recorded_samples


def suite(*, hostile):
    """Return a suite whose names are all hostile, or all plain."""
    key = text_of(hostile, "grader")
    facet = text_of(hostile, "facet")
    text = text_of(hostile, "suite")
    return {
        "name": text,
        "target": {"paths": ["*.jsonl"]},
        "reader": "jsonl",
        "graders": {key: {"kind": "tau_partial"}, "exact": "exact_match", "torn": "torn.py:torn"},
        "outcome": key,
        "gate": {"metric_key": "exact", "op": "gte", "value": 0.9, "per": facet},
    }


@pytest.fixture
def hostile_folder(tmp_path, monkeypatch):
    """Return a function that fills a folder with hostile or plain files, and enters it."""

    def make(*, hostile):
        here = tmp_path / ("hostile" if hostile else "plain")
        here.mkdir()
        monkeypatch.chdir(here)
        lines = "".join(f"{json.dumps(record)}\n" for record in records(hostile=hostile))
        (here / f"{FILE if hostile else PLAIN}.jsonl").write_text(f"{lines}{{broken\n")
        for suite_file in ("suite.yaml", "::error::.yaml"):
            (here / suite_file).write_text(yaml.safe_dump(suite(hostile=hostile)))
        torn_path = here / "torn.py"
        torn_path.write_text(
            "def torn(sample):\n    raise LookupError(f'nothing in {sample.id}')\n"
        )
        bad_path = here / "bad.yaml"
        bad_path.write_text(
            yaml.safe_dump({HOSTILE: 1, "graders": {HOSTILE: HOSTILE}, "stack": HOSTILE})
        )
        return here

    return make


def check_lines(text):
    """Assert that a text printed is lines that do nothing, and none of them made by data."""
    for line in text.split("\n"):
        assert line.isprintable(), line
        assert not line.strip().startswith(("::", FORGED)), line
        assert not re.search(r"##\w*\[", line), line


@pytest.mark.parametrize(("arguments", "code"), data(__file__, "hostile_output.yaml"))
def test_what_a_command_prints_is_lines_that_do_nothing(hostile_folder, command, arguments, code):
    hostile_folder(hostile=True)
    text = HOSTILE.replace("\ud83d", "")
    result = command(
        *(
            argument.replace("QUOTED", json.dumps(text)).replace("HOSTILE", text)
            for argument in arguments
        )
    )
    assert result.code == code, result
    assert result.out or result.err
    check_lines(result.out)
    check_lines(result.err)


def test_names_of_pages_stay_on_their_lines(hostile_folder, command):
    hostile_folder(hostile=True)
    command("run", "suite.yaml", "--allow-code", "-o", "out", "-q")
    result = command("report", "out", "-o", FILE)
    assert result.code == 0
    assert result.err == ""
    assert result.out.count("\n") == 2
    check_lines(result.out)


def test_samples_are_shown_as_lines_that_do_nothing(hostile_folder, command):
    hostile_folder(hostile=True)
    command("run", "suite.yaml", "--allow-code", "-o", "out", "-q", "--set", "reports=[]")
    for name in ("id 1", "id failed"):
        for options in ([], ["--all", "--full"]):
            text = text_of(True, name)
            result = command("show", "out", text, *options)
            assert (result.code, result.err) == (0, ""), result
            check_lines(result.out.replace(f"    {FORGED}", ""))


@pytest.mark.parametrize(
    "arguments", ["plugins list", "stacks list", "stacks show tool_calls", "schema suite"]
)
def test_lists_of_components_are_lines_that_do_nothing(
    hostile_folder, command, registry, arguments
):
    hostile_folder(hostile=True)
    error = f"ImportError: {HOSTILE}"
    sick = Plugin(name="gone", distribution="gone-dist", version="9", error=error)
    chosen = Registry([*registry.plugins, sick])
    command.use(chosen)
    result = command(*arguments.split())
    assert result.code == 0
    assert result.err == ""
    check_lines(result.out)
    assert ("ImportError: m\\n" in result.out) == (arguments == "plugins list")


def test_warnings_from_python_are_one_line(hostile_folder):
    here = hostile_folder(hostile=True)
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always")
        list(gradestack.stream(here / f"{FILE}.jsonl", ["tau_partial"], reader="jsonl"))
    assert len(caught_warnings) == 2
    for warning in caught_warnings:
        message = str(warning.message)
        assert "\n" not in message
        check_lines(str(warning.message))


@pytest.fixture
def written(hostile_folder, command):
    def run(*, hostile):
        here = hostile_folder(hostile=hostile)
        command("run", "suite.yaml", "--allow-code", "-o", "out", "-q")
        return files_but_headers(here / "out")

    return run


@pytest.mark.slow
def test_the_markdown_page_is_built_as_with_plain_texts(written):
    """The same headings, tables, cells and lists; no link, HTML or emphasis.

    Nothing outside code that is linked.
    """
    shapes = {}
    for hostile in (False, True):
        report_md = written(hostile=hostile)["report.md"]
        page = report_md.decode()
        tokens = MARKDOWN.parse(page)
        shapes[hostile] = [(token.type, token.tag) for token in tokens]
        parts = [part for token in tokens for part in token.children or ()]
        types = {part.type for part in parts}
        assert types <= {
            "text",
            "code_inline",
            "strong_open",
            "strong_close",
            "softbreak",
        }
        texts = [part.content for part in parts if part.type == "text"]
        assert [text for text in texts if LINKED.search(text)] == []
        lines = page.split("\n")
        assert all(line.isprintable() for line in lines)
    assert shapes[True] == shapes[False]


class Tags(HTMLParser):
    """The tags of a page with the names of their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags |= {(tag, name) for name, _ in attrs} | {tag}

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow
def test_the_html_page_has_the_tags_of_plain_texts(written):
    report_html = written(hostile=False)["report.html"].decode()
    plain = Tags(report_html)
    page = written(hostile=True)["report.html"].decode()
    tags = Tags(page)
    expected = plain.tags | {"br"}
    assert tags.tags <= expected
    assert "<script>1</script>" in Tags(page).text
    assert all(char.isprintable() or char in "\n\t\xa0" for char in page)
