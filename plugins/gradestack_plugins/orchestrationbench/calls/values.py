"""Comparison of argument values, key by key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from gradestack import JSON, Profile
from gradestack_plugins.orchestrationbench.calls.judge import Leftover
from gradestack_plugins.orchestrationbench.recorded.verdicts import Verdict

_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_LONGEST = 50_000
"""Length from which a container's text is replaced by its digest: quoting doubles with every level of nesting."""


def value_text(value: JSON) -> str:
    """Return the text two values are compared by.

    Scalars as Python's ``str`` writes them: 10 equals "10", True equals "True" and None equals "None", but 10 differs
    from 10.0 and True from "true". A list is the text of the sorted list of its elements' texts, so order does not
    matter but repeats do. An object is the text of its items sorted by key, values as texts.
    """
    try:
        return _text(value)
    except RecursionError:
        return f"<{type(value).__name__} nested too deeply>"


def _text(value: JSON) -> str:
    if isinstance(value, list | tuple):
        return _short(str(sorted(_text(item) for item in value)))
    if isinstance(value, Mapping):
        try:
            keys = sorted(value)
        except TypeError:
            keys = list(value)
        texts = {}
        for key in keys:  # a comprehension is a call more before Python 3.12, and leaves room for fewer levels
            texts[str(key)] = _text(value[key])
        return _short(str(texts))
    try:
        return str(value)
    except ValueError:  # an integer above the interpreter's digit limit
        return hex(value)


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return "sha256 " + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@attrs.frozen(kw_only=True)
class KeyResult:
    """One argument of one step."""

    key: str
    tp: int = 0
    fp: int = 0
    fn: int = 0
    reason: str = "exact_comparison"
    """``exact_comparison``, ``key_missing_in_predicted``, ``key_missing_in_actual``, ``type_mismatch``,
    ``enum_exact_comparison``, ``pattern_mismatch``, ``judged`` or ``undecided``."""
    confirmed: int = 0
    """Values equal on both sides, whatever became of them."""
    predicted: tuple[str, ...] = ()
    """Predicted values that equal no gold value, as texts, sorted."""
    gold: tuple[str, ...] = ()
    """Gold values that equal no predicted value."""

    @property
    def leftover(self) -> Leftover:
        """What a judge would be asked."""
        return Leftover(argument=self.key, predicted=self.predicted, gold=self.gold)

    def shown(self) -> dict[str, JSON]:
        """Return the result for people."""
        return {
            "key": self.key,
            "tp": self.tp,
            "fp": self.fp,
            "fn": self.fn,
            "reason": self.reason,
            "predicted": list(self.predicted),
            "gold": list(self.gold),
        }


def compare_key(
    key: str,
    predicted: Mapping[str, JSON],
    gold: Mapping[str, JSON],
    schemas: Mapping[str, Any],
    profile: Profile,
) -> KeyResult:
    """Return the counts of one argument, left ``undecided`` where a judge would be asked.

    Args:
        key: Argument name, present on at least one side.
        predicted: Predicted arguments: one list of values per key.
        gold: Gold arguments.
        schemas: Parameters of the predicted tools, in the order they were called; passed through :func:`usable` in
            ``documented``.
        profile: Only the length of an undecodable text differs: its characters in ``upstream``, else 1.

    Raises:
        Exception: In ``upstream`` only, where a schema is not what the original takes it for.
    """
    if key not in predicted:
        return KeyResult(
            key=key, fn=_length(gold[key], profile), reason="key_missing_in_predicted", gold=_texts(gold[key])
        )
    if key not in gold:
        values = predicted[key]
        return KeyResult(key=key, fp=_length(values, profile), reason="key_missing_in_actual", predicted=_texts(values))
    ours, theirs = set(_texts(predicted[key])), set(_texts(gold[key]))
    extra, lacking = tuple(sorted(ours - theirs)), tuple(sorted(theirs - ours))
    reason = "exact_comparison"
    if extra and lacking:
        reason = automatic(key, extra, len(lacking), schemas) or "undecided"
    return KeyResult(
        key=key,
        tp=len(ours & theirs),
        fp=len(extra),
        fn=len(lacking),
        reason=reason,
        confirmed=len(ours & theirs),
        predicted=extra,
        gold=lacking,
    )


