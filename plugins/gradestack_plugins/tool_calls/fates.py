"""How calls fare, whatever they are called: most mistakes have been made before, and are described once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gradestack import ABSENT
from gradestack_plugins.tool_calls.calls import Arguments
from gradestack_plugins.tool_calls.comparison import (
    ALL,
    NOTHING,
    Differences,
    Share,
    are_scalars,
    compared,
    inside,
    pointers,
    same_kind,
    share_of,
)
from gradestack_plugins.tool_calls.leaves import SCALARS, walk
from gradestack_plugins.tool_calls.terms import Terms, pointer_to

ARGUMENTS = ("right", "wrong", "missing", "unknown")
"""How an argument may fare."""
CALLS = ("expected", "made", "matched", "exact", "missing", "extra")
"""What a call may count as."""
Values = Sequence[tuple[Any, Any]]
"""Of each argument that is not right: what is expected, and what was given."""
_RIGHT, _MISSING, _UNKNOWN = "right", "missing_argument", "unknown_argument"
_MOST = 8192
_LETTERS = 256
"""Of the names of arguments, up to which it is kept how calls with them fare."""


Loss = tuple[str, str, str]
"""An argument that is not right: code, pointer, and what is said of it after the name of the tool."""


class Fate:
    """How a call fares: what it counts as, its arguments, and what is wrong with them. Not to be changed.

    Attributes:
        arguments: Pointers by how they fare; where none fares so, it is left out.
        counts: Of calls and of arguments.
        losses: What is not right.
        numbers: How many arguments are right, wrong, missing and unknown.
        score: How much of it is right.
        share: The same, as what is right and of how many.
    """

    __slots__ = ("arguments", "counts", "losses", "numbers", "score", "share")

    def __init__(
        self, counts: dict[str, int], share: Share, places: Sequence[list[str]], losses: Sequence[Loss] = ()
    ) -> None:
        self.share, self.losses = share, losses
        self.score = share[0] / share[1]
        self.arguments = {fate: pointed for fate, pointed in zip(ARGUMENTS, places, strict=True) if pointed}
        for fate, pointed in self.arguments.items():
            counts[f"arguments_{fate}"] = len(pointed)
        self.counts = _counts(*counts.items())
        self.numbers = tuple(map(len, places))


@lru_cache(maxsize=1024)  # the fewer objects thousands of fates hold, the more of them are in the processor's cache
def _counts(*items: tuple[str, int]) -> dict[str, int]:
    return dict(items)


class Places:
    """The arguments of many calls: where they are, and how calls fare that have them.

    Attributes:
        fates: Those met so far, by how each argument fares; or by how the call does, and its arguments with it.
        pointers: Of the leaves.
    """

    __slots__ = ("_kept", "fates", "pointers")

    def __init__(self, pointed: list[str], *, kept: bool) -> None:
        self.pointers, self._kept = pointed, kept
        self.fates: dict[Any, Fate] = {}

    def fate(self, fares: Any) -> Fate:
        """Return the fate of a call, kept for the next one like it unless it is large.

        Args:
            fares: ``right``, ``missing``, ``extra``, ``misplaced``; or of a pair: whether it can be right in part, how
                each argument fares, and pointers of unknown ones.
        """
        found = self.fates.get(fares)
        if found is not None:
            return found
        if type(fares) is tuple:
            found, more = self._pair(*fares), fares[len(self.pointers) + 1 :]
        else:
            found, more = _WHOLE[fares](self.pointers), ()
        if self._kept and sum(map(len, more)) <= _LETTERS:
            _make_room()
            self.fates[fares] = found
            _known.append(found)
        return found

    def _pair(self, partial: bool, *fares: str) -> Fate:
        fine: list[str] = []
        wrong: list[str] = []
        missing: list[str] = []
        losses: list[Loss] = []
        for pointer, fared in zip(self.pointers, fares, strict=False):
            if fared == _RIGHT:
                fine.append(pointer)
            elif fared == _MISSING:
                missing.append(pointer)
            else:
                wrong.append(pointer)
                losses.append(_loss(fared, pointer))
        unknown = list(fares[len(self.pointers) :])
        losses += [_loss(_MISSING, pointer) for pointer in missing]
        losses += [_loss(_UNKNOWN, pointer) for pointer in unknown]
        agree, of = len(fine), len(fares)
        share = ALL if not of else (agree, of) if partial or agree == of else NOTHING
        return _fate_of_pair(share, (fine, wrong, missing, unknown), losses)


Form = tuple[Any, ...]
"""Keys of arguments, and what tells the places within nested ones: a tuple for each."""
_by_form: dict[Form, Places] = {}
_known: list[Fate] = []
"""Fates that are kept, under whatever form."""


def _make_room() -> None:
    """Forget everything that is kept, if it is much."""
    if len(_known) >= _MOST or len(_by_form) >= _MOST:
        _by_form.clear()
        _known.clear()


def places_of(arguments: Arguments) -> Places:
    """Return the places of a call's arguments."""
    form: Form = tuple(arguments)
    if not are_scalars(arguments):
        form += tuple([_form(key, value) for key, value in arguments.items() if type(value) not in SCALARS])
    return _by_form.get(form) or _new_places(form, arguments)


