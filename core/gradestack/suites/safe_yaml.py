"""YAML text into data: nothing in it is run as code, and none of it can be small to write and huge to hold."""

from __future__ import annotations

from typing import Any

import yaml

MOST_REPEATED = 100_000
"""Values that aliases may stand for, beyond those that are written out."""
_LONGEST_INTEGER = 4_096
"""Bits of an integer; the interpreter refuses to write those of some thousands of digits as text."""


class _Loader(yaml.SafeLoader):
    """The safe loader, whose mistakes all say where they are."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep=deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # an explicit tag on what is nothing of the kind
            what = repr(node.value) if isinstance(node, yaml.ScalarNode) else "this"
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            raise _mistake(f"{what} is no value of the type {tag}", node) from error
        if isinstance(value, str) and "\0" in value:  # no path, name or pattern may hold one
            raise _mistake("a text holds a NUL character", node)
        if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
            raise _mistake("a number has too many digits", node)
        return value


def _mistake(what: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, what, node.start_mark)


def parse(text: str) -> tuple[yaml.Node | None, _Loader]:
    """Return the nodes of a text, None when it is empty, and the loader that makes data of them."""
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
    if node is not None:
        _size(node, {})
    return node, loader


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many nodes there are at and below one, counting what an alias stands for as often as it is used."""
    found = known.get(id(node))
    if found is not None:
        if not found:
            raise _mistake("an alias stands inside of what it stands for", node)
        return found
    known[id(node)] = 0
    below: list[Any] = node.value if isinstance(node, yaml.CollectionNode) else []
    inner = [each for entry in below for each in (entry if isinstance(entry, tuple) else (entry,))]
    known[id(node)] = found = 1 + sum(_size(each, known) for each in inner)
    if found - len(known) > MOST_REPEATED:
        raise _mistake(f"its aliases stand for more than {MOST_REPEATED:,} values; write out what is meant", node)
    return found


def yaml_data(text: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        yaml.YAMLError: Not YAML, or not plain data.
        RecursionError: Nested too deeply.
    """
    node, loader = parse(text)
    return None if node is None else loader.construct_document(node)