def _length(values: JSON, profile: Profile) -> int:
    return 1 if isinstance(values, str) and profile == "documented" else len(values)


def _texts(values: JSON) -> tuple[str, ...]:
    return tuple(value_text(value) for value in (values if isinstance(values, list) else [values]))


def automatic(key: str, extra: Sequence[str], lacking: int, schemas: Mapping[str, Any]) -> str | None:
    """Return why unequal values need no judge, None when they do.

    In this order: an integer argument with a predicted leftover ``int`` cannot read, or any other non-string argument
    (``type_mismatch``); as many leftovers on both sides and an enumeration (``enum_exact_comparison``); a predicted
    leftover that does not match the pattern at its start (``pattern_mismatch``).
    """
    properties = [schema.get("properties", {}) for schema in schemas.values()]
    own = [fields[key] for fields in properties if key in fields]
    kind = next((_kind(prop["type"]) for prop in own if "type" in prop), None)
    if kind == "integer":
        if not all(_is_int(text) for text in extra):
            return "type_mismatch"
    elif kind and kind != "string":
        return "type_mismatch"
    if len(extra) == lacking and any("enum" in prop or "enum" in prop.get("items", {}) for prop in own):
        return "enum_exact_comparison"
    pattern = next((prop["pattern"] for prop in own if "pattern" in prop), None)
    if pattern is not None:
        compiled = re.compile(pattern.replace("\\\\", "\\"))
        if not all(compiled.match(text) for text in extra):
            return "pattern_mismatch"
    return None


def _kind(declared: Any) -> str:
    """Return the type a schema declares (of a union the first), "" for none."""
    if isinstance(declared, list):
        declared = declared[0] if declared else "string"
    if declared in _TYPES:
        return str(declared)
    if declared:
        msg = f"schema type {declared!r} is not one the comparison knows"
        raise TypeError(msg)
    return ""


def _is_int(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def usable(schemas: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return schemas cut down to what the rules read, so that nothing in them can go wrong (``documented``)."""
    return {name: {"properties": _usable_properties(schema)} for name, schema in schemas.items()}


def _usable_properties(schema: Any) -> dict[str, dict[str, Any]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    found: dict[str, dict[str, Any]] = {}
    for key, prop in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(prop, Mapping):
            continue
        clean: dict[str, Any] = {name: prop[name] for name in ("enum",) if name in prop}
        declared = prop.get("type")
        declared = declared[0] if isinstance(declared, list) and declared else declared
        if isinstance(declared, str) and declared in _TYPES:
            clean["type"] = declared
        if isinstance(prop.get("items"), Mapping) and "enum" in prop["items"]:
            clean["items"] = {"enum": True}
        if isinstance(prop.get("pattern"), str) and _compiles(prop["pattern"]):
            clean["pattern"] = prop["pattern"]
        found[key] = clean
    return found


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern.replace("\\\\", "\\"))
    except re.error:
        return False
    return True


def decided(result: KeyResult, verdict: Verdict | None, profile: Profile) -> KeyResult:
    """Return an undecided key with a judge's verdict, or with what its absence means.

    ``upstream``: the verdict replaces the counts, and without one nothing matches; either way the values already found
    equal are lost. ``documented``: they are kept, and without a verdict the leftovers count as not matching.
    """
    kept = result.confirmed if profile == "documented" else 0
    if verdict is None:
        return attrs.evolve(result, tp=kept)
    return attrs.evolve(result, tp=kept + verdict.tp, fp=verdict.fp, fn=verdict.fn, reason="judged")


def at_best(result: KeyResult) -> KeyResult:
    """Return an undecided key as the most lenient judge could leave it: as many leftovers matched as can be."""
    if result.reason != "undecided":
        return result
    pairs = min(len(result.predicted), len(result.gold))
    return attrs.evolve(result, tp=result.confirmed + pairs, fp=result.fp - pairs, fn=result.fn - pairs)
