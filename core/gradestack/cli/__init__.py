"""The command line."""

from gradestack.cli.commands import main

__all__ = ["main"]
