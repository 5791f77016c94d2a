"""The family's default metric stack."""

from __future__ import annotations

from typing import Any


def deepfabric() -> dict[str, Any]:
    """Return the suite fragment: one grader under the key ``tools``, with its default aggregators."""
    return {"graders": {"tools": {"kind": "deepfabric"}}}
