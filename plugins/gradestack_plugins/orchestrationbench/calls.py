"""Function name, argument key and argument value F1 of the steps where both sides call."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import JSON, Sample, native_of, ratio, replace
from gradestack_plugins.orchestrationbench.decisions import Step, harmonic, set_f1
from gradestack_plugins.orchestrationbench.records import Trial, Verdict

_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_LONGEST = 50_000
"""Length from which a container's text is replaced by its digest.

Quoting doubles with every level of nesting.
"""
Counts = tuple[int, int, int]
"""True positives, false positives, false negatives."""


def value_text(value: JSON) -> str:
    """Return the text two values are compared by.

    Scalars as ``str`` writes them, lists and objects sorted.
    """
    try:
        return _text(value)
    except RecursionError:
        return f"<{type(value).__name__} nested too deeply>"


def _text(value: JSON) -> str:
    """Write a value as text that does not depend on the order of lists and keys."""
    if isinstance(value, list | tuple):
        text = str(sorted(_text(item) for item in value))
        return _short(text)
    if isinstance(value, Mapping):
        texts = {}
        # a comprehension is a call more before Python 3.12, and leaves room for fewer levels
        for key in sorted(value, key=str):
            texts[str(key)] = _text(value[key])
        return _short(str(texts))
    try:
        return str(value)
    except ValueError:  # an integer above the interpreter's digit limit
        return hex(value)


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return "sha256 " + digest


class KeyResult(msgspec.Struct, frozen=True, kw_only=True):
    """One argument of one step."""

    key: str
    tp: int = 0
    fp: int = 0
    fn: int = 0
    reason: str = "exact_comparison"
    predicted: tuple[str, ...] = ()
    """Predicted values that equal no gold value, as texts, sorted."""
    gold: tuple[str, ...] = ()
    """Gold values that equal no predicted value."""

    @property
    def counts(self) -> Counts:
        """True positives, false positives, false negatives."""
        return self.tp, self.fp, self.fn

    @property
    def best_counts(self) -> Counts:
        """The same as the most lenient judge could leave an undecided argument."""
        is_open = self.reason == "undecided"
        pairs = 0
        if is_open:
            predicted_count = len(self.predicted)
            pairs = min(predicted_count, len(self.gold))
        return self.tp + pairs, self.fp - pairs, self.fn - pairs

    def judged(self, verdict: Verdict | None) -> KeyResult:
        """Return the result with a judge's counts of what is left over, where it is undecided."""
        if self.reason != "undecided" or verdict is None or verdict == Verdict():
            return self
        tp, fp, fn = verdict.counts
        return replace(self, tp=self.tp + tp, fp=fp, fn=fn, reason="judged")


def compare_key(
    key: str,
    predicted: Mapping[str, Any],
    gold: Mapping[str, Any],
    schemas: Iterable[Mapping[str, Any]],
) -> KeyResult:
    """Return the counts of one argument, ``undecided`` where a judge would be asked.

    Args:
        key: Its name.
        predicted: Arguments of the predicted calls.
        gold: Arguments of the gold calls.
        schemas: Parameters of the predicted tools, in the order they were called.

    Raises:
        Exception: A schema is needed, and odd.
    """
    sides = []
    for side in (predicted, gold):
        values = side.get(key, [])
        value_texts = list(map(value_text, values if isinstance(values, list) else [values]))
        sides.append(value_texts)
    if key not in predicted or key not in gold:
        reason = f"key_missing_in_{'predicted' if key in gold else 'actual'}"
        extra, lacking = sides
    else:
        ours, theirs = map(set, sides)
        extra = sorted(ours - theirs)
        lacking = sorted(theirs - ours)
        reason = "exact_comparison"
        if extra and lacking:
            automatic_reason = _automatic_reason(schemas, key, extra, len(lacking))
            reason = automatic_reason or "undecided"
    left = {"predicted": tuple(extra), "gold": tuple(lacking)}
    first_side = sides[0]
    tp = len({*first_side} & {*sides[1]})
    return KeyResult(key=key, tp=tp, fp=len(extra), fn=len(lacking), reason=reason, **left)


