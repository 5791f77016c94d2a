"""Ctrl-C held back until what is at hand is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

HELD_BACK: list[Callable[[bool], None]] = []
"""Called when Ctrl-C is held back until what is at hand is done, which may take; patiently, however often it comes."""


class Interruption:
    """Holds back Ctrl-C until the sample at hand is done, so that its row and its figures stay together.

    The first signal sets ``requested``; a second one interrupts at once, unless ``patient``, or inside ``held``:
    what is being finished then is short and must be finished. Does nothing outside the main thread, or where the caller
    handles the signal itself.
    """

    def __init__(self, *, patient: bool = False) -> None:
        self.requested = False
        self._patient = patient
        self._installed = self._held = self._late = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested, True  # first: the second one may come while the rest is being said
        if self._held:
            self._late |= again
        elif again and not self._patient:
            signal.default_int_handler(number, frame)
        else:
            for each in HELD_BACK:
                each(self._patient)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold back a second signal, too, until the code inside is done."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._late and not self._patient:
            self._late = False
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        own = threading.current_thread() is threading.main_thread()
        if own and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
