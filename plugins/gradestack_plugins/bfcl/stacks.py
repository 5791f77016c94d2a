"""The default metric stack of BFCL files."""

from __future__ import annotations

from typing import Any

from gradestack import DataError, Inputs
from gradestack_plugins.bfcl.reader import Bfcl


def bfcl(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: recorded verdicts where there are score files, partial credit where a file has none.

    Args:
        inputs: The files.
    """
    verdicts, partial = {"valid": {"kind": "bfcl_valid"}}, {"partial": {"kind": "tau_partial"}}
    try:
        index = Bfcl().index(inputs) if inputs is not None else None
    except DataError:  # the reader will say so
        index = None
    if index is None:
        return {"graders": {**verdicts, **partial}}
    files = sum(map(len, index.files.values()))
    scored = len(index.side.scores)
    return {"graders": {**(verdicts if scored else {}), **(partial if scored < files else {})}}
