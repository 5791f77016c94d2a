"""Grades how much of an answer is in capitals, and shows it on pages."""

from gradestack import Component, Panel, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return what this package offers."""
    return (
        Component(
            kind="grader",
            name="shout",
            target="gradestack_shout.grader:Shout",
            summary="Share of letters that are capitals",
        ),
        Component(
            kind="aggregator",
            name="loudest",
            target="gradestack_shout.aggregate:Loudest",
            summary="The sample that shouts most",
        ),
    )


@hookimpl
def gradestack_panels() -> tuple[Panel, ...]:
    """Return what this package shows on pages."""
    return (
        Panel(name="loudness", place="overview", title="How loud", target="gradestack_shout.panels:loudness"),
        Panel(
            name="letters",
            place="sample",
            title="Letters",
            target="gradestack_shout.panels:letters",
            template="letters.html",
        ),
    )
