"""Results of calls: their text, and whether they say that the call went wrong."""

from __future__ import annotations

import re
from typing import Any, Final

from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers.chat.dialect import word

_FAILED: Final = re.compile(
    r"\s*(?:(?i:error):|(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception):|Traceback \(most recent call last\)"
    r"|An error occurred while running the tool)"
)
_TEXTS: Final = frozenset({"text", "input_text", "output_text"})


def plain(content: Any) -> Any:
    """Return a result as text where it is parts of text alone, else as it is."""
    if not isinstance(content, list) or not content:
        return content
    found = [part.get("text") for part in content if isinstance(part, dict) and word(part, "type") in _TEXTS]
    texts = [each for each in found if isinstance(each, str)]
    return "".join(texts) if len(texts) == len(content) else content


def error_text(error: Any) -> str:
    """Return an error as text: itself, its message, or the whole of it."""
    if isinstance(error, str):
        return error
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else compact(error)


def failure(result: Any) -> str | None:
    """Return what a result says went wrong, None when nothing did.

    The API has no mark for it. A result is taken for an error when it begins as one (``Error:``, ``ValueError:``, a
    traceback), or is an object with a true ``isError`` or an ``error`` that is neither empty nor false.
    """
    if isinstance(result, str):
        if _FAILED.match(result):
            return result
        if not result.lstrip().startswith("{") or 'rror"' not in result:
            return None
        try:
            result = loads(result)
        except JsonProblem:
            return None
    if not isinstance(result, dict):
        return None
    error = result.get("error")
    if error:
        return error_text(error)
    return compact(result) if result.get("isError") is True or result.get("is_error") is True else None
