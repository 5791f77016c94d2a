"""Workflow plans in model output: seven ways a text may hold one.

After the last ``</think>``, the first of these that yields an object with some key starting ``workflow_``:

1. the first fenced ``json`` block that starts with a brace;
2. an object without nested braces, from its opening to its first closing brace;
3. if some ``"workflow_<digits>": {`` appears: from the last opening brace before the first ``"workflow_`` to the brace
   that balances it (braces inside texts count);
4. the whole text as JSON;
5. a fenced ``yaml`` block that starts at once with ``workflow_``;
6. the whole text as YAML;
7. a repair of the indentation, line by line, when the text starts with ``workflow_``.

Patterns are searched by hand where a regular expression would need quadratic time on hostile text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import attrs
import yaml

from gradestack import Profile, yaml_data
from gradestack.jsonio import standard_loads

Workflows = dict[Any, Any]

_JSON_FENCE = re.compile(r"```json\s*\{")
_JSON_FENCE_END = re.compile(r"\}\s*```")
_YAML_FENCE = re.compile(r"```yaml\s*workflow_")
_NAMED_WORKFLOW = re.compile(r'"workflow_\d+":\s*\{')
_BRACE = re.compile(r"[{}]")
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 400
"""Open brackets beyond which the YAML parser would run out of stack, but only after quadratic time."""
_FLAT_FOLLOWS = re.compile(r"\s*,\s*\{")
_MARK = "workflow_"


@attrs.frozen
class PlanText:
    """A text read as a plan."""

    workflows: Workflows = attrs.field(factory=dict)
    """Everything the text's object holds; empty when the text holds no plan. Shared, never to be changed."""
    form: int = 0
    """Number of the form it was found in, 0 for none."""
    problem: str = ""
    """Why there is none."""


@lru_cache(maxsize=512)
def parse_plan(text: str, profile: Profile) -> PlanText:
    """Return the plan of a text, empty with a reason when it holds none.

    Args:
        text: Model output, or a gold plan.
        profile: ``documented`` goes on to the next form whatever goes wrong in one; ``upstream`` only where the text is
            not the form's language.

    Raises:
        Exception: In ``upstream`` only: whatever the original stumbles over (a key that is no text before the first
            workflow key, a date that does not exist, nesting too deep).
    """
    text = text.rsplit("</think>", maxsplit=1)[-1]
    for number, form in enumerate(_FORMS, start=1):
        for candidate, load in form(text):
            try:
                value = load(candidate)
                found = isinstance(value, dict) and _has_workflow(value, profile)
            except (json.JSONDecodeError, yaml.YAMLError):
                continue
            except Exception:
                if profile == "upstream":
                    raise
                continue
            if found:
                return PlanText(value, number)
    reason = (
        "no object with a workflow_ key in any of the seven forms" if _MARK in text else "the text names no workflow_"
    )
    return PlanText(problem=reason)


def _load_yaml(text: str) -> Any:
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket.group() in "[{" else max(0, depth - 1)
        if depth > _DEEPEST:
            msg = "nested too deeply"
            raise RecursionError(msg)
    # Only what has aliases can be small to write and huge to hold; all else is read as the original reads it.
    return yaml_data(text) if "&" in text and "*" in text else yaml.safe_load(text)


def _has_workflow(value: Workflows, profile: Profile) -> bool:
    if profile == "upstream":
        return any(key.startswith(_MARK) for key in value)
    return any(isinstance(key, str) and key.startswith(_MARK) for key in value)


_Form = Callable[[str], Iterator[tuple[str, Callable[[str], Any]]]]


def _fenced_json(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    # Only the first fence: were there no end behind it, there would be none behind a later one.
    start = _JSON_FENCE.search(text)
    end = _JSON_FENCE_END.search(text, start.end()) if start else None
    if start and end:
        yield text[start.end() - 1 : end.start() + 1], standard_loads


def _flat_object(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    begin = text.find("{")
    while begin >= 0:
        end = text.find("}", begin)
        if end < 0:
            return
        if '"workflow_' in text[begin:end]:
            # Further such objects after a comma belong to the match, which then is no single JSON value.
            if not _flat_follows(text, end + 1):
                yield text[begin : end + 1], standard_loads
            return
        begin = text.find("{", end)


def _flat_follows(text: str, at: int) -> bool:
    start = _FLAT_FOLLOWS.match(text, at)
    end = text.find("}", start.end()) if start else -1
    return start is not None and end >= 0 and '"workflow_' in text[start.end() : end]


def _balanced_object(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    named = _NAMED_WORKFLOW.search(text)
    if named is None or "}" not in text[named.end() :]:
        return
    begin = text.rfind("{", 0, max(text.find('"workflow_'), 0))
    if begin < 0:
        return
    depth = 0
    for brace in _BRACE.finditer(text, begin):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            yield text[begin : brace.end()], standard_loads
            return


def _whole_json(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    yield text, standard_loads


def _fenced_yaml(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    start = _YAML_FENCE.search(text)
    end = text.find("```", start.end()) if start else -1
    if start and end >= 0:
        yield text[start.end() - len(_MARK) : end].rstrip(), _load_yaml


def _whole_yaml(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    if _MARK in text:
        yield text, _load_yaml


def _repaired_yaml(text: str) -> Iterator[tuple[str, Callable[[str], Any]]]:
    lines = text.strip().split("\n")
    if not lines[0].startswith(_MARK):
        return
    repaired = []
    for line in lines:
        bare = line.strip()
        if bare.startswith(_MARK):
            repaired.append(f"{line}:\n")
        elif bare.startswith("-"):
            repaired.append(f"    {bare}\n")
        elif ":" in line:
            repaired.append(f"  {bare}\n")
        else:
            repaired.append(f"      {bare}\n")
    yield "".join(repaired), _load_yaml


_FORMS: tuple[_Form, ...] = (
    _fenced_json,
    _flat_object,
    _balanced_object,
    _whole_json,
    _fenced_yaml,
    _whole_yaml,
    _repaired_yaml,
)
