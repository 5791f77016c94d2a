"""YAML: the values of a text, and the line every value was written on.

Nothing in a YAML is ever run as code. This file alone imports yaml, which takes as long as starting
Python: whoever reads a text imports this file then.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

import msgspec
import yaml

from gradestack.suites.options import Location, show_location

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


class Survey(msgspec.Struct):
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


def parse_yaml(text: str) -> tuple[Any, Survey]:
    """Return the value of a YAML text, None when it is empty, and its survey."""
    survey = Survey()
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
