"""Making frozen objects at the price of open ones.

A frozen attrs class sets every field through ``object.__setattr__``, and matching twenty keywords costs as much again.
On the path every sample takes that is a good part of all time. A maker builds the same object through an open twin of
the class that takes its fields by position, and hands it over frozen: a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import attrs

Made = TypeVar("Made")


def maker(cls: type[Made]) -> Callable[..., Made]:
    """Return a callable that takes the fields of ``cls`` in their order and returns an instance of it.

    Fields with defaults may be left out at the end, or be given by name.

    Args:
        cls: A frozen, slotted attrs class without ``__weakref__`` (``weakref_slot=False``: CPython hands instances over
            only between classes of one layout), converters, validators and hooks.
    """

    def freeze(self: Any) -> None:
        self.__class__ = cls

    twin = attrs.make_class(
        f"Open{cls.__name__}",
        {each.name: attrs.field(default=each.default) for each in attrs.fields(cast("Any", cls))},
        slots=True,
        weakref_slot=False,
        eq=False,
        repr=False,
        class_body={"__attrs_post_init__": freeze},
    )
    return cast("Callable[..., Made]", twin)