def _form(key: str, value: Any) -> Form:
    """Return what tells the places within a nested argument."""
    kind = type(value)
    if kind is list and SCALARS.issuperset(map(type, value)):
        return key, str(len(value))
    return (key, "{", *value) if kind is dict and are_scalars(value) else (key, "[", *inside("", value))


def _new_places(form: Form, arguments: Arguments) -> Places:
    """Return new places, which are kept unless they are large or a key is no text: 1 and true are equal ones."""
    pointed = pointers(arguments)
    try:
        kept = max(len("".join(pointed)), sum([len("".join(each)) for each in form])) <= _LETTERS
    except TypeError:
        kept = False
    found = Places(pointed, kept=kept)
    if kept:
        _make_room()
        _by_form[form] = found
    return found


def _right(pointed: list[str]) -> Fate:
    return Fate({"expected": 1, "made": 1, "matched": 1, "exact": 1}, ALL, (pointed, [], [], []))


def _missing(pointed: list[str]) -> Fate:
    return Fate({"expected": 1, "missing": 1}, NOTHING, ([], [], pointed, []))


def _extra(pointed: list[str]) -> Fate:
    return Fate({"made": 1, "extra": 1, "arguments_unknown": 0}, NOTHING, ([], [], [], pointed))


def _misplaced(pointed: list[str]) -> Fate:
    return Fate(_mistaken(), NOTHING, ([], [], pointed, []))


_WHOLE = {"right": _right, "missing": _missing, "extra": _extra, "misplaced": _misplaced}


def _mistaken() -> dict[str, int]:
    """Return what a call counts as that was made, of which nothing is right."""
    return {"expected": 1, "missing": 1, "made": 1, "extra": 1}


def _fate_of_pair(share: Share, places: Sequence[list[str]], losses: Sequence[Loss]) -> Fate:
    agree, of = share
    if agree == of:
        return _right(places[0])
    return Fate({"expected": 1, "made": 1, "matched": 1} if agree else _mistaken(), share, places, losses)


def pair_fate(found: Differences, share: Share) -> tuple[Fate, Values]:
    """Return the fate of an expected call and the call that was made for it, or of which nothing is right."""
    fine, wrong, missing, unknown = found
    losses = [
        *[_loss(_code(expected, actual), pointer) for pointer, expected, actual in wrong],
        *[_loss(_MISSING, pointer) for pointer, _ in missing],
        *[_loss(_UNKNOWN, pointer) for pointer, _ in unknown],
    ]
    values = [
        *[(expected, actual) for _, expected, actual in wrong],
        *[(expected, ABSENT) for _, expected in missing],
        *[(ABSENT, actual) for _, actual in unknown],
    ]
    fate = _fate_of_pair(share, (fine, *([each[0] for each in fared] for fared in (wrong, missing, unknown))), losses)
    return fate, values[: len(fate.losses)]


def fate_of(expected: Arguments, given: Arguments, terms: Terms, *, partial: bool) -> tuple[Fate, Values]:
    """Return the fate of a call that was made for an expected one, nothing left out of their arguments.

    Args:
        expected: Arguments.
        given: Arguments.
        terms: By which they are compared; all of both count, by the equality of JSON or of Python.
        partial: Whether a call can be right in part.
    """
    found = _fares(expected, given, partial=partial, json=terms.equality == "json")
    if found is None:
        differences = compared(expected, given, terms)
        agree, of = share_of(differences)
        return pair_fate(differences, (agree, of) if partial or agree == of else NOTHING)
    fares, unknown, values, nested = found
    if unknown:
        fares += map(pointer_to, unknown)
    form = (*expected, *nested)
    places = _by_form.get(form) or _new_places(form, expected)
    key = tuple(fares)
    return places.fates.get(key) or places.fate(key), values


