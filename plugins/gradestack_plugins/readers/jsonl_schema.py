"""JSON Schema of one line of the ``jsonl`` form."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from gradestack.jsonio import loads

VERSIONS = (1, 2)
"""Versions of the form. What has no version is of the first, with all that the second added. Some things differ: null
arguments of an expected call are none in the first, and not compared in the second; details of calls made that are of
another kind than the form's, and unknown keys of expected calls, are left out in the first, and refused in the second;
arguments of an expected call that are neither an object nor text cannot be decoded in the first, and are refused in
the second."""
SAMPLE_SCHEMA: Final[dict[str, Any]] = loads(Path(__file__).with_name("sample_schema.json").read_bytes())
