"""The serial engine, which everything else is compared with."""

import pickle

from gradestack import Input, Shard
from gradestack_plugins.engines.local import Serial


def shards(count):
    return [Shard(ordinal=number, input=Input(path="x", name="x", shown="x")) for number in range(count)]


def test_results_come_in_shard_order():
    assert list(Serial().map(lambda shard: shard.ordinal * 2, shards(4))) == [0, 2, 4, 6]
    assert list(Serial().map(lambda shard: shard, [])) == []


def test_a_shard_is_worked_on_when_its_result_is_asked_for():
    """Nothing is done ahead, so that an early end costs nothing."""
    seen = []
    results = Serial().map(lambda shard: seen.append(shard.ordinal), shards(3))
    assert seen == []
    next(results)
    assert seen == [0]


def test_it_has_no_state():
    assert pickle.loads(pickle.dumps(Serial())) == Serial()  # noqa: S301
