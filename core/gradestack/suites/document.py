"""YAML with places: plain data, and the line every value was written on.

Nothing in a YAML is ever run as code.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gradestack.errors import ConfigError
from gradestack.jsonio.files import encoding_problem
from gradestack.jsonio.values import compact
from gradestack.output import counted
from gradestack.regular_files import read_bounded
from gradestack.suites.options import Place

LARGEST_YAML = 2 * 1024 * 1024
"""Bytes of a suite, rubric or other file of YAML; of two million, some twenty seconds are spent."""
MOST_REPEATED = 100_000
"""Values that aliases may stand for, beyond those that are written out."""
_LONGEST_INTEGER = 4_096
"""Bits of an integer.

The interpreter refuses to write those of some thousands of digits as text.
"""


class _Loader(yaml.SafeLoader):
    """The safe loader, whose mistakes all say where they are."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # an explicit tag on what is nothing of the kind
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise _mistake(f"this is no value of the type {tag}", node) from error
        if isinstance(value, str) and "\0" in value:  # no path, name or pattern may hold one
            raise _mistake("a text holds a NUL character", node)
        if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
            raise _mistake("a number has too many digits", node)
        return value


def _mistake(what: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, what, node.start_mark)


class _Survey(msgspec.Struct):
    """What is known of nodes before data is made of them.

    Lines, repeated keys, and how much aliases stand for.
    """

    lines: dict[Place, int] = {}
    problems: list[str] = []
    _sizes: dict[int, int] = {}

    def size(self, node: yaml.Node, place: Place) -> int:
        """Return how many nodes there are at and below one, what an alias stands for as often as it
        is used.
        """
        if (
            known := self._sizes.get(id(node))
        ) is not None:  # an alias; its lines are known under its anchor
            if not known:
                raise _mistake("an alias stands inside of what it stands for", node)
            return known
        found, keys = 1, set[Any]()
        self._sizes[id(node)] = 0
        mapping = isinstance(node, yaml.MappingNode)
        for step, entry in enumerate(node.value if isinstance(node, yaml.CollectionNode) else ()):
            key, value = entry if mapping else (None, entry)
            if key is not None:
                found += self.size(key, place)
                step = key.value  # noqa: PLW2901
            if isinstance(
                step, str | int
            ):  # a key that is no scalar is refused when its mapping is made
                line = (key or value).start_mark.line + 1
                if step in keys:
                    what = f"stands on line {self.lines[*place, step]} already; write it once"
                    self.problems.append(f"{line}: {show_place((*place, step))}: {what}")
                keys.add(step)
                self.lines[(*place, step)] = line
                found += self.size(value, (*place, step))
        self._sizes[id(node)] = found
        if found - len(self._sizes) > MOST_REPEATED:
            raise _mistake(
                f"its aliases stand for more than {MOST_REPEATED:,} values; write out what is "
                "meant",
                node,
            )
        return found


def _parsed(text: str) -> tuple[Any, _Survey]:
    """Return the value of a YAML text, None when it is empty, and where what stands."""
    try:
        return _parsed_with_marks(text)
    except yaml.MarkedYAMLError as error:
        for mark in (error.context_mark, error.problem_mark):
            if mark is not None:
                mark.buffer = None  # else the error quotes the line, which may hold a secret
        raise


def _parsed_with_marks(text: str) -> tuple[Any, _Survey]:
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        mark = yaml.Mark("", error.position, text.count("\n", 0, error.position), 0, None, 0)
        what = f"the character {chr(error.character)!r} may not stand in it"
        raise yaml.MarkedYAMLError(problem=what, problem_mark=mark) from error
    try:
        node = loader.get_single_node()
    except (ValueError, OverflowError) as error:  # digits that are no character, or no version
        raise yaml.MarkedYAMLError(problem=str(error), problem_mark=loader.get_mark()) from error
    survey = _Survey()
    if node is None:
        return None, survey
    survey.size(node, ())  # before data is made, which writes merged keys into the nodes
    return loader.construct_document(node), survey


def yaml_data(text: str) -> Any:
    """Return the value of a YAML text."""
    return _parsed(text)[0]


_LONGEST_POSITION = 10
"""Digits no list has room for."""


