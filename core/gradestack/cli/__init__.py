"""The command line."""

import sys

try:
    from gradestack.cli.commands import main
except KeyboardInterrupt:  # Ctrl-C in the first moments, before anything was begun
    sys.stderr.write("interrupted\n")
    sys.exit(130)

__all__ = ["main"]
