"""Strict structuring: a value has the right type or is refused, and everything wrong is told at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from gradestack.suites.strict import Problems, structure
from tests.core.outcomes import data


@attrs.frozen(kw_only=True)
class Inner:
    """A nested options class."""

    share: float = 0.5
    names: tuple[str, ...] = ()


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


def problems(given, kind=Options):
    with pytest.raises(Problems) as caught:
        structure(given, kind)
    return caught.value.found


def test_right_values_are_taken_as_they_are():
    given = {
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
    made = structure(given, Options)
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


@pytest.mark.parametrize(("given", "place", "message"), data(__file__, "wrong_options.yaml"))
def test_wrong_values_are_refused_with_their_place(given, place, message):
    """Nothing is coerced: what the default converter would bend is told instead."""
    assert problems(given) == [(tuple(place), message)]


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


def test_relative_paths_are_taken_from_the_base(tmp_path):
    assert structure({"path": "a/b"}, Options, tmp_path).path == tmp_path / "a/b"
    assert structure({"path": "/a"}, Options, tmp_path).path == Path("/a")
    assert structure({"path": "a"}, Options).path == Path("a")
