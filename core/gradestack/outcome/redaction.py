"""A copy of a finished run without secrets: its rows, summary, header and pages can be sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gradestack.errors import ConfigError, suggest, writing
from gradestack.jsonio.values import JsonProblem, as_list, as_map, as_text, dumps, loads
from gradestack.model import (
    JSON,
    Expectation,
    ExpectedCall,
    Fault,
    Grade,
    Item,
    Message,
    Reason,
    Rule,
    Sample,
    Source,
    ToolCall,
    ToolSpec,
    Usage,
)
from gradestack.patterns import compile_later
from gradestack.report import HEADER, SUMMARY, Report
from gradestack.rows.read import GradeRow, Row
from gradestack.rows.write import encode
from gradestack.rundir.place import check_place, reserve

FIELD: Final = "field:"
ROWS: Final = "results.jsonl"
_FILES: Final = (HEADER, SUMMARY, ROWS)
_KEYS: Final = (
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bAKIA[0-9A-Z]{16}\b",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}",
    r"(?<=Bearer )[A-Za-z0-9._~+/-]{16,}=*",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
)
PATTERNS: Final = {"emails": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "keys": "|".join(_KEYS)}
"""Named patterns: addresses of e-mail, and keys of common services."""
_STRUCTS: Final = (
    *(Sample, Source, Usage, Message, ToolCall, ToolSpec, Expectation, ExpectedCall, Rule),
    *(Grade, Item, Reason, Fault),
)
_FORM: Final = frozenset(
    {*Row.__annotations__, *GradeRow.__annotations__, "ground_truth", "function", "type"}
).union(*(struct.__struct_fields__ for struct in _STRUCTS))
"""Keys of a row in gradestack's own form."""
_GRADES: Final = ("grade", "grades")
_RECORDED: Final = frozenset(
    {"agent_usage", "arguments", "content", "facets", "input", "metadata", "native", "parameters"}
    | {"plan", "recorded", "result", "rules", "state", "trace", "remarks"}
)
"""Keys of the recorded part of a row whose objects have keys of the data's own."""
_WORD: Final = compile_later(r"[a-z][a-z0-9_]*")
_STATES: Final = ("graded", "skipped", "failed", "missing", "ok", "error", "denied", "not_run")
_WORDS: Final = frozenset({*_STATES, "assistant", "user", "tool", "system"})
"""Values of rows that pages rely on; no pattern changes them."""
_QUOTES: Final = frozenset({"expected", "actual", "message", "error"})
"""Keys of a reason that quote the value at its pointer."""
_NAMES_OF_FIGURES: Final = frozenset({"figure", "grader", "metric_key", "metric", "op", "unit"})
_NAMES_IN_GRADES: Final = frozenset({"code"})
"""Keys whose values are names of gradestack's own."""


