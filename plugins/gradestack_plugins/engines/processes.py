"""Shards on several processes of this machine; a process that dies costs only what it was at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Any

import attrs
from typing_extensions import override

from gradestack import Engine, PluginError, ResultT, Shard
from gradestack_plugins.engines.machine import check_workers, memory_share, parse_size, usable_cores
from gradestack_plugins.engines.pool import LOOK, OUT_OF_MEMORY, RETIRED, Member, Raised, uninterrupted
from gradestack_plugins.engines.recovery import TRIES, alone, full
from gradestack_plugins.engines.time_limit import ENDED_FOR_TIME

AHEAD = 4
"""Shards per worker that may be given out or finished ahead of the one whose turn it is."""
_STILLBORN = 3
"""Processes that may end before they are ready, in a row."""


@attrs.frozen(kw_only=True)
class Processes(Engine):
    """Runs shards on several processes and yields their results in shard order.

    When a process dies (killed, out of memory, a crash in native code), the shard it was at is done again, by a new
    one; a shard that was lost twice is run alone, noting how far it gets, and the record that ends its process is
    reported as a failed sample. Results are the same as with any other engine.

    Attributes:
        workers: Number of processes; default: the cores this process may use, and no more than there are shards.
        memory: What each may allocate beyond what it starts with, such as ``2GiB``; ``none`` for no limit. Default: an
            equal share of 80 % of the free memory. A grader that needs more meets MemoryError. Linux only.
    """

    workers: int | None = None
    memory: str | None = None

    def __attrs_post_init__(self) -> None:
        check_workers(self.workers)
        if self.memory is not None:
            parse_size(self.memory)

    @override
    def map(self, work: Callable[[Shard], ResultT], shards: Sequence[Shard]) -> Iterator[ResultT]:
        """Yield ``work(shard)`` for every shard, in order."""
        shards = list(shards)
        if not shards:
            return
        workers = min(self.workers or usable_cores(), len(shards))
        run = _Run(work, shards, workers, memory_share(self.memory, workers))
        try:
            yield from run.results()
        finally:
            run.close()


class _Run:
    """One call of the engine: its processes, and what is known of every shard."""

    def __init__(self, work: Any, shards: list[Shard], workers: int, memory: int | None) -> None:
        self.work, self.shards, self.workers, self.memory = work, shards, workers, memory
        self.members: list[Member] = []
        self.done: dict[int, Any] = {}
        self.given: set[int] = set()
        self.lost: dict[int, int] = {}
        self.stillborn = 0

    def results(self) -> Iterator[Any]:
        for place in range(len(self.shards)):
            while place not in self.done:
                self._give(place)
                self._take(self.members)
            self.given.discard(place)
            result = self.done.pop(place)
            if isinstance(result, Raised):
                raise result.again()
            yield result

    def _give(self, turn: int) -> None:
        """Keep every process at work, with a second shard to go on with while there are plenty."""
        window = range(turn, min(len(self.shards), turn + AHEAD * self.workers))
        waiting = [place for place in window if place not in self.given and place not in self.done]
        while waiting and len(self.members) < self.workers:
            self._hire(waiting.pop(0))
        for queue in (1, 2):
            for member in self.members:
                if len(waiting) >= (1 if queue == 1 else self.workers) and len(member.places) < queue:
                    self._hand(member, waiting.pop(0))

    def _hire(self, place: int) -> None:
        with uninterrupted():
            member = Member(self.work, self.shards, self.memory)
            self.members.append(member)
        self._hand(member, place)

    def _hand(self, member: Member, place: int) -> None:
        self.given.add(place)
        member.give(place)

    def _take(self, members: Sequence[Member]) -> None:
        """Wait until at least one process has something to say, or is dead."""
        lines = {member.line: member for member in members}
        heard = [lines[line] for line in wait(list(lines), LOOK)]
        for member in heard or [each for each in members if each.exit_code is not None]:
            try:
                answer = member.take()
            except EOFError:
                self._bury(member)
                continue
            self.stillborn = 0
            if answer is not None:
                self.done[answer[0]] = answer[1]

    def _bury(self, member: Member) -> None:
        """Count what a dead process was at as lost, and have it done again: alone, if it was lost too often."""
        self.members.remove(member)
        places, ready, code = list(member.places), member.ready, member.exit_code
        member.close(at_once=True)
        self.given.difference_update(places)
        if not ready:
            self._miscarried(code)
        elif places and code != RETIRED:
            first = places[0]
            self.lost[first] = self.lost.get(first, 0) + (TRIES if code in ENDED_FOR_TIME else 1)
            if self.lost[first] >= TRIES:
                self.given.add(first)
                self.done[first] = self._alone(self.shards[first], code)

    def _alone(self, shard: Shard, code: int | None) -> Any:
        try:
            return alone(self.work, shard, self._attempt, why=self._why(shard, code))
        except PluginError as error:  # told when it is the shard's turn
            return Raised(error, "")

    def _why(self, shard: Shard, code: int | None) -> PluginError | None:
        return full(shard, self.memory) if code == OUT_OF_MEMORY else None

    def _miscarried(self, code: int | None) -> None:
        self.stillborn += 1
        if self.stillborn >= _STILLBORN:
            msg = f"worker processes end before they are ready (exit code {code})"
            hint = 'a script that uses threads needs `if __name__ == "__main__":` around what it runs'
            raise PluginError(msg, hint, "or use the engine `serial`")

    def _attempt(self, work: Any, shard: Shard) -> tuple[bool, Any]:
        """Return (True, result) of a shard on a process of its own, (False, why) when that process died."""
        while True:
            member = Member(work, [shard], self.memory)
            member.give(0)
            try:
                while (answer := member.take()) is None:
                    pass
                return True, answer[1]
            except EOFError:
                if member.ready:
                    return False, self._why(shard, member.exit_code)
                self._miscarried(member.exit_code)
            finally:
                member.close(at_once=True)

    def close(self) -> None:
        """End all processes; what those still at work are at is not wanted any more."""
        with uninterrupted():
            while self.members:
                member = self.members.pop()
                member.close(at_once=bool(member.places))
