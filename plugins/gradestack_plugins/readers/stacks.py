"""Stacks of data of one's own: graders by what the data expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, Literal

from gradestack import JSON, VERDICT_NAMES, DataError, Sample, compile_later
from gradestack.jsonio import is_number
from gradestack_plugins.readers.chat.unread import HELP, NOT_READ, unread_text

_FAULTS: Final = compile_later(r"error|fail|exception|timeout|timed_out|violat|toxic|hallucinat")
"""Words in the names of recorded values that are true where something went wrong."""
_STACKS: Final = {
    "calls": "tool_calls",
    "text": "exact_match",
    "label": "classification",
    "tool": "classification",
    "no_call": "tool_calls",
}
"""Kind of expectation -> stack, the first that applies."""
_WITHOUT: Final = "graded without a reference. To compare with expected calls: --dataset FILE"
_FIRST: Final = 1000
_MOST_FIGURES: Final = 5
_SHOWN: Final = 3


def expectations(sample: Sample) -> set[str]:
    """Return the kinds of what a sample expects.

    ``calls``, ``text``, ``label``, a ``tool``, or ``no_call``.

    One expected call whose arguments are not compared, and at most one made without any, are names
    of a ``tool``.
    """
    expected = sample.expected
    kinds = set[str]()
    if expected.calls is not None or expected.alternatives:
        kinds.add(_kind_of_calls(sample))
    has_labels = expected.label is not None and sample.label is not None
    if expected.text is not None and not (has_labels and sample.text is None):
        kinds.add("text")
    elif expected.label is not None:
        kinds.add("label")
    return kinds


def _kind_of_calls(sample: Sample) -> str:
    """Return whether a sample expects calls, the name of a tool, or no call."""
    if sample.expected.alternatives:
        return "calls"
    expected = sample.expected.calls or ()
    predicted = sample.calls or ()
    if not expected:
        return "no_call"
    if len(expected) > 1 or len(predicted) > 1 or any(call.arguments for call in predicted):
        return "calls"
    arguments = expected[0].arguments
    is_name = arguments is None and not expected[0].rules
    return "tool" if is_name else "calls"


def auto(
    provides: Collection[str] | None = None, samples: Callable[[], Iterable[Sample]] = tuple
) -> dict[str, Any]:
    """Return the stack for what samples expect: calls, else texts, else labels.

    Without expectations it is ``recorded`` where each run has a verdict on record, or where nothing
    but scores is on record. Else it is ``trajectory``, which needs no reference.
    """
    kinds = Counter[str]()
    scores = RecordedScores()
    unread = Counter[str]()
    on_record = set[str]()
    n_samples = 0
    are_calls_known = False
    for sample in samples():
        n_samples += 1
        kinds.update(expectations(sample))
        scores.add(sample)
        on_record |= recorded_in(sample)
        are_calls_known = are_calls_known or sample.calls is not None
        remarks = sample.remarks.items()
        ns_by_kind = {kind: n for kind, n in remarks if kind.startswith(NOT_READ)}
        unread.update(ns_by_kind)
    is_nothing_read = bool(unread) and not are_calls_known and n_samples < _FIRST
    stacks = _STACKS.items()
    stack = next((stack for kind, stack in stacks if kinds[kind]), None)
    if stack is None and (scores.verdict is not None or (scores.names and not are_calls_known)):
        stack = "recorded"
    if is_nothing_read and stack in (None, "tool_calls"):
        raise DataError(f"{unread_text(unread)}: of no run the calls are known", HELP)
    if stack is not None:
        return {"stack": stack}
    if n_samples < _FIRST:
        where = "the data"
    else:
        where = f"the {n_samples:,} records looked at"
    notes = [f"No expectations in {where}: {_WITHOUT}"]
    if scores.names:
        shown = ", ".join(scores.names[:_SHOWN])
        notes.append(f"Recorded scores ({shown}) are in no figure: --stack recorded")
    return {"stack": "trajectory", **trajectory_of(provides, on_record), "notes": notes}


def trajectory(
    provides: Collection[str] | None = None, samples: Callable[[], Iterable[Sample]] = tuple
) -> dict[str, Any]:
    """Return the stack.

    How tool calls went, whether they keep a mild policy, loops and usage. Where the first runs
    record their tools, whether calls keep the schemas. Where exit codes of shells are recorded, how
    many commands ended non-zero, apart from failed calls.
    """
    recorded = set[str]()
    if provides is None or "calls" in provides:
        for sample in samples():
            recorded |= recorded_in(sample)
    return trajectory_of(provides, recorded)


def trajectory_of(provides: Collection[str] | None, recorded: Collection[str]) -> dict[str, Any]:
    """Return the stack for runs that record what ``recorded_in`` names."""
    graders: dict[str, dict[str, Any]] = {
        "tool_success": {"kind": "tool_success"},
        "tool_schema": {"kind": "tool_schema"},
        # what is no good anywhere; everything else is for users to say
        "tool_policy": {"kind": "tool_policy", "repeats": {"in_a_row": 3}, "after_final": False},
        "repeats": {"kind": "repeats"},
        "usage": {"kind": "usage"},
    }
    known = {"calls", "tools"} if provides is None else set(provides)
    if "calls" not in known:
        graders = {"usage": graders["usage"]}
        recorded = ()
    has_tools = not recorded or "tools" in recorded
    if "tool_schema" in graders and not ("tools" in known and has_tools):
        del graders["tool_schema"]
    commands: dict[str, str] = {}
    if "exit_code" in recorded:
        commands = {"Commands that ended non-zero": "tool_success.tool_outcomes.nonzero_commands"}
    if "day" in recorded:
        commands |= _figures_of_sessions(recorded)
    figures = {
        "Successful calls": "tool_success.tool_outcomes.success_rate",
        **commands,
        "Schema-valid calls": "tool_schema.call_validity.valid_share",
        "No pointless repeats, no call after the answer": "tool_policy.policy_checks.kept_rate",
        "Runs that loop": "repeats.loops.loop_rate",
        "Steps per run": "usage.mean",
    }
    shown = {label: path for label, path in figures.items() if path.partition(".")[0] in graders}
    outcome = "tool_success" if "tool_success" in graders else "none"
    return {
        "graders": graders,
        "outcome": outcome,
        "headline": {"figures": shown},
    }


_AMOUNTS = {"input_tokens": "Input tokens", "output_tokens": "Output tokens", "cost_usd": "Cost"}
"""Amount of a usage -> its label."""


def recorded_in(sample: Sample) -> set[str]:
    """Return the names of what a run records: a run at all, tools, exit codes, a day, amounts."""
    names = {"runs"}
    if sample.tools:
        names.add("tools")
    calls = sample.calls or ()
    if any(call.exit_code is not None for call in calls):
        names.add("exit_code")
    if "day" in sample.facets:
        names.add("day")
    if sample.usage is not None:
        names |= {name for name in _AMOUNTS if getattr(sample.usage, name) is not None}
    return names


def _figures_of_sessions(recorded: Collection[str]) -> dict[str, str]:
    """Return the figures of sessions that a person worked through: how often, and how much."""
    outcomes, totals = "tool_success.tool_outcomes", "usage.usage_totals"
    figures = {
        "Failed calls": f"{outcomes}.failed_rate",
        "Failed calls before a success of the same tool": f"{outcomes}.recovered_rate",
    }
    for name in filter(recorded.__contains__, _AMOUNTS):
        figures[_AMOUNTS[name]] = f"{totals}.{name}.total"
    return figures


def exact_match() -> dict[str, Any]:
    """Return the stack that compares answers with expected texts."""
    return {
        "graders": {"text": {"kind": "exact_match"}},
        "outcome": "text",
        "headline": {"figures": {"Exact matches": "text.mean"}},
    }


def classification() -> dict[str, Any]:
    """Return the stack that compares labels, or names of tools."""
    figures = {
        "Accuracy": "label.classification.accuracy",
        "Macro-F1": "label.classification.macro_f1",
    }
    return {
        "graders": {"label": {"kind": "label"}},
        "outcome": "label",
        "headline": {"figures": figures},
    }


class RecordedScores:
    """Scores on record, by name, and the name of the verdict on a run.

    A verdict is a boolean, or 0 or 1, in every run that has it: one of a usual name, else a
    boolean, else the first score where all scores are 0 or 1. Any other score is a figure that
    passes and fails nothing.
    """

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._forms: dict[str, set[str]] = {}
        for sample in samples:
            self.add(sample)

    def add(self, sample: Sample) -> None:
        """Take the scores of one more run into account."""
        for name, value in sample.recorded.items():
            if (form := form_of_score(value)) is not None:
                self._forms.setdefault(name, set()).add(form)

    @property
    def names(self) -> list[str]:
        """The names of all scores, in the order in which they were met."""
        return list(self._forms)

    @property
    def verdict(self) -> str | None:
        """The name of the verdict; None without any."""
        binary = [name for name, forms in self._forms.items() if "number" not in forms]
        for name in VERDICT_NAMES:
            if name in binary:
                return name
        candidates = [name for name in binary if not _FAULTS.search(name.lower())]
        booleans = [name for name in candidates if self._forms[name] == {"boolean"}]
        if booleans:
            return booleans[0]
        if candidates and len(binary) == len(self._forms):
            return candidates[0]
        return None


def form_of_score(value: JSON) -> Literal["boolean", "binary", "number"] | None:
    """Return whether a recorded value is a boolean, 0 or 1, or another number.

    None for anything that is no score.
    """
    if isinstance(value, bool):
        return "boolean"
    if not is_number(value):
        return None
    return "binary" if value in (0, 1) else "number"


def recorded(samples: Callable[[], Iterable[Sample]] = tuple) -> dict[str, Any]:
    """Return the stack of the scores that were recorded with each run.

    The verdict is the outcome; other scores are figures. Without a verdict nothing has passed.
    Where tasks have several trials, pass^k and pass@k of the verdict are figures, too.
    """
    first = list(samples())
    scores = RecordedScores(first)
    verdict, names = scores.verdict, scores.names
    keys = {name: name for name in sorted(names, key=lambda name: name != verdict)}
    if "recorded" not in keys and (len(names) == 1 or verdict in VERDICT_NAMES):
        keys[verdict or names[0]] = "recorded"
    graders = {key: {"kind": "recorded", "metric": name} for name, key in keys.items()}
    label = "Score as recorded" if verdict is None else "Passed as recorded"
    labels = {"recorded": label}
    figures = {labels.get(key, key): f"{key}.mean" for key in list(graders)[:_MOST_FIGURES]}
    outcome = "none" if graders else "recorded"
    if verdict is not None:
        outcome = keys[verdict]
    stack: dict[str, Any] = {
        "graders": graders or {"recorded": {"kind": "recorded"}},
        "outcome": outcome,
    }
    if verdict is not None and _have_trials(first):
        stack["metrics"] = {name: {"of": outcome} for name in _OF_TRIALS.values()}
        figures |= {label: f"{outcome}.{name}" for label, name in _OF_TRIALS.items()}
    stack["headline"] = {"figures": figures or {"Score as recorded": "recorded.mean"}}
    return stack


_OF_TRIALS: Final = {"pass^k": "pass_hat_k", "pass@k": "pass_at_k"}
"""Label -> metric of tasks with several trials."""


def _have_trials(samples: Iterable[Sample]) -> bool:
    """Return whether a model ran a task more than once, under names that tell the runs apart."""
    runs: dict[tuple[str | None, str], set[int | str]] = {}
    for sample in samples:
        if sample.run is not None:
            runs.setdefault((sample.model, sample.id), set()).add(sample.run)
    return any(len(names) > 1 for names in runs.values())


def scores(samples: Callable[[], Iterable[Sample]] = tuple) -> dict[str, Any]:
    """Return ``recorded`` where samples have recorded scores, else ``auto``."""
    have_scores = _have_scores(samples())
    return {"stack": "recorded" if any(have_scores) else "auto"}


def _have_scores(samples: Iterable[Sample]) -> Iterator[bool]:
    for sample in samples:
        yield bool(RecordedScores([sample]).names)