def _fares(
    expected: Arguments, given: Arguments, *, partial: bool, json: bool
) -> tuple[list[Any], list[str], list[tuple[Any, Any]], list[Form]] | None:
    """Return how each expected leaf fares, after ``partial``; keys of unknown ones; values of what is not right.

    And the forms of nested arguments. None where two nested values, or a scalar and one, differ in form.
    """
    fares: list[Any] = [partial]
    wrong: list[tuple[Any, Any]] = []
    missing: list[tuple[Any, Any]] = []
    nested: list[Form] = []
    others = len(given) - len(expected)
    """How many more arguments there are than answer an expected one."""
    for key, value in expected.items():
        kind = type(value)
        if kind not in SCALARS:
            nested.append(_form(key, value))
            found = _fares_nested(key, value, given.get(key), json=json)
            if found is None:
                return None
            fares += found[0]
            wrong += found[1]
            missing += found[2]
            others += bool(found[2])
        elif key not in given:
            fares.append(_MISSING)
            missing.append((value, ABSENT))
            others += 1
        else:
            other = given[key]
            if value == other and (kind is str or not json or (kind is bool) is (type(other) is bool)):
                fares.append(_RIGHT)
            elif type(other) in SCALARS:
                fares.append(_code(value, other))
                wrong.append((value, other))
            else:
                return None
    if missing:
        wrong += missing
    unknown = _unknown(expected, given) if others else []
    if unknown is None:
        return None
    if unknown:
        wrong += [(ABSENT, given[key]) for key in unknown]
    return fares, unknown, wrong, nested


def _unknown(expected: Arguments, given: Arguments) -> list[str] | None:
    """Return keys of scalars that nobody expected, or in whose place something nested is expected."""
    unknown = []
    for key, value in given.items():
        if type(value) in SCALARS:
            if key not in expected or type(expected[key]) not in SCALARS:
                unknown.append(key)
        elif key not in expected:
            return None
    return unknown


def _fares_nested(
    key: str, value: Any, other: Any, *, json: bool
) -> tuple[list[str], list[tuple[Any, Any]], list[tuple[Any, Any]]] | None:
    """Return how the leaves of a nested value fare; values of wrong and of missing ones; None as above.

    Args:
        key: Of the value.
        value: What is expected.
        other: What was given; None where that is nothing.
        json: By which equality.
    """
    if type(other) not in SCALARS:
        found = _fares_inside(value, other, json=json)
        return None if found is None else (*found, [])
    if not value:
        return None  # a leaf by itself
    leaves = [(each, ABSENT) for _, _, each in walk({key: value})]
    return [_MISSING] * len(leaves), [], leaves


def _fares_inside(value: Any, other: Any, *, json: bool) -> tuple[list[str], list[tuple[Any, Any]]] | None:
    """Return how the leaves of a nested value fare, and the values of those that are not right; None as above."""
    if type(value) is list and type(other) is list and len(value) == len(other):
        pairs = list(zip(value, other, strict=True))
    elif type(value) is dict and type(other) is dict and value.keys() == other.keys():
        pairs = [(each, other[name]) for name, each in value.items()]
    else:
        pairs = []
    fares: list[str] = []
    wrong: list[tuple[Any, Any]] = []
    for each, its in pairs:
        if type(each) not in SCALARS or type(its) not in SCALARS:
            fares = []
            break
        if each == its and (not json or (type(each) is bool) is (type(its) is bool)):
            fares.append(_RIGHT)
        else:
            fares.append(_code(each, its))
            wrong.append((each, its))
    if fares:
        return fares, wrong
    return ([_RIGHT] * len(inside("", value)), []) if value == other and same_kind(value, other) else None


@lru_cache(maxsize=4096)
def _loss(code: str, pointer: str) -> Loss:
    return code, pointer, f" {code} {pointer}"


def _code(expected: Any, actual: Any) -> str:
    return "wrong_value" if type(expected) is type(actual) or _kind(expected) == _kind(actual) else "wrong_type"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__
