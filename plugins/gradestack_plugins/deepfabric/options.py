"""The versions of the program that ``profile: upstream`` can follow, and how one is made to read a
record.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import msgspec

Version = Literal["4.13", "4.3"]  # `4.13` stands for 4.10 to 4.13, which evaluate alike
Parser = Literal["generic", "qwen", "hermes", "llama", "mistral"]
Rules = Literal[
    "documented", "4.13", "4.3"
]  # whose rules hold: the document's, or those of a version of the program
NEWEST: Final = "4.13"
OLD: Final = "4.3"


class RecordProblem(ValueError):
    """A record, or a tool's schema in it, that makes its sample a processing error."""

    def __init__(self, message: str, *, stops: bool = False) -> None:
        super().__init__(message)
        self.stops = (
            stops  # whether the newest program ends on it, without a result, instead of counting it
        )


def version_of(value: Any) -> str:
    """Return a version of the program as text: YAML reads ``4.3`` without quotes as a number."""
    version, known = str(value), get_args(Version)
    if version not in known:
        names = ", ".join(known)
        raise ValueError(
            f"upstream_version must be one of {names} (4.13 stands for 4.10 to 4.13), got "
            f"{version!r}"
        )
    return version


class Reading(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"version": "upstream_version", "most_turns": "max_turns", "parser": "tool_call_parser"},
):
    """How the program reads a record and the replies to it.

    What differs from the usual is in a grade's metadata.
    """

    version: Rules = NEWEST
    multi_turn: bool = False
    most_turns: int = (
        0  # replies that are looked at when several turns are evaluated; 0: one reply is asked for
    )
    parser: Parser = "generic"


USUAL: Final = Reading()  # the newest version asking for one reply
DOCUMENTED: Final = Reading("documented")
