"""Terms by which two calls are compared: the mode of the arguments, what is left out of them, and what equal means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import attrs

from gradestack import Rule
from gradestack_plugins.tool_calls.calls import Arguments
from gradestack_plugins.tool_calls.leaves import Equality, Leaves, equal, escaped

Mode = Literal["ignore", "exact", "subset", "superset", "rules"]
MODES: tuple[Mode, ...] = ("ignore", "exact", "subset", "superset", "rules")


@attrs.frozen(kw_only=True)
class ToolTerms:
    """What is said of the calls of one tool; ``*`` as its name says it of all the others."""

    arguments: Mode | None = None
    """How arguments are compared; None: as those of the other tools."""
    keys: tuple[str, ...] | None = None
    """The only places compared: JSON pointers, or keys with dots in between."""
    ignore: tuple[str, ...] = ()
    """Places that are not compared: patterns of keys, with dots in between."""
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """What an argument that is not given stands for: given as this value, where it is not expected, it is no error."""

    def __attrs_post_init__(self) -> None:
        """Check that the options agree.

        Raises:
            ValueError: One takes away what another says.
        """
        if self.arguments == "ignore" and (self.keys is not None or self.ignore or self.defaults):
            raise ValueError("keys, ignore and defaults have no meaning beside arguments: ignore, which compares none")
        if self.keys is None:
            return
        if not self.keys:
            raise ValueError("keys names no place to compare; arguments: ignore says that, or leave it out")
        for key in map(_dotted, self.keys):
            if any(fnmatchcase(key, _dotted(pattern)) for pattern in self.ignore):
                raise ValueError(f"{key} stands both in keys and in ignore; leave it out of one of them")


@attrs.frozen(kw_only=True)
class Terms:
    """How the calls of one tool are compared."""

    mode: Mode
    equality: Equality
    tool: ToolTerms = ToolTerms()

    @property
    def whole(self) -> bool:
        """Whether arguments are compared as they are, nothing left out of them."""
        return self.tool.keys is None and not self.tool.ignore and not self.tool.defaults

    def leaves(self, arguments: Arguments, without: frozenset[str] = frozenset()) -> Leaves:
        """Return the leaves that are compared.

        Args:
            arguments: Of a call.
            without: Keys that a rule decides.
        """
        if without:
            arguments = {key: value for key, value in arguments.items() if key not in without}
        if self.tool.keys is None and not self.tool.ignore:
            return Leaves(arguments, self.equality)
        return Leaves(_kept(arguments, self.tool), self.equality)

    def given(self, made: Arguments, expected: Arguments, rules: Mapping[str, Rule]) -> Arguments:
        """Return the arguments of a call that was made, without those that stand for not being given."""
        return {
            key: value
            for key, value in made.items()
            if key in expected
            or key in rules
            or key not in self.tool.defaults
            or not equal(value, self.tool.defaults[key], self.equality)
        }


def _kept(arguments: Arguments, tool: ToolTerms) -> Arguments:
    keys = None if tool.keys is None else [_dotted(each) for each in tool.keys]
    found: Arguments = _below(arguments, (), keys, [_dotted(each) for each in tool.ignore])
    return found


def _dotted(place: str) -> str:
    """Return a place with dots between its keys."""
    if not place.startswith("/"):
        return place
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in place[1:].split("/"))


def _below(value: Any, path: tuple[str, ...], keys: Sequence[str] | None, ignored: Sequence[str]) -> Any:
    """Return a value without the parts that are not compared."""
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    found = {}
    for key, each in pairs:
        place = (*path, str(key))
        dotted = ".".join(place)
        if any(fnmatchcase(dotted, pattern) for pattern in ignored):
            continue
        if keys is not None and dotted not in keys:
            inside = [name for name in keys if name.startswith(f"{dotted}.")]
            if not inside or not isinstance(each, Mapping | list):
                continue
            part = _below(each, place, inside, ignored)
            if not part:
                continue
        else:
            part = each if not ignored or not isinstance(each, Mapping | list) else _below(each, place, None, ignored)
        found[key] = part
    return found if isinstance(value, Mapping) else list(found.values())


def terms_of(
    name: str, mode: Mode, equality: Equality, per_tool: Mapping[str, ToolTerms], known: dict[str, Terms]
) -> Terms:
    """Return the terms of a tool's calls; ``known`` holds those made before."""
    found = known.get(name)
    if found is None:
        tool = per_tool.get(name) or per_tool.get("*") or ToolTerms()
        found = known[name] = Terms(mode=tool.arguments or mode, equality=equality, tool=tool)
    return found


def pointer_to(key: str) -> str:
    """Return the JSON pointer of an argument."""
    return f"/{escaped(key)}"
