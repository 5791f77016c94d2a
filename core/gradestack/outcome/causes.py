"""Why samples failed: each failed sample under one cause, and breakdowns that add up to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from gradestack.jsonio.values import JsonProblem, as_list, as_map, as_text, loads
from gradestack.patterns import compile_later
from gradestack.report import Report

CauseKind = tuple[str, str, str, str]
"""Grader key, cause, tool (or what else a reason is about) and argument; "" for what is not named.

A cause is the code of a reason, and where that is about an error the kind of the error behind it:
``call_failed: Timeout after …``.
"""
CausePath = tuple[str, ...]
"""Cause, tool and argument, as far as they are named."""
ReasonSet = tuple[int, ...]
"""The reasons of a sample, each by its place among all kinds."""
NO_REASON = "no_reason"
"""Cause of samples that failed and to which no grader gave a reason."""
_MISSING = "missing"
"""Cause of samples that were not recorded, where the grader says no more."""
MORE_REASONS = "more_reasons"
"""Code of a reason that is none: it says how many others were left out."""
LONGEST_NAME = 240
"""Characters of a cause, a tool and an argument that are told apart."""
_LONGEST_ERROR = 120
_MESSAGE_NAMES = ("message", "detail", "error", "reason", "description")
"""Names under which a JSON object holds an error's message, the most telling first."""
_GRADED = ("graded", "", None)
_FAILED = ("failed", "missing")
_VARYING = compile_later(
    r"""'[^']*'|"[^"]*"|`[^`]*`"""  # quoted
    r"|\S*[/\\]\S+"  # paths and addresses
    r"|(?<!\w)(?![45]\d\d\b)[\w.:-]*\d[\w:-]*"  # numbers and ids, no status of HTTP
)
"""Parts of an error's text by which errors of one kind differ."""


class _Reason(msgspec.Struct, frozen=True, gc=False):
    code: str | None = None
    subject: str | None = None
    pointer: str | None = None
    error: str | None = None


class _Item(msgspec.Struct, frozen=True, gc=False):
    reasons: tuple[_Reason, ...] = ()


class _Grade(msgspec.Struct, frozen=True, gc=False):
    score: float | None = None
    state: str | None = None
    label: Any = None
    gold: Any = None
    fault: dict[str, Any] | None = None
    reasons: tuple[_Reason, ...] = ()
    items: tuple[_Item, ...] = ()


class _Row(msgspec.Struct, frozen=True, gc=False):
    state: str | None = None
    passed: bool | None = None
    grade: _Grade = _Grade()
    grades: dict[str, _Grade] = {}


class GivenReason(Protocol):
    """A reason, as far as causes are made of it."""

    @property
    def code(self) -> str | None: ...  # noqa: D102
    @property
    def subject(self) -> str | None: ...  # noqa: D102
    @property
    def pointer(self) -> str | None: ...  # noqa: D102
    @property
    def error(self) -> str | None: ...  # noqa: D102


class Cause(msgspec.Struct, frozen=True):
    """Samples that failed for one reason, or a part of them.

    ``parts`` are all tools of a cause and all arguments of a tool, most samples first. Together
    with samples whose reason names none they add up to ``samples``.
    """

    path: CausePath
    samples: int
    parts: tuple[Cause, ...] = ()

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path[-1]


class Causes(msgspec.Struct, frozen=True):
    """All causes, most samples first, and the main reason of each set of reasons."""

    tree: tuple[Cause, ...]
    main: Mapping[ReasonSet, int]


def error_kind(text: str) -> str:
    """Return the text that errors of one kind have in common.

    It is the first line of the text, of a traceback the last, of a JSON object its message. Quoted
    text, paths, and words with a digit in them are ``…``, but for a status of HTTP (400 to 599).
    """
    lines = [*filter(None, map(str.strip, _message_in(text).splitlines()))]
    if not lines:
        return ""
    line = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    beginning = line[: 4 * _LONGEST_ERROR]
    common = _VARYING.sub("…", beginning)
    return " ".join(common.split())[:_LONGEST_ERROR]


