"""The first tutorial as printed, in an empty folder.

``python -m tests.docs.tutorial BIN``, by the programs of BIN.
"""

import os
import sys
import tempfile
from pathlib import Path

from gradestack import discover
from tests.docs.test_docs import DOCS, run_page

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        paths = os.pathsep.join([str(Path(sys.argv[1]).absolute()), os.defpath])
        environment = {
            "PATH": paths,
            "HOME": place,
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }
        run_page(DOCS / "tutorials/my-log.md", Path(place), discover(limit=""), environment)
