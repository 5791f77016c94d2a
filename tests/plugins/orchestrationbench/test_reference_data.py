"""The real English scenarios: they parse, score 1 against themselves, and survive perturbation."""

# ruff: noqa: S311 - test data

import copy
import json
import random

import pytest
import yaml

from gradestack import Input, Inputs
from gradestack_plugins.orchestrationbench.reader import read_cards
from gradestack_plugins.orchestrationbench.scenario_reader import ScenarioReader, label_of

pytestmark = pytest.mark.proof
PROFILES = ["documented", "upstream"]
UNREADABLE = {"85": ["8"], "174": ["4", "5", "9"], "195": ["6"], "217": ["4", "5", "6"]}
"""Scenario -> steps whose gold does not parse: a plan in 85, YAML lists in place of calls in the others."""


@pytest.fixture(scope="module")
def labels(reference):
    found = {}
    for path in sorted((reference / "scenario_data").glob("*.yaml")):
        found[path.stem] = label_of(yaml.safe_load(path.read_text(encoding="utf-8"))["steps"])
    return found


def repeated(label):
    """Turn the gold turns into predictions; a gold call that could not be read has none."""
    main, sub = [], []
    for key, turn in label.items():
        if "-" in key:
            continue
        if "agent_id" in turn:
            gold = label.get(f"{key}-1", turn)
            if gold is not turn and "tool_calls" not in gold:
                continue
            calls = copy.deepcopy(gold.get("tool_calls", []))
            text = None if calls else turn["content"]
            if not calls and not any(mark in text for mark in ("AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION")):
                text = f"{text} TOOL_CONSTRAINT_VIOLATION"
            sub.append(
                {
                    "step_id": key,
                    "role": "assistant",
                    "agent_id": turn["agent_id"],
                    "content": text,
                    "tool_calls": calls,
                }
            )
        elif turn["content"].startswith("workflow_"):
            main.append({"step_id": int(key), "role": "assistant", "content": turn["content"]})
    return {"label": label, "main_agent_history": main, "sub_agent_history": sub}


@pytest.fixture(scope="module")
def suite(labels, tmp_path_factory):
    """Every scenario, its own gold as prediction, as output files."""
    directory = tmp_path_factory.mktemp("en")
    for number, label in labels.items():
        content = {"scenario_id": number, "history": {"run #1": repeated(label)}}
        (directory / f"{number}_out.json").write_text(json.dumps(content), encoding="utf-8")
    return directory


def test_all_scenarios_parse_and_the_unreadable_steps_are_reported(reference):
    """219 scenarios, 317 gold plans of which one does not parse, and seven gold calls that do not, by number."""
    reader = ScenarioReader()
    inputs = Inputs(data=(Input(path=reference / "scenario_data", name="EN", shown="EN"),))
    samples = [sample for shard in reader.plan(inputs, None) for sample in reader.read(shard, None)]
    assert len(samples) == 219
    unreadable = {sample.id: sample.recorded["unreadable_steps"] for sample in samples}
    assert {number: steps for number, steps in unreadable.items() if steps} == UNREADABLE
    assert sum(len(sample.expected.plan or {}) for sample in samples) == 317
    # 669 single calls, 19 double ones and 17 with three to nine.
    steps = list(ScenarioReader(unit="step").plan(inputs, None))
    read = [sample for shard in steps for sample in ScenarioReader(unit="step").read(shard, None)]
    calls = [len(sample.expected.calls) for sample in read if sample.expected.label == "FC"]
    assert (calls.count(1), calls.count(2), sum(count > 2 for count in calls)) == (669, 19, 17)
    labels = [sample.expected.label for sample in read]
    rejections = [
        labels.count(name) for name in ("AWAITING_USER_INPUT", "TOOL_CONSTRAINT_VIOLATION", "GENERAL_REJECTION")
    ]
    assert rejections == [191, 13, 4]


def test_agent_cards(reference):
    """17 cards hold 96 tools with distinct names."""
    tools = read_cards(reference / "multiagent_cards")
    assert len(tools) == 96
    assert all(tool.parameters is not None for tool in tools)


@pytest.mark.parametrize("profile", PROFILES)
def test_gold_against_itself_is_perfect(bench, reference, suite, profile):
    """Every plan that parses and every call with arguments scores 1, and no decision is wrong."""
    bench.directory = suite
    cards = {"agent_cards": reference / "multiagent_cards"}
    plans = [item for _, grade in bench.grades("plan", profile, solver="exact") for item in grade.items]
    graded = [item for item in plans if item.score is not None]
    assert len(graded) == 316
    assert all(item.score == 1.0 for item in graded)
    failed = [item.id for item in plans if item.score is None]
    assert failed == (["8"] if profile == "documented" else [])
    calls = [item for _, grade in bench.grades("call", profile, reader=cards) for item in grade.items]
    assert len(calls) == 705
    with_arguments = [item for item in calls if item.counts["tp"] or item.counts["fp"] or item.counts["fn"]]
    assert len(with_arguments) > 690
    assert all(
        item.parts == {"name": 1.0, "key": 1.0, "value": 1.0, "value_upper_bound": 1.0} for item in with_arguments
    )
    figures = bench.figures(profile=profile, reader=cards, solver="exact")
    matrix = figures["decision_matrix"]
    assert [row["file"] for row in figures["scenarios"] if row["arguments_error"]] == []
    assert matrix == {"FC": {"FC": 705, "Reject": 0, "FAILED": 0}, "Reject": {"FC": 0, "Reject": 208, "FAILED": 0}}
    if profile == "documented":
        key_metrics = [figures[name] for name in ("average", "call_rejection_accuracy", "fc", "plan")]
        assert key_metrics == [1.0, 1.0, 1.0, 1.0]
    else:
        # The original counts 0.0 for files without calls, and the unread gold calls as cases.
        statistics = figures["overall_statistics"]["score_details"]["function_call_scores"]
        assert statistics["total_function_call_cases"] == 712
        assert statistics["total_fc_successful_calls"] == 705


@pytest.mark.parametrize("profile", PROFILES)
def test_perturbed_gold_grades_without_error(bench, reference, labels, tmp_path, generator, profile):
    """Random damage to real scenarios lowers the figures and never raises."""
    rng = random.Random(11)
    perturber = generator.Perturber(11)
    bench.directory = tmp_path
    for number, label in labels.items():
        run = repeated(copy.deepcopy(label))
        main, sub = run["main_agent_history"], run["sub_agent_history"]
        for change in (perturber.decisions, perturber.calls, perturber.calls):
            change(main, sub, label)
        for entry in main:
            damage = rng.randrange(4)
            if damage == 0:
                entry["content"] = entry["content"].replace("pending", "completed", 1)
            elif damage == 1:
                entry["content"] = entry["content"].replace("depend_on:", "depends_on:").replace("_agent", "_desk", 1)
            elif damage == 2:
                entry["content"] = "No plan today."
        bench.write(number, {"scenario_id": number, "history": {"run #1": run}})
    cards = {"agent_cards": reference / "multiagent_cards"}
    figures = bench.figures(profile=profile, reader=cards)
    assert len(figures["scenarios"]) == 219
    assert all(0.3 < figures[name] < 0.98 for name in ("call_rejection_accuracy", "fc", "plan"))
    assert all(row["error"] is None for row in figures["scenarios"])
