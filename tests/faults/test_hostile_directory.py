"""A working directory full of Python files of a stranger.

No command and no engine imports one of them.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.core.outcomes import data, some_of

DATA = data(__file__, "hostile_directory.yaml")


PROGRAM = Path(sys.executable).with_name("gradestack")
FILES = [f"{number}.jsonl" for number in range(4)]
MORE = [
    "sitecustomize",
    "usercustomize",
    "conftest",
    "setup",
    "site",
    "evil",
    "__init__",
    "__main__",
]
SETTINGS = ["dask.yaml", "dask.yml", "distributed.yaml", "distributed.yml"]
GRADER = """
import sibling


def doubled(sample):
    return sibling.SCORE
"""
SCRIPT = DATA["script"]


@pytest.fixture
def here(tmp_path):
    """A working directory with a trap for every module there is, and recorded runs among them."""
    made_folder = tmp_path / "downloads"
    made_folder.mkdir()
    trap = f"open({str(made_folder / 'sprung')!r}, 'a').write(__name__ + chr(10))\n"
    for name in {*sys.stdlib_module_names, *packages_distributions(), *MORE}:
        (made_folder / f"{name}.py").write_text(trap)
    evil_path = made_folder / "evil.pth"
    evil_path.write_text("import evil\n")
    for folder in ("evil-1.0.dist-info", "evil.egg-info"):
        (made_folder / folder).mkdir()
        for name in ("METADATA", "PKG-INFO"):
            (made_folder / folder / name).write_text(
                "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n"
            )
        entry_points_path = made_folder / folder / "entry_points.txt"
        entry_points_path.write_text("[gradestack]\nevil = evil\n")
    for name in SETTINGS:
        (made_folder / name).write_text(
            "distributed: {worker: {preload: [evil]}, scheduler: {preload: [evil]}}\n"
        )
    for number, name in enumerate(FILES):
        row = {"expected": {"calls": [{"name": "f", "arguments": {}}]}, "predicted": {"calls": []}}
        (made_folder / name).write_text(
            "".join(f"{json.dumps({'id': f't{number}.{n}', **row})}\n" for n in range(3))
        )
    suite_path = made_folder / "suite.yaml"
    suite_path.write_text(f"target: {{paths: [{', '.join(FILES)}]}}\ngraders: {{q: tau_partial}}\n")
    return made_folder


@pytest.fixture
def command(here):
    """Return a function that runs the installed command in the hostile directory."""

    def run(*arguments, program=(str(PROGRAM),), **variables):
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONSAFEPATH")
        }
        env = environment | variables
        done = subprocess.run(
            [*program, *map(str, arguments)],
            cwd=here,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        sprung_folder = here / "sprung"
        assert not sprung_folder.exists(), (here / "sprung").read_text()
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("engine", some_of(["processes", "serial", "dask"], 3))
def test_a_run_imports_nothing_from_the_working_directory(command, here, engine):
    """Neither the program nor a worker it starts."""
    workers = () if engine == "serial" else ("--workers", 2)
    command("grade", *FILES, "-o", engine, "--engine", engine, *workers)
    results_path = here / engine / "results.jsonl"
    text = results_path.read_text()
    rows = text.splitlines()
    expected = 3 * len(FILES)
    assert len(rows) == expected


def test_no_command_imports_anything_from_the_working_directory(command):
    """Plugins are those that are installed."""
    command("validate", "suite.yaml")
    command("run", "suite.yaml", "-o", "first")
    command("grade", "first", "-o", "again")
    command("compare", "first", "again", "-o", "compared", "--force")
    command("report", "first")
    command("show", "first", "t0.0")
    command("index", ".")
    expected = command("plugins", "list", program=(sys.executable, "-P", "-m", "gradestack.cli"))
    assert "evil" not in expected


def test_workers_that_are_not_forked_import_nothing_from_it(command, tmp_path):
    """As in a program with threads: its own folder is where it imports from, as ever."""
    script_path = tmp_path / "script.py"
    script_path.write_text(f"FILES, OUT = {FILES!r}, {str(tmp_path / 'out')!r}\n{SCRIPT}")
    command(tmp_path / "script.py", program=(sys.executable,))
    assert (tmp_path / "out/results.jsonl").exists()


@pytest.mark.parametrize("engine", some_of(["processes", "serial", "dask"], 3))
def test_code_that_is_allowed_imports_what_stands_beside_it(command, tmp_path, engine):
    """A file of one's own, its folder's modules, and what PYTHONPATH names work on every engine."""
    (tmp_path / "mine").mkdir()
    grader_path = tmp_path / "mine/grader.py"
    grader_path.write_text(GRADER)
    sibling_path = tmp_path / "mine/sibling.py"
    sibling_path.write_text("SCORE = 0.5\n")
    (tmp_path / "named").mkdir()
    my_module_path = tmp_path / "named/my_module.py"
    my_module_path.write_text("def halved(sample):\n    return 0.25\n")
    module = "graders.m={kind: python_function, module: my_module, name: halved}"
    workers = () if engine == "serial" else ("--workers", 2)
    file = tmp_path / "mine/grader.py"
    options = [
        "--allow-code",
        "--grader",
        f"{file}:doubled",
        "--set",
        module,
        "--engine",
        engine,
        *workers,
    ]
    out = tmp_path / "out"
    named_folder = tmp_path / "named"
    command("grade", *FILES, *options, "-o", out, PYTHONPATH=str(named_folder))
    summary_path = out / "summary.json"
    text = summary_path.read_text()
    document = json.loads(text)
    metrics = document["metrics"]
    averages = metrics["by_metric"]
    assert [average["avg_score_attempted"] for average in averages.values()] == [0.5, 0.25]


@pytest.mark.parametrize("options", [{}, {"PYTHONPATH": "."}], ids=["left out", "named"])
def test_started_as_a_module_it_leaves_the_working_directory_out(options, tmp_path):
    """Plugins are not looked for in it, unless PYTHONPATH names it."""
    (tmp_path / "mine.egg-info").mkdir()
    pkg_info_folder = tmp_path / "mine.egg-info/PKG-INFO"
    pkg_info_folder.write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    entry_points_path = tmp_path / "mine.egg-info/entry_points.txt"
    entry_points_path.write_text("[gradestack]\nmine = my_plugin\n")
    my_plugin_path = tmp_path / "my_plugin.py"
    my_plugin_path.write_text(
        "from gradestack import Component, hookimpl\n\n@hookimpl\ndef gradestack_components():\n"
        "    return [Component(kind='stack', name='mine', target='x:y', summary='')]\n"
    )
    values_by_name = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = values_by_name | options
    done = subprocess.run(
        [sys.executable, "-m", "gradestack.cli", "stacks", "list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("mine 1.0" in done.stdout) == bool(options)
