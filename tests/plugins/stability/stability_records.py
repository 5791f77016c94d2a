"""Labels, and the records of sweeps and datasets that carry them."""

from __future__ import annotations

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
PROFILES = ("documented", "upstream")
D, T, R, C, I = (*LABELS, "invalid")  # noqa: E741


def record(uuid, runs, gold=T, **more):
    return {"uuid": uuid, "gold_label": gold, "n_runs": len(runs), "run_labels": runs, **more}


def item(uuid, gold=T):
    return {"uuid": uuid, "question": "q", "correct_answer": gold}
