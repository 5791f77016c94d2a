"""Function name, argument key and argument value F1 of one trial.

Graded are the pairs where both sides call. Set F1: both empty 1, one empty 0, else P = |both| / |predicted|,
R = |both| / |gold|, F1 = 2PR / (P + R).

* name F1 on the sets of function names, key F1 on the sets of argument names;
* value F1 from true positives, false positives and false negatives summed over all arguments of the pair; every zero
  denominator gives 0.

Trial: mean over the graded pairs; name and key are rounded to four decimals, as the original does, value is not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import JSON, Profile, Sample
from gradestack_plugins.orchestrationbench.decisions import Step, harmonic, set_f1
from gradestack_plugins.orchestrationbench.trial import (
    CALL,
    Trial,
    Verdict,
)

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


class KeyResult(msgspec.Struct, frozen=True, kw_only=True):
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

    def shown(self) -> dict[str, JSON]:
        """Return the result for people."""
        found = msgspec.structs.asdict(self) | {"predicted": list(self.predicted), "gold": list(self.gold)}
        del found["confirmed"]
        return found


def compare_key(
    key: str,
    predicted: Mapping[str, JSON],
    gold: Mapping[str, JSON],
    schemas: Mapping[str, Any],
    profile: Profile,
) -> KeyResult:
    """Return the counts of one argument, left ``undecided`` where a judge would be asked.

    ``schemas`` are the parameters of the predicted tools, in the order they were called; in ``documented`` passed
    through :func:`usable`. Of the profiles only the length of an undecodable text differs: its characters in
    ``upstream``, else 1.
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
        raise TypeError(f"schema type {declared!r} is not one the comparison knows")
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
        return msgspec.structs.replace(result, tp=kept)
    return msgspec.structs.replace(result, tp=kept + verdict.tp, fp=verdict.fp, fn=verdict.fn, reason="judged")


def at_best(result: KeyResult, profile: Profile = "documented") -> KeyResult:
    """Return an undecided key as the most lenient judge could leave it; what ``upstream`` lost stays lost."""
    if result.reason != "undecided":
        return result
    pairs = min(len(result.predicted), len(result.gold))
    kept = result.confirmed if profile == "documented" else 0
    return msgspec.structs.replace(result, tp=kept + pairs, fp=result.fp - pairs, fn=result.fn - pairs)


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One gold call beside a predicted call."""

    step: Step
    name: float
    key: float
    value: float | None
    """None in ``documented`` when neither side has an argument: 0/0."""
    best_value: float | None
    """Value F1 if a judge decided every undecided value as leniently as can be."""
    keys: tuple[KeyResult, ...] = ()


class CallFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one trial."""

    pairs: tuple[Pair, ...]
    name: float | None
    """None in ``documented`` when there is no graded pair; 0.0 then in ``upstream``."""
    key: float | None
    value: float | None
    best_value: float | None
    perfect: int
    """Pairs with key F1 and value F1 both 1."""
    judge_failed: bool = False
    """The original lists the trial among those whose judge failed: no graded pair, or value F1 replaced by key F1."""
    fallback: str = ""
    """Why value F1 was replaced by key F1 (``upstream``)."""


def value_f1(results: Sequence[KeyResult], profile: Profile) -> float | None:
    """Return the F1 of counts summed over arguments; without any count None in ``documented``, 0 in ``upstream``."""
    tp = sum(result.tp for result in results)
    fp = sum(result.fp for result in results)
    fn = sum(result.fn for result in results)
    if not tp + fp + fn:
        return None if profile == "documented" else 0.0
    return harmonic(tp / (tp + fp) if tp + fp > 0 else 0.0, tp / (tp + fn) if tp + fn > 0 else 0.0)


def mean(values: Iterable[float | None], undefined: float | None = None) -> float | None:
    """Return the mean of the values there are, added from left to right."""
    total, number = 0.0, 0
    for value in values:
        if value is not None:
            total, number = total + value, number + 1
    return total / number if number else undefined


