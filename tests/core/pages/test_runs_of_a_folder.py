"""`gradestack index`: a page over the runs of a folder."""

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

import gradestack
from gradestack_plugins.pages.runs import folder_of, write_index
from tests.core.outcomes import read_json, write_records
from tests.core.toy_components import files_of
from tests.golden.pages import check_golden_file

HOSTILE = "<img src=x onerror=alert(1)> \"q\" & \u202e ${x} `y` 'z'"


class Page(HTMLParser):
    """Links, ticks and texts of a page; its tags with the names of their attributes."""

    def __init__(self, text):
        super().__init__()
        self.links = []
        self.picks = []
        self.tags = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags |= {tag} | {f"{tag} {name}" for name in attributes}
        if tag == "a" and attributes["href"].startswith("./"):
            self.links.append(attributes["href"])
        if "pick" in (attributes.get("class") or ""):
            self.picks.append(attributes["data-word"])

    def handle_data(self, data):
        if self.cdata_elem is None:
            self.text += f"{data} "


@pytest.fixture(scope="module")
def made(tmp_path_factory, registry):
    """The directory of a run with a gate."""
    folder = tmp_path_factory.mktemp("made")
    rows = []
    for number in range(6):
        score = number % 2
        rows.append({"id": str(number), "predicted": "x", "recorded": {"score": score}})
    path = folder / "runs.jsonl"
    write_records(path, rows)
    runs_path = folder / "runs.jsonl"
    paths = [str(runs_path)]
    suite = {
        "name": "nightly",
        "target": {"paths": paths},
        "reader": "jsonl",
    }
    suite |= {
        "graders": {"quality": "toy"},
        "reports": [],
        "gate": {"metric_key": "quality", "op": "gte", "value": 0.6},
    }
    suite |= {
        "metrics": {"mean": {"of": "quality"}},
        "headline": {"figures": {"Quality": "quality.mean"}},
    }
    output = folder / "run"
    gradestack.run(suite, output=output, registry=registry)
    return folder / "run"


@pytest.fixture
def add(made, tmp_path):
    """Return a function that adds a run to the folder, with another day, value or summary."""

    def put(name, day=1, *, page=False, value=None, **summary):
        folder = tmp_path / "folder" / name
        shutil.copytree(made, folder)
        header, content = (
            read_json(folder / file_name) for file_name in ("header.json", "summary.json")
        )
        header["timestamp"] = f"2026-01-{day:02}T10:20:30+00:00"
        if value is not None:
            figures = content["headline"]["figures"]
            figure = figures[0]
            low = value - 0.1
            high = value + 0.1
            figure |= {
                "value": value,
                "interval": {"low": low, "high": high, "confidence": 0.95},
            }
        header_path = folder / "header.json"
        header_path.write_text(json.dumps(header))
        summary_path = folder / "summary.json"
        text = json.dumps(content | summary)
        summary_path.write_text(text)
        if page:
            (folder / "report.html").touch()
        return folder

    (tmp_path / "folder").mkdir()
    return put


@pytest.fixture
def page(tmp_path):
    def write():
        folder = folder_of(tmp_path / "folder")
        path = write_index(folder, tmp_path / "folder")
        return Page(path.read_text())

    return write


def add_comparison(folder, name, runs):
    made_folder = folder / name
    made_folder.mkdir()
    (made_folder / "comparison.html").touch()
    sentence = f"{name} differ"
    content = {"runs": [{"name": run} for run in runs], "sentence": sentence}
    comparison_path = made_folder / "comparison.json"
    text = json.dumps(content)
    comparison_path.write_text(text)


def test_golden_page_of_a_folder(add, tmp_path):
    """Runs of two suites from the newest, one with models, and what was compared."""
    figure = {"figure": "quality.mean", "label": "Quality", "value": 0.5}
    models = {"alpha": {"value": 0.25, "interval": None}, "beta": {"value": 0.75, "interval": None}}
    figures = [figure | {"models": models}]
    headline = {"letta": False, "figures": figures}
    add("a/one", 3, page=True, value=0.7, gates_passed=True)
    add("b/two", 1, value=0.55)
    add("c/two", 2, value=0.6, suite="weekly")
    run = add("models", 4, headline=headline)
    path = run / "summary.json"
    summary = read_json(path)
    summary["metrics"]["per_model"] = [{"model_name": name, "total": 3} for name in models]
    summary_path = run / "summary.json"
    summary_path.write_text(json.dumps(summary))
    folder = tmp_path / "folder"
    for name, runs in (("sure", ["one", "b/two"]), ("unsure", ["one", "two"])):
        add_comparison(folder, name, runs)
    page = write_index(folder_of(folder), folder)
    text = page.read_text(encoding="utf-8")
    check_golden_file("index.html", text)


