"""header.json: what ran, with which versions and options, on which files."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gradestack._version import __version__
from gradestack.grading.plan import Stage
from gradestack.report import GENERATOR
from gradestack.rundir.fingerprint import files_below
from gradestack.suites.published import jsonable
from gradestack.suites.spec import Suite

_LARGE = 32 << 20
"""Bytes of input from which checksums are computed beside the grading."""
_BESIDE = """\
import hashlib, json, os, sys
parent, found = os.getppid(), []
for path in json.load(sys.stdin):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            if os.getppid() != parent:
                os._exit(1)
    found.append(digest.hexdigest())
json.dump(found, sys.stdout)
"""


class Checksums:
    """SHA-256 of every input file; of large inputs computed in a process of its own while the run goes on.

    A process, not a thread: engines fork, which is safe only while there is one thread.
    """

    def __init__(self, suite: Suite) -> None:
        inputs = [*suite.inputs.data, *([suite.inputs.dataset] if suite.inputs.dataset else [])]
        self._paths = [path for given in inputs for path in files_below(given.path)]
        self._process: subprocess.Popen[bytes] | None = None
        if sys.executable and sum(path.stat().st_size for path in self._paths) >= _LARGE:
            command = [sys.executable, "-I", "-S", "-c", _BESIDE]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            paths = json.dumps([str(path.resolve()) for path in self._paths]).encode()
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own code
                    command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True
                )
                with self._process.stdin as stdin:  # type: ignore[union-attr]
                    stdin.write(paths)
            except OSError:  # then they are computed at the end
                return

    def _computed(self) -> list[str] | None:
        if self._process is None:
            return None
        process, self._process = self._process, None
        with process:
            out = process.stdout.read() if process.stdout is not None else b""
        return json.loads(out) if process.returncode == 0 else None

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield path, size and checksum of every input file."""
        found = self._computed()
        for number, path in enumerate(self._paths):
            if found is not None:
                checksum = found[number]
            else:
                with path.open("rb") as file:
                    checksum = hashlib.file_digest(file, "sha256").hexdigest()
            yield {"path": str(path.resolve()), "bytes": path.stat().st_size, "sha256": checksum}

    def close(self) -> None:
        """Stop computing what nobody needs any more."""
        if self._process is not None:
            self._process.kill()
            with self._process:
                self._process = None


def peak_memory() -> dict[str, int]:
    """Return the most memory this process has had at once, and the largest of its workers, in bytes."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return {}
    unit = 1 if sys.platform == "darwin" else 1024
    kinds = {"main": resource.RUSAGE_SELF, "largest_worker": resource.RUSAGE_CHILDREN}
    return {name: resource.getrusage(kind).ru_maxrss * unit for name, kind in kinds.items()}


def header(
    suite: Suite, started: str, checksums: Checksums, timings: Mapping[str, Any], *, rows: bool
) -> dict[str, Any]:
    """Return the content of header.json, the one file whose bytes depend on time, place and machine."""
    stages: list[Stage] = [suite.reader, *suite.graders, *(metric.stage for metric in suite.metrics)]
    stages += [*suite.exporters, suite.engine, *suite.reports]
    return {
        "generator": GENERATOR,
        "suite_name": suite.name,
        "timestamp": started,
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "profile": suite.profile,
        "rows": rows,
        "components": [
            {
                "kind": stage.kind,
                "key": stage.key,
                "name": stage.name,
                "version": stage.version,
                "distribution": stage.distribution,
                "options": {key: jsonable(each) for key, each in stage.options.items() if not key.startswith("_")},
            }
            for stage in stages
        ],
        "code": [{"path": file, "sha256": checksum} for file, checksum in suite.files.digests.items()],
        "inputs": list(checksums.entries()),
        "timings": dict(timings),
        "peak_memory": peak_memory(),
    }
