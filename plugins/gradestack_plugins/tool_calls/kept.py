"""What many grades have in common, made once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")
_MOST = 4096


class Kept(Generic[T]):
    """Objects that are shared and never changed, the last few thousand of them.

    Attributes:
        get: Returns the object made of a key, or None.
    """

    def __init__(self) -> None:
        self._by_key: dict[Hashable, T] = {}
        self._by_part: dict[int, T] = {}
        self.get = self._by_key.get
        self.of_part = self._by_part.get
        """Returns the object by the identity of a part of it, which it holds; or None."""

    def keep(self, key: Hashable, value: T, part: object = None) -> T:
        """Keep an object, and return it."""
        if len(self._by_key) >= _MOST:
            self._by_key.clear()
            self._by_part.clear()
        self._by_key[key] = value
        if part is not None:
            self._by_part[id(part)] = value
        return value
