"""Rules of ADK, agentevals, Azure, deepeval, MLflow, pydantic-evals, ragas, tau2, ToolSandbox and
waza.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain, starmap
from typing import Any, Final

from gradestack import ExpectedCall, Sample
from gradestack_plugins.tool_calls.diff import Expected, Made, arguments_of, is_json
from gradestack_plugins.tool_calls.matching import all_fit
from gradestack_plugins.tool_calls.published.preset import (
    RAISES,
    NotExpressible,
    Raised,
    Rule,
    Verdict,
    by_turn,
    precision_recall_f1,
    refuse_undecodable,
    yes_or_no,
)

Calls = Sequence[Expected]
Done = Sequence[Made]
Call = Expected | Made
Arguments = Mapping[str, Any]


def _same(expected: Expected, made: Made) -> bool:
    """Names and arguments are equal as Python has it: True = 1 = 1.0."""
    return expected.name == made.name and expected.arguments == made.arguments


def _same_name(expected: Expected, made: Made) -> bool:
    return expected.name == made.name


def _names(calls: Sequence[Call]) -> list[str]:
    return [call.name for call in calls]


def _is_subsequence(part: Sequence[Any], sequence: Sequence[Any]) -> bool:
    rest = iter(sequence)
    return all(item in rest for item in part)


def _shared(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the number of items that two lists share, repeats counted."""
    counts = Counter(left)
    return (counts & Counter(right)).total()


def _has_all(done: Sequence[Hashable], wanted: Sequence[Hashable]) -> bool:
    """Return whether a list has all wanted items, repeats counted."""
    return Counter(wanted) <= Counter(done)


