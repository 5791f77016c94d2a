"""Values that cases of JSON do not show: other types, very long numbers, deep nesting."""

import json

from gradestack_plugins.orchestrationbench.calls import value_text


def test_values_that_json_does_not_hold():
    """Objects with keys of several types keep their order, and numbers too long to be written are
    written in hex.
    """
    assert value_text({1: "a", "b": 2}) == "{'1': 'a', 'b': '2'}"
    assert value_text(10**5000).startswith("0x")


def test_nested_values_neither_explode_nor_collide():
    """Quoting doubles with every level, so long texts become digests, and equal values still
    compare equal.
    """

    def nested(levels, core):
        value = core
        for _ in range(levels):
            value = ["'\"", value]
        return value

    assert len(value_text(nested(60, "a"))) < 200_000
    assert value_text(nested(60, "a")) == value_text(nested(60, "a"))
    assert value_text(nested(60, "a")) != value_text(nested(60, "b"))
    text = "[" * 900 + "]" * 900
    deep = json.loads(text)
    assert isinstance(value_text(deep), str)
