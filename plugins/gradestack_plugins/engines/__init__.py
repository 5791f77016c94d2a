"""Engines: ways to map a worker over shards."""

from gradestack import Component, hookimpl

_TABLE = """
engine serial .local:Serial One shard after the other in this process
engine processes .processes:Processes Shards on several processes of this machine; survives workers
    that die
engine dask .dask:Dask Shards on a dask cluster: other machines, or workers on this one
engine auto .local:Auto Processes for large inputs on several cores, serial otherwise
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
