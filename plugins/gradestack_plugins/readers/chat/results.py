"""Results of calls: their text, and whether they are errors (the table ``errors@1``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers.chat import OBJECT, word

ERRORS: Final = "errors@1"
"""Name and version of the table of error forms."""
_OTHER_PHRASES: Final = {
    "413": "(?:Request Entity|Payload|Content) Too Large",
    "414": "(?:Request-)?URI Too Long",
    "416": "(?:Requested )?Range Not Satisfiable",
    "422": "Unprocessable (?:Entity|Content)",
}
"""Phrases of statuses in other versions of Python."""
_TEXT_FORMS: Final = {
    "text_error": r"error(?::|code|\s+(?!rates?\b|logs?\b)\w)",
    "text_error_tag": r"<error>",
    "text_exception": (
        r"exception(?![a-z])"
        r"|(?!terror:)(?:[a-z_]\w*+\.)*+[a-z_]\w*+(?:(?<=\werror)|(?<=\wexception)):"
    ),
    "text_traceback": r"traceback \(most recent call last\)",
    "text_error_occurred": r"an error occurred while",
    "text_failed": r"failed to\s|(?:\S++\s++){0,3}(?![\d.,]+\s)\S++\s++failed:",
    "text_http": r"http(?:/[\d.]+)?\s+[45]\d\d\b",
}
"""Name of a rule -> the beginning of a text that is an error; one more is of HTTP statuses."""


@cache
def _error_texts() -> re.Pattern[str]:
    """Return the pattern of all texts that are errors, a group for each rule.

    It is made when a result is read, because making it takes longer than importing a reader.
    """
    from http import HTTPStatus  # noqa: PLC0415 - for the phrases alone

    phrases = {str(int(status)): status.phrase for status in HTTPStatus if status >= 400}
    phrases |= _OTHER_PHRASES
    statuses = "|".join(rf"{code} {phrase}\b" for code, phrase in sorted(phrases.items()))
    forms = {**_TEXT_FORMS, "text_status": statuses}
    groups = "|".join(f"(?P<{name}>{form})" for name, form in forms.items())
    return re.compile(groups, re.IGNORECASE)


_WORDS: Final = ("error", "exception", "traceback", "failed", "http")
"""Words of which a text of an error has one, or begins with its status: a quick check."""
_BEGINNING: Final = 1000
"""Characters of a text by which it is recognised."""
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
_CODES: Final = ("statusCode", "status_code", "http_status", "status")
_TELLING: Final = frozenset(
    {"success", "ok", "isError", "is_error", "error", "errors", "code", *_CODES}
)
"""Keys by one of which an object may be an error."""


class ErrorForm(msgspec.Struct, frozen=True):
    """The rule by which the result of a call is an error, and its message."""

    rule: str
    message: str

    @property
    def type(self) -> str:
        """The type of the error: the table and its rule."""
        return f"{ERRORS} {self.rule}"


def plain(content: Any, joint: str = "") -> Any:
    """Return a result as text where it is parts of text alone, else as it is."""
    if not isinstance(content, list) or not content:
        return content
    texts: list[str] = []
    for part in content:
        text = part.get("text") if word(part, "type") in _TEXT_PARTS else None
        if not isinstance(text, str):
            return content
        texts.append(text)
    return joint.join(texts)


def error_text(error: Any) -> str:
    """Return an error as text: itself, its message, or the whole of it."""
    if isinstance(error, str):
        return error
    message = None
    if isinstance(error, OBJECT):
        message = error.get("message")
    return message if isinstance(message, str) else compact(error)


def error_form(result: Any) -> ErrorForm | None:
    """Return the rule of ``errors@1`` by which a result is an error, None for other results.

    In a JSON object (also one written as text) the top level decides, the first that applies:
    ``success`` or ``ok`` false, ``isError`` or ``is_error`` true; ``success`` or ``ok`` true is
    fine; ``error`` or ``errors`` with something in it; ``status`` ``error``, ``failed`` or
    ``failure``, while any other text there is fine; an HTTP status of 400 to 599. Text is an error
    when it begins as one: ``Error: …``, ``ValueError: …``, ``Traceback …``, ``failed to …``,
    ``Tool execution failed: …``, ``HTTP 500``, ``404 Not Found``. Anything else is fine.
    """
    if isinstance(result, str):
        text = result.strip()
        if not text.startswith("{"):
            return _form_of_text(text[:_BEGINNING], result)
        try:
            result = loads(text)
        except JsonProblem:
            return None
    return _form_of_object(result) if isinstance(result, OBJECT) else None


def _form_of_text(beginning: str, text: str) -> ErrorForm | None:
    """Return the form of error that a tool's text begins like; None where it is no error."""
    folded = beginning.casefold()
    may_be_status = beginning[:1] in "45"  # of HTTP
    if not may_be_status and not any(word in folded for word in _WORDS):
        return None
    match = _error_texts().match(beginning)
    if match is None:
        return None
    return ErrorForm(str(match.lastgroup), text)


def _form_of_object(result: Mapping[str, Any]) -> ErrorForm | None:
    """Return the form in which a result says that it is an error, and the message, or None."""
    if _TELLING.isdisjoint(result):
        return None
    flags = [result[key] for key in ("success", "ok") if key in result]
    if any(map(_is_false, flags)):
        return ErrorForm("json_success", _message(result))
    is_error = result.get("isError")
    if is_error is True or result.get("is_error") is True:
        return ErrorForm("json_is_error", _message(result))
    if any(flag is True for flag in flags):
        return None
    errors = result.get("errors")
    for error in (result.get("error"), errors):
        if error is True:
            return ErrorForm("json_error", compact(result))
        if error and isinstance(error, str | Mapping | list):
            return ErrorForm("json_error", error_text(error))
    status = result.get("status")
    if isinstance(status, str):
        is_failure = status.lower() in {"error", "failed", "failure"}
        return ErrorForm("json_status", _message(result)) if is_failure else None
    codes = _codes_in(result)
    is_failure = any(map(_is_http_error, codes))
    return ErrorForm("json_code", _message(result)) if is_failure else None


def _is_false(flag: Any) -> bool:
    return flag is False or (isinstance(flag, str) and flag.lower() == "false")


def _codes_in(result: Mapping[str, Any]) -> list[Any]:
    """Return the values of a result that may be an HTTP status."""
    codes = [result[key] for key in _CODES if key in result]
    if {"message", "error"} & result.keys():
        return [*codes, result.get("code")]
    return codes


def _is_http_error(code: Any) -> bool:
    is_number = isinstance(code, int | float) and not isinstance(code, bool)
    return is_number and code in range(400, 600)


def _message(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    return error_text(error if error and isinstance(error, str | Mapping) else result)
