"""YAML with locations: plain data, and the line every value was written on.

Nothing in a YAML is ever run as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gradestack.errors import ConfigError
from gradestack.jsonio.files import encoding_problem
from gradestack.jsonio.values import compact
from gradestack.regular_files import read_bounded
from gradestack.suites.options import Location

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
        """Build the Python value of a YAML node; refuse values that no suite may hold."""
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
    """Lines of nodes, and how much aliases stand for, before data is made."""

    lines: dict[Location, int] = {}
    repeated_key: yaml.YAMLError | None = None
    """The first key that stands twice: an error of a suite, nothing of recorded YAML."""
    _sizes: dict[int, int] = {}

    def size(self, node: yaml.Node, location: Location) -> int:
        """Count the nodes at and below one; an alias counts as the nodes it stands for."""
        size = self._sizes.get(id(node))
        if size == 0:
            raise _mistake("an alias is inside of what it stands for", node)
        if size is not None:  # an alias, whose lines are known under its anchor
            return size
        self._sizes[id(node)] = 0
        size = 1
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                size += self.size(key, location)
                if isinstance(key.value, str):  # else it is refused when its mapping is made
                    at = (*location, key.value)
                    if at in self.lines and self.repeated_key is None:
                        what = f"is on line {self.lines[at]} already; write it once"
                        self.repeated_key = _mistake(f"{show_location(at)} {what}", key)
                    self.lines[at] = key.start_mark.line + 1
                    size += self.size(value, at)
        elif isinstance(node, yaml.SequenceNode):
            for position, item in enumerate(node.value):
                at = (*location, position)
                self.lines[at] = item.start_mark.line + 1
                size += self.size(item, at)
        self._sizes[id(node)] = size
        if size - len(self._sizes) > MOST_REPEATED:
            most = f"{MOST_REPEATED:,} values"
            raise _mistake(f"its aliases stand for more than {most}; write out what is meant", node)
        return size


def _parsed(text: str) -> tuple[Any, _Survey]:
    """Return the value of a YAML text, None when it is empty, and its survey."""
    survey = _Survey()
    try:
        loader = _Loader(StringIO(text))  # errors of a stream do not quote it: it may hold a secret
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        mark = yaml.Mark("", error.position, line, 0, None, 0)
        what = f"the character {chr(error.character)!r} is not allowed in it"
        raise yaml.MarkedYAMLError(problem=what, problem_mark=mark) from error
    except (ValueError, OverflowError) as error:  # digits that are no character, or no version
        raise yaml.MarkedYAMLError(problem=str(error), problem_mark=loader.get_mark()) from error
    if node is None:
        return None, survey
    survey.size(node, ())  # before data is made, which writes merged keys into the nodes
    return loader.construct_document(node), survey


def yaml_data(text: str) -> Any:
    """Return the value of a YAML text."""
    return _parsed(text)[0]


_LONGEST_POSITION = 10
"""Digits no list has room for."""


def show_location(location: Location) -> str:
    """Return a location as people write it: ``graders.partial.paths[0]``."""
    text = ""
    for step in location:
        shown = f"[{step}]" if isinstance(step, int) else f".{step}"
        text += shown
    return text.removeprefix(".")


_FLAGS: Mapping[str | int, str] = {
    "filter": "--filter",
    "tasks": "--tasks",
    "profile": "--profile",
    "engine": "--engine",
}
"""Key of a suite -> the option of the command line that sets it."""


class Document(msgspec.Struct):
    """A configuration: plain data, and where each value came from."""

    data: dict[str, Any]
    origin: str
    """File name, or what stands in for one."""
    lines: dict[Location, int] = msgspec.field(default_factory=dict)
    overrides: set[Location] = msgspec.field(default_factory=set)
    """Places set on the command line, and those that were not there before."""
    default_name: str = ""
    """What the run is called where neither the data nor the recording names it."""

    def where(self, location: Location) -> str:
        """Return ``file:line: path`` of a value, or of the nearest thing around it that
        has a line.
        """
        shown = show_location(location)
        for length in range(len(location), 0, -1):
            around = location[:length]
            if around in self.overrides:
                flag = None
                if length == 1:
                    flag = _FLAGS.get(location[0])
                return flag or f"--set {shown}"
            if around in self.lines:
                return f"{self.origin}:{self.lines[around]}: {shown}"
        return f"{self.origin}: {shown or 'top level'}"

    def is_set(self, location: Location) -> bool:
        """Return whether a value, or something around it, was set on the command line."""
        lengths = range(1, len(location) + 1)
        return any(location[:length] in self.overrides for length in lengths)


_NAMES = re.compile("(alias|anchor|tag|handle) '[^']*'")
"""Names of a file's own that an error of YAML quotes."""


