"""The engine used by default: processes where they pay off."""

import os
from types import SimpleNamespace

import pytest

from gradestack_plugins.engines import local as auto
from gradestack_plugins.engines.local import Auto


def _process(shard):
    return os.getpid()


NOW = [0.0]
"""Seconds by the clock the engine looks at."""


def _slowly(shard):
    NOW[0] += 0.05
    return os.getpid()


@pytest.fixture(autouse=True)
def _four_cores_and_a_clock(monkeypatch):
    monkeypatch.setattr(auto, "time", SimpleNamespace(perf_counter=lambda: NOW[0]))
    monkeypatch.setattr(auto, "usable_cores", lambda: 4)


def test_little_work_is_done_in_this_process(shards):
    assert set(Auto().map(_process, shards(90))) == {os.getpid()}


def test_much_data_is_spread_from_the_start(shards, monkeypatch):
    monkeypatch.setattr(auto, "LARGE", 20)
    assert os.getpid() not in set(Auto().map(_process, shards(20)))
    assert set(Auto().map(_process, shards(19))) == {os.getpid()}
    map_count = len(set(Auto(workers=2).map(_process, shards(40))))
    assert map_count == 2


def test_slow_work_is_spread_once_that_is_known(shards):
    """The first shard is done in this process, the others in some more, as they would
    take seconds.
    """
    values = list(Auto().map(_slowly, shards(20)))
    assert values[0] == os.getpid()
    assert os.getpid() not in values[1:]
    value_count = len(set(values[1:]))
    assert value_count > 1


def test_slow_work_that_is_nearly_done_is_not(shards):
    """Starting processes would take longer."""
    assert set(Auto().map(_slowly, shards(4))) == {os.getpid()}


def test_one_worker_is_this_process(shards, monkeypatch):
    monkeypatch.setattr(auto, "LARGE", 1)
    assert set(Auto(workers=1).map(_process, shards(9))) == {os.getpid()}
    assert set(Auto().map(_process, shards(1))) == {os.getpid()}
