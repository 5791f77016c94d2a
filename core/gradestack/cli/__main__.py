"""``python -m gradestack.cli``, which leaves the working directory out of ``sys.path`` unless
PYTHONPATH names it.

Python has put it there, and by now has imported the modules of this folder with it;
``python -P -m`` never does.
"""

import contextlib
import sys
from pathlib import Path

from gradestack.cli import main

with contextlib.suppress(OSError):  # the directory is gone
    if not sys.flags.safe_path and Path(sys.path[0]).samefile(Path()):
        del sys.path[0]
main()
