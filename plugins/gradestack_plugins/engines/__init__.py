"""Engines: ways to map a worker over shards."""

from __future__ import annotations

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the built-in engines."""
    return (
        Component(
            kind="engine",
            name="serial",
            target="gradestack_plugins.engines.serial:Serial",
            summary="One shard after the other in this process",
        ),
        Component(
            kind="engine",
            name="processes",
            target="gradestack_plugins.engines.processes:Processes",
            summary="Shards on several processes of this machine; survives workers that die",
        ),
        Component(
            kind="engine",
            name="dask",
            target="gradestack_plugins.engines.dask:Dask",
            summary="Shards on a dask cluster: other machines, or workers on this one",
        ),
        Component(
            kind="engine",
            name="auto",
            target="gradestack_plugins.engines.auto:Auto",
            summary="Processes for large inputs on several cores, serial otherwise",
        ),
    )
