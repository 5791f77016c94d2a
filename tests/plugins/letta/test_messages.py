"""Trajectories: message types, calls and their returns, from ``messages.yaml``."""

from __future__ import annotations

import pytest

from gradestack_plugins.letta.messages import read_trajectory
from tests.core.outcomes import data


@pytest.mark.parametrize("case", data(__file__, "messages.yaml"))
def test_a_trajectory(case):
    found = read_trajectory(case["trajectory"])
    if "messages" in case:
        assert [[message.role, message.content] for turn in found.turns for message in turn] == case["messages"]
    if "calls" in case:
        for call, wanted in zip(found.calls, case["calls"], strict=True):
            assert {name: getattr(call, name) for name in wanted} == wanted
    assert [len(turn) for turn in found.turns] == case.get("turns", [len(turn) for turn in found.turns])
    assert found.said is case.get("said", found.said)
