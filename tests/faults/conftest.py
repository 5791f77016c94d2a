"""Recordings whose records say what is to go wrong when they are graded, and what a run left
behind.
"""

import json
import os
from pathlib import Path

import pytest

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "conftest.yaml")


FUNCTION = DATA["function"]


class Recording:
    """Several files of records, each file a shard, and a grader of its own."""

    files, records = 10, 30

    def __init__(self, folder):
        self.folder = folder
        grader_path = folder / "grader.py"
        grader_path.write_text(FUNCTION)
        self.count = self.files * self.records
        self.do({})

    def do(self, what):
        """Write the files; ``what`` maps the number of a record to what happens at it."""
        for file in range(self.files):
            numbers = range(file * self.records, (file + 1) * self.records)
            rows = []
            for n in numbers:
                predicted = str((n % 5) / 4)
                facets = {"do": what.get(n)}
                rows.append({"id": f"t{n}", "predicted": predicted, "facets": facets})
            (self.folder / f"{file:02}.jsonl").write_text(
                "".join(json.dumps(row) + "\n" for row in rows)
            )

    def suite(self, engine, **more):
        """Return a suite over the files of the folder, for an engine."""
        grader_path = self.folder / "grader.py"
        file = str(grader_path)
        grader = {
            "kind": "python_function",
            "file": file,
            "name": "grade",
        }
        paths = [str(self.folder / "*.jsonl")]
        target = {"paths": paths}
        base = {
            "name": "faults",
            "target": target,
            "graders": {"g": grader},
            "reports": [],
            "engine": engine,
        }
        return {**base, **more}

    def run(self, engine, **more):
        return gradestack.run(
            self.suite(engine), output=self.folder / "out", allow_code=True, **more
        )


@pytest.fixture
def recording(tmp_path):
    """300 records in ten files; nothing goes wrong yet."""
    (tmp_path / "data").mkdir()
    return Recording(tmp_path / "data")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The directory for temporary files, of this test alone."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """Return a function that lists the ids of all processes started by this test."""
    mark = f"GRADESTACK_FAULT_TEST={tmp_path}".encode()
    monkeypatch.setenv("GRADESTACK_FAULT_TEST", str(tmp_path))

    def processes():
        collected = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    environ_folder = entry / "environ"
                    if mark in environ_folder.read_bytes().split(b"\0"):
                        number = int(entry.name)
                        collected.append(number)
                except OSError:
                    continue
        return collected

    return processes
