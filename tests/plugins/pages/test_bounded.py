"""Pages show the first calls and reasons of a sample, and the first models of a run."""

import json
from collections import Counter
from functools import cache

import pytest

import gradestack
from gradestack import aggregator
from gradestack.metrics import computed, over_tasks
from gradestack_plugins.pages.figures import lines_of
from gradestack_plugins.pages.html import HtmlReporter
from gradestack_plugins.pages.jsonview import equality_key, same_json
from gradestack_plugins.pages.markdown import MarkdownReporter
from gradestack_plugins.pages.models import MOST_MODELS, with_first_models
from gradestack_plugins.pages.page import page_of
from gradestack_plugins.pages.sample import MOST_CALLS, MOST_REASONS, calls_of, grade_view

MANY = 20_000
VALUES = [
    None,
    True,
    False,
    1,
    1.0,
    0,
    "",
    "1",
    [],
    [1],
    [True],
    {},
    {"a": 1},
    {"a": 1.0},
    {"a": None},
]


def calls(count, word):
    return [{"name": f"t{n % 7}", "arguments": {"q": f"{word} {n}"}} for n in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("made", ["other", "same", "one name"])
def test_what_is_shown_of_a_sample_is_bounded(made):
    """It would not end if each call were looked for among all others."""
    expected = calls(MANY, "a")
    if made == "same":
        actual = expected[::-1]
    else:
        actual = calls(MANY, "b")
    if made == "one name":
        expected = [{**call, "name": "t"} for call in expected]
        actual = [{**call, "name": "t"} for call in actual]
    view = calls_of({"expected": {"calls": expected}, "predicted": {"calls": actual}})
    pair_count = len(view.pairs)
    assert pair_count == MOST_CALLS
    assert view.others == []
    assert view.more == MANY - MOST_CALLS
    numbers = [pair.number for pair in view.pairs]
    if made == "same":
        first = range(MANY, MANY - MOST_CALLS, -1)
    else:
        first = range(1, MOST_CALLS + 1)
    assert numbers == [*first]


def test_calls_beside_those_expected_are_bounded():
    predicted = {"calls": calls(MANY, "a")}
    view = calls_of({"expected": {"calls": []}, "predicted": predicted})
    expected = [*range(1, MOST_CALLS + 1)]
    numbers = [number for number, _ in view.others]
    assert numbers == expected
    assert view.more == MANY - MOST_CALLS


def test_reasons_are_bounded():
    reasons = []
    for n in range(MANY):
        subject = f"call {n}"
        reasons.append({"code": "wrong", "subject": subject})
    view = grade_view("g", {"score": 0.0, "reasons": reasons})
    reason_count = len(view.reasons)
    assert reason_count == MOST_REASONS
    assert view.more_reasons == MANY - MOST_REASONS


@pytest.mark.parametrize("left", VALUES, ids=repr)
@pytest.mark.parametrize("right", VALUES, ids=repr)
def test_values_that_are_the_same_have_one_key(left, right):
    assert (equality_key(left) == equality_key(right)) is same_json(left, right)


def _many_models(count):
    lines = []
    for model in range(count):
        for task in range(2):
            call = {"name": "f", "arguments": {"a": task}}
            if (model + task) % 3:
                made = call
            else:
                made = {"name": "f", "arguments": {"a": 9}}
            record = {"id": f"t{task}", "model": f"m{model:04}", "expected": [call]}
            text = json.dumps({**record, "predicted": [made]})
            lines.append(text)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Grade runs of so many models and two tasks each."""

    @cache
    def grade(models):
        folder = tmp_path_factory.mktemp("models")
        runs_path = folder / "runs.jsonl"
        many_models = _many_models(models)
        runs_path.write_text(many_models)
        output = folder / "out"
        paths = [folder / "runs.jsonl"]
        return gradestack.grade_files(paths, output=output)

    return grade


def _lines_shown(report, folder):
    """Return the numbers of pages written, of lines of figures, and of models on them."""
    pages = [*HtmlReporter().write(report, folder), *MarkdownReporter().write(report, folder)]
    short = with_first_models(report)
    lines = lines_of(short)
    line_count = len(lines)
    page = page_of(short)
    model_count = len(page.success.models)
    return len(pages), line_count, model_count


@pytest.mark.slow
def test_pages_show_the_figures_of_as_many_models_however_many_there_are(graded, tmp_path):
    few, many = (_lines_shown(graded(count), tmp_path) for count in (60, 240))
    assert few == many
    assert many[2] == MOST_MODELS


def test_pages_say_how_many_models_are_left_out(graded, tmp_path):
    HtmlReporter().write(graded(60), tmp_path)
    MarkdownReporter().write(graded(60), tmp_path)
    notice = "the figures of the first 50 of 60 models; those of 10 other models are in"
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text()
        page = text.replace("\\", "")
        assert notice in page
        assert ", 54 more models" in page


def test_a_run_of_few_models_is_shown_as_a_whole(graded):
    report = graded(MOST_MODELS)
    first_models = with_first_models(report)
    assert first_models is report


@pytest.mark.slow
def test_work_on_figures_grows_as_the_models_do(graded, monkeypatch):
    calls = Counter()
    declared_at = aggregator.declared_at

    def counting(figures, path):
        calls[count] += 1
        return declared_at(figures, path)

    for module in (aggregator, computed, over_tasks):
        monkeypatch.setattr(module, "declared_at", counting)
    for count in (61, 244):
        graded(count)
    expected = 5 * calls[61]
    assert calls[244] < expected
