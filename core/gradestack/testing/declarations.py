"""Declarations of a component's class: words of the contracts, fields, figures and options."""

from __future__ import annotations

from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import attrs
import msgspec

from gradestack.errors import hint_of
from gradestack.model import Sample

_FIELDS = {
    "needs": Sample.__struct_fields__,
    "provides": Sample.__struct_fields__,
    "keeps": ("fault", "metadata"),
}
"""Declaration of a component -> the parts of a sample, or of a grade, that it can name."""
RENAMED = {
    "aggregator": {
        "numbers": "contribution(self, grade)",
        "estimate": "figures_of(self, totals)",
        "of_task": "task_contribution(self, sums)",
        "whole": "model_totals(self, grades)",
        "needs": "nothing: contribution() may read all of a grade",
        "sums": "nothing: contribution() may read all of a grade",
        "reads_labels": "nothing: labels are always there",
        "pooled": "Figure(..., pooled=False)",
        **dict.fromkeys(("start", "add", "merge", "finish"), "contribution() and figures_of()"),
    },
    "grader": {
        "aggregators": "metrics",
        "words": "verdict_labels",
        "handles": "graded_statuses",
        "explain": "Grade(items=FUNCTION), which is called where items are shown",
        "requires": "needs, the fields it cannot work without (not all it reads)",
        "references": "compares",
        "submission": "TextGrader as its base",
        "sums": "Grade.numbers",
    },
    "reporter": {"beside": "data_files"},
}
"""Contract -> words of earlier contracts -> what says it now."""


def _earlier_word(component: Any) -> str | None:
    """Return that a component has a word of an earlier contract, and the new one."""
    options = {option.name for option in getattr(component, "__attrs_attrs__", ())}
    for old, new in RENAMED.get(component.contract, {}).items():
        if hasattr(component, old) and old not in options:
            return f"has {old!r}, of an earlier contract; write {new} in its place"
    return None


def find_flaw(component: Any) -> str | None:
    """Find a mistake in the words that a component's class declares; None where it has none."""
    kind = component if isinstance(component, type) else type(component)
    flaws = (_earlier_word(component), _wrong_type_of(component, kind), _clashing_option(kind))
    return next(filter(None, flaws), None) or _unknown_field(component)


def _wrong_type_of(component: Any, kind: type) -> str | None:
    """Describe the first class variable whose value has not the type that the contract declares."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("gradestack.")]
    for base in bases:
        for name, hint in get_type_hints(base).items():
            value = getattr(component, name)
            if get_origin(hint) is not ClassVar or isinstance(value, property):
                continue
            try:
                msgspec.convert(msgspec.to_builtins(value), *get_args(hint))
            except msgspec.ValidationError as error:
                return f"has {name} = {value!r:.100}: {error}"
            except TypeError:  # the value is a class, which msgspec cannot check
                continue
    return None


def _unknown_field(component: Any) -> str | None:
    """Find a declared part of samples or grades that samples or grades have not."""
    for name, known in _FIELDS.items():
        declared = getattr(component, name, ())
        for field in () if isinstance(declared, property) else declared:
            if field.partition(":")[0] not in known:
                hint = hint_of(field, known)
                return f"has {field!r} among its {name}{hint}"
    return None


def _clashing_option(kind: type) -> str | None:
    """Find an option that has the name, and not the type, of something else in the contract."""
    options = attrs.fields(kind) if attrs.has(kind) else ()
    owners = kind.__mro__[:2]
    types, inherited = (get_type_hints(owner) for owner in owners)
    for option in options:
        name = option.name
        is_own = not option.inherited and name in inherited
        if is_own and inherited[name] not in (types[name], ClassVar[types[name]]):
            return f"has an option by the name of the contract's {name!r}; name it otherwise"
    return None
