"""Ctrl-C in the first moments of the program, while it is imported."""

import subprocess
import sys

INTERRUPTED_IMPORT = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from gradestack.cli import main
main()
"""


def test_ctrl_c_while_the_command_line_is_imported_prints_no_traceback():
    for name in ("gradestack.cli.commands", "click", "gradestack.cli.signals"):
        script = INTERRUPTED_IMPORT.format(name=name)
        ended = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
        )
        assert ended.returncode == 130
        assert "Traceback" not in ended.stderr
