"""Policies keep the contract of graders; what they say of runs are cases in tests/cases/trajectory."""

from gradestack import testing
from gradestack.suites.strict import structure
from gradestack_plugins.trajectory.tool_policy import ToolPolicy


def test_the_contract_holds_with_rules_and_with_presets():
    """Pure, deterministic, and never raising on odd samples."""
    for options in (
        {"allow": ["a"], "deny": [{"tool": ".*", "arguments": {"/q": "x"}}], "repeats": {"in_a_row": 1, "in_all": 1}},
        {"calls": {"max": 2}, "required_order": [["search", "x"]], "after_final": False, "requestor": None},
        {"preset": "deepeval/tool_permission", "allow": ["search"]},
        {"preset": "waza/tool_constraint", "deny": [{"tool": "s", "arguments": {"/path": "x"}}]},
        {"preset": "promptfoo/step-count", "per_tool": {"s*": {"max": 1}}},
    ):
        testing.check_grader(structure(options, ToolPolicy))
