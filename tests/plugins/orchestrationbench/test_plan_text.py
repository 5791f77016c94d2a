"""The seven forms of a plan text."""

import json

import pytest

from gradestack_plugins.orchestrationbench.plans import parse_plan

PLAN = {"workflow_1": {"steps": [{"name": "a", "status": "pending"}]}}
TEXT = json.dumps(PLAN)
YAML = "workflow_1:\n  steps:\n  - {name: a, status: pending}\n"
PROFILES = ["documented", "upstream"]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"Sure:\n```json\n{TEXT}\n```\nand ```json\n{{}}\n```", 1),
        (f"```json {TEXT} ```", 1),
        ('It is {"workflow_1": "later"} I think', 2),
        ('{"a": 1} {"workflow_1": null}', 2),
        (f"The plan is {TEXT}, no more.", 3),
        ('{"note": {}, "plan": 0, "workflow_x": {"steps": [{}]}}', 4),
        (f"Plan\n```yaml\n{YAML}```\n", 5),
        (f"```yaml {YAML}   \n```", 5),
        (YAML, 6),
        (f"Here it comes:\n{YAML}", 6),
        (f"<think>no {TEXT}</think>{YAML}", 6),
        ("workflow_1\nstatus: pending\nsteps:\n- name: a\n", 7),
        ("workflow_1\nnote: it\ngoes on\n", 7),
        ('"workflow_1": {"steps": []}', 6),
    ],
)
def test_each_form_is_found(profile, text, form):
    """Every form yields the object with its workflow key, and the first that does wins."""
    plan = parse_plan(text, profile)
    assert plan.form == form
    assert any(key.startswith("workflow_") for key in plan.workflows)
    assert plan.problem == ""


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "no plan at all",
        "I would use workflow_1 here",
        "Plan\nworkflow_1:\n  steps: []\n",
        "```json\n[1]\n```",
        '{"workflow": {}}',
        "- workflow_1: {}",
        f"```\n{TEXT[:-1]}\n```",
        "</think>",
        f"{TEXT}</think>",
        '{"workflow_1": {"a": {',
        "{" * 2000,
    ],
)
def test_texts_without_a_plan(profile, text):
    """A text that no form reads gives an empty plan and says so; a line without colon breaks the YAML form."""
    plan = parse_plan(text, profile)
    assert plan.workflows == {}
    assert plan.form == 0
    assert plan.problem


def test_the_contents_are_those_of_the_text():
    """Nested values survive, and keys that are no workflow are kept at this stage."""
    assert parse_plan(f"x {TEXT} y", "documented").workflows == PLAN
    assert parse_plan("note: 1\n" + YAML, "documented").workflows == {"note": 1, **PLAN}


def test_only_the_first_json_fence_counts():
    """A later fence is not read as such: its plan is found by a form behind, or not at all."""
    first = '```json\n{"a": 1}\n```\n'
    assert parse_plan(first + '```json\n{"workflow_": 1}\n```', "upstream").form == 2
    assert parse_plan(first + f"```json\n{TEXT}\n```", "upstream").form == 3
    assert parse_plan(first + '```json\n{"workflow_x": {"steps": [{}]}}\n```', "upstream").form == 0


def test_two_flat_objects_in_a_row_are_no_single_value():
    """Flat objects joined by a comma belong to one match, which is no JSON; without a comma the first one is it."""
    assert parse_plan('{"workflow_1": 1}, {"workflow_2": 2}', "upstream").workflows == {}
    assert parse_plan('{"workflow_1": 1} {"workflow_2": 2}', "upstream").workflows == {"workflow_1": 1}


def test_balancing_does_not_skip_braces_in_texts():
    """A brace inside a text ends or prolongs the third form, so such a plan is lost in prose, not as a whole."""
    plan = '{"workflow_1": {"steps": [{"name": "}"}]}}'
    assert parse_plan(f"so {plan} there", "upstream").form != 3
    assert parse_plan(plan, "upstream").form == 4


def test_the_repair_adds_a_colon_to_keys():
    """The indentation repair turns ``workflow_1:`` into a key that ends with a colon."""
    plan = parse_plan("workflow_1:\n status: pending\n    steps:\n- name: a", "documented")
    assert plan.form == 7
    assert list(plan.workflows) == ["workflow_1:"]


@pytest.mark.parametrize(
    "text",
    ["5: x\nworkflow_1: {}", "workflow_1: 2031-99-99", "workflow_1: " + "[" * 3000],
    ids=["key", "date", "depth"],
)
def test_what_stops_the_original_stops_only_upstream(text):
    """A key that is no text, an impossible date or extreme nesting raises in upstream only."""
    with pytest.raises(Exception, match=r".") as caught:
        parse_plan(text, "upstream")
    assert not isinstance(caught.value, json.JSONDecodeError)
    found = parse_plan(text, "documented")
    assert bool(found.workflows) == text.startswith("5: x")


@pytest.mark.parametrize(
    "text",
    [
        "```json{" * 20000,
        "workflow_1: " + "[" * 100000,
        "{" * 200000,
        "```yaml workflow_" + " " * 200000,
        '"workflow_1":{' * 9000,
    ],
)
def test_hostile_texts_take_no_quadratic_time(text):
    """Long runs of openings are refused quickly: the patterns are searched in linear time."""
    assert parse_plan(text, "documented").workflows == {}