class Redactor:
    """Replaces what patterns match, and values under names of fields, by ``[redacted N]``.

    Equal texts have the same number, so that tasks and causes stay apart.
    """

    def __init__(self, rules: Iterable[str]) -> None:
        """Read the rules of ``--redact``.

        Args:
            rules: ``emails``, ``keys``, ``field:NAME`` or regular expressions.

        Raises:
            ConfigError: A rule is not a regular expression, or names a field that pages need.
        """
        patterns = []
        self.fields: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._names: set[str] | None = set()
        """Texts and keys of the data that were changed; None where no rows tell them."""
        self._unused: dict[str, re.Pattern[str] | str] = {}
        """Rules that nothing was replaced by yet, each with its pattern or field."""
        for rule in rules:
            if rule.startswith(FIELD):
                field = _check_field(rule)
                self.fields.add(field)
                self._unused[rule] = field
            else:
                pattern = _check_pattern(rule)
                patterns.append(pattern)
                self._unused[rule] = re.compile(pattern)
        self._pattern = (
            re.compile("|".join(f"(?:{text})" for text in patterns)) if patterns else None
        )

    def take_keys_for_names(self) -> None:
        """Take every key for a name out of the data, where no rows tell which are."""
        self._names = None

    @property
    def unused_rules(self) -> list[str]:
        """The rules by which nothing was replaced so far."""
        return list(self._unused)

    def _note_use(self, text: str) -> None:
        """Strike the rules that a text or the name of a hidden field fits."""
        for rule, pattern in list(self._unused.items()):
            if isinstance(pattern, str):
                is_used = pattern == text
            else:
                is_used = pattern.search(text) is not None
            if is_used:
                del self._unused[rule]

    def redact_text(self, text: str) -> str:
        """Return a text with its matches replaced; fields of JSON in it, too."""
        if self.fields and text[:1] in {"{", "["}:
            text = self._redact_json(text)
        if self._pattern is None or text in _WORDS:
            return text
        redacted = self._pattern.sub(lambda match: self._mark(match[0]), text)
        if redacted != text:
            self._note_use(text)
            if self._names is not None:
                self._names.add(text)
        return redacted

    def redact_row(self, row: Row) -> dict[str, Any]:
        """Return a row with its recorded texts redacted; keys of the row's own form stay.

        Raises:
            ConfigError: A pattern matches the name of a grader.
        """
        for key in row["grades"]:
            if self.redact_text(key) != key:
                what = f"the pattern matches the name of the grader {key!r}; write a narrower one"
                raise ConfigError(f"--redact: {what}")
        recorded = {name: value for name, value in row.items() if name not in _GRADES}
        redacted = self._redact_form(recorded, _RECORDED)
        for name in _GRADES:
            redacted[name] = self.redact_own(as_map(row.get(name)), _NAMES_IN_GRADES)
        return {name: redacted[name] for name in row}

    def _redact_form(self, value: JSON, recorded: frozenset[str]) -> Any:
        """Return a value of a row's own form with the texts in it redacted.

        Args:
            value: The value.
            recorded: Keys below which objects have keys of the data's own.
        """
        if isinstance(value, Mapping):
            return {
                key: self.redact(item) if key in recorded else self._redact_form(item, recorded)
                for key, item in value.items()
            }
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._redact_form(item, recorded) for item in value]
        return self.redact(value)

    def redact_own(self, value: JSON, kept: frozenset[str], *, has_fields: bool = False) -> Any:
        """Return a grade or a summary with the data's texts in it redacted.

        Its keys stay, unless they are names that were changed in the data.

        Args:
            value: What JSON holds.
            kept: Keys whose values stay.
            has_fields: Whether ``field:NAME`` hides values in it, as in metadata.
        """
        if isinstance(value, Mapping):
            is_reason = "code" in value and not has_fields
            hidden = self._hidden_keys(value) if has_fields or is_reason else set()
            redacted = {}
            for key, item in value.items():
                if key in hidden and item is not None and (has_fields or key in _QUOTES):
                    text = dumps(item)
                    redacted[key] = self._mark(text)
                elif key in _QUOTES and is_reason:
                    redacted[key] = self.redact(item)
                elif key in kept and not has_fields:
                    redacted[key] = item
                else:
                    is_data = has_fields or key == "metadata"
                    new_key = self._redact_key(key)
                    redacted[new_key] = self.redact_own(item, kept, has_fields=is_data)
            return redacted
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self.redact_own(item, kept, has_fields=has_fields) for item in value]
        return self.redact(value)

    def _redact_key(self, key: str) -> str:
        """Redact a key of a grade or a summary that is a name from the data."""
        if key in _FORM:
            return key
        is_own = self._names is not None and key not in self._names and _WORD.fullmatch(key)
        if is_own:
            return key
        return self.redact_text(key)

    def redact(self, value: JSON) -> Any:
        """Return recorded data with its texts, keys included, redacted."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, Mapping):
            hidden = self._hidden_keys(value)
            redacted = {}
            for key, item in value.items():
                if key in hidden and item is not None:
                    text = dumps(item)
                    redacted[key] = self._mark(text)
                    self._note_use(key.casefold())
                else:
                    redacted[self.redact_text(key)] = self.redact(item)
            return redacted
        if isinstance(value, Sequence):
            return [self.redact(item) for item in value]
        return value

    def _hidden_keys(self, value: Mapping[str, JSON]) -> set[str]:
        """Find the keys of an object whose values are hidden; those of a reason by its pointer."""
        hidden = {key for key in value if key.casefold() in self.fields}
        pointer = value.get("pointer")
        steps = as_text(pointer).casefold().split("/")
        if not self.fields.isdisjoint(steps):
            hidden |= _QUOTES
        return hidden

    def _redact_json(self, text: str) -> str:
        """Redact the fields inside a text that is JSON; return other texts unchanged."""
        try:
            value = loads(text)
        except JsonProblem:
            return text
        fields_only = Redactor(())
        fields_only.fields = self.fields
        fields_only._numbers = self._numbers
        fields_only._unused = self._unused
        redacted = fields_only.redact(value)
        if redacted == value:
            return text
        return encode(redacted).decode()

    def _mark(self, text: str) -> str:
        return f"[redacted {self._numbers.setdefault(text, len(self._numbers) + 1)}]"


def _check_field(rule: str) -> str:
    field = rule.removeprefix(FIELD).strip().casefold()
    if not field:
        raise ConfigError(f"--redact {rule}: expected the name of a field, such as field:password")
    return field


def _check_pattern(rule: str) -> str:
    """Return the regular expression of a rule or named pattern; refuse one that matches ""."""
    pattern = PATTERNS.get(rule, rule)
    if rule.isalpha() and rule not in PATTERNS and (hint := suggest(rule, PATTERNS)):
        what = f"no pattern of this name{hint}; to redact this very text, write (?:{rule})"
        raise ConfigError(f"--redact {rule}: {what}")
    try:
        match = re.compile(pattern).match("")
        matches_nothing = match is not None
    except re.error as error:
        raise ConfigError(
            f"--redact {rule}: not a regular expression: {error}; named are {', '.join(PATTERNS)}"
        ) from error
    if matches_nothing:
        raise ConfigError(f"--redact {rule}: the pattern matches the empty text")
    return pattern


def write_redacted(report: Report, rules: Iterable[str], out: Path) -> list[str]:
    """Write the rows, summary and header of a run without secrets into a new directory.

    Native files, tables and pages are not copied. Pages are written from the redacted rows.

    Args:
        report: The finished run.
        rules: Rules of ``--redact``.
        out: The directory; it may not exist yet, or be empty.

    Returns:
        The rules by which nothing was replaced.

    Raises:
        ConfigError: A rule is wrong, the directory is not empty, or a pattern matches names that
            rows need.
        DataError: The rows cannot be read.
    """
    redactor = Redactor(rules)
    check_place(out)
    if out.is_dir() and any(out.iterdir()):
        raise ConfigError(f"{out}: the directory is not empty; name a new one with -o")
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    try:
        with reserve(out), writing(out):
            _write_files(redactor, report, out)
    except BaseException:
        for name in _FILES:
            (out / name).unlink(missing_ok=True)
        raise
    return redactor.unused_rules


def _write_files(redactor: Redactor, report: Report, out: Path) -> None:
    """Write the redacted rows, summary and header of a report into a directory.

    Rows come first: from them the redactor learns which keys are names out of the data.

    Raises:
        ConfigError: A rule would replace a key that pages need.
    """
    if report.has_rows:
        with (out / ROWS).open("xb") as file:
            for number, _, line in report.lines():
                row = redactor.redact_row(report.row(number, line))
                file.write(encode(row) + b"\n")
    else:
        redactor.take_keys_for_names()
    summary = redactor.redact_own(report.summary, _NAMES_OF_FIGURES)
    keys = report.summary.keys()
    lost_keys = keys - summary.keys()
    if lost_keys:
        raise ConfigError("--redact: the pattern matches names that pages need")
    text = dumps(summary, indent=2)
    (out / SUMMARY).write_text(text + "\n", encoding="utf-8")
    header = _redact_header(redactor, report)
    (out / HEADER).write_text(dumps(header, indent=2) + "\n", encoding="utf-8")


def _redact_header(redactor: Redactor, report: Report) -> dict[str, Any]:
    """Return a header without places on this machine; its components keep their names."""
    header = dict(report.header)
    for key in ("inputs", "code", "judgements"):
        entries = [dict(as_map(entry)) for entry in as_list(header.get(key))]
        for entry in entries:
            path = Path(as_text(entry.get("path")))
            entry["path"] = redactor.redact_text(path.name)
        if key in header:
            header[key] = entries
    components = [dict(as_map(entry)) for entry in as_list(header.get("components"))]
    for component in components:
        options = component.get("options", {})
        component["options"] = redactor.redact(options)
    header["components"] = components
    notes = header.get("notes", [])
    header["notes"] = redactor.redact(notes)
    header.pop("baselines", None)
    header["files"] = [HEADER, SUMMARY, *([ROWS] if report.has_rows else [])]
    if report.has_rows:
        header["rows"] = True
    return header
