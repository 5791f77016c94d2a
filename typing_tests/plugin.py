"""What a package says it offers."""

from typing import assert_type

from gradestack import Component, Kind, Registry, discover, hookimpl


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return its components."""
    kinds: tuple[Kind, ...] = ("reader", "grader")
    return tuple(Component(kind=kind, name="mine", target=f"mine:{kind}", summary="Mine") for kind in kinds)


assert_type(gradestack_components(), tuple[Component, ...])
assert_type(discover(), Registry)
assert_type(discover().names("grader"), list[str])

Component(kind="judge", name="mine", target="mine:Mine", summary="Mine")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
