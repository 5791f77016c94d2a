"""Tests of the exporters that run: those that are named, and those that come with the reader."""

import pytest

import gradestack


@pytest.fixture
def foreign(toys):
    def make(**targets):
        more = []
        for name, target in targets.items():
            more.append(toys.component("exporter", name, target))
        registry = toys.make_registry()
        offer = toys.offer(*more)
        extra = [("strange", offer)]
        plugins = gradestack.discover(extra=extra, limit="").plugins
        strange = plugins[-1]
        return registry.extended(strange)

    return make


def native(report):
    folder = report.path / "native"
    if folder.is_dir():
        paths = folder.iterdir()
        return sorted(path.name for path in paths)
    return []


def test_an_exporter_of_another_plugin_does_not_run_unasked(run_lines, record, foreign):
    """Its faults cost a run of somebody else's format nothing, not even where it cannot
    be loaded.
    """
    for targets in ({"echo": "Echo"}, {"sick": "BreaksAtEnd"}, {"sick": "Missing"}):
        report = run_lines([record("a", 1.0)], using=foreign(**targets))
        assert native(report) == []
        assert report.exit_code == 0
        warnings = report.summary["warnings"]
        assert warnings == []


def test_an_exporter_runs_when_the_suite_names_it(run_lines, record, foreign):
    using = foreign(echo="Echo")
    for reference in ("echo", {"kind": "echo"}):
        report = run_lines([record("a", 1.0)], using=using, exporters=[reference])
        assert native(report) == ["echo.json", "figures.json"]
        config = report.summary["config"]
        assert config["exporters"] == [reference]
        components = report.header["components"]
        last_component = components[-2]
        assert {"kind": "exporter", "name": "echo"}.items() <= {**last_component}.items()


def test_an_exporter_runs_when_the_command_line_or_a_call_names_it(here, command, foreign):
    using = foreign(echo="Echo")
    command.use(using)
    result = command("run", "suite.yaml", "--export", "echo", "-o", "out", "-q")
    assert result.code == 0
    echo_path = here / "out/native/echo.json"
    assert echo_path.exists() is True
    report = gradestack.grade_files(
        "runs.jsonl", graders=["toy"], exporters="echo", output="two", registry=using
    )
    assert native(report) == ["echo.json", "figures.json"]
    assert command("run", "suite.yaml", "-o", "three", "-q").code == 0
    native_folder = here / "three/native"
    assert not native_folder.exists()


def test_a_broken_exporter_is_left_out_unless_it_is_named(run_lines, record, foreign, toys):
    """Named, it is an error of its plugin; unasked, it costs a warning."""
    with pytest.raises(gradestack.PluginError, match="exporter 'sick' of plugin strange"):
        run_lines([record("a", 1.0)], using=foreign(sick="Missing"), exporters=["sick"])
    component = toys.component("exporter", "sick", "Missing")
    registry_beside = toys.make_registry(component)
    report = run_lines([record("a", 1.0)], output="beside", using=registry_beside)
    assert report.exit_code == 0
    assert "broken" not in report.summary
    name = f"exporter sick (gradestack {gradestack.__version__})"
    message = f"{name} is broken and left out: exporter 'sick' of plugin "
    warnings = report.summary["warnings"]
    assert warnings[0].startswith(message)
