"""Records declared as structs: converted once, where they are read, with plain code behind it."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from gradestack import compile_later
from gradestack.jsonio import compact, loads

Text = str | None
Flag = bool | None
Items = list[Any] | None
Object = dict[str, Any] | None
"""Types of optional keys; null is as if such a key were not there."""

Declared = TypeVar("Declared", bound=msgspec.Struct)
_Path = tuple[str | int, ...]

_STEP: Final = compile_later(r"\.([^.\[`]+)|\[(\d+)\]")
_MISSING: Final = compile_later(r"Object missing required field `(.*)`")
_TYPE: Final = compile_later(r"`([^`]*)`")
_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "a boolean",
    "array": "a list",
    "object": "an object",
}
_MOST: Final = 20
"""Number of inner keys and entries that are left out one by one; then whole outer keys are."""


def convert_record(record: Any, form: type[Declared]) -> tuple[Declared, dict[str, int]]:
    """Convert a record to the struct that declares the keys of its format.

    Other keys are ignored, and null is as if a key were not there. A key or an entry of a list that
    is of another type is left out and remarked, unless the record cannot do without it.

    Args:
        record: The record, as JSON decodes it. It is not changed.
        form: The struct.

    Returns:
        The struct, and a remark for each kind of key or entry that was left out.

    Raises:
        ValueError: A key that is needed is missing or of another type. The message names the key,
            what was expected and what was found.
    """
    reasons: dict[_Path, str] = {}
    remarks: dict[str, int] = {}
    left_out = 0
    while True:
        try:
            return msgspec.convert(record, form), remarks
        except UnicodeEncodeError:
            # beside a lone surrogate no key can be looked up
            text = compact(record).encode(errors="replace")
            record = loads(text)
            continue
        except msgspec.ValidationError as error:
            problem, path, reason = _explain(str(error))
        reason = reasons.get(problem, reason)
        if not path:
            raise ValueError(reason)
        is_key = problem == path and isinstance(path[-1], str)
        if not (is_key and reason.endswith("found null")):
            remarks[reason] = 1
        left_out += 1
        if left_out > _MOST:
            path = path[:1]
        reasons[path] = reason
        if isinstance(path[-1], int):
            reasons.clear()  # the next entry takes its index
        record = _without(record, path)


def _explain(message: str) -> tuple[_Path, _Path, str]:
    """Return the path of a problem, the path of the key to leave out, and a sentence.

    Args:
        message: The message of msgspec's error.
    """
    problem, _, location = message.partition(" - at `$")
    steps = _STEP.findall(location.partition("[...]")[0])
    path: _Path = tuple([key or int(index) for key, index in steps])
    missing = _MISSING.fullmatch(problem)
    if missing is not None:
        key = (*path, missing[1])
        return key, path, f"{_dotted(key)} is missing"
    types = problem.replace(" | null`", "`").replace(" | ", "` or `")
    words = _TYPE.sub(lambda name: _WORDS.get(name[1], name[1]), types)
    sentence = words.replace("Expected", "expected").replace("got", "found")
    return path, path, f"{_dotted(path) or 'record'}: {sentence}"


def _dotted(path: _Path) -> str:
    steps = [step for step in path if isinstance(step, str)]
    return ".".join(steps)


def _without(value: Any, path: _Path) -> Any:
    """Return a value without the key at a path, as a copy along it."""
    step, *rest = path
    copied = value.copy()
    if rest:
        copied[step] = _without(value[step], tuple(rest))
    else:
        del copied[step]
    return copied
