"""What 4.13 and 4.3 make of one record and one reply, row by row."""

import pytest

from gradestack_plugins.deepfabric.grader import DeepFabric
from tests.plugins.deepfabric.conftest import evaluate


def test_tools_are_named_in_the_result_file(df):
    """4.13 writes the names of the tools, nameless ones too, and of failed records where they can
    be read.
    """
    own = {"name": "f", "description": "d", "parameters": [], "returns": ""}
    lines = [
        df.record(("f", {}), [df.tool("f"), own]),
        df.record(("f", {}), [df.tool("f")], metadata={"agent_mode": "multi_turn"}),
        df.record(("f", {}), [df.tool("f")], agent_context={"mode": "multi_turn"}),
        df.record(),
    ]
    replies = [df.reply(("f", {}))] * 4
    new = evaluate(lines, replies, profile="upstream").predictions
    assert [record.available_tools for record in new] == [("f", ""), ("f",), (), ()]
    assert [(record.query, record.expected_tool) for record in new[:3]] == [
        ("the query", "f"),
        ("", None),
        ("", None),
    ]
    old = evaluate(lines, replies, profile="upstream", upstream_version="4.3").predictions
    assert not any(hasattr(record, "available_tools") for record in old)
    assert [record.error for record in old] == [None] * 4


@pytest.mark.parametrize(
    "options", [{"upstream_version": "4.5"}, {"upstream_version": 4}, {"max_turns": 0}]
)
def test_options_that_mean_nothing_are_refused(options):
    """Versions nobody knows and no turns at all are refused with the option's name."""
    with pytest.raises(ValueError, match=next(iter(options))):
        DeepFabric(**options)
