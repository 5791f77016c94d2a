"""The table of what every preset says: ``python -m gradestack_plugins.tool_calls``."""

from __future__ import annotations

import sys

from gradestack_plugins.tool_calls.table import lines


def main() -> None:
    """Print what every preset says of fourteen small runs, as Markdown."""
    sys.stdout.write("\n".join(lines()) + "\n")


if __name__ == "__main__":
    main()
