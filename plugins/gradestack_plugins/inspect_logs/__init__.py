"""Inspect: logs of inspect_ai, as archives (``.eval``) or JSON."""

from gradestack import Component, hookimpl

_TABLE = """
reader inspect .reader:InspectLogs inspect_ai logs: .eval archives and JSON, with their scores
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
