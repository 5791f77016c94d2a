"""Converting each distinct tool schema once, whatever the number of samples that carry it.

Two look-ups keep schemas out of the per-sample work. By *text*: while a line is decoded, a ``tools`` list whose text
was met before is not decoded again. By *content*: records that arrive decoded are looked up by a byte image of their
``tools``. Both are bounded, and both give the same values as decoding and converting every time.
"""

from __future__ import annotations

import json
import marshal
import re
from typing import Any, Final

import attrs

from gradestack import JSON, Profile, ToolSpec
from gradestack.jsonio import loads
from gradestack_plugins.deepfabric.schemas import SchemaProblem, convert

_HEAD: Final = 256
"""Characters that texts are looked up by; shorter lists are cheap to decode."""
_MOST_TEXT: Final = 8_000_000
"""Characters or bytes held per table before it starts afresh."""
_MOST_ALIKE: Final = 64
"""Texts with one and the same head that are tried in turn."""
_KEY: Final = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_NEXT: Final = re.compile(r"[ \t\n\r]*([,}])")
_OPEN: Final = re.compile(r"[ \t\n\r]*\{(?:[ \t\n\r]*(\}))?")
_END: Final = re.compile(r"[ \t\n\r]*\Z")
_decoder: Final = json.JSONDecoder()


@attrs.define
class Converted:
    """A ``tools`` list as specifications, or why it cannot be converted."""

    specs: tuple[ToolSpec, ...]
    problem: str | None = None
    """Why the original fails on converting it."""
    invalid: str | None = None
    """Why the original refuses the record over it; then ``specs`` are those of the entries that are objects."""


@attrs.define(eq=False)
class _Text:
    text: str
    value: list[JSON]
    converted: Converted | None = None


class _Unusual(Exception):
    """The line is not of the plain shape this decoder knows; the general one decides."""


class ToolTable:
    """Decodes record lines and converts their tools, each distinct list once."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._by_head: dict[str, list[_Text]] = {}
        self._by_identity: dict[int, _Text] = {}
        self._characters = 0
        self._by_content: dict[bytes, Converted] = {}
        self._bytes = 0

    def decode(self, data: bytes) -> Any:
        """Return the value :func:`gradestack.jsonio.values.loads` returns; ``tools`` lists met before are shared.

        Raises:
            JsonProblem: Not JSON.
        """
        if data[:1] == b"{" and data[1:2] != b"\0":
            try:
                text = data.decode("utf-8", "surrogatepass")
                value, end = self._object(text, 0)
                if _END.match(text, end):
                    return value
            except (_Unusual, ValueError, RecursionError):
                pass
        return loads(data)

    def _object(self, text: str, at: int) -> tuple[dict[str, Any], int]:
        opened = _OPEN.match(text, at)
        if opened is None:
            raise _Unusual
        found: dict[str, Any] = {}
        at = opened.end()
        if opened[1]:
            return found, at
        while True:
            named = _KEY.match(text, at)
            if named is None:
                raise _Unusual
            key, at = named[1], named.end()
            if key == "tools" and text.startswith("[", at):
                found[key], at = self._tools(text, at)
            elif key == "sample" and text.startswith("{", at):
                found[key], at = self._object(text, at)
            else:
                found[key], at = _decoder.raw_decode(text, at)
            delimiter = _NEXT.match(text, at)
            if delimiter is None:
                raise _Unusual
            at = delimiter.end()
            if delimiter[1] == "}":
                return found, at

    def _tools(self, text: str, at: int) -> tuple[list[JSON], int]:
        """Return the list at a place and its end.

        A list's text delimits itself, so text that starts with one met before is that list.
        """
        head = text[at : at + _HEAD]
        for held in self._by_head.get(head, ()):
            if text.startswith(held.text, at):
                return held.value, at + len(held.text)
        value, end = _decoder.raw_decode(text, at)
        if end - at > _HEAD:
            self._hold(head, _Text(text[at:end], value))
        return value, end

    def _hold(self, head: str, entry: _Text) -> None:
        if self._characters + len(entry.text) > _MOST_TEXT:
            self._by_head.clear()
            self._by_identity.clear()
            self._characters = 0
        alike = self._by_head.setdefault(head, [])
        if len(alike) < _MOST_ALIKE:
            self._characters += len(entry.text)
            alike.append(entry)
            self._by_identity[id(entry.value)] = entry

    def convert(self, raw: list[Any]) -> Converted:
        """Return a ``tools`` list converted; one object per distinct list."""
        held = self._by_identity.get(id(raw))
        if held is not None and held.value is raw:
            if held.converted is None:
                held.converted = self._by_bytes(raw)
            return held.converted
        return self._by_bytes(raw)

    def _by_bytes(self, raw: list[Any]) -> Converted:
        try:
            image = marshal.dumps(raw, 2)  # version 2 shares nothing, so equal content gives equal bytes
        except ValueError:  # nested too deeply, or not plain JSON
            return self._convert(raw)
        found = self._by_content.get(image)
        if found is None:
            found = self._convert(raw)
            self._bytes += len(image)
            if self._bytes > _MOST_TEXT:
                self._by_content.clear()
                self._bytes = len(image)
            self._by_content[image] = found
        return found

    def _convert(self, raw: list[Any]) -> Converted:
        entries = [entry for entry in raw if isinstance(entry, dict)]
        invalid = "tools: every entry must be an object" if len(entries) < len(raw) else None
        try:
            return Converted(convert(entries, self._profile), invalid=invalid)
        except SchemaProblem as error:
            return Converted((), str(error), invalid)


_tables: dict[Profile, ToolTable] = {}


def table(profile: Profile) -> ToolTable:
    """Return this process's table of a profile."""
    found = _tables.get(profile)
    return found if found is not None else _tables.setdefault(profile, ToolTable(profile))
