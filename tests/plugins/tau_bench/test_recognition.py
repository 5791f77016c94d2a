"""Recognising tau-bench result files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradestack_plugins.tau_bench.reader import TauBench

HEAD = 64 * 1024


def sniff(value, indent=None):
    text = value if isinstance(value, str) else json.dumps(value, indent=indent)
    return TauBench.sniff(Path("x.json"), text.encode()[:HEAD])


@pytest.mark.parametrize("indent", [None, 2])
def test_result_files_are_recognised(tau, indent):
    error = {"task_id": 1, "reward": 0.0, "info": {"error": "x", "traceback": "}]"}, "traj": [], "trial": 0}
    assert sniff([tau.record()], indent) > 0.9
    assert sniff([error, tau.record()], indent) > 0.9
    assert sniff([{"task_id": 1, "reward": 0, "traj": []}], indent) > 0.9


@pytest.mark.parametrize("indent", [None, 2])
def test_long_first_records_are_recognised(tau, indent):
    long = tau.record(traj=[{"role": "system", "content": 'brackets ] } " in text ' * 10_000}])
    assert sniff([long], indent) > 0.9
    backwards = dict(reversed(long.items()))
    assert 0 < sniff([backwards], indent) < 0.9


def test_escapes_and_byte_order_marks_do_not_confuse(tau):
    record = tau.record(info={"a": 'x\\" ]}', "b": "\\"})
    assert sniff("\ufeff \n" + json.dumps([record])) > 0.9


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        [1, 2],
        [[]],
        [{}],
        [{"id": 1, "prediction": "a"}],
        [{"task_id": 1, "reward": 1}],
        [{"task_id": 1, "traj": []}, {"info": {}}],
        [{"x": {"task_id": 1, "reward": 1, "info": {}}}],
        {"simulations": [{"task_id": "1", "reward_info": {"reward": 1}}]},
        {"task_id": 1, "reward": 1, "info": {}, "traj": []},
        "",
        "[",
        "]",
        '{"task_id": 1, "reward": 1, "info": {}}\n{"task_id": 1}',
        '["task_id", "reward", "info"]',
        "\x00\x01",
    ],
)
def test_other_files_are_not(value):
    """Lists of other records, objects, JSON Lines and garbage are not claimed."""
    assert sniff(value) == 0.0


def test_bad_first_records_do_not_hide_the_format(tau):
    """Among the first five elements one record is enough."""
    assert sniff([{"x": 1}, [], tau.record()]) > 0.9
    assert sniff([{"x": 1}] * 5 + [tau.record()]) == 0.0


def test_directories_are_not_claimed(tmp_path):
    assert TauBench.sniff(tmp_path, b"") == 0.0
