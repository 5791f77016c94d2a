"""Documents of YAML: plain data, and the line every value was written on.

yaml takes as long to import as Python to start, so it is imported where a text is read: files that
are graded without a suite have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gradestack.errors import ConfigError
from gradestack.jsonio.files import encoding_problem
from gradestack.jsonio.values import compact
from gradestack.patterns import compile_later
from gradestack.regular_files import read_bounded
from gradestack.suites.options import Location, show_location

LARGEST_YAML = 2 * 1024 * 1024
"""Bytes of a suite, rubric or other file of YAML; of two million, some twenty seconds are spent."""


def yaml_data(text: str) -> Any:
    """Return the value of a YAML text."""
    from gradestack.suites.yaml_text import parse_yaml  # noqa: PLC0415 - see above

    return parse_yaml(text)[0]


_LONGEST_POSITION = 10
"""Digits no list has room for."""
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


_NAMES = compile_later("(alias|anchor|tag|handle) '[^']*'")
"""Names of a file's own that an error of YAML quotes."""


def read_yaml(path: Path) -> Document:
    """Return the document of a YAML file."""
    import yaml  # noqa: PLC0415 - see above

    from gradestack.suites.yaml_text import parse_yaml  # noqa: PLC0415

    content = b""
    try:
        content = read_bounded(path, LARGEST_YAML)
        data, survey = parse_yaml(content.decode("utf-8-sig"))
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


def _written_value(text: str) -> Any:
    """Return the value that a text on the command line stands for.

    Raises:
        ValueError: It is not valid YAML.
    """
    import yaml  # noqa: PLC0415 - see above

    try:
        return yaml_data(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("not valid YAML") from error


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
        value = _written_value(text)
    except ValueError as error:
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
        with suppress(ValueError):  # said when it is applied
            text = assignment.partition("=")[2]
            values.append(_written_value(text))
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
