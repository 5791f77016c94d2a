"""The grader on files of every family, and every published rule side by side."""

import json
import os
import shutil
from pathlib import Path

import pytest

import gradestack
from gradestack import ConfigError
from gradestack_plugins.tool_calls.grader import ToolCalls
from gradestack_plugins.tool_calls.panels import presets_of
from gradestack_plugins.tool_calls.presets import PRESETS, key_of, peers
from tests.core.outcomes import data
from tests.plugins.tool_calls.presets_table import CASES, sample_of

DATA = data(__file__, "families.yaml")


DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")


def figures(report, key="calls"):
    metrics = report.summary["metrics"]
    return metrics["aggregates"][key]["call_figures"]


def run(folder, graders, name="out"):
    suite = {
        "name": "s",
        "target": {"paths": ["runs.jsonl"]},
        "graders": graders,
        "engine": "serial",
    }
    suite_path = folder / "suite.yaml"
    text = json.dumps(suite)
    suite_path.write_text(text, encoding="utf-8")
    output = folder / name
    return gradestack.run(folder / "suite.yaml", output=output)


@pytest.mark.skipif(not DATA, reason="GRADESTACK_REFERENCE_DATA is not set")
def test_published_examples(tmp_path):
    """BFCL's and tau2's files have references with rules.

    The rules of their own programs take them, too.
    """
    data_path = Path(DATA)
    folder = data_path / "formats"
    bfcl_folder = folder / "bfcl"
    shutil.copytree(bfcl_folder, tmp_path / "bfcl")
    result_folder = tmp_path / "bfcl/result"
    output = tmp_path / "a"
    report = gradestack.grade_files([result_folder], output=output, stack="peers", engine="serial")
    verdict_rate = figures(report, "bfcl_ast")["verdict_rate"]
    expected = figures(report, "documented")["f1"]
    assert verdict_rate == expected == 1.0
    results_path = folder / "tau2/results.json"
    b_folder = tmp_path / "b"
    report = gradestack.grade_files([results_path], output=b_folder, stack="peers", engine="serial")
    states = figures(report, "tau2_action")["states"]
    assert states == {"graded": 3}


def test_every_preset_stands_in_the_stack_of_peers(tmp_path):
    """Side by side: one grader for each, under a key of its own, named in full in header.json."""
    graders = peers()["graders"]
    presets = {grader["preset"] for grader in graders.values()}
    assert presets == set(PRESETS)
    grader_count = len(peers()["graders"])
    assert grader_count == len(PRESETS)
    line = {"id": "a", "expected": [{"name": "f"}, {"name": "f"}], "predicted": [{"name": "f"}]}
    runs_path = tmp_path / "runs.jsonl"
    text = json.dumps(line)
    runs_path.write_text(text + "\n", encoding="utf-8")
    output = tmp_path / "out"
    paths = [tmp_path / "runs.jsonl"]
    report = gradestack.grade_files(paths, output=output, stack="peers", engine="serial")
    rows = iter(report.rows())
    row = next(rows)
    scores = {}
    for name in PRESETS:
        key = key_of(name)
        grade = row["grades"][key]
        scores[name] = grade.get("score")
    assert scores["documented"] == pytest.approx(2 / 3)
    assert scores["ragas/tool_call_f1"] == 1.0
    assert scores["adk/any_order"] == 0.0
    named = set()
    for component in report.header["components"]:
        if component["kind"] == "grader":
            named.add(component["options"].get("preset"))
    full_names = {preset.full_name for preset in PRESETS.values()}
    assert named == full_names


def test_the_preset_in_use_is_in_the_header(tmp_path):
    """Our own rule, too, is named there, unless other options are set.

    A peer's with the options it stands for.
    """
    line = {"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}
    runs_path = tmp_path / "runs.jsonl"
    text = json.dumps(line)
    runs_path.write_text(text + "\n", encoding="utf-8")
    texts = []
    for options in ({}, {"order": "strict"}, {"preset": "bfcl/ast@2025.10.27.1"}):
        report = run(tmp_path, {"calls": {"kind": "tool_calls", **options}}, f"out{len(texts)}")
        components = report.header["components"]
        grader = next(component for component in components if component["kind"] == "grader")
        texts.append(grader["options"])
    shown = dict(PRESETS["bfcl/ast"].settings)
    assert texts == [
        {"preset": "documented@1"},
        {"order": "strict"},
        {"preset": "bfcl/ast@2025.10.27.1", **shown},
    ]


def test_every_preset_can_be_given_with_the_options_it_stands_for():
    """Settings that header.json shows can be set again, and change no grade."""
    for preset in PRESETS.values():
        grader_again = ToolCalls(preset=preset.full_name, **preset.settings)
        for case in CASES.values():
            sample = sample_of(*case)
            assert grader_again.grade(sample) == ToolCalls(preset=preset.name).grade(
                sample_of(*case)
            ), preset.name


def test_the_page_says_why_other_tools_differ(tmp_path):
    """Fourteen small runs by a few rules.

    What each differs in has its cause, its samples and an example.
    """
    lines = []
    for name, (expected, made) in CASES.items():
        sides = [
            [{"name": tool, "arguments": arguments} for tool, arguments in side]
            for side in (expected, made)
        ]
        first_side = sides[0]
        lines.append({"id": name, "expected": first_side, "predicted": sides[1]})
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    names = (
        "documented",
        "ragas/tool_call_f1",
        "adk/any_order",
        "adk/exact",
        "azure/exact_match",
        "tau2/action",
    )
    names = (
        *names,
        "deepeval/tool_correctness/default/arguments",
        "waza/action_sequence/any_order_match",
    )
    graders = {key_of(name): {"kind": "tool_calls", "preset": name} for name in names}
    report = run(tmp_path, graders)
    presets = presets_of(report)
    differences = {
        (difference.kind, difference.cause): difference for difference in presets.differences
    }
    for kind, cause, wanted in data(__file__, "families.yaml")["why_other_tools_differ"]:
        documented = differences[kind, cause]
        described = {
            "samples": documented.samples,
            "names": list(documented.names),
            "example": documented.example,
        }
        assert {key: described[key] for key in wanted} == wanted
    out_folder = tmp_path / "out"
    page = (out_folder / "report.html").read_text(encoding="utf-8")
    assert (
        "<bdi>One call counts for several equal ones: expected twice and made once is right</bdi>"
        in page
    )
    report_path = tmp_path / "out" / "report.md"
    markdown = report_path.read_text(encoding="utf-8")
    assert (
        "| Calls must come in the order expected | 1 | other order | 2 | adk, azure |" in markdown
    )


def test_mistakes_in_a_suite_are_told_with_their_place(tmp_path):
    """An unknown preset, a contradiction and an unknown option are configuration errors, all at
    once.
    """
    runs_path = tmp_path / "runs.jsonl"
    runs_path.write_text('{"id": "a", "expected": [], "predicted": []}\n', encoding="utf-8")
    graders = {
        "a": {"kind": "tool_calls", "preset": "adk/exactly"},
        "b": {"kind": "tool_calls", "preset": "adk/exact", "extra": "allow"},
        "c": {"kind": "tool_calls", "oder": "any"},
    }
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, graders)
    message = str(caught.value)
    assert "did you mean 'adk/exact'?" in message
    assert "extra: allow contradicts preset adk/exact, which means forbid" in message
    assert "oder" in message
    assert "did you mean 'order'?" in message