def _message_in(text: str) -> str:
    """Return the message of an error that is written as a JSON object; another text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        error = as_map(loads(text))
    except JsonProblem:
        return text
    for name in _MESSAGE_NAMES:
        message = as_text(error.get(name)) or as_text(as_map(error.get(name)).get("message"))
        if message:
            return message
    return text


@lru_cache(4096)
def _cause_name(code: str, error: str) -> str:
    kind = error_kind(error)
    name = f"{code}: {kind}" if kind else code
    return name[:LONGEST_NAME]


@lru_cache(4096)
def argument_at(pointer: str) -> str:
    """Return the argument a JSON pointer leads into: its first part."""
    first, _, _ = pointer.removeprefix("/").partition("/")
    name = first.replace("~1", "/").replace("~0", "~")
    return name[:LONGEST_NAME]


def cause_kinds(
    key: str,
    reasons: Iterable[GivenReason],
    fault: Mapping[str, Any] | None,
    swapped: str = "",
    state: str | None = None,
) -> list[CauseKind]:
    """Return the kinds of the reasons of a grade and its items, and of its fault.

    A step's number is no subject. A reason without one is about the labels that the grade has taken
    for each other (``swapped``). A missing sample has a kind even where the grade says no more than
    its state.
    """
    kinds: list[CauseKind] = []
    for reason in reasons:
        if not reason.code or reason.code == MORE_REASONS:
            continue
        subject = reason.subject or swapped
        if reason.subject is not None and reason.subject.isdecimal():
            subject = ""
        argument = ""
        if reason.pointer:
            argument = argument_at(reason.pointer)
        cause = _cause_name(reason.code, reason.error or "")
        kinds.append((key, cause, subject[:LONGEST_NAME], argument))
    if fault:
        code = as_text(fault.get("code"))
        message = as_text(fault.get("message"))
        cause = _cause_name(code or "fault", message)
        error_type = as_text(fault.get("type"))
        kinds.append((key, cause, error_type[:LONGEST_NAME], ""))
    if not kinds and state == _MISSING:
        kinds.append((key, _MISSING, "", ""))
    return kinds


def is_failed(state: str | None, score: float | None, *, passed: bool | None) -> bool:
    """Return whether a sample did not pass, or failed or is missing.

    Without a verdict a sample passes with a score of 1.
    """
    if state in _FAILED:
        return True
    if state not in _GRADED:
        return False
    if passed is None:
        return score is not None and score < 1
    return not passed


def set_aside(presets: Collection[str], outcome: str | None) -> set[str]:
    """Return graders whose reasons come after those of others.

    Where several graders declare a preset, these are all of them but the outcome grader.
    """
    if outcome is None or len(presets) < 2:
        return set()
    return set(presets) - {outcome}


def _paths(kind: CauseKind) -> list[CausePath]:
    """Return the path of a kind behind those above it."""
    path = tuple(filter(None, kind[1:]))
    return [path[: end + 1] for end in range(len(path))]


def find_causes(
    kinds: Sequence[CauseKind],
    failed: Mapping[ReasonSet, int],
    aside: Collection[str] = (),
    skipped: Collection[CauseKind] = (),
) -> Causes:
    """Return the causes of failed samples; each sample is counted under its main reason.

    Reasons of graders that are only compared (``aside``) come last. Reasons that name a tool come
    before others. Of the rest it is that with the most frequent cause, then tool, then argument.
    Samples without a reason are counted under ``NO_REASON``.

    Args:
        kinds: All kinds of reasons.
        failed: Reasons of failed samples, and how many samples have just these.
        aside: Keys of graders.
        skipped: Kinds that only skipped grades have. They say why a sample was not graded, which
            is no cause of its failure by another grader.
    """
    paths = [_paths(kind) for kind in kinds]
    blamed = {
        numbers: [number for number in numbers if kinds[number] not in skipped]
        for numbers in failed
    }
    frequencies: Counter[CausePath] = Counter()
    for numbers, count in failed.items():
        for path in {path for number in blamed[numbers] for path in paths[number]}:
            frequencies[path] += count

    def rank(number: int) -> tuple[Any, ...]:
        by_frequency = [(-frequencies[path], path) for path in paths[number]]
        grader, _, tool, _ = kinds[number]
        return grader in aside, not tool, by_frequency, number

    ranks = list(map(rank, range(len(kinds))))
    main = {
        numbers: min(causing, key=ranks.__getitem__)
        for numbers, causing in blamed.items()
        if causing
    }
    samples: Counter[CausePath] = Counter()
    for numbers, count in failed.items():
        for path in paths[main[numbers]] if numbers in main else [(NO_REASON,)]:
            samples[path] += count
    return Causes(_tree(samples), main)


def _tree(samples: Mapping[CausePath, int]) -> tuple[Cause, ...]:
    """Build the tree of causes from the sample count of each path, most frequent first."""
    paths_below: dict[CausePath, list[CausePath]] = {}
    for _, path in sorted((-count, path) for path, count in samples.items()):
        above = path[:-1]
        paths_below.setdefault(above, []).append(path)

    def causes_below(above: CausePath) -> tuple[Cause, ...]:
        paths = paths_below.get(above, ())
        return tuple(Cause(path, samples[path], causes_below(path)) for path in paths)

    return causes_below(())


def most_often(cause: Cause) -> tuple[str, CausePath, int] | None:
    """Return ``always``, ``mostly`` or ``most often``, tool and argument, and their samples.

    A tool, or a tool and its argument, is *mostly* what a cause is about where it has more than
    half of the samples, *always* where it has all. None where nothing is named, or two are named
    equally often.
    """
    if not cause.parts:
        return None
    half = cause.samples / 2
    part = cause.parts[0]
    if part.samples > half:
        if part.parts and part.parts[0].samples > half:
            part = part.parts[0]
        adverb = "mostly"
        if part.samples == cause.samples:
            adverb = "always"
        return adverb, part.path[1:], part.samples
    leaves: list[Cause] = []
    for tool in cause.parts:
        leaves += tool.parts or (tool,)
    leaves.sort(key=lambda leaf: -leaf.samples)
    largest, *smaller = leaves
    if smaller and largest.samples == smaller[0].samples:
        return None
    path = largest.path[1:]
    return "most often", path, largest.samples


def causes_of_run(report: Report) -> tuple[Cause, ...]:
    """Return the causes of a run's failed samples, most samples first; none without rows.

    Raises:
        DataError: The rows cannot be read.
    """
    if not report.has_rows:
        return ()
    decided = as_map(report.summary.get("outcome"))
    grader = decided.get("grader")
    outcome = as_text(grader) or None
    numbers_of_kinds: dict[CauseKind, int] = {}
    failed: Counter[ReasonSet] = Counter()
    decode = msgspec.json.Decoder(_Row).decode
    for number, _, line in report.lines():
        try:
            row = decode(line)
        except (ValueError, RecursionError):  # numbers that msgspec does not know
            whole_row = as_map(report.row(number, line))
            fields = {name: whole_row[name] for name in _Row.__struct_fields__ if name in whole_row}
            row = msgspec.convert(fields, _Row)
        if _row_failed(row, outcome):
            grades = row.grades.items()
            reasons = dict.fromkeys(
                numbers_of_kinds.setdefault(kind, len(numbers_of_kinds))
                for key, grade in grades
                if _state_of(grade) != "skipped"
                for kind in _grade_kinds(key, grade)
            )
            failed[tuple(reasons)] += 1
    aside = set_aside(declared_presets(report.header), outcome)
    return find_causes([*numbers_of_kinds], failed, aside).tree


def declared_presets(header: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the options of the graders that declare a preset, by their keys."""
    presets = {}
    components = header.get("components")
    for component in map(as_map, as_list(components)):
        options = as_map(component.get("options"))
        kind = component.get("kind")
        if kind == "grader" and as_text(options.get("preset")):
            presets[as_text(component.get("key"))] = options
    return presets


