"""A scheduler can run code here: its address counts from the command line or with --allow-code, not from a suite."""

import json
import socket

import pytest

import gradestack


@pytest.fixture
def stranger():
    """A port of this machine that waits for connections, and the address of the scheduler it could be."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server, f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def suite(here, stranger):
    (here / "far.yaml").write_text(
        "target: {paths: [runs.jsonl]}\ngraders: {q: toy}\nreports: []\n"
        f"engine:\n  kind: dask\n  patience: 0.2\n  address: {stranger[1]}\n"
    )
    return "far.yaml"


REFUSED = (
    "error: far.yaml: 1 problem in the configuration\n"
    "  - far.yaml:7: engine.address: what is named here can run code on this machine; "
    "name it on the command line, --set engine.address=..., or pass --allow-code if you trust this suite\n"
)


@pytest.mark.parametrize(
    "arguments",
    [("validate",), ("run",), ("run", "--engine", "dask"), ("run", "--set", "engine.patience=0.1")],
    ids=" ".join,
)
def test_an_address_of_a_suite_is_refused(command, suite, stranger, arguments):
    said = command(arguments[0], suite, *arguments[1:])
    assert (said.code, said.out, said.err) == (2, "", REFUSED)
    with pytest.raises(BlockingIOError):
        stranger[0].accept()


@pytest.mark.parametrize(
    "suite",
    [
        {"engine": {"kind": "dask", "address": "tcp://127.0.0.1:9"}},
        {"engine": {"kind": "dask", "address": ["tcp://127.0.0.1:9"]}},
    ],
)
def test_an_address_of_a_mapping_is_refused(here, registry, suite):
    whole = {"target": {"paths": ["runs.jsonl"]}, "graders": {"q": "toy"}, **suite}
    with pytest.raises(gradestack.ConfigError, match=r"engine\.address: what is named here can run code on this"):
        gradestack.run(whole, output="out", registry=registry)
    assert not (here / "out").exists()


NOBODY = "tcp://127.0.0.1:9"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "far.yaml", "--set", f"engine.address={NOBODY}"),
        ("run", "far.yaml", "--set", f"engine={{kind: dask, address: '{NOBODY}'}}"),
        ("run", "near.yaml", "--allow-code"),
        ("grade", "runs.jsonl", "--engine", "dask", "--set", f"engine.address={NOBODY}"),
    ],
    ids=["option", "engine", "allowed", "grade"],
)
def test_an_address_of_the_command_line_is_connected_to(command, suite, stranger, here, arguments):
    (here / "near.yaml").write_text((here / suite).read_text().replace(stranger[1], NOBODY))
    said = command(*arguments, "--set", "engine.patience=0.2")
    assert said.code == 2
    assert f"error: engine: no dask scheduler answers at {NOBODY}" in said.err


def test_another_engine_needs_no_address(command, suite, here):
    assert command("run", suite, "--engine", "serial", "-o", "out").code == 0
    assert (here / "out/summary.json").exists()


def test_an_address_in_a_run_directory_is_not_connected_to(command, suite, here, stranger):
    """Graded again, reported or compared, a run's header names an engine for people to read."""
    for out in ("out", "twin"):
        assert command("run", suite, "--engine", "serial", "-o", out).code == 0
    header = json.loads((here / "out/header.json").read_text())
    (engine,) = (each for each in header["components"] if each["kind"] == "engine")
    engine |= {"name": "dask", "options": {"address": stranger[1]}}
    (here / "out/header.json").write_text(json.dumps(header))
    for arguments in (
        ("grade", "out", "-o", "again"),
        ("run", suite, "--engine", "serial", "--cached", "out", "-o", "cached"),
        ("report", "out"),
        ("compare", "out", "twin"),
        ("show", "out", "a"),
        ("index", "."),
    ):
        assert command(*arguments).code == 0, arguments
    with pytest.raises(BlockingIOError):
        stranger[0].accept()
