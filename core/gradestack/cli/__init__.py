"""The command line."""

import gc
import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; without ``arguments`` that of this process."""
    try:
        from gradestack.interpreter import ALLOCATIONS  # noqa: PLC0415 - Ctrl-C is seen here

        if arguments is None:  # before click is imported, which makes many objects that stay
            gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
        from gradestack.cli.commands import main as run  # noqa: PLC0415 - likewise
    except KeyboardInterrupt:  # in the first moments, before anything was begun
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    run(arguments)
