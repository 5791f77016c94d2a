"""JSON values as indented lines some of which are marked, and JSON texts spread over lines without changing a token."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from gradestack.jsonio import JsonProblem, compact, loads

Path = tuple[str, ...]
"""Place in a value: the decoded parts of a JSON pointer."""

_DEEPEST = 8
_MOST_COMPARED = 10_000
_INLINE = 72
_LEAF = re.compile(r'[\[{](?:"(?:[^"\\]|\\.){0,72}"|[^\[\]{}"]){0,72}[\]}]', re.DOTALL)
"""A container without containers in it, if it is short."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


class Line(msgspec.Struct, frozen=True):
    """One line of a value."""

    indent: int
    text: str
    marked: bool = False


def pointer_path(pointer: str) -> Path:
    """Return the parts of a JSON pointer (RFC 6901); the pointer to the whole value has none."""
    if not pointer.startswith("/"):
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def same(left: Any, right: Any) -> bool:
    """Return whether JSON values are equal: 1 and 1.0 are, true and 1 are not, nor are those too deep to compare."""
    try:
        return _same(left, right)
    except RecursionError:
        return False


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def differences(expected: Any, actual: Any) -> tuple[frozenset[Path], frozenset[Path]]:
    """Return the places at which two values differ, in the first and in the second.

    Objects are compared key by key. In lists, elements that have an equal in the other list are the same wherever they
    stand; the others are compared in order.
    """
    left: set[Path] = set()
    right: set[Path] = set()
    _differ(expected, actual, (), (), left, right)
    return frozenset(left), frozenset(right)


def _differ(expected: Any, actual: Any, here: Path, there: Path, left: set[Path], right: set[Path]) -> None:
    if same(expected, actual):
        return
    deeper = len(here) < _DEEPEST
    if deeper and isinstance(expected, dict) and isinstance(actual, dict) and expected and actual:
        left.update((*here, str(key)) for key in expected if key not in actual)
        right.update((*there, str(key)) for key in actual if key not in expected)
        for key in expected:
            if key in actual:
                _differ(expected[key], actual[key], (*here, str(key)), (*there, str(key)), left, right)
    elif deeper and type(expected) is type(actual) is list and 0 < len(expected) * len(actual) <= _MOST_COMPARED:
        _differ_lists(expected, actual, here, there, left, right)
    else:
        left.add(here)
        right.add(there)


def _differ_lists(
    expected: list[Any], actual: list[Any], here: Path, there: Path, left: set[Path], right: set[Path]
) -> None:
    free = list(range(len(actual)))
    wanted = []
    for place, value in enumerate(expected):
        twin = next((index for index in free if same(value, actual[index])), None)
        if twin is None:
            wanted.append(place)
        else:
            free.remove(twin)
    for place, index in zip(wanted, free, strict=False):
        _differ(expected[place], actual[index], (*here, str(place)), (*there, str(index)), left, right)
    left.update((*here, str(place)) for place in wanted[len(free) :])
    right.update((*there, str(index)) for index in free[len(wanted) :])


def lines(value: Any, marks: Collection[Path] = (), limit: int = 4000) -> tuple[Line, ...]:
    """Return a value as indented JSON lines; those inside a marked place are marked."""
    found: list[Line] = []
    room = limit
    for line in _spread(value, (), "", frozenset(marks), marked=() in marks):
        room -= len(line.text) + 1
        if room < 0:
            if room + len(line.text) > 0:
                found.append(msgspec.structs.replace(line, text=line.text[: room + len(line.text)] + "…"))
            found.append(Line(0, "… cut here"))
            break
        found.append(line)
    return tuple(found)


def _spread(value: Any, path: Path, key: str, marks: frozenset[Path], *, marked: bool) -> Iterator[Line]:
    indent = len(path)
    inner = any(mark[:indent] == path and len(mark) > indent for mark in marks)
    whole = "" if inner and not marked else _short(value)
    if whole or not isinstance(value, dict | list) or not value or indent >= _DEEPEST:
        yield Line(indent, key + (whole or compact(value)), marked)
        return
    opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
    yield Line(indent, key + opening, marked)
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    last = len(value) - 1
    for place, (name, item) in enumerate(pairs):
        at = (*path, str(name))
        label = f"{compact(name)}: " if isinstance(value, dict) else ""
        *before, end = _spread(item, at, label, marks, marked=marked or at in marks)
        yield from before
        yield end if place == last else msgspec.structs.replace(end, text=f"{end.text},")
    yield Line(indent, closing, marked)


def _short(value: Any) -> str:
    """Return a value on one line when it fits one, "" otherwise."""
    if isinstance(value, dict | list) and len(value) > _INLINE:
        return ""
    text = compact(value)
    return text if len(text) <= _INLINE else ""


def spread(text: str) -> str | None:
    """Return a JSON object or list spread over indented lines, None when the text holds neither.

    Only white space changes: key order, number formats and repeated keys stay as written. Levels beyond the eighth stay
    on their line.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        loads(text)
    except JsonProblem:
        return None
    return "".join(_tokens(text))


def _tokens(text: str) -> Iterator[str]:
    depth, at, opened = 0, 0, False
    while match := _TOKEN.search(text, at):
        leaf = _LEAF.match(text, match.start())
        short = leaf is not None and leaf.end() - leaf.start() <= _INLINE
        part = "".join(_inline(leaf.group())) if leaf and short else match.group()
        at = leaf.end() if leaf and short else match.end()
        closing = part in "]}"
        depth -= closing
        if opened != closing and depth + closing <= _DEEPEST:  # neither "{}" nor a value behind a comma
            yield f"\n{'  ' * depth}"
        opened = part in "[{"
        depth += opened
        if part == ",":
            yield f",\n{'  ' * depth}" if depth <= _DEEPEST else ", "
        else:
            yield ": " if part == ":" else part


def _inline(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        part = match.group()
        yield f"{part} " if part in ",:" else part
