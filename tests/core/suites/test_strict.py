"""Strict structuring: a value has the right type or is refused, and everything wrong is told at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from gradestack import Aggregator
from gradestack.suites.strict import Problems, structure


@attrs.frozen(kw_only=True)
class Inner:
    """A nested options class."""

    share: float = 0.5
    names: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Undeclared(Aggregator):
    """An aggregator that does not say of what type its state is."""

    most: int = 1

    def start(self):
        return 0

    def add(self, state, key, grade):
        return state + 1

    def merge(self, left, right):
        return left + right

    def finish(self, state):
        return {"n": state}


@attrs.frozen(kw_only=True)
class Options:
    """Every supported form of annotation."""

    flag: bool = False
    number: int = 0
    ratio: float = 0.0
    text: str = ""
    choice: Literal["strict", "skip", 3] = "strict"
    maybe: int | None = None
    either: str | dict[str, Any] = ""
    texts: tuple[str, ...] = ()
    weights: dict[str, float] = attrs.field(factory=dict)
    mapping: Mapping[str, int] = attrs.field(factory=dict)
    path: Path | None = None
    inner: Inner = attrs.field(factory=Inner)
    inners: tuple[Inner, ...] = ()
    named: dict[str, Inner] = attrs.field(factory=dict)
    anything: Any = None

    def __attrs_post_init__(self):
        if self.number < 0:
            msg = "number must not be negative"
            raise ValueError(msg)


@attrs.frozen(kw_only=True)
class Needy:
    """Has an option without a default."""

    wanted: str


def problems(data, kind=Options):
    with pytest.raises(Problems) as caught:
        structure(data, kind)
    return caught.value.found


def test_right_values_are_taken_as_they_are():
    data = {
        "flag": True,
        "number": 3,
        "ratio": 2,
        "text": "x",
        "choice": 3,
        "maybe": 4,
        "either": {"a": [1]},
        "texts": ["a", "b"],
        "weights": {"a": 1, "b": 0.5},
        "mapping": {"a": 1},
        "inner": {"share": 1, "names": ["x"]},
        "inners": [{}, {"share": 0}],
        "named": {"x": {}},
        "anything": {"deep": [None]},
    }
    made = structure(data, Options)
    assert made.ratio == 2.0
    assert type(made.ratio) is float
    assert made.inner == Inner(share=1.0, names=("x",))
    assert made.inners == (Inner(), Inner(share=0.0))
    assert made.named == {"x": Inner()}
    assert (made.texts, made.weights, made.either, made.anything) == (
        ("a", "b"),
        {"a": 1.0, "b": 0.5},
        {"a": [1]},
        {"deep": [None]},
    )
    assert structure({}, Options) == Options()


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        ({"flag": "false"}, ("flag",), "expected true or false, got 'false'"),
        ({"flag": 0}, ("flag",), "expected true or false, got 0"),
        ({"number": 2.9}, ("number",), "expected a whole number, got 2.9"),
        ({"number": 2.0}, ("number",), "expected a whole number, got 2.0"),
        ({"number": "3"}, ("number",), "expected a whole number, got '3'"),
        ({"number": True}, ("number",), "expected a whole number, got true"),
        ({"ratio": True}, ("ratio",), "expected a number, got true"),
        ({"ratio": "0.5"}, ("ratio",), "expected a number, got '0.5'"),
        ({"ratio": "1e-1"}, ("ratio",), "expected a number, got '1e-1'; write 0.1"),
        ({"ratio": "-1e-6"}, ("ratio",), "expected a number, got '-1e-6'; write -1.0e-06"),
        ({"ratio": "1e999"}, ("ratio",), "expected a number, got '1e999'"),
        ({"ratio": float("nan")}, ("ratio",), "expected a number, got nan"),
        ({"ratio": float("inf")}, ("ratio",), "expected a number, got inf"),
        ({"ratio": None}, ("ratio",), "expected a number, got nothing (null)"),
        ({"text": None}, ("text",), "expected text, got nothing (null)"),
        ({"text": 3}, ("text",), "expected text, got 3; put it in quotes"),
        ({"text": ["x"]}, ("text",), "expected text, got a list"),
        ({"choice": "skpi"}, ("choice",), "expected one of strict, skip, 3; got 'skpi' (did you mean 'skip'?)"),
        ({"choice": "3"}, ("choice",), "expected one of strict, skip, 3; got '3' (did you mean '3'?)"),
        ({"choice": None}, ("choice",), "expected one of strict, skip, 3; got nothing (null)"),
        ({"maybe": "x"}, ("maybe",), "expected a whole number, got 'x'"),
        ({"either": 3}, ("either",), "expected text, got 3; put it in quotes, or expected a mapping, got 3"),
        ({"texts": "abc"}, ("texts",), "expected a list, got 'abc'"),
        ({"texts": ["a", 1]}, ("texts", 1), "expected text, got 1; put it in quotes"),
        ({"weights": [1]}, ("weights",), "expected a mapping, got a list"),
        ({"weights": {"a": "x"}}, ("weights", "a"), "expected a number, got 'x'"),
        ({"inner": 5}, ("inner",), "expected a mapping, got 5"),
        ({"inner": {"share": "x"}}, ("inner", "share"), "expected a number, got 'x'"),
        ({"inner": {"sahre": 1}}, ("inner", "sahre"), "unknown key (did you mean 'share'?)"),
        ({"inners": [{}, {"names": [1]}]}, ("inners", 1, "names", 0), "expected text, got 1; put it in quotes"),
        ({"named": {"x": {"share": []}}}, ("named", "x", "share"), "expected a number, got a list"),
        ({"path": 3}, ("path",), "expected text, got 3; put it in quotes"),
        ({"number": -1}, (), "number must not be negative"),
        ({"ratio": 10**400}, ("ratio",), "int too large to convert to float"),
    ],
)
def test_wrong_values_are_refused_with_their_place(data, place, message):
    """Nothing is coerced: what the default converter would bend is told instead."""
    assert problems(data) == [(place, message)]


def test_everything_wrong_is_told_at_once():
    found = problems({"numbr": 1, "ratio": "x", "texts": [1, "a", 2], "inner": {"share": "y"}, "zzz": 0})
    assert {place for place, _ in found} == {
        ("numbr",),
        ("zzz",),
        ("ratio",),
        ("texts", 0),
        ("texts", 2),
        ("inner", "share"),
    }
    told = dict(found)
    assert told["numbr",] == "unknown key (did you mean 'number'?)"
    assert told["zzz",].startswith("unknown key; known: flag, number")


def test_keys_that_are_no_text_are_unknown_keys():
    """YAML reads 1 and yes as a number and a truth value; mixed kinds of keys are told like any others."""
    assert problems({1: "a", "zz": "c", None: "d"}, Inner) == [
        (("1",), "unknown key; known: share, names"),
        (("None",), "unknown key; known: share, names"),
        (("zz",), "unknown key; known: share, names"),
    ]


def test_a_missing_option_is_named():
    assert problems({}, Needy) == [(("wanted",), "missing")]


def test_a_generic_class_may_leave_its_types_open():
    """``class Mine(Aggregator)`` is as good as ``class Mine(Aggregator[dict])``."""
    made = structure({"most": 3}, Undeclared)
    assert (type(made), made.most) == (Undeclared, 3)


def test_relative_paths_are_taken_from_the_base(tmp_path):
    assert structure({"path": "a/b"}, Options, tmp_path).path == tmp_path / "a/b"
    assert structure({"path": "/a"}, Options, tmp_path).path == Path("/a")
    assert structure({"path": "a"}, Options).path == Path("a")
