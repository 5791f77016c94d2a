"""Results of shards come in the order of the shards, whatever engine maps them."""

from pathlib import Path

import pytest

from gradestack import Engine, Input, PluginError, Shard
from gradestack.grading.loop import _results
from gradestack.grading.merging import ShardResult

GIVEN = Input(path=Path("x"), name="x", shown="x")
SHARDS = [Shard(ordinal=number, input=GIVEN, position=number) for number in range(3)]


class Reversed(Engine):
    """Gives the last shard first."""

    def map(self, work, shards):
        yield from map(work, reversed(shards))


def test_another_order_is_an_error_of_the_engine():
    with pytest.raises(PluginError, match="engine Reversed gives results in another order"):
        list(
            _results(
                Reversed(), lambda shard: ShardResult(ordinal=shard.ordinal, input="x"), SHARDS
            )
        )
