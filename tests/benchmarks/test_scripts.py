"""Every benchmark script runs, at a tiny size; nothing is said about the figures."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.outcomes import data

DATA = data(__file__, "scripts.yaml")


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ROWS = DATA["rows"]


def table_of(name, folder, *options):
    output = folder / "table.json"
    command = [
        sys.executable,
        str(BENCHMARKS / f"{name}.py"),
        "--json",
        str(output),
        "--records=60",
        "--rounds=1",
    ]
    done = subprocess.run(
        [*command, *options], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    text = output.read_text(encoding="utf-8")
    return json.loads(text)


def without_parsers(notes):
    """Return the notes that tell of failures other than a parser of the reference that is not
    installed.
    """
    return [
        note for note in notes if "no figure" in note and "No module named 'orjson'" not in note
    ]


@pytest.mark.proof
@pytest.mark.parametrize("name", sorted(ROWS))
def test_a_script_makes_its_table(name, tmp_path):
    """It has its rows, and no item failed but for a reference parser that is not installed."""
    table = table_of(name, tmp_path)
    row_count = len(table["rows"])
    assert row_count == ROWS[name]
    assert without_parsers(table["notes"]) == []
    row_counts = {len(row) for row in table["rows"]}
    column_count = len(table["columns"])
    assert row_counts == {column_count}


def test_a_script_prints_its_table(tmp_path):
    startup_path = BENCHMARKS / "startup.py"
    command = [sys.executable, str(startup_path), "--rounds", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "gradestack --version" in done.stdout
    assert "against click" in done.stdout


def test_a_peer_that_cannot_be_installed_has_a_reason_and_no_figure(bench, monkeypatch, tmp_path):
    """The other rows are not lost with it."""
    frame = bench("frame")
    peers = bench("peers")

    def refused(_command):
        raise frame.ChildFailed("not installed: ERROR: nothing of that name")

    monkeypatch.setattr(peers, "_quietly", refused)
    cache = tmp_path / "cache"
    options = frame.Options(records=40, rounds=1, seed=7, place=tmp_path, cache=cache)
    table = peers.measure(options)
    figures = {row[0]: row[2] for row in table.rows}
    names = [name for name, seconds in figures.items() if seconds == "–"]
    assert names == list(peers.PEERS)
    notes = [note for note in table.notes if "not installed: ERROR: nothing of that name" in note]
    note_count = len(notes)
    assert note_count == 4
    verdicts = {row.verdict for row in table.reach}
    assert verdicts == {"not measured: not installed: ERROR: nothing of that name"}


def test_peers_get_the_calls_of_a_recording(bench, workload, monkeypatch, tmp_path):
    """Arguments that are not JSON are None; right records have equal lists."""
    pytest.importorskip("orjson", reason="peers decode with orjson")
    peer_side_folder = BENCHMARKS / "peer_side"
    monkeypatch.syspath_prepend(str(peer_side_folder))
    recording_path = tmp_path / "recording.jsonl"
    workload.write(recording_path, 300)
    kinds = [kind for _, kind in workload.records(300)]
    records = list(bench("side_common").records(tmp_path / "recording.jsonl", 250))
    assert len(records) == 250
    for record, kind in zip(records, kinds, strict=False):
        assert (record.made == record.expected) == (kind == "right")
        expected = [arguments for _, arguments in record.made]
        assert (None in expected) == (kind == "broken_arguments")


def test_a_script_that_fails_costs_no_other_its_figures(bench, tmp_path):
    collect = bench("collect")
    frame = bench("frame")
    reach = frame.Reach(what="speed", must=1, aim=2, measured=1.5)
    table = frame.Table(title="Good", columns=["a"], rows=[["1.5"]], reach=[reach])
    good = collect.Section(name="good", title="Good", seconds=1, table=table)
    bad = collect.run("no_such_script", tmp_path, tmp_path, [])
    assert bad.failed.startswith("exit code 2")
    text = collect.results([bad, good], "0.1", "A remark.")
    assert "| speed | ≥ 1 | ≥ 2 | 1.50 | must |" in text
    assert "- speed: 1.50, aim ≥ 2" in text
    assert "- `no_such_script` failed: exit code 2" in text
    assert "### Good" in text
    assert "A remark." in text
    assert str(tmp_path) not in text


def test_all_scripts_are_collected_and_described(bench):
    """A new script is run by ``make bench`` and has its row in the documentation."""
    collect = bench("collect")
    helpers = {
        "workload",
        "formats",
        "case_files",
        "by_hand",
        "chromium",
        "frame",
        "jobs",
        "collect",
        "presets",
        "coverage",
        "trace",
        "mutants",
    }  # the last four time nothing
    paths = BENCHMARKS.glob("*.py")
    stems = {path.stem for path in paths}
    scripts = stems - helpers
    expected = {*collect.SCRIPTS, *collect.PRINTING}
    assert scripts == expected