def hashable(value: Any) -> Hashable:
    """Return a JSON value so that equal ones, in Python's sense, are equal and can be in a set."""
    if isinstance(value, Mapping):
        return frozenset((key, hashable(member)) for key, member in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    return value  # type: ignore[no-any-return]


def _hashable_call(call: Call) -> Hashable:
    return call.name, hashable(call.arguments)


# Google ADK: trajectories of invocations, each all or nothing


def adk(mode: str, what: str = "") -> Rule:
    """Return ADK's rule of a mode, of calls with their arguments or of ``names``."""
    same = _same_name if what == "names" else _same

    def match(expected: Calls, made: Done) -> bool:
        if mode == "exact":
            return len(expected) == len(made) and all(map(same, expected, made))
        return all_fit(expected, made, same, in_order=mode == "in_order")

    def verdict(expected: Calls, made: Done, sample: Sample) -> Verdict:
        pairs = _invocations(expected, made, sample)
        total_starmap = sum(starmap(match, pairs))
        score = total_starmap / len(pairs)
        return Verdict(score, score >= 1)

    return verdict


def _invocations(expected: Calls, made: Done, sample: Sample) -> list[tuple[Calls, Done]]:
    """Return expected and made calls by invocation, which is a user's turn.

    One, where the reference has no turns.
    """
    if all(call.turn is None for call in expected):
        return [(expected, made)]
    wanted = by_turn(expected)
    done = by_turn(made)
    turns = len(sample.turns)
    recorded = max(len(done), turns if turns > 1 else 0)
    if len(wanted) != recorded:
        problem = f"{len(wanted)} invocations are expected, {recorded} were made"
        raise Raised("unequal_invocations", f"{problem}; {RAISES}")
    missing: list[list[Made]] = [[]] * (recorded - len(done))
    return list(zip(wanted, done + missing, strict=True))


# agentevals: first fit, with modes for the arguments


def _within(inner: Arguments, outer: Arguments) -> bool:
    return all(key in outer and outer[key] == value for key, value in inner.items())


_AGENTEVALS_ARGUMENTS: Final[Mapping[str, Callable[[Arguments, Arguments], bool]]] = {
    "exact": lambda output, reference: output == reference,
    "ignore": lambda _output, _reference: True,
    "subset": _within,
    "superset": lambda output, reference: _within(reference, output),
}


def agentevals(mode: str, arguments: str) -> Rule:
    """Return agentevals' rule of a mode, and of one for the arguments.

    ``subset`` looks for made calls among expected ones: arguments change sides.
    """
    agree = _AGENTEVALS_ARGUMENTS[arguments]

    def is_fit(reference: Call, output: Call) -> bool:
        return output.name == reference.name and agree(output.arguments, reference.arguments)

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        if not all(call.compared for call in expected):
            raise NotExpressible(f"an expected call has no arguments, and {RAISES}")
        if mode == "strict":
            return yes_or_no(len(made) == len(expected) and all(map(is_fit, expected, made)))
        has_expected = mode == "subset" or all_fit(expected, made, is_fit)
        passed = has_expected and (mode == "superset" or all_fit(made, expected, is_fit))
        return yes_or_no(passed)

    return verdict


# Azure AI Evaluation: task navigation efficiency, over names or names with parameters compared as
# text


def azure(mode: str, what: str = "") -> Rule:
    """Return Azure's rule of a matching mode, or ``f1``: the property beside each mode's verdict.

    Of calls with their parameters, or of ``names``.
    """
    has_parameters = what != "names"

    def step(call: Call) -> Hashable:
        if not has_parameters:
            return call.name.strip()
        arguments = call.arguments.items()
        texts = [(key, _azure_text(value)) for key, value in arguments]
        return call.name.strip(), tuple(sorted(texts))

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        """Compare two trajectories of calls in the chosen mode."""
        if has_parameters:
            _refuse_other_parameters(expected)
        _refuse_texts(expected, made)
        wanted = list(map(step, expected))
        done = list(map(step, made))
        if mode == "f1":
            hits = _shared(wanted, done)
            precision, recall, f1 = precision_recall_f1(hits, len(wanted), len(done))
            return Verdict(f1, None, {"precision": precision, "recall": recall})
        if mode == "exact_match":
            return yes_or_no(wanted == done)
        if mode == "in_order_match":
            return yes_or_no(_is_subsequence(wanted, done))
        return yes_or_no(_has_all(done, wanted))

    return verdict


def _refuse_other_parameters(expected: Calls) -> None:
    """Refuse calls of one tool with several sets of parameters, of which the original holds one."""
    known: dict[str, str] = {}
    for call in expected:
        name = call.name.strip()
        text = _sorted_text(call.arguments)
        if known.setdefault(name, text) != text:
            problem = f"{name} is expected with different arguments"
            raise NotExpressible(f"{problem}; the original takes one set of them for each tool")


def _refuse_texts(expected: Calls, made: Done) -> None:
    """Refuse arguments that are no JSON."""
    for call in chain[Call](expected, made):
        if call.raw is not None and not is_json(call.raw):
            problem = f"the arguments of {call.name} are no JSON"
            raise Raised("undecodable_arguments", f"{problem}, and {RAISES}")


def _sorted_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _azure_text(value: Any) -> str:
    """Return a parameter as it is compared: only the top level becomes text."""
    if isinstance(value, dict | list):
        return _sorted_text(value)
    return str(value)


# deepeval: tool correctness, with its bookkeeping of used calls by value


def deepeval(mode: str, what: str) -> Rule:
    """Return deepeval's rule of a mode, of names or of names with ``arguments``."""
    has_arguments = what == "arguments"
    same = _same if has_arguments else _same_name

    def credit(expected: Expected, made: Made) -> float:
        if expected.name != made.name:
            return 0.0
        return _deepeval_share(expected.arguments, made.arguments) if has_arguments else 1.0

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        """Score calls by how well they fit, in the chosen mode; half the score passes."""
        if mode == "exact":
            is_long = len(expected) == len(made)
            score = float(is_long and all(map(same, expected, made)))
        elif not expected:
            score = 0.0 if made else 1.0
        else:
            total_of = _heaviest_common if mode == "ordering" else _best_unused
            total = total_of(expected, made, credit)
            score = total / len(expected)
        return Verdict(score, score >= 0.5)

    return verdict


def _best_unused(expected: Calls, made: Done, credit: Callable[[Any, Any], float]) -> float:
    """Return the credit of expected calls that each take the best call left.

    A call that was taken bars all that equal it.
    """
    values = list(map(_hashable_call, made))
    used: set[Hashable] = set()
    total = 0.0
    for wanted in expected:
        best, best_value = 0.0, None
        for call, value in zip(made, values, strict=True):
            if call.name == wanted.name and value not in used:
                share = credit(wanted, call)
                if share > best:
                    best, best_value = share, value
        total += best
        used.add(best_value)
    return total


def _heaviest_common(
    expected: Sequence[Any], made: Sequence[Any], credit: Callable[[Any, Any], float]
) -> float:
    """Return the weight of the heaviest common subsequence."""
    above = [0.0] * (len(made) + 1)
    for wanted in expected:
        row = [0.0]
        for index, call in enumerate(made):
            share = credit(wanted, call)
            best = max(above[index + 1], row[index])
            row.append(max(best, above[index] + share) if share > 0 else best)
        above = row
    return above[-1]


def _deepeval_share(wanted: Arguments, done: Arguments) -> float:
    """Return the share of equal keys among the keys of both, objects in turn by theirs."""
    if wanted == done:
        return 1.0
    total = 0.0
    keys = len(wanted.keys() | done.keys())
    for key, value in wanted.items():
        if key not in done:
            continue
        if value == done[key]:
            total += 1 / keys
        elif isinstance(value, dict) and isinstance(done[key], dict):
            deepeval_share = _deepeval_share(value, done[key])
            total += deepeval_share / keys
    return total


# MLflow: tool call correctness by exact match, over texts of calls with their arguments


def mlflow(order: str) -> Rule:
    """Return MLflow's rule of calls that are ``ordered``, or not."""

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        """Compare names, and arguments if all expected calls have some, with or without order."""
        if len(expected) != len(made):
            return yes_or_no(False)
        text_of = _mlflow_name
        if all(call.compared for call in expected):
            refuse_undecodable((*expected, *made))
            text_of = _mlflow_text
        wanted = list(map(text_of, expected))
        done = list(map(text_of, made))
        passed = wanted == done if order == "ordered" else set(wanted) == set(done)
        return yes_or_no(passed)

    return verdict


def _mlflow_name(call: Call) -> str:
    return call.name


def _mlflow_text(call: Call) -> str:
    return f"{call.name}({_sorted_text(call.arguments)})"


# pydantic-evals and waza look at names only


def pydantic_evals(mode: str) -> Rule:
    """Return pydantic-evals' rule of an order; calls that failed are left out."""

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        """Score the names of successful calls by the F1 in the chosen mode."""
        wanted = _names(expected)
        done = [call.name for call in made if not call.failed]
        if mode == "exact" or not wanted or not done:
            return Verdict(float(wanted == done))
        if mode == "in_order":
            heaviest_common = _heaviest_common(
                wanted, done, lambda name, other: float(name == other)
            )
            hits = int(heaviest_common)
        else:
            hits = _shared(wanted, done)
        return Verdict(precision_recall_f1(hits, len(wanted), len(done))[2])

    return verdict


_WAZA_MODES: Final[Mapping[str, Callable[[list[str], list[str]], bool]]] = {
    "exact_match": lambda wanted, done: wanted == done,
    "in_order_match": _is_subsequence,
    "any_order_match": lambda wanted, done: _has_all(done, wanted),
}


def waza(mode: str) -> Rule:
    """Return waza's rule of a mode, which decides the verdict.

    The score is F1 over the names, repeats kept.
    """

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        wanted = _names(expected)
        done = _names(made)
        shared = _shared(wanted, done)
        *_, score = precision_recall_f1(shared, len(wanted), len(done))
        return Verdict(score, _WAZA_MODES[mode](wanted, done))

    return verdict


# ragas: tool call accuracy over positions, and F1 over sets


def ragas_accuracy(mode: str) -> Rule:
    """Return tool call accuracy, ``strict`` or ``flexible``.

    0 unless all names agree, else the mean argument share.
    """

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        """Score calls by the mean share of equal arguments, 0 where the names differ."""
        if not expected or not made:
            return Verdict(float(not expected and not made))
        wanted = list(expected)
        done = list(made)
        if mode == "flexible":
            wanted.sort(key=_sorting_key)
            done.sort(key=_sorting_key)
        if _names(wanted) != _names(done):
            return Verdict(0.0)
        total = 0.0
        for call, other in zip(wanted, done, strict=True):
            total += _ragas_share(call.arguments, other.arguments)
        return Verdict(total / len(wanted))

    return verdict


def _sorting_key(call: Call) -> tuple[str, ...]:
    keys = sorted(call.arguments)
    arguments = [(key, str(call.arguments[key])) for key in keys]
    return call.name, *chain.from_iterable(arguments)


def _ragas_share(wanted: Arguments, done: Arguments) -> float:
    """Return the share of the reference's arguments that are there as the same text.

    Others are free.
    """
    if not wanted:
        return 0.0 if done else 1.0
    right = sum(key in done and str(done[key]) == str(value) for key, value in wanted.items())
    return right / len(wanted)


def ragas_f1(expected: Calls, made: Done, _sample: Sample) -> Verdict:
    """Return F1 over sets of names with arguments, rounded to four places.

    0 when both are empty.
    """
    wanted = set(map(_hashable_call, expected))
    done = set(map(_hashable_call, made))
    hits = len(wanted & done)
    *_, score = precision_recall_f1(hits, len(wanted), len(done))
    return Verdict(round(score, 4))


# tau2-bench's actions and ToolSandbox's traces: one call that was made may serve several expected
# ones


def tau2(_expected: Calls, made: Done, sample: Sample) -> Verdict:
    """Return whether every gold action is matched by some call, names and compared arguments."""
    gold = sample.expected.calls or ()
    passed = all(any(_same_action(action, call) for call in made) for action in gold)
    return yes_or_no(passed)


def _same_action(action: ExpectedCall, call: Made) -> bool:
    """Return whether a call is a gold action.

    By the keys of the call itself, unless the action names its own.
    """
    if action.name != call.name:
        return False
    if action.arguments is None:
        return True
    wanted = arguments_of(action.arguments)
    keys = set(call.arguments)
    rules = action.rules
    if rules is not None:  # also empty: those that are not to be compared have a rule
        keys = {key for key in (*wanted, *rules) if key not in rules or not rules[key].ignore}
    left, right = (
        {key: side[key] for key in side if key in keys} for side in (wanted, call.arguments)
    )
    return left == right


def toolsandbox(_expected: Calls, made: Done, sample: Sample) -> Verdict:
    """Return whether one of the alternatives is some call of its name that has its arguments."""
    gold = sample.expected.calls or ()
    passed = any(_has_traced(wanted, call) for wanted in gold for call in made)
    return yes_or_no(passed)


def _has_traced(wanted: ExpectedCall, call: Made) -> bool:
    """Check that a call has the name and arguments of a traced one, within its tolerances."""
    if wanted.name != call.name:
        return False
    rules = wanted.rules or {}
    for key, value in arguments_of(wanted.arguments).items():
        rule = rules.get(key)
        if rule is not None and rule.ignore:
            continue
        tolerance = None if rule is None else rule.tolerance
        if key not in call.arguments or not _is_close(value, call.arguments[key], tolerance):
            return False
    return True


def _is_close(wanted: Any, value: Any, tolerance: float | None) -> bool:
    are_numbers = isinstance(wanted, int | float) and isinstance(value, int | float)
    if tolerance is None or not are_numbers:
        return bool(wanted == value)
    size = abs(value - wanted)
    return bool(size <= tolerance)
