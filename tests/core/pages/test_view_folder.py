"""`gradestack view` of a folder: its index, the page of each run, and any two compared."""

import json

import pytest

import gradestack
from gradestack_plugins.pages.served_folder import ServedFolder
from gradestack_plugins.pages.view import _served
from tests.core.toy_components import files_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with runs of two suites; the last has nothing in common with the others."""
    folder = tmp_path_factory.mktemp("served folder")
    for name, right, task in (("one", 2, "a"), ("in/two", 11, "a"), ("three", 5, "z")):
        samples = [
            {"id": f"{task}{number}", "expected": "x", "predicted": "x" if number < right else "y"}
            for number in range(12)
        ]
        graders = {"e": "exact_match"}
        output = folder / name
        gradestack.grade(samples, graders=graders, output=output, name=f"suite {task}")
        text = (folder / name / "header.json").read_text()
        header = json.loads(text)
        header["timestamp"] = f"2031-01-0{right % 3 + 1}T00:00:00+00:00"
        header_path = folder / name / "header.json"
        header_path.write_text(json.dumps(header))
    return folder


@pytest.fixture(scope="module")
def served(folder):
    served = _served(folder)
    yield served
    served.close()


def text_at(served, path):
    content, ending = served.respond(path)
    assert ending == ".html"
    return content.decode()


def numbers(served):
    """Return the place of each run among those of the page."""
    return {name: number for number, name in enumerate(served._runs)}


def test_the_first_page_links_every_run_and_its_page_is_served(served, folder):
    before = files_of(folder)
    index = text_at(served, "")
    assert "2 suites, 3 evaluations" in index
    for name, share in (("one", "2 of 12"), ("in/two", "11 of 12"), ("three", "5 of 12")):
        expected_text = f'href="./{name}/report.html"'
        assert expected_text in index
        path = f"{name}/report.html"
        assert share in text_at(served, path)
    row, ending = served.respond("in/two/rows/1.json")
    document = json.loads(row)
    assert document["sample"]["id"] == "a0"
    assert ending == ".json"
    assert files_of(folder) == before


def test_two_runs_are_compared_when_they_are_asked_for(served, folder):
    before = files_of(folder)
    places = numbers(served)
    path = f"compared/{places['one']}-{places['in/two']}/comparison.html"
    page = text_at(served, path)
    assert "91.7% instead of 16.7%" in page
    assert text_at(served, path) == page
    turned = f"compared/{places['in/two']}-{places['one']}/comparison.html"
    assert "16.7% instead of 91.7%" in text_at(served, turned)
    with pytest.raises(gradestack.GradestackError, match="cannot be compared"):
        served.respond(f"compared/{places['one']}-{places['three']}/comparison.html")
    assert files_of(folder) == before


@pytest.mark.parametrize(
    "path",
    [
        "compared/0-0/comparison.html",
        "compared/0-9/comparison.html",
        "compared/0-1/../0-1/comparison.html",
        "compared/0-1/none.html",
        "one",
        "one/results.jsonl",
        "one/../three/report.html",
        "four/report.html",
        "../one/report.html",
        "index.html",
    ],
)
def test_nothing_else_is_there(served, path):
    assert served.respond(path) is None


def test_only_the_last_runs_are_held(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("gradestack_plugins.pages.served_folder._MOST_OPEN", 1)
    served = _served(folder)
    assert isinstance(served, ServedFolder)
    for name in ("one", "three", "one"):
        text_at(served, f"{name}/report.html")
        assert [*served._opened] == [name]
    served.close()


def test_a_folder_without_runs_is_refused_as_no_run(tmp_path):
    with pytest.raises(gradestack.GradestackError, match="not a"):
        _served(tmp_path)
