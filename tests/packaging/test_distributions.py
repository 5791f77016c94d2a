"""Wheel, sdist and a third-party package, installed in fresh environments outside the repository.

A package installed beside this one is looked at by `make downstream`, too.
"""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THIRD = ROOT / "tests" / "third_party" / "gradestack-shout"


def _run(*command, cwd, code=0):
    """Run a command in a clean environment, check its exit code and return its output."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "COV_", "GRADESTACK"))
    }
    arguments = [str(argument) for argument in command]
    done = subprocess.run(
        arguments,
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def _build(source, out, *kinds):
    _run(sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", out, source, cwd=out)
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return _build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory, built):
    folder = tmp_path_factory.mktemp("fresh")
    shout = _build(THIRD, tmp_path_factory.mktemp("shout"), "--wheel")
    venv_folder = folder / "venv"
    venv.create(venv_folder, with_pip=True)
    (wheel,) = [path for path in built if path.suffix == ".whl"]
    python_folder = folder / "venv/bin/python"
    _run(python_folder, "-m", "pip", "install", "-q", wheel, *shout, cwd=folder)
    return folder


def test_wheel_holds_exactly_the_three_packages(built):
    """Nothing but the three packages and the metadata lands in site-packages."""
    (wheel,) = [path for path in built if path.suffix == ".whl"]
    status = wheel.stat()
    assert status.st_size <= 1_500_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "gradestack",
        "gradestack_plugins",
        "gradestack_templates",
    }
    assert {
        "gradestack/py.typed",
        "gradestack_plugins/py.typed",
        "gradestack_templates/report.html",
    } <= set(names)


@pytest.mark.proof
def test_sdist_builds_the_same_wheel(built, tmp_path):
    (sdist,) = [path for path in built if path.name.endswith(".tar.gz")]
    (wheel,) = [path for path in built if path.suffix == ".whl"]
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    out = tmp_path / "out"
    out.mkdir()
    paths = tmp_path.glob("gradestack-*")
    (rebuilt,) = _build(next(paths), out, "--wheel")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(rebuilt) as two:
        assert sorted(one.namelist()) == sorted(two.namelist())


@pytest.mark.proof
def test_installed_wheel_lists_built_ins_with_distribution_and_version(fresh):
    listed = _run(fresh / "venv/bin/gradestack", "plugins", "list", cwd=fresh)
    lines = listed.splitlines()
    line = next(line for line in lines if " tau_partial " in line)
    assert line.endswith("[gradestack 0.3.0]")
    assert "broken" not in listed


@pytest.mark.proof
def test_third_party_grader_runs_from_a_suite_and_shows_in_the_report(fresh):
    """A suite names the grader and its aggregator; the report shows their figures."""
    runs_path = fresh / "runs.jsonl"
    runs_path.write_text(
        '{"id": "calm", "predicted": "all is well"}\n'
        '{"id": "loud", "predicted": "ALL is WELL"}\n'
        '{"id": "mute", "predicted": ""}\n'
    )
    suite_path = fresh / "suite.yaml"
    suite_path.write_text(
        "name: shouting\ntarget: {paths: [runs.jsonl]}\ngraders:\n  volume: {kind: shout, limit: "
        "0.7}\n"
        "gate: {metric_key: volume, op: gte, value: 0.5}\n"
    )
    result = _run(
        fresh / "venv/bin/gradestack", "run", "suite.yaml", "-o", "out", cwd=fresh, code=1
    )
    assert "Gate (volume >= 0.5): FAILED" in result
    summary_path = fresh / "out/summary.json"
    text = summary_path.read_text()
    summary = json.loads(text)
    states = summary["metrics"]["states"]
    volume = states["volume"]
    assert volume == {
        "failed": 0,
        "graded": 2,
        "missing": 0,
        "skipped": 1,
    }
    aggregates = summary["metrics"]["aggregates"]
    loudest = aggregates["volume"]["loudest"]
    assert loudest["id"] == "loud"
    assert loudest["score"] == 7 / 9
    assert loudest["all_capitals"] == 0.0
    report_path = fresh / "out/report.html"
    page = report_path.read_text()
    assert "volume" in page
    assert "loudest" in page
    header_path = fresh / "out/header.json"
    header = json.loads(header_path.read_text())
    components = header["components"]
    (grader,) = [component for component in components if component["kind"] == "grader"]
    assert grader["name"] == "shout"
    assert grader["version"] == "2"
    assert grader["distribution"] == "gradestack-shout 0.3.1"
