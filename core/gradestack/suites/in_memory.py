"""What depends on samples in memory, which may come only once: the stack nobody named, graders that look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import attrs

from gradestack.api import Inputs
from gradestack.grading.plan import Stage
from gradestack.model import Expectation
from gradestack.registry import Registry
from gradestack.suites.given import RECORDS, MemoryReader
from gradestack.suites.recordings import first_samples, graders_for, stack_for
from gradestack.suites.references import Resolver


def default_stack(registry: Registry, samples: MemoryReader, *, table: bool) -> tuple[Mapping[str, Any], MemoryReader]:
    """Return the stack of samples in memory that nobody names graders for, and what reads all of them.

    It is the one that a file of them would have. Where none of the first expects anything there is nothing to compare:
    then it is the stack that needs no reference.
    """
    if table:
        return stack_for(registry, registry.load("reader", RECORDS).stack), samples
    look, all_of_them = _looked_into(samples)
    first = list(first_samples(look, Inputs(data=())))
    compared = any(each.expected not in (None, Expectation()) for each in first)
    name = registry.load("reader", "jsonl").stack if compared else "trajectory"
    return stack_for(registry, name, samples=first), all_of_them()


def graders_for_samples(
    resolver: Resolver, graders: Mapping[str, Stage], samples: MemoryReader
) -> tuple[dict[str, Stage], MemoryReader]:
    """Return the graders as samples in memory ask for, and what reads these samples, those looked at included."""
    look, all_of_them = _looked_into(samples)
    found, _ = graders_for(resolver, graders, look, Inputs(data=()))
    return found, all_of_them()


def _looked_into(samples: MemoryReader) -> tuple[MemoryReader, Callable[[], MemoryReader]]:
    """Return what reads the first of samples that come only once, and what then gives the reader of them all."""
    taken: list[Any] = []
    rest = iter(samples.samples)

    def noted() -> Iterator[Any]:
        for each in rest:
            taken.append(each)
            yield each

    def all_of_them() -> MemoryReader:
        return attrs.evolve(samples, samples=chain(taken, rest) if taken else rest)

    return attrs.evolve(samples, samples=noted()), all_of_them
