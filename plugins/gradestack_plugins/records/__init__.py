"""Tables and records of any form, by a mapping of columns to fields."""

from gradestack import Component, hookimpl

_TABLE = """
reader records .reader:Records CSV, Parquet, JSON Lines or a JSON list of any form, by a mapping of
    its columns
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
