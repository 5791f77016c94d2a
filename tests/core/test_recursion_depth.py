"""Room for recursion does not depend on where the work is called."""

import sys
import threading

from gradestack.interpreter import ROOM, for_a_shard

SLACK = 2
"""Frames by which code counts differently once the interpreter has specialised it."""


def _frames(count=0):
    try:
        return _frames(count + 1)
    except RecursionError:
        return count


def _measured():
    with for_a_shard():
        return _frames()


def _called_from(depth):
    if depth:
        return _called_from(depth - 1)
    return _measured()


def test_room_is_the_same_however_deep_the_stack_is():
    limit = sys.getrecursionlimit()
    called = _called_from(0)
    levels = [called, _called_from(500), _called_from(800)]
    assert sys.getrecursionlimit() == limit
    thread = threading.Thread(target=lambda: levels.append(_called_from(20)))
    thread.start()
    thread.join()
    assert sys.getrecursionlimit() == limit
    assert max(levels) - min(levels) <= SLACK
    assert all(abs(level - ROOM) <= 5 for level in levels)


def test_room_does_not_depend_on_the_limit():
    limit = sys.getrecursionlimit()
    room = _measured()
    try:
        sys.setrecursionlimit(limit + 5000)
        size = abs(_measured() - room)
        assert size <= SLACK
        assert sys.getrecursionlimit() == limit + 5000
    finally:
        sys.setrecursionlimit(limit)
