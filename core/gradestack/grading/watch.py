"""The watch: whether components that are not ours keep the laws of their contract, on the first samples of a run.

What graders of others are handed meanwhile is a copy of each sample, which nobody else sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import msgspec
from msgspec.structs import astuple

from gradestack.api import Shard
from gradestack.errors import PluginError
from gradestack.grading.plan import Stage
from gradestack.model import BadRecord, Fault, Grade, Outcome, Sample, Status, failed, replace

WATCHED = 256
"""Samples of the run that are looked at, at the most in its first shard."""


def watched_of(shard: Shard) -> int:
    """Return how many samples of a shard are watched: of each half as many as of the one before, and one at least.

    So the first ``WATCHED`` of the run are, whatever engine works on its shards and in which order.
    """
    return max(1, WATCHED >> shard.ordinal)


def wrong_types(record: Sample | BadRecord) -> str | None:
    """Return which field of a record holds what it must not, or None."""
    kind = Sample if isinstance(record, Sample) else BadRecord  # not what a reader makes of it
    known = {name: getattr(record, name) for name in kind.__struct_fields__ if name != "native"}
    try:
        msgspec.convert(msgspec.to_builtins(kind(**known)), kind)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        return f"{kind.__name__}{place.rstrip('`')}: {what[:1].lower()}{what[1:]}"
    except (TypeError, ValueError, RecursionError):  # what is no JSON is told by its row
        return None
    return None


_PLAIN = frozenset({str, int, float, bool, type(None), Outcome, Status, msgspec.UnsetType})


def _fresh(value: Any) -> Any:
    """Return a copy that shares nothing that can be changed. A fifth of the time that pickle takes of structs."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: _fresh(each) for key, each in value.items()}
    if kind is list or kind is tuple:
        return kind(map(_fresh, value))
    if isinstance(value, msgspec.Struct):
        held = zip(value.__struct_fields__, astuple(value), strict=True)
        return replace(value, **{name: _fresh(each) for name, each in held if type(each) not in _PLAIN})
    return deepcopy(value)


def _copied(sample: Sample) -> tuple[Sample, Any]:
    try:
        copy = _fresh(sample)
        return copy, _form(copy)
    except Exception:  # noqa: BLE001 - its native form may be anything
        return sample, None


def _form(sample: Sample) -> Any:
    """Return what is another when anything in a sample is changed, be it the type of a number."""
    try:
        return msgspec.msgpack.encode(sample)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr([getattr(sample, name) for name in sample.__struct_fields__])


def _changed(sample: Sample, before: Any) -> bool:
    try:
        return before is not None and _form(sample) != before
    except Exception:  # noqa: BLE001 - what was put into it has no form
        return True


class Watch:
    """One grader under watch in one shard: to the end of it, where it has changed a sample.

    Attributes:
        breaches: What it did against the contract, with the first sample it did it to.
    """

    def __init__(self, stage: Stage, samples: int, *, strict: bool) -> None:
        self._stage, self._left, self._strict = stage, samples, strict
        self._given: list[tuple[Sample, Any]] = []
        self.breaches: dict[str, str] = {}

    def given(self, samples: list[Sample]) -> list[Sample]:
        """Return what the grader is handed of a block."""
        self._given = [] if self._left <= 0 else [_copied(each) for each in samples]
        self._left -= len(samples)
        return [each for each, _ in self._given] if self._given else samples

    def again(self) -> list[Sample]:
        """Return what it is handed to grade the same block once more: none where it has changed it."""
        sound = not any(_changed(copy, before) for copy, before in self._given)
        return [copy for copy, _ in self._given] if sound else []

    def look(self, samples: Sequence[Sample], grades: list[Grade], explained: list[Grade]) -> bool:
        """Have the grades of samples fail that the grader has changed; return whether there are any."""
        found = False
        for place, (sample, _, (copy, before)) in enumerate(zip(samples, explained, self._given, strict=False)):
            if _changed(copy, before):
                self._left, found = 1 << 62, True
                why = "the grader changed the sample, which must stay as it was recorded"
                signature = self._stage.signature
                fault = Fault(category="grading", code="changed_sample", message=why, component=signature)
                grades[place] = explained[place] = failed(fault)
                self._tell("changes samples", sample, "those grades failed; copy what you change")
        return found

    def compare(self, samples: Sequence[Sample], grades: Sequence[Grade], others: Sequence[Grade]) -> None:
        """Note where the grader gave another grade when it was asked again."""
        for sample, grade, other in zip(samples, grades, others, strict=False):
            timed_out = any(each.fault is not None and each.fault.code == "timed_out" for each in (grade, other))
            if grade != other and not timed_out and repr(grade) != repr(other):
                pairs = ((name, getattr(grade, name), getattr(other, name)) for name in Grade.__struct_fields__)
                name, first, second = next(each for each in pairs if repr(each[1]) != repr(each[2]))
                self._tell("gives one sample two grades", sample, f"{name} {first!r:.60}, then {second!r:.60}")

    def _tell(self, law: str, sample: Sample, said: str) -> None:
        place = sample.source or f"sample {sample.id}"
        who = f"grader {self._stage.key!r} ({self._stage.name} of {self._stage.distribution})"
        if self._strict:
            raise PluginError(f"{who} {law}", f"{place}: {said}")
        self.breaches.setdefault(f"{who} {law}", f"first at {place}: {said}")
