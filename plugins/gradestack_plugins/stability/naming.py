"""What a sweep is called, and which evaluation method it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def kind_of(record: Mapping[str, Any]) -> str:
    """Return the evaluation method: as the record says, else by the fields it has."""
    named = str(record.get("eval_type") or record.get("ckpt_name") or "").lower()
    if "judge" in named or (not named and "run_judge_raw_outputs" in record):
        return "llm_judge"
    return "mcq_logprob" if "logprob" in named else "mcq"


def sweep_name(record: Mapping[str, Any], stem: str) -> str:
    """Return the name of the sweep a record belongs to.

    Its ``ckpt_name``, else ``mcq_stability_k=5_T=0.7`` and the like, else ``stem``.
    """
    name = record.get("ckpt_name")
    if isinstance(name, str) and name:
        return name
    kind, k, temperature = kind_of(record), record.get("n_runs"), record.get("temperature")
    mark = "Ttarget" if kind == "llm_judge" else "T"
    return f"{kind}_stability_k={k}_{mark}={temperature}" if k is not None and temperature is not None else stem
