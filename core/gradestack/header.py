"""header.json: what ran, with which versions and options, on which files."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from gradestack._version import __version__
from gradestack.api import Input
from gradestack.published import jsonable
from gradestack.store import GENERATOR
from gradestack.suitespec import Stage, Suite


def _fingerprint(given: Input) -> Iterator[dict[str, Any]]:
    files = [given.path] if given.path.is_file() else sorted(p for p in given.path.rglob("*") if p.is_file())
    for path in files:
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        yield {"path": str(path.resolve()), "bytes": path.stat().st_size, "sha256": checksum}


def header(suite: Suite, started: datetime, seconds: float) -> dict[str, Any]:
    """Return the content of header.json, the one file whose bytes depend on time, place and machine."""
    stages: list[Stage] = [suite.reader, *suite.graders, *(metric.stage for metric in suite.metrics)]
    stages += [*suite.exporters, suite.engine, *suite.reports]
    inputs = [*suite.inputs.data, *([suite.inputs.dataset] if suite.inputs.dataset else [])]
    return {
        "generator": GENERATOR,
        "suite_name": suite.name,
        "timestamp": started.astimezone(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "profile": suite.profile,
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
        "inputs": [entry for given in inputs for entry in _fingerprint(given)],
        "timings": {"seconds": round(seconds, 3)},
    }
