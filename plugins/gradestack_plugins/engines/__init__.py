"""Engines: ways to map a worker over shards."""

from __future__ import annotations

from gradestack import Component, hookimpl

_ENGINES = {
    "serial": ("local:Serial", "One shard after the other in this process"),
    "processes": ("processes:Processes", "Shards on several processes of this machine; survives workers that die"),
    "dask": ("dask:Dask", "Shards on a dask cluster: other machines, or workers on this one"),
    "auto": ("local:Auto", "Processes for large inputs on several cores, serial otherwise"),
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the built-in engines."""
    return tuple(
        Component(kind="engine", name=name, target=f"gradestack_plugins.engines.{target}", summary=summary)
        for name, (target, summary) in _ENGINES.items()
    )
