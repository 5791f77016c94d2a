"""Values as JSON data: one walk for rows, the configuration in summary.json, and headers."""

import datetime as dt
import enum
import math
import types
from pathlib import Path
from typing import NamedTuple

import attrs
import msgspec
import pytest

from gradestack import ABSENT, Outcome, Reason
from gradestack.interpreter import ROOM, for_a_shard
from gradestack.jsonio import dumps, pointer_to
from gradestack.jsonio.values import json_data
from gradestack.suites.options import jsonable


class Size(enum.IntEnum):
    """A number of a component's own."""

    BIG = 3


class Corner(enum.Enum):
    """A value that is a tuple."""

    LOW = (0, Size.BIG)


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


@attrs.frozen
class Options:
    """An object of a component's own."""

    where: object = None
    left_out: object = ABSENT


class Part(msgspec.Struct):
    """A struct of a component's own."""

    value: object = None
    left_out: object = msgspec.UNSET


class Pair(NamedTuple):
    """A tuple with names, which JSON has not."""

    a: object
    b: object


DATA = [
    (None, None),
    (True, True),
    (10**40, 10**40),
    ("é\ud800", "é\ud800"),
    (Outcome.GRADED, "graded"),
    (Size.BIG, 3),
    (Corner.LOW, [0, 3]),
    (Text("t"), "t"),
    ((1, [2, (3,)]), [1, [2, [3]]]),
    (Pair(1, (2,)), [1, [2]]),
    ({1: "a", None: (True,)}, {"1": "a", "None": [True]}),
    (types.MappingProxyType({"b": (1,)}), {"b": [1]}),
    (Options(where=Options()), {"where": {"where": None}}),
    (Part(value=(Part(),)), {"value": [{"value": None}]}),
    (Reason(code="c", expected=None), {"code": "c", "expected": None}),
]


@pytest.mark.parametrize(("value", "data"), DATA)
@pytest.mark.parametrize("walk", [json_data, jsonable])
def test_values_have_one_form(walk, value, data):
    """Objects become mappings without absent fields, enums their values, tuples lists, keys text,
    at any depth.
    """
    assert walk(value) == data
    assert walk({"x": [value]}) == {"x": [data]}
    assert type(walk(value)) is type(data) or isinstance(value, Text)


NO_FORM = [
    Path("a/b.json"),
    {1},
    frozenset({1}),
    b"x",
    dt.date(2020, 1, 2),
    object(),
    ABSENT,
    Options,
]


@pytest.mark.parametrize("value", NO_FORM, ids=lambda value: type(value).__name__)
def test_what_has_no_json_form_is_refused(value):
    options = Options(where=[value])
    for odd in (value, [value], {"x": value}, options):
        match = f"^Object of type {type(value).__name__} is not JSON serializable$"
        with pytest.raises(TypeError, match=match):
            json_data(odd)


def test_the_caller_may_have_a_form_for_it():
    """The hook sees every value without a JSON form, wherever it stands, and nothing else."""
    collected = []
    options = Options(where=b"y")
    document = json_data(
        {"a": [b"x", (options, 1.5)]},
        lambda value: collected.append(value) or len(collected),
    )
    assert document == {"a": [1, [{"where": 2}, 1.5]]}
    assert collected == [b"x", b"y"]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Path("/home/somebody/b.json"), "b.json"),
        ({"files": (Path("a/b"), Path("c"))}, {"files": ["b", "c"]}),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({10, 9, Path("x/8")}, [10, "8", 9]),
        (dt.date(2020, 1, 2), "2020-01-02"),
        (Options, "Options"),
        (len, "len"),
        (b"x", "(bytes)"),
        ([Options(where={Path("a/b")})], [{"where": ["b"]}]),
    ],
)
def test_a_configuration_names_what_has_no_form(value, data):
    """Paths by their last part, sets sorted, dates in ISO form, functions and classes by name,
    others by type.
    """
    assert jsonable(value) == data


def test_too_deep_is_a_recursion_error():
    value = ()
    for _ in range(50_000):
        value = (value,)
    with pytest.raises(RecursionError):
        json_data(value)


def test_a_level_takes_one_call():
    """Values that were read can be written on every Python.

    A value takes no more room here than it has levels.
    """
    value = []
    for _ in range(ROOM // 2 - 20):
        value = {"a": [value]}
    with for_a_shard():
        document = json_data(value)
        assert document == value


def test_not_a_number_stays_a_number_until_it_is_written():
    """Then it is a text, also as a key; what is not JSON beside it is refused all the same."""
    document = json_data([math.nan])
    assert math.isnan(document[0])
    text = dumps({"b": [math.nan, "\ud83d", "\ude00"], "a": -0.0})
    assert text == '{"a":-0.0,"b":["NaN","\\ud83d","\\ude00"]}'
    assert dumps([{math.inf: math.nan}]) == '[{"Infinity":"NaN"}]'
    with pytest.raises(TypeError, match="set is not JSON serializable"):
        dumps([math.nan, {1}])


def test_pointer_to():
    """Pointers escape tildes and slashes and count list items."""
    assert pointer_to() == ""
    pointer = pointer_to("a/b", 0, "c~d")
    assert pointer == "/a~1b/0/c~0d"
