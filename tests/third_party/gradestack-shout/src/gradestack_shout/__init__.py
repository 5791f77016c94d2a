"""Grades how much of an answer is in capitals, and shows it on pages."""

from gradestack import Component, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    component = Component(
        kind="grader",
        name="shout",
        target="gradestack_shout.grader:Shout",
        summary="Share of letters that are capitals",
    )
    return (
        component,
        Component(
            kind="aggregator",
            name="loudest",
            target="gradestack_shout.aggregate:Loudest",
            summary="The sample that shouts most",
        ),
        Component(
            kind="panel",
            name="loudness",
            target="gradestack_shout.panels:loudness",
            summary="How loud answers were",
        ),
        Component(
            kind="panel",
            name="letters",
            target="gradestack_shout.panels:letters",
            summary="The letters of an answer",
        ),
    )
