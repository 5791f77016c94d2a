"""Labels, and the records of sweeps and datasets that carry them."""

from gradestack import figures

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
D, T, R, C, I = (*LABELS, "invalid")  # noqa: E741


def record(uuid, runs, gold=T, **more):
    return {"uuid": uuid, "gold_label": gold, "n_runs": len(runs), "run_labels": runs, **more}


def item(uuid, gold=T):
    return {"uuid": uuid, "question": "q", "correct_answer": gold}


def stability(graded, **options):
    names = {"task": "id", "run": "run", "model": "model", "facets": "facets"}
    rows = []
    for key, grade in graded:
        rows.append({name: getattr(key, of) for name, of in names.items()} | {"grade": grade})
    return figures({"stability": options}, rows)["stability"]