def _automatic_reason(
    schemas: Iterable[Mapping[str, Any]], key: str, extra: Collection[str], lacking: int
) -> str | None:
    """Return why unequal values need no judge, None when they do.

    Args:
        schemas: Parameters of the predicted tools.
        key: Name of the argument.
        extra: Predicted values left over.
        lacking: How many gold values are left over.
    """
    properties = [schema.get("properties", {}) for schema in schemas]
    declared = [fields[key] for fields in properties if key in fields]
    kind = next((_kind(schema["type"]) for schema in declared if "type" in schema), "")
    if kind == "integer":
        if not all(map(_is_integer, extra)):
            return "type_mismatch"
    elif kind and kind != "string":
        return "type_mismatch"
    has_enum = any("enum" in schema or "enum" in schema.get("items", {}) for schema in declared)
    if len(extra) == lacking and has_enum:
        return "enum_exact_comparison"
    pattern = next((schema["pattern"] for schema in declared if "pattern" in schema), "")
    matches = re.compile(pattern.replace("\\\\", "\\")).match
    return None if all(map(matches, extra)) else "pattern_mismatch"


def _kind(declared: Any) -> str:
    """Return the type a schema declares (of a union the first), "" for none."""
    if isinstance(declared, list):
        declared = declared[0] if declared else "string"
    if declared and declared not in _TYPES:
        raise TypeError(f"schema type {declared!r} is not one the comparison knows")
    return str(declared or "")


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


class Pair(msgspec.Struct, frozen=True):
    """A step where both sides call, and how its two bags compare."""

    step: Step
    keys: Sequence[KeyResult] = ()

    @property
    def name(self) -> float:
        """F1 of function names."""
        return set_f1(self.step.bag.names, self.step.gold_bag.names)

    @property
    def key(self) -> float:
        """F1 of argument keys."""
        return set_f1(self.step.bag.arguments, self.step.gold_bag.arguments)

    @property
    def value(self) -> float | None:
        """F1 of values; None when neither side has an argument: 0/0."""
        return value_f1(result.counts for result in self.keys)

    @property
    def best_value(self) -> float | None:
        """The same if a judge decided every undecided value as leniently as can be."""
        return value_f1(result.best_counts for result in self.keys)

    @property
    def undecided(self) -> list[KeyResult]:
        """The arguments a judge would be asked about."""
        return [result for result in self.keys if result.reason == "undecided"]

    def judged(self, verdicts: Mapping[str, Verdict]) -> Pair:
        """Return the pair with a judge's verdicts by argument."""
        return Pair(self.step, [result.judged(verdicts.get(result.key)) for result in self.keys])


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Return tp, fp and fn summed over arguments."""
    tp = fp = fn = 0
    for counted in counts:
        tp = tp + counted[0]
        fp = fp + counted[1]
        fn = fn + counted[2]
    return tp, fp, fn


def value_f1(counts: Iterable[Counts]) -> float | None:
    """Return the F1 of counts summed over arguments, None without any count."""
    tp, fp, fn = sum_counts(counts)
    if not tp + fp + fn:
        return None
    precision = ratio(tp, tp + fp) or 0.0
    recall = ratio(tp, tp + fn) or 0.0
    return harmonic(precision, recall)


def compare_calls(sample: Sample, steps: Iterable[Step]) -> list[Pair]:
    """Compare the calls of a sample, of every step where both sides call.

    Recorded verdicts decide what else a judge would be asked about.
    """
    trial = native_of(sample, Trial)
    verdicts = (trial and trial.verdicts) or {}
    specs = sample.tools or ()
    tools = {spec.name: spec.parameters for spec in specs if spec.parameters}
    pairs: list[Pair] = []
    for step in steps:
        if step.called:
            called = dict.fromkeys(step.bag.names)
            schemas = [tools[name] for name in called if name in tools]
            pair = Pair(step, _compare_bags(step, schemas))
            pairs.append(pair.judged(verdicts.get(step.id, {})))
    return pairs


def _compare_bags(step: Step, schemas: Sequence[Mapping[str, Any]]) -> list[KeyResult]:
    """Compare the arguments of a step with the gold ones, key by key, in the order of keys."""
    ours = step.bag.arguments
    theirs = step.gold_bag.arguments
    results = []
    for key in sorted({*ours, *theirs}):
        try:
            results.append(compare_key(key, ours, theirs, schemas))
        except Exception:  # noqa: BLE001 - an odd schema says nothing
            results.append(compare_key(key, ours, theirs, ()))
    return results
