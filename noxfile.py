"""The tests on every Python the project promises.

One that is not on this machine is skipped and said to be.
"""

import os
import sys
from pathlib import Path

import nox

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]

nox.options.default_venv_backend = "venv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False

for place in sorted(
    Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin")
):
    os.environ["PATH"] += (
        f"{os.pathsep}{place}"  # pyenv's own names in PATH stand for one version at a time
    )


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests, those asked for behind ``--`` or all."""
    session.install("--quiet", "--editable", ".[dev]")
    session.run("python", "-m", "pytest", "--numprocesses", "auto", "--quiet", *session.posargs)


@nox.session(python=PYTHONS, default=False)
@nox.parametrize("extras", ["", "[all]"])
def release(session: nox.Session, extras: str) -> None:
    """Install the wheel of dist/ alone, and do what the first tutorial says in an empty folder."""
    (wheel,) = Path("dist").glob("*.whl")
    session.install("--quiet", f"{wheel}{extras}")
    session.run("python", "-m", "pip", "check")
    session.run("python", ".ci/licences.py")
    session.run(sys.executable, "-m", "tests.docs.tutorial", session.bin, external=True)