class CallRules(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are compared by, beside the steps."""

    profile: Profile = "documented"
    tools: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Parameters (JSON Schema) by tool name."""
    verdicts: Mapping[str, Mapping[str, Verdict]] | None = None
    """A judge's, by step and argument; None when none was asked."""
    judge_section: bool = True
    """False when the evaluation config lacks its judge section."""


def grade_calls(steps: Iterable[Step], rules: CallRules) -> CallFigures:
    """Return the call figures of one trial.

    ``documented``: value is the mean over all pairs with an argument on either side. ``upstream``: the mean over the
    pairs whose value F1 is above 0; when the judge section is missing or a comparison raises, every pair's value F1
    becomes its key F1; no pair gives 0.0 throughout.
    """
    upstream = rules.profile == "upstream"
    called = [step for step in steps if step.fault is None and step.gold == CALL and step.predicted == CALL]
    fallback = "the evaluation config has no judge section" if upstream and not rules.judge_section else ""
    results: list[tuple[KeyResult, ...]] = [() for _ in called]
    if not fallback:
        try:
            results = [_compare(step, rules) for step in called]
        except Exception as error:  # whatever a broken schema raises, the original falls back
            if not upstream:
                raise
            fallback = f"{type(error).__name__}: {error}"
    pairs = tuple(_pair(step, found, rules) for step, found in zip(called, results, strict=True))
    if fallback:
        pairs = tuple(msgspec.structs.replace(pair, value=pair.key, best_value=pair.key) for pair in pairs)
    name, key = mean([pair.name for pair in pairs]), mean([pair.key for pair in pairs])
    values = [pair.value for pair in pairs]
    bests = [pair.best_value for pair in pairs]
    undefined = 0.0 if upstream else None
    listed = _listed(pairs) if upstream and rules.verdicts is not None and not fallback else values
    perfect = (1.0,) if upstream else (1.0, None)
    return CallFigures(
        pairs=pairs,
        name=undefined if name is None else round(name, 4),
        key=undefined if key is None else round(key, 4),
        value=mean([each for each in values if (each if upstream else each is not None)], undefined),
        best_value=mean([each for each in bests if (each if upstream else each is not None)], undefined),
        perfect=sum(pair.key == 1.0 and value in perfect for pair, value in zip(pairs, listed, strict=True)),
        judge_failed=upstream and (bool(fallback) or not pairs),
        fallback=fallback,
    )


def _listed(pairs: Sequence[Pair]) -> list[float]:
    """Return value F1s as a live judge of the original leaves them: judged pairs first, then assigned by position."""
    judged = [any(result.reason in ("judged", "undecided") for result in pair.keys) for pair in pairs]
    first = [pair.value or 0.0 for pair, asked in zip(pairs, judged, strict=True) if asked]
    return first + [pair.value or 0.0 for pair, asked in zip(pairs, judged, strict=True) if not asked]


def _compare(step: Step, rules: CallRules) -> tuple[KeyResult, ...]:
    """Return the results of all arguments of a pair, by name, the judge's verdicts included."""
    names = step.bag.names if step.bag is not None else ()
    schemas = {name: rules.tools[name] for name in names if name in rules.tools}
    if rules.profile == "documented":
        schemas = usable(schemas)
    ours, theirs = _arguments(step)
    found = [compare_key(key, ours, theirs, schemas, rules.profile) for key in sorted({*ours, *theirs})]
    verdicts = (rules.verdicts or {}).get(step.id, {})
    return tuple(
        decided(result, verdicts.get(result.key), rules.profile) if result.reason == "undecided" else result
        for result in found
    )


def _arguments(step: Step) -> tuple[Mapping[str, JSON], Mapping[str, JSON]]:
    return (step.bag.arguments if step.bag else {}), (step.gold_bag.arguments if step.gold_bag else {})


def _pair(step: Step, results: tuple[KeyResult, ...], rules: CallRules) -> Pair:
    ours, theirs = _arguments(step)
    return Pair(
        step=step,
        name=set_f1(step.bag.names if step.bag else (), step.gold_bag.names if step.gold_bag else ()),
        key=set_f1(ours, theirs),
        value=value_f1(results, rules.profile),
        best_value=value_f1([at_best(result, rules.profile) for result in results], rules.profile),
        keys=results,
    )


def calls_of(sample: Sample, steps: Iterable[Step], profile: Profile) -> CallFigures:
    """Return the call figures of a sample."""
    trial = sample.native if isinstance(sample.native, Trial) else None
    rules = CallRules(
        profile=profile,
        tools={spec.name: spec.parameters for spec in sample.tools or ()},
        verdicts=trial.verdicts if trial is not None else None,
        judge_section=trial.setting.judge_section if trial is not None else True,
    )
    return grade_calls(steps, rules)