def _row_failed(row: _Row, outcome: str | None) -> bool:
    """Decide whether a row failed, by its main grade and the grade that decides the outcome."""
    main = row.grade
    main_state = _state_of(main)
    state = row.state or main_state
    score = None
    if state == main_state == "graded":
        score = main.score
    judged = None if outcome is None else row.grades.get(outcome)
    if judged is not None:
        state = _state_of(judged)
    passed = row.passed if state == "graded" else None
    return is_failed(state, score, passed=passed)


def _state_of(grade: _Grade) -> str:
    """Return the state of a grade; of one that names none by its score."""
    return grade.state or ("skipped" if grade.score is None else "graded")


def _grade_kinds(key: str, grade: _Grade) -> list[CauseKind]:
    """List the kinds of causes that a grade names, by itself or in its items."""
    reasons = grade.reasons
    of_items: tuple[_Reason, ...] = ()
    for item in grade.items:
        of_items += item.reasons
    if of_items != reasons:  # else it says the same as its items
        reasons += of_items
    swapped = swapped_labels(grade.gold, grade.label)
    return cause_kinds(key, reasons, grade.fault, swapped, grade.state)


def swapped_labels(gold: Any, label: Any) -> str:
    """Return the expected label and the given one; "" unless they are two."""
    expected = as_text(gold)
    actual = as_text(label)
    is_swapped = bool(expected and actual) and expected != actual
    if is_swapped:
        return f"{expected} → {actual}"
    return ""
