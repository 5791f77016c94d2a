"""``python -m gradestack.cli``."""

from gradestack.cli.commands import main

main()
