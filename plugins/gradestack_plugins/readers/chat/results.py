"""Results of calls.

Their text, and whether they say that the call went wrong (the table ``errors@1``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from gradestack.jsonio import JsonProblem, compact, loads
from gradestack_plugins.readers.chat import OBJECT, word

ERRORS: Final = "errors@1"  # name and version of the table of error forms
_PHRASES: Final = {
    **{str(int(each)): each.phrase for each in HTTPStatus if each >= 400},
    # what other versions of Python call them
    "413": "(?:Request Entity|Payload|Content) Too Large",
    "414": "(?:Request-)?URI Too Long",
    "416": "(?:Requested )?Range Not Satisfiable",
    "422": "Unprocessable (?:Entity|Content)",
}
_TEXT_FORMS: Final = {
    "text_error": r"error(?::|code|\s+(?!rates?\b|logs?\b)\w)",
    "text_error_tag": r"<error>",
    "text_exception": r"exception(?![a-z])|(?!terror:)(?:[a-z_]\w*+\.)*+[a-z_]\w*+(?:(?<=\werror)|(?<=\wexception)):",
    "text_traceback": r"traceback \(most recent call last\)",
    "text_error_occurred": r"an error occurred while",
    "text_failed": r"failed to\s|(?:\S++\s++){0,3}(?![\d.,]+\s)\S++\s++failed:",
    "text_http": r"http(?:/[\d.]+)?\s+[45]\d\d\b",
    "text_status": "|".join(rf"{code} {phrase}\b" for code, phrase in sorted(_PHRASES.items())),
}
"""How text begins that is an error, by the name of its rule."""
_TEXTS: Final = re.compile(
    "|".join(f"(?P<{name}>{form})" for name, form in _TEXT_FORMS.items()), re.IGNORECASE
)
_WORDS: Final = ("error", "exception", "traceback", "failed", "http")
"""Of which a text of an error has one, or begins with its status.

Sooner known than how it begins.
"""
_BEGINNING: Final = 1000  # characters of a text by which it is told
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
_CODES: Final = ("statusCode", "status_code", "http_status", "status")
_TELLING: Final = frozenset(
    {"success", "ok", "isError", "is_error", "error", "errors", "code", *_CODES}
)
"""Keys by one of which an object may be an error."""


class ErrorForm(NamedTuple):
    """What makes the result of a call an error."""

    rule: str
    message: str

    @property
    def type(self) -> str:
        """What stands as the type of the error: the table and the rule of it."""
        return f"{ERRORS} {self.rule}"


def plain(content: Any, joint: str = "") -> Any:
    """Return a result as text where it is parts of text alone, else as it is."""
    if not isinstance(content, list) or not content:
        return content
    found = [
        part.get("text")
        for part in content
        if isinstance(part, dict) and word(part, "type") in _TEXT_PARTS
    ]
    texts = [each for each in found if isinstance(each, str)]
    return joint.join(texts) if len(texts) == len(content) else content


def error_text(error: Any) -> str:
    """Return an error as text: itself, its message, or the whole of it."""
    if isinstance(error, str):
        return error
    message = error.get("message") if isinstance(error, OBJECT) else None
    return message if isinstance(message, str) else compact(error)


def error_form(result: Any) -> ErrorForm | None:
    """Return what makes a result an error by the table ``errors@1``; None where nothing does.

    Of a JSON object (also one written as text) the top level decides, the first that applies:
    ``success`` or ``ok`` false, ``isError`` or ``is_error`` true; ``success`` or ``ok`` true is
    fine; ``error`` or ``errors`` with something in it; ``status`` ``error``, ``failed`` or
    ``failure``, while any other text there is fine; an HTTP status of 400 to 599. Text is an error
    when it begins as one: ``Error: …``, ``ValueError: …``, ``Traceback …``, ``failed to …``,
    ``Tool execution failed: …``, ``HTTP 500``, ``404 Not Found``. Anything else is fine.
    """
    if isinstance(result, str):
        text = result.strip()
        if text.startswith("{"):
            try:
                result = loads(text)
            except JsonProblem:
                return None
        elif (text[:1] in "45" or any(map(text[:_BEGINNING].casefold().__contains__, _WORDS))) and (
            found := _TEXTS.match(text[:_BEGINNING])
        ) is not None:
            return ErrorForm(str(found.lastgroup), result)
    return _of_object(result) if isinstance(result, OBJECT) else None


def _of_object(result: Mapping[str, Any]) -> ErrorForm | None:
    if _TELLING.isdisjoint(result):
        return None
    flags = [result.get("success"), result.get("ok")]
    if any(each is False or (isinstance(each, str) and each.lower() == "false") for each in flags):
        return ErrorForm("json_success", _message(result))
    if result.get("isError") is True or result.get("is_error") is True:
        return ErrorForm("json_is_error", _message(result))
    if any(each is True for each in flags):
        return None
    for key in ("error", "errors"):
        if (error := result.get(key)) is True or (
            isinstance(error, str | Mapping | list) and error
        ):
            return ErrorForm("json_error", compact(result) if error is True else error_text(error))
    status = result.get("status")
    if isinstance(status, str):
        return (
            ErrorForm("json_status", _message(result))
            if status.lower() in {"error", "failed", "failure"}
            else None
        )
    codes = [result.get(key) for key in _CODES]
    codes += [result.get("code")] if "message" in result or "error" in result else []
    numbers = [
        code for code in codes if isinstance(code, int | float) and not isinstance(code, bool)
    ]
    return (
        ErrorForm("json_code", _message(result))
        if any(code in range(400, 600) for code in numbers)
        else None
    )


def _message(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    return error_text(error) if error and isinstance(error, str | Mapping) else error_text(result)
