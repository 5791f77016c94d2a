"""Reader `letta`: models, states, errors, references and what else one result holds, from ``results.yaml``."""

from __future__ import annotations

import pytest

from gradestack_plugins.letta.reader import Letta
from tests.core.outcomes import at, data


@pytest.mark.parametrize("case", data(__file__, "results.yaml"))
def test_a_result(letta, tmp_path, case):
    record = letta.failure(0) | case["failure"] if "failure" in case else letta.result(0, **case["result"])
    file, profile = letta.write(tmp_path / "results.jsonl", [record]), case.get("profile", "documented")
    for each in ("documented", "upstream") if profile == "both" else (profile,):
        (sample,) = letta.read(file, reader=Letta(profile=each))
        assert {path: at(sample, path) for path in case["sample"]} == case["sample"]


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_a_null_agent_is_a_failed_run(letta, tmp_path, profile):
    """An agent that is null fails the run although there is a conversation.

    So does, in upstream, one left out; not in the later layout, which drops null fields and records errors.
    """
    without, later = letta.result(1), letta.result(2) | {"sample_id": 2}
    del without["agent_id"], later["agent_id"], later["sample"]
    file = letta.write(tmp_path / "results.jsonl", [letta.result(0, agent_id=None), without, later])
    first, second, third = letta.read(file, reader=Letta(profile=profile))
    assert (first.status, first.error.message) == ("failed", "the recording names no agent")
    assert second.status == ("ok" if profile == "documented" else "failed")
    assert third.status == "ok"
