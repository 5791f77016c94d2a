"""Labels, and records and samples that carry them."""

from gradestack import Expectation, Sample

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
PROFILES = ("documented", "upstream")


def judge(uuid, label, raw="{}", **more):
    return {"uuid": uuid, "predicted_label": label, "judge_raw": raw, **more}


def sample(gold, label, **more):
    return Sample(id="x", expected=Expectation(label=gold), label=label, **more)
