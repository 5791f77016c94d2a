"""What depends on the recording itself, decided once before grading: stacks made for it, graders that look at it.

A stack's function may take the inputs, as ``provides`` the fields their reader fills, and as ``samples`` the first of
those in memory. A grader may have a method ``for_recording(key, reader, inputs, samples)`` that returns the grader to
use, and a reader one, ``remarks(inputs)``, that returns what people should know of its inputs.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any

import attrs

from gradestack.api import Inputs, Reader
from gradestack.errors import ConfigError, PluginError
from gradestack.grading.plan import Stage
from gradestack.grading.reading import name_of, records_of, shards_of
from gradestack.model import Sample
from gradestack.plugin_errors import guarded
from gradestack.registry import Registry
from gradestack.suites.references import Resolver

FIRST = 1000
"""Records of each input that are looked at."""


def stack_for(
    registry: Registry, name: str, inputs: Inputs | None = None, provides: Any = None, samples: Sequence[Sample] = ()
) -> Mapping[str, Any]:
    """Return the suite mapping of a named stack, made for the inputs and their reader where its function takes them.

    ``samples`` are the first of those in memory, for which there are no inputs.
    """
    make = registry.load("stack", name)
    try:
        takes = set(inspect.signature(make).parameters)
        about = {"provides": provides, "samples": samples}
        known: dict[str, Any] = {key: each for key, each in about.items() if key in takes}
        fragment = make(inputs, **known) if inputs is not None and takes - known.keys() else make(**known)
    except Exception as error:
        raise PluginError(
            f"stack {name!r} of plugin {registry.find('stack', name)[1]} raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(fragment, Mapping):
        raise PluginError(
            f"stack {name!r} of plugin {registry.find('stack', name)[1]} is {type(fragment).__name__}, not a mapping"
        )
    return fragment


def first_samples(reader: Reader, inputs: Inputs) -> Iterator[Sample]:
    """Yield the samples among the first 1,000 records of each input; nothing is read before one is asked for."""
    shards, index = shards_of(reader, inputs)
    for _, own in groupby(shards, key=lambda shard: shard.input.name):
        records = chain.from_iterable(records_of(reader, shard, index) for shard in own)
        yield from (each for each in islice(records, FIRST) if isinstance(each, Sample))


def graders_for(
    resolver: Resolver, graders: Mapping[str, Stage], reader: Reader, inputs: Inputs
) -> tuple[dict[str, Stage], list[str]]:
    """Return the graders as the recording asks for, and what the reader has to say of it.

    What one of them or the reader refuses is a problem of the configuration.
    """
    found = {key: _grader_for(resolver, stage, reader, inputs) for key, stage in graders.items()}
    remarks: list[str] = []
    if (remarks_on := getattr(reader, "remarks", None)) is not None:
        try:
            with guarded(name_of(reader)):
                remarks = list(remarks_on(inputs))
        except ConfigError as error:
            resolver.say(("reader",), error)
    resolver.finish()
    return found, remarks


def _grader_for(resolver: Resolver, stage: Stage, reader: Reader, inputs: Inputs) -> Stage:
    decide = getattr(stage.component, "for_recording", None)
    if decide is None:
        return stage
    try:
        with guarded(f"grader {stage.key!r} ({stage.signature})"):
            component = decide(stage.key, reader, inputs, first_samples(reader, inputs))
    except ConfigError as error:
        resolver.say(("graders", stage.key), error)
        return stage
    names = [field.name for field in attrs.fields(type(component))]
    chosen = {name: getattr(component, name) for name in names}
    changed = {name: each for name, each in chosen.items() if each != getattr(stage.component, name)}
    return attrs.evolve(stage, component=component, options={**stage.options, **changed})
