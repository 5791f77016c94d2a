"""Published rules: equal to their programs' answers, by hand where the data is not there."""

import json
import os
import re
from pathlib import Path

import pytest

from gradestack import Expectation, ExpectedCall, Outcome, Sample, ToolCall
from gradestack_plugins.readers.jsonl import JsonLines
from gradestack_plugins.tool_calls.diff import ToolTerms
from gradestack_plugins.tool_calls.grader import ToolCalls
from gradestack_plugins.tool_calls.presets import ELSEWHERE, PRESETS, find
from gradestack_plugins.trajectory import tool_policy, tool_schema
from tests.core.outcomes import data

CASES = data(__file__, "presets.yaml")

DATA = os.environ.get("GRADESTACK_REFERENCE_DATA")


def sample(expected, made, **more):
    """Return a sample of calls given as (name, arguments)."""
    calls = tuple(ExpectedCall(name=name, arguments=arguments) for name, arguments in expected)
    expectation = Expectation(calls=calls)
    tool_calls = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in made)
    return Sample(
        id="s",
        expected=expectation,
        calls=tool_calls,
        **more,
    )


def score_or_code(preset, subject, **options):
    tool_calls = ToolCalls(preset=preset, **options)
    grade = tool_calls.grade(subject)
    if grade.outcome is Outcome.FAILED:
        return grade.fault.code
    if grade.outcome is Outcome.SKIPPED:
        return grade.reasons[0].code
    return grade.score


@pytest.mark.skipif(not DATA, reason="GRADESTACK_REFERENCE_DATA is not set")
def test_every_preset_says_what_its_program_says():
    """Scores, verdicts, precision, recall and codes equal those of the released programs on every
    case.
    """
    data_path = Path(DATA)
    folder = data_path / "tool_calls"
    samples = {}
    for name in ("cases.jsonl", "bfcl_cases.jsonl"):
        for line in (folder / name).read_bytes().splitlines():
            outcome = JsonLines().record(json.loads(line), file=name, ordinal=0)
            samples[outcome.id] = outcome
    expected_path = folder / "expected.json"
    text = expected_path.read_text(encoding="utf-8")
    expected = json.loads(text)
    assert set(expected) == set(PRESETS)
    wrong = {}
    for preset, cases in expected.items():
        grader = ToolCalls(preset=preset)
        for case, wanted in cases.items():
            grade = grader.grade(samples[case])
            outcome = {
                "score": grade.score,
                "passed": grade.passed,
                **grade.parts,
                **grade.metadata,
            }
            if grade.outcome is Outcome.FAILED:
                outcome = {"failed": grade.fault.code}
            elif grade.outcome is Outcome.SKIPPED:
                first_reason = grade.reasons[0]
                outcome = {"skipped": first_reason.code}
            numbers = {key for key in wanted if isinstance(wanted[key], float)}
            same = all(outcome.get(key) == pytest.approx(wanted[key], abs=1e-9) for key in numbers)
            verdict = "score" not in wanted or outcome.get("passed") is wanted.get("passed")
            if not (
                same
                and verdict
                and all(outcome.get(key) == wanted[key] for key in wanted.keys() - numbers)
            ):
                wrong[preset, case] = (wanted, outcome)
    assert wrong == {}


ONE = [("f", {"x": 1})]


def test_rules_by_hand():
    """Each program's rule and its quirks, worked out by hand."""
    verdicts = []
    for preset, expected, made, _ in CASES["by_hand"]:
        subject = sample(expected, made)
        verdicts.append((preset, score_or_code(preset, subject)))
    by_hand = CASES["by_hand"]
    assert verdicts == [(preset, pytest.approx(wanted)) for preset, _, _, wanted in by_hand]


@pytest.mark.parametrize("mode", ["strict", "unordered", "subset", "superset"])
@pytest.mark.parametrize("arguments", ["exact", "ignore"])
def test_agentevals_cannot_leave_arguments_open(mode, arguments):
    """The package raises on a reference without arguments, whatever its mode."""
    expected_call = ExpectedCall(name="f", arguments=None)
    expected = Expectation(calls=(expected_call,))
    tool_call = ToolCall(name="f")
    subject = Sample(id="s", expected=expected, calls=(tool_call,))
    preset = f"agentevals/{mode}/{arguments}"
    assert score_or_code(preset, subject) == "not_expressible"


def test_a_preset_is_named_in_full():
    """A grade says which version of which rule it is by."""
    tool_calls = ToolCalls(preset="ragas/tool_call_f1")
    grade = tool_calls.grade(sample(ONE, ONE))
    assert grade.metadata == {"preset": "ragas/tool_call_f1@0.4.3"}
    assert ToolCalls().grade(sample(ONE, ONE)).metadata == {"preset": "documented@1"}
    left_out = ToolCalls(preset="azure/f1").grade(sample([*ONE, ("f", {})], ONE))
    assert left_out.metadata == {"preset": "azure/f1@1.18.10"}
    expected = ToolCalls(order="strict").grade(sample(ONE, ONE)).metadata
    assert "preset" not in expected
    assert find("adk/exact@2.13.0") is PRESETS["adk/exact"]


REFUSED = data(__file__, "presets_texts.yaml")["refused"]


@pytest.mark.parametrize(("options", "refusal"), REFUSED)
def test_what_contradicts_is_refused(options, refusal):
    """Unknown presets, other versions and options that say something else than the preset are
    mistakes.
    """
    match = re.escape(refusal)
    with pytest.raises(ValueError, match=match):
        ToolCalls(**options)


@pytest.mark.parametrize(("options", "refusal"), CASES["terms_that_compare_nothing_are_refused"])
def test_terms_that_compare_nothing_are_refused(options, refusal):
    """Options of a tool that take each other away are an error, and no calls that are all right."""
    match = re.escape(refusal)
    with pytest.raises(ValueError, match=match):
        ToolTerms(**options)


def test_presets_of_others_are_named_as_they_are():
    """Rules that are no matching of calls are found where a refusal sends the user."""
    expected = {*tool_policy.PRESETS, *tool_schema.PRESETS}
    assert set(ELSEWHERE) == expected
    keys = ELSEWHERE.keys()
    assert not keys & PRESETS.keys()
