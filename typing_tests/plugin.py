"""What a package says it offers."""

from typing import assert_type

from gradestack import Component, Kind, Registry, Report, discover, hookimpl
from gradestack_plugins.pages import blocks


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return its components."""
    kinds: tuple[Kind, ...] = ("reader", "grader")
    return tuple(
        Component(kind=kind, name="mine", target=f"mine:{kind}", summary="Mine") for kind in kinds
    )


assert_type(gradestack_components(), tuple[Component, ...])
assert_type(discover(), Registry)
assert_type(discover().names("grader"), list[str])

Component(kind="judge", name="mine", target="mine:Mine", summary="Mine")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@blocks.panel("Mine")
def shown(about: Report) -> list[blocks.Block]:
    """A panel."""
    figure = blocks.Figure("mean", 0.5, (0.25, 0.75))
    assert_type(blocks.figure_of("mean", {"mean": 0.5}, "mean"), blocks.Figure)
    return [
        blocks.Interval([figure]),
        blocks.Matrix(["a"], ["b"], [[1]]),
        blocks.Words(about.name),
    ]


@blocks.panel("Mine", place="samples")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
def misplaced(about: Report) -> None:
    """Show nothing."""
