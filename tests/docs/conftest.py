"""Fixtures that run the documentation's examples."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import until
from tests.docs.warm import install

ROOT = Path(__file__).parents[2]


def environment_of(*first):
    """Return the environment of examples.

    Nothing of the tests' own, programs of the directories given first.
    """
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COV_", "GRADESTACK"))
    }
    paths = [str(ROOT / part) for part in ("core", "plugins", "templates")]
    clean["PYTHONPATH"] = os.pathsep.join(paths)
    executable_path = Path(sys.executable)
    parent = str(executable_path.parent)
    firsts = map(str, first)
    path = clean.get("PATH", "")
    clean["PATH"] = os.pathsep.join([*firsts, parent, path])
    return {**clean, "GRADESTACK_PLUGINS": "", "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def warm(tmp_path_factory):
    """Commands of the examples are run by one process that has everything loaded."""
    folder = tmp_path_factory.mktemp("warm")
    if not hasattr(os, "fork"):
        yield folder
        return
    address = folder / "socket"
    environment = environment_of()
    install(folder, address, environment)
    file_path = Path(__file__)
    path = str(file_path.with_name("warm.py"))
    command = [sys.executable, path, str(address)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    until(address.exists)
    yield folder
    server.kill()
    server.wait()
