"""Labels, and records that carry them."""

import json

LABELS = ("direct", "tool_call", "request_for_info", "cannot_answer")
VARIANTS = ("norm_bytes", "raw", "norm_tokens", "norm_chars")


def judge(uuid, label, raw="{}", **more):
    return {"uuid": uuid, "predicted_label": label, "judge_raw": raw, **more}


def fallback(uuid, label):
    """A judge's record whose parser failed on a well-formed answer."""
    raw = json.dumps({"classification": label})
    return judge(uuid, "cannot_answer", raw, judge_fallback_to_cannot_answer=True)


def mcq(uuid, label="direct", **more):
    index = 0
    if label == "invalid":
        index = -1
    record = {"uuid": uuid, "predicted_label": label, "predicted_index": index}
    return {**record, "raw_mcq_output": "", **more}


def logprob(uuid, labels="direct", **more):
    """A record of log-probability scoring; one label stands for all variants."""
    if isinstance(labels, str):
        of_variants = [labels] * 4
    else:
        of_variants = labels
    pairs = zip(VARIANTS, of_variants, strict=True)
    named = {f"predicted_label_{v}": label for v, label in pairs}
    return {"uuid": uuid, **named, "mode": "llama_scoring", **more}


MAKERS = {"judge": judge, "fallback": fallback, "mcq": mcq, "logprob": logprob}


def record_of(case):
    """Return a record: of one of the makers, by its name, or as it stands."""
    more = dict(case)
    for kind, make in MAKERS.items():
        if kind in more:
            return make(*more.pop(kind), **more)
    return more
