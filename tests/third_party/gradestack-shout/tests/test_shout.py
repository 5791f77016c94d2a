"""The package as its author tests it: the conformance kit, and what its figures mean."""

import base64
import json
import re
import shutil
import subprocess
import sys
import zlib
from importlib.metadata import version
from pathlib import Path

import pytest
from gradestack_shout import gradestack_components
from gradestack_shout.grader import Shout
from gradestack_shout.panels import letters, loudness

from gradestack import Sample, discover, grade, load_report, testing
from gradestack_plugins.pages.testing import check_panel

CHECKS = testing.checks(
    "gradestack-shout",
    reads={"jsonl": Path(__file__).with_name("answers.jsonl")},
    examples={"shout": [Shout(), Shout(limit=0.0)]},
)


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_everything_it_offers_keeps_the_contract(check):
    """Components are what they say, pure and frugal, and stand hostile samples.

    A run has the same bytes anywhere.
    """
    check()


@pytest.mark.parametrize("component", gradestack_components(), ids=lambda component: component.name)
def test_components_are_found_in_this_distribution(component):
    plugin = discover().find(component.kind, component.name).plugin
    assert plugin.distribution == "gradestack-shout"
    assert plugin.version == version("gradestack-shout")


@pytest.mark.parametrize(
    ("text", "score", "passed"), [("all", 0.0, False), ("ALl", 2 / 3, True), ("ALL!", 1.0, True)]
)
def test_the_score_is_the_share_of_capitals(text, score, passed):
    """Among letters only; from the limit on it passes."""
    grade = Shout().grade(Sample(id="a", text=text))
    assert grade.score == score
    assert grade.passed == passed


def test_it_is_graded_by_name():
    """Its grader and both aggregators, over samples in memory.

    A sample without letters is skipped.
    """
    samples = [
        {"id": "calm", "predicted": "well"},
        {"id": "loud", "predicted": "WELL"},
        {"id": "mute", "predicted": "!"},
    ]
    with grade(samples, graders=["shout"]) as report:
        assert report.states["shout"] == {"graded": 2, "skipped": 1, "failed": 0, "missing": 0}
        loudest = report.aggregates["shout"]["loudest"]
        assert {name: loudest[name] for name in ("id", "score", "all_capitals")} == {
            "id": "loud",
            "score": 1.0,
            "all_capitals": 0.5,
        }
        clusters = loudest["all_capitals_interval"]["clusters"]
        assert clusters == 2
        avg_score_attempted = report.metrics["avg_score_attempted"]
        assert avg_score_attempted == 0.5


HOSTILE = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the directory of a run of the command line, with a theme and a folder of templates."""
    desk = tmp_path_factory.mktemp("desk")
    for name in ("suite.yaml", "house"):
        file_path = Path(__file__)
        source = file_path.with_name(name)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, desk / name)
    answers = [
        ("calm", "well then"),
        ("loud", "WELL THEN"),
        ("mute", "!"),
        ("rude", f"GO {HOSTILE}"),
    ]
    answers_path = desk / "answers.jsonl"
    answers_path.write_text(
        "".join(json.dumps({"id": id_, "predicted": text}) + "\n" for id_, text in answers),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "gradestack.cli", "run", "suite.yaml", "-o", "out", "--quiet"]
    done = subprocess.run(command, cwd=desk, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    return desk / "out"


def samples_of(page):
    """Return the samples that a page carries for its script to draw, unpacked."""
    packed = re.findall(
        r'<script type="application/json" id="(?:chunk\d+|panels)"[^>]*>([^<]*)</script>', page
    )
    return "\n".join(zlib.decompress(base64.b64decode(text), wbits=-15).decode() for text in packed)


def test_its_panels_stand_on_the_page(run):
    """The overview's, and the block of each sample that has letters."""
    report_path = run / "report.html"
    page = report_path.read_text(encoding="utf-8")
    assert '<h2 id="panel-shout-loudness-title">How loud</h2>' in page
    assert 'href="#q=loud"' in page
    samples = samples_of(page)
    assert samples.count(" letters of ") == 3
    assert HOSTILE not in page
    text = (run / "report.md").read_text(encoding="utf-8")
    assert "How loud" in text


def test_the_page_has_its_theme_and_its_own_part(run):
    """Both are the suite's: nothing was allowed, and nothing of gradestack was changed."""
    report_path = run / "report.html"
    page = report_path.read_text(encoding="utf-8")
    assert "The help desk owns desk." in page
    assert "--accent: #7a1fa2; --sans: Inter, system-ui, sans-serif;" in page
    assert page.count("--accent: #d9a7f0") == 2


def test_a_page_without_shouting_has_no_panel(tmp_path):
    """Runs without the grader look as if the package were not there."""
    output = tmp_path / "o"
    with grade(
        [{"id": "a", "predicted": "b"}],
        graders=["exact_match"],
        reports=["html"],
        output=output,
    ):
        o_folder = tmp_path / "o"
        report_path = o_folder / "report.html"
        page = report_path.read_text(encoding="utf-8")
    assert "panel-shout" not in page
    samples = samples_of(page)
    assert " letters of " not in samples


@pytest.mark.parametrize("panel", [loudness, letters], ids=["loudness", "letters"])
def test_panels_are_sound(panel, run):
    """The same twice, and not for one kind of texts only."""
    report = load_report(run)
    check_panel(panel, report)
