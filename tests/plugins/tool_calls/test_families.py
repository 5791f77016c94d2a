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
    return report.summary["metrics"]["aggregates"][key]["call_figures"]


def run(folder, graders, name="out"):
    suite = {
        "name": "s",
        "target": {"paths": ["runs.jsonl"]},
        "graders": graders,
        "engine": "serial",
    }
    (folder / "suite.yaml").write_text(json.dumps(suite), encoding="utf-8")
    return gradestack.run(folder / "suite.yaml", output=folder / name)


@pytest.mark.skipif(not DATA, reason="GRADESTACK_REFERENCE_DATA is not set")
def test_published_examples(tmp_path):
    """BFCL's and tau2's files have references with rules.

    The rules of their own programs take them, too.
    """
    folder = Path(DATA) / "formats"
    shutil.copytree(folder / "bfcl", tmp_path / "bfcl")
    report = gradestack.grade_files(
        [tmp_path / "bfcl/result"], output=tmp_path / "a", stack="peers", engine="serial"
    )
    assert figures(report, "bfcl_ast")["verdict_rate"] == figures(report, "documented")["f1"] == 1.0
    report = gradestack.grade_files(
        [folder / "tau2/results.json"], output=tmp_path / "b", stack="peers", engine="serial"
    )
    assert figures(report, "tau2_action")["states"] == {"graded": 3}


def test_every_preset_stands_in_the_stack_of_peers(tmp_path):
    """Side by side: one grader for each, under a key of its own, named in full in header.json."""
    assert {grader["preset"] for grader in peers()["graders"].values()} == set(PRESETS)
    assert len(peers()["graders"]) == len(PRESETS)
    line = {"id": "a", "expected": [{"name": "f"}, {"name": "f"}], "predicted": [{"name": "f"}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    report = gradestack.grade_files(
        [tmp_path / "runs.jsonl"], output=tmp_path / "out", stack="peers", engine="serial"
    )
    row = next(iter(report.rows()))
    scores = {name: row["grades"][key_of(name)].get("score") for name in PRESETS}
    assert (scores["documented"], scores["ragas/tool_call_f1"], scores["adk/any_order"]) == (
        pytest.approx(2 / 3),
        1.0,
        0.0,
    )
    named = {
        component["options"].get("preset")
        for component in report.header["components"]
        if component["kind"] == "grader"
    }
    assert named == {preset.full_name for preset in PRESETS.values()}


def test_the_preset_in_use_is_in_the_header(tmp_path):
    """Our own rule, too, is named there, unless other options are set.

    A peer's with the options it stands for.
    """
    line = {"id": "a", "expected": [{"name": "f"}], "predicted": [{"name": "f"}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    texts = []
    for options in ({}, {"order": "strict"}, {"preset": "bfcl/ast@2025.10.27.1"}):
        report = run(tmp_path, {"calls": {"kind": "tool_calls", **options}}, f"out{len(texts)}")
        grader = next(
            component for component in report.header["components"] if component["kind"] == "grader"
        )
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
            assert grader_again.grade(sample_of(*case)) == ToolCalls(preset=preset.name).grade(
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
        lines.append({"id": name, "expected": sides[0], "predicted": sides[1]})
    (tmp_path / "runs.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )
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
    report = run(tmp_path, {key_of(name): {"kind": "tool_calls", "preset": name} for name in names})
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
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (
        "<bdi>One call counts for several equal ones: expected twice and made once is right</bdi>"
        in page
    )
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert (
        "| Calls must come in the order expected | 1 | other order | 2 | adk, azure |" in markdown
    )


def test_mistakes_in_a_suite_are_told_with_their_place(tmp_path):
    """An unknown preset, a contradiction and an unknown option are configuration errors, all at
    once.
    """
    (tmp_path / "runs.jsonl").write_text(
        '{"id": "a", "expected": [], "predicted": []}\n', encoding="utf-8"
    )
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
