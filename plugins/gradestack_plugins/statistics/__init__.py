"""Aggregators that suit any grader."""

from gradestack import Component, hookimpl

_TABLE = """
aggregator mean .mean:Mean Mean score with standard error and confidence interval, clustered by task
aggregator agreement .agreement:Agreement Agreement of graders, or with people: percent, kappa, AC1,
    alpha, false passes
    and fails
aggregator flakiness .flakiness:Flakiness Tasks that pass sometimes, always or never; intra-class
    correlation and design
    effect of runs
panel graders_agree .panels:agreement How far the graders of a run agree, pair by pair
"""
gradestack_components = hookimpl(lambda: Component.table(__name__, _TABLE))