def test_what_cannot_be_shown_is_named(add, page, tmp_path):
    add("good")
    add("stopped", incomplete="interrupted by Ctrl-C")
    summary_path = add("torn") / "summary.json"
    summary_path.write_text('{"suite": ')
    (add("gone") / "results.jsonl").unlink()
    (add("strange") / "summary.json").write_text("[]")
    header_path = add("foreign") / "header.json"
    header_path.write_text('{"generator": "other"}')
    sub_folder = tmp_path / "folder" / "sub"
    (sub_folder / ".going.unfinished").mkdir(parents=True)
    runs_found = folder_of(tmp_path / "folder")
    text = " ".join(page().text.split())
    paths = [run.path for run in runs_found.runs]
    assert paths == ["good", "stopped"]
    assert "stopped interrupted" in text
    assert "1 interrupted. 1 unfinished . 4 cannot be read ." in text
    lines = runs_found.problems
    assert [line.partition(":")[0] for line in lines] == [
        "sub/going",
        "foreign",
        "gone",
        "strange",
        "torn",
    ]
    expected = "".join(lines) + text
    assert str(tmp_path) not in expected
    for line in lines[1:]:
        assert line.replace(": ", " : ", 1) in text


def test_what_is_inside_a_run_is_part_of_it(add, tmp_path):
    inner = add("run")
    run_1_folder = inner / "run_1"
    shutil.copytree(inner, run_1_folder)
    loop_folder = tmp_path / "folder" / "loop"
    loop_folder.symlink_to(tmp_path / "folder")
    runs = folder_of(tmp_path / "folder").runs
    assert [run.path for run in runs] == ["run"]
    folder = folder_of(inner)
    paths = [run.path for run in folder.runs]
    assert paths == ["."]


def test_names_do_nothing(add, page):
    add("plain", value=0.55)
    add("plain2", value=0.6)
    plain = page().tags
    for name in ("javascript:alert(1)", HOSTILE, "-rf", "a\nb", "line\u2028end"):
        add(name, page=True, value=0.55, suite=HOSTILE)
    shown_page = page()
    assert shown_page.tags <= plain | {"a", "td title"}
    assert all(re.fullmatch(r"\./[\w/.%~-]+", link) for link in shown_page.links)
    assert "./javascript%3Aalert%281%29/report.html" in shown_page.links
    assert "./-rf" in shown_page.picks
    assert not any("\n" in word or "\u2028" in word for word in shown_page.picks)
    assert "⟨U+202E⟩" in shown_page.text


def test_the_command_says_what_it_found(command, add, tmp_path):
    add("one")
    add("two", incomplete="interrupted")
    result = command("index", tmp_path / "folder")
    assert result.code == 0
    assert result.err == "warning: two: interrupted\n"
    expected_text = f"Index: {tmp_path / 'folder' / 'index.html'} (2 runs)\n"
    assert result.out == expected_text


def test_where_there_is_no_run_nothing_is_written(command, tmp_path, add):
    nowhere_folder = tmp_path / "nowhere"
    assert command("index", nowhere_folder).code == 3
    (tmp_path / "folder" / ".x.unfinished").mkdir()
    result = command("index", tmp_path / "folder")
    assert result.code == 3
    assert "no finished run in it or below; 1 that cannot be shown\n  - x: unfinished" in result.err
    files = files_of(tmp_path / "folder")
    assert files == {}
    add("one")
    index_path = tmp_path / "folder" / "index.html"
    index_path.write_text("<p>mine</p>")
    result = command("index", tmp_path / "folder")
    assert result.code == 2
    assert "was not written by gradestack" in result.err
    text = (tmp_path / "folder" / "index.html").read_text()
    assert text == "<p>mine</p>"