def show_place(place: Place) -> str:
    """Return a place as people write it: ``graders.partial.paths[0]``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


class Document(msgspec.Struct):
    """A configuration: plain data, and where each value came from."""

    data: dict[str, Any]
    origin: str
    """File name, or what stands in for one."""
    lines: dict[Place, int] = msgspec.field(default_factory=dict)
    overrides: set[Place] = msgspec.field(default_factory=set)
    """Places set on the command line, and those that were not there before."""
    default_name: str = ""
    """What the run is called where neither the data nor the recording names it."""

    def where(self, place: Place) -> str:
        """Return ``file:line: path`` of a value, or of the nearest thing around it that
        has a line.
        """
        for length in range(len(place), 0, -1):
            if place[:length] in self.overrides:
                return f"--set {show_place(place)}"
            if place[:length] in self.lines:
                return f"{self.origin}:{self.lines[place[:length]]}: {show_place(place)}"
        return f"{self.origin}: {show_place(place) or 'top level'}"

    def is_set(self, place: Place) -> bool:
        """Return whether a value, or something around it, was set on the command line."""
        return any(place[:length] in self.overrides for length in range(1, len(place) + 1))


def read_yaml(path: Path) -> Document:
    """Return the document of a YAML file."""
    content = b""
    try:
        content = read_bounded(path, LARGEST_YAML)
        data, survey = _parsed(content.decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: {encoding_problem(content) or f'cannot be read: {error}'}"
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise ConfigError(f"{path}: not valid YAML: nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or error
        raise ConfigError(
            f"{path}{line}: not valid YAML: {why}"
        ) from None  # its lines may hold a key
    if data is None:
        raise ConfigError(f"{path}: the file is empty")
    if not isinstance(data, dict):
        what = {"list": "a list", "str": "text"}.get(type(data).__name__) or compact(data)[
            :60
        ]  # text may be a key
        raise ConfigError(f"{path}: expected a mapping at top level, got {what}")
    if survey.problems:
        what = f"{path}: {counted(len(survey.problems), 'problem')} in the configuration"
        raise ConfigError(what, *(f"{path}:{each}" for each in survey.problems))
    return Document(data=data, origin=str(path), lines=survey.lines)


def apply_override(document: Document, assignment: str) -> None:
    """Set one value from ``PATH=VALUE``; VALUE is YAML, and a mapping replaces the whole value.

    A component written in short form (``reader: jsonl``) opens into ``{kind: jsonl}`` when an
    option of it is set.
    """
    path, equals, text = assignment.partition("=")
    steps = path.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(
            f"--set {assignment}: expected PATH=VALUE, such as --set "
            "graders.partial.no_expected=skip"
        )
    try:
        value = yaml_data(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"--set {assignment}: the value is not valid YAML (quote it?)") from error
    at: Any = document.data
    place: Place = ()
    for step in steps[:-1]:
        key = _key(at, step)
        place = (*place, key)
        inner = (
            at.get(key)
            if isinstance(at, dict)
            else at[key]
            if isinstance(key, int) and key < len(at)
            else None
        )
        if isinstance(at, dict) and inner is None:
            document.overrides.add(place)
            inner = at[key] = {}
        elif isinstance(at, dict) and isinstance(inner, str):
            inner = at[key] = {"kind": inner}
        if not isinstance(inner, dict | list):
            raise ConfigError(
                f"--set {assignment}: there is no mapping or list at {key!r} to set anything in"
            )
        at = inner
    last = _key(at, steps[-1])
    if not isinstance(at, dict) and not (isinstance(last, int) and last < len(at)):
        raise ConfigError(f"--set {assignment}: {show_place(place)} has no entry {steps[-1]!r}")
    at[last] = value
    document.overrides.add((*place, last))


def typed_texts(assignments: Iterable[str]) -> frozenset[str]:
    """Return all texts in the values of ``PATH=VALUE`` assignments."""
    values: list[Any] = []
    for assignment in assignments:
        with suppress(yaml.YAMLError, RecursionError):  # said when it is applied
            values.append(yaml_data(assignment.partition("=")[2]))
    texts = set[str]()
    while values:
        value = values.pop()
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
    return frozenset(texts)


def _key(at: Any, step: str) -> str | int:
    return (
        int(step)
        if isinstance(at, list) and step.isdecimal() and len(step) < _LONGEST_POSITION
        else step
    )