def read_yaml(path: Path) -> Document:
    """Return the document of a YAML file."""
    content = b""
    try:
        content = read_bounded(path, LARGEST_YAML)
        data, survey = _parsed(content.decode("utf-8-sig"))
        if survey.repeated_key is not None:
            raise survey.repeated_key
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except UnicodeDecodeError as error:
        why = encoding_problem(content) or f"cannot be read: {error}"
        raise ConfigError(f"{path}: {why}") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise ConfigError(f"{path}: not valid YAML: nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        where, mark = str(path), error.problem_mark
        if mark is not None:
            where += f":{mark.line + 1}"
        problem = str(error.problem)
        why = _NAMES.sub(r"\1", problem)
        raise ConfigError(f"{where}: not valid YAML: {why}") from error
    if data is None:
        raise ConfigError(f"{path}: the file is empty")
    if not isinstance(data, dict):
        kinds = {"list": "a list", "str": "text"}  # text may be a key
        type_name = type(data).__name__
        kind = kinds.get(type_name) or compact(data)
        raise ConfigError(f"{path}: expected a mapping at top level, got {kind[:60]}")
    return Document(data=data, origin=str(path), lines=survey.lines)


def apply_override(document: Document, assignment: str) -> None:
    """Set one value from ``PATH=VALUE``; VALUE is YAML, and a mapping replaces the whole value.

    A component written in short form (``reader: jsonl``) opens into ``{kind: jsonl}`` when an
    option of it is set.
    """
    path, equals, text = assignment.partition("=")
    steps = path.strip().split(".")
    shown = f"--set {assignment}"
    if not equals or not all(steps):
        example = "--set graders.partial.no_expected=skip"
        raise ConfigError(f"{shown}: expected PATH=VALUE, such as {example}")
    try:
        value = yaml_data(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{shown}: the value is not valid YAML (quote it?)") from error
    at: Any = document.data
    location: Location = ()
    for step in steps[:-1]:
        key = _key(at, step)
        location = (*location, key)
        at = _open_entry(document, at, location)
        if not isinstance(at, dict | list):
            why = f"there is no mapping or list at {key!r} to set anything in"
            raise ConfigError(f"{shown}: {why}")
    last_step = steps[-1]
    last = _key(at, last_step)
    if isinstance(at, list) and not _is_in(last, at):
        of_list = show_location(location)
        raise ConfigError(f"{shown}: {of_list} has no entry {steps[-1]!r}")
    at[last] = value
    document.overrides.add((*location, last))


def _open_entry(document: Document, at: Any, location: Location) -> Any:
    """Return the value at the last step of a location; a short form in a mapping is opened."""
    key = location[-1]
    if isinstance(at, list):
        if _is_in(key, at):
            return at[int(key)]
        return None
    if at.get(key) is None:
        document.overrides.add(location)
        at[key] = {}
    elif isinstance(at[key], str):
        at[key] = {"kind": at[key]}
    return at[key]


def _is_in(key: str | int, at: list[Any]) -> bool:
    return isinstance(key, int) and key < len(at)


def typed_texts(assignments: Iterable[str]) -> frozenset[str]:
    """Return all texts in the values of ``PATH=VALUE`` assignments."""
    values: list[Any] = []
    for assignment in assignments:
        with suppress(yaml.YAMLError, RecursionError):  # said when it is applied
            text = assignment.partition("=")[2]
            values.append(yaml_data(text))
    texts = set[str]()
    while values:
        value = values.pop()
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
    return frozenset(texts)


def _key(at: Any, step: str) -> str | int:
    is_number = step.isdecimal() and len(step) < _LONGEST_POSITION
    if is_number and isinstance(at, list):
        return int(step)
    return step
