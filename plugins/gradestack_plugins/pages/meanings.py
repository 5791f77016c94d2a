"""Meanings of figures, in a line or two with an example, for a tap on their names."""

from __future__ import annotations

_MEANINGS = {
    "outcome": "The share of runs that pass. Example: 42 of 100 runs pass, so it is 42.0%.",
    "pass_hat_k": (
        "How often a task is solved in all of k trials, drawn from those recorded. "
        "Example: a task solved in 3 of 4 trials counts 0 for k = 4, and one half for k = 2."
    ),
    "pass_at_k": (
        "How often at least one of k trials of a task is solved. "
        "Example: a task solved in 1 of 4 trials counts 1 for k = 4, and one half for k = 2."
    ),
    "f1": (
        "Made calls against expected ones, the mean of precision and recall. "
        "Example: 2 calls expected, 3 made, 2 of them right: 80.0%."
    ),
    "precision": (
        "The share of made calls that were expected. Example: 3 made, 2 expected: 66.7%."
    ),
    "recall": "The share of expected calls that were made. Example: 2 of 2 made: 100.0%.",
    "argument_f1": (
        "The same over arguments of calls. Example: 4 arguments expected, 4 given, 3 equal: 75.0%."
    ),
    "success_rate": (
        "The share of calls whose result was no error. Example: 19 of 22 calls: 86.4%."
    ),
    "valid_share": (
        "The share of calls that fit the schema of their tool. Example: 22 of 22: 100.0%."
    ),
    "kept_rate": (
        "The share of runs without the same call several times in a row, and without a call "
        "after the answer. Example: 9 of 10 runs: 90.0%."
    ),
    "loop_rate": (
        "The share of runs that make the same calls again and again. Example: 1 of 10: 10.0%."
    ),
    "usage.mean": (
        "How many steps a run takes. Example: runs of 3, 4 and 2 steps take 3 on average."
    ),
    "partial.mean": (
        "How much of the expected calls a run made right. "
        "Example: 3 of 4 expected calls right: 75.0%. A run can be solved with less."
    ),
    "macro_f1": (
        "F1 of each behaviour, averaged, so that rare ones count as much as frequent ones. "
        "Example: F1 of 80%, 60% and 40%: 60.0%."
    ),
    "macro_f1_no_direct": "Macro-F1 without the behaviour “direct”.",
    "tool_hallucination_rate": (
        "The share of questions without any tool at which the model calls one."
    ),
    "answer_hallucination_rate": (
        "The share of questions that the model answers although it cannot know the answer."
    ),
    "parameter_hallucination_rate": (
        "The share of questions that lack a parameter at which the model calls a tool."
    ),
    "stability_at_k": (
        "The share of questions answered in the same way in all k runs. "
        "Example: 2 of 5 questions: 40.0%."
    ),
    "mean_consistency_at_k": (
        "The share of runs with the most frequent answer, averaged over questions. "
        "Example: 4 of 5 runs: 80.0%."
    ),
    "mean_flip_rate": (
        "How often the answer changes from one run to the next. "
        "Example: 2 changes in 5 runs, of 4 possible ones: 50.0%."
    ),
    "mode_correct_rate": "The share of questions whose most frequent answer is right.",
    "unweighted": "The mean of the categories, whatever their numbers of questions.",
}
"""Name of a figure, or the last parts of its path -> its meaning."""


def meaning_of(path: str, formula: str) -> str:
    """Return the meaning of a figure.

    Args:
        path: Its path, such as ``reward.pass_hat_k.4``; the last parts that are known count.
        formula: What it is computed as; alone where nothing else is known.
    """
    parts = [part for part in path.split(".") if not part.isdecimal()]
    names = (".".join(parts[-2:]), parts[-1] if parts else "")
    known = next((_MEANINGS[name] for name in names if name in _MEANINGS), "")
    rule = f"Computed as: {formula}." if formula else ""
    return " ".join(filter(None, (known, rule)))
