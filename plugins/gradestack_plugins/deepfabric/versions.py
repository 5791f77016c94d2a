"""The versions of the program that ``profile: upstream`` can follow, and how one is made to read a record."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import attrs

Version = Literal["4.13", "4.3"]
"""``4.13`` stands for 4.10 to 4.13, which evaluate alike."""
Parser = Literal["generic", "qwen", "hermes", "llama", "mistral"]
Rules = Literal["documented", "4.13", "4.3"]
"""Whose rules hold: the document's, or those of a version of the program."""
NEWEST: Final = "4.13"
OLD: Final = "4.3"


def version_of(value: Any) -> Any:
    """Return a version as text: YAML reads ``4.3`` without quotes as a number. Anything else is returned unchanged."""
    return str(value) if isinstance(value, float) else value


@attrs.frozen
class Reading:
    """How the program reads a record and the replies to it."""

    version: Version = NEWEST
    most_turns: int = 0
    """Replies that are looked at when several turns are evaluated; 0: one reply is asked for."""
    parser: Parser = "generic"

    def described(self) -> dict[str, str | int]:
        """Return what differs from the usual reading, by option of the grader."""
        found: dict[str, str | int] = {}
        if self.version != NEWEST:
            found["upstream_version"] = self.version
        if self.most_turns:
            found |= {"multi_turn": True, "max_turns": self.most_turns}
        if self.parser != "generic":
            found["tool_call_parser"] = self.parser
        return found

    @classmethod
    def of(cls, described: Any) -> Reading:
        """Return the reading that was described."""
        version, parser = described.get("upstream_version", NEWEST), described.get("tool_call_parser", "generic")
        most = described.get("max_turns", 0)
        return cls(version, most, parser)


USUAL: Final = Reading()
"""The newest version asking for one reply."""


def check_version(value: str) -> None:
    """Refuse a version that is not known.

    Raises:
        ValueError: It is not.
    """
    known = get_args(Version)
    if value not in known:
        msg = f"upstream_version must be one of {', '.join(known)} (4.13 stands for 4.10 to 4.13), got {value!r}"
        raise ValueError(msg)
