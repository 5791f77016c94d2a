"""Rules of ADK, agentevals, Azure, deepeval, MLflow, pydantic-evals, ragas, tau2, ToolSandbox and
waza.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from gradestack import ExpectedCall, Sample
from gradestack_plugins.tool_calls.diff import Expected, Made, arguments_of, is_json
from gradestack_plugins.tool_calls.published.preset import (
    NotExpressible,
    Raised,
    Rule,
    Verdict,
    by_turn,
    f1,
    refuse_nothing,
    refuse_undecodable,
    yes_or_no,
)

Calls = Sequence[Expected]
Done = Sequence[Made]


def _same(expected: Expected, made: Made) -> bool:
    """Names and arguments are equal as Python has it: True = 1 = 1.0."""
    return expected.name == made.name and expected.arguments == made.arguments


def _in(part: Sequence[Any], whole: Sequence[Any]) -> bool:
    rest = iter(whole)
    return all(each in rest for each in part)


def _shared(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    return sum((Counter(left) & Counter(right)).values())


def _f1_of(hits: int, wanted: int, done: int) -> float:
    return f1(hits / done if done else 0.0, hits / wanted if wanted else 0.0)


def hashable(value: Any) -> Hashable:
    """Return a JSON value so that equal ones, in Python's sense, are equal and can be in a set."""
    if isinstance(value, Mapping):
        return frozenset((key, hashable(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(hashable, value))
    return value  # type: ignore[no-any-return]


# Google ADK: trajectories of invocations, each all or nothing


def adk(mode: str, what: str = "") -> Rule:
    """Return ADK's rule of a mode, of whole calls or of ``names``."""
    names = what == "names"

    def same(expected: Expected, made: Made) -> bool:
        return expected.name == made.name if names else _same(expected, made)

    def match(expected: Calls, made: Done) -> bool:
        if mode == "exact":
            return len(expected) == len(made) and all(map(same, expected, made))
        left = list(made)
        for call in expected:
            place = next((at for at, other in enumerate(left) if same(call, other)), None)
            if place is None:
                return False
            left = left[place + 1 :] if mode == "in_order" else left[:place] + left[place + 1 :]
        return True

    def verdict(expected: Calls, made: Done, sample: Sample) -> Verdict:
        refuse_undecodable(expected, made)
        pairs = _invocations(expected, made, sample)
        score = sum(match(*pair) for pair in pairs) / len(pairs)
        return Verdict(score, score >= 1)

    return verdict


def _invocations(expected: Calls, made: Done, sample: Sample) -> list[tuple[Calls, Done]]:
    """Return expected and made calls by invocation, which is a user's turn.

    One, where the reference has no turns.
    """
    if all(call.turn is None for call in expected):
        return [(expected, made)]
    wanted, done = by_turn(expected), by_turn(made)
    recorded = max(len(done), len(sample.turns) if len(sample.turns) > 1 else 0)
    if len(wanted) != recorded:
        message = (
            f"{len(wanted)} invocations are expected, {recorded} were made; the original "
            "program raises on that"
        )
        raise Raised("unequal_invocations", message)
    return [(calls, done[turn] if turn < len(done) else []) for turn, calls in enumerate(wanted)]


# agentevals: first fit, with modes for the arguments


def _within(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    return all(key in outer and outer[key] == value for key, value in inner.items())


_Agree = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
_AGENTEVALS_ARGUMENTS: Mapping[str, _Agree] = {
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

    def all_in(references: Sequence[Any], outputs: Sequence[Any]) -> bool:
        """Return whether every reference finds a call of its own among the outputs, first fit."""
        left = list(outputs)
        for wanted in references:
            for place, call in enumerate(left):
                if call.name == wanted.name and agree(call.arguments, wanted.arguments):
                    left.pop(place)
                    break
            else:
                return False
        return True

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        refuse_undecodable(expected, made)
        if not all(call.compared for call in expected):
            raise NotExpressible(
                "an expected call has no arguments, and the original program raises on that"
            )
        if mode == "strict":
            same = len(made) == len(expected)
            return yes_or_no(
                same and all(all_in([e], [a]) for e, a in zip(expected, made, strict=True))
            )
        return yes_or_no(
            (mode == "subset" or all_in(expected, made))
            and (mode == "superset" or all_in(made, expected))
        )

    return verdict


# Azure AI Evaluation: task navigation efficiency, over names or names with parameters compared as
# text


def azure(mode: str, what: str = "") -> Rule:
    """Return Azure's rule of a matching mode, or ``f1``: the property beside each mode's verdict.

    Of whole calls, or of ``names``.
    """
    names = what == "names"

    def step(call: Expected | Made) -> Hashable:
        arguments: Mapping[str, Any] = {} if names else call.arguments
        return call.name.strip(), tuple(
            sorted((key, _azure_text(value)) for key, value in arguments.items())
        )

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        refuse_nothing(expected)
        if not names:
            _refuse_other_parameters(expected)
        sides: tuple[Sequence[Expected | Made], ...] = (expected, made)
        for call in (call for side in sides for call in side):
            if call.raw is not None and not is_json(call.raw):
                message = (
                    f"the arguments of {call.name} are no JSON, and the original program "
                    "raises on that"
                )
                raise Raised("undecodable_arguments", message)
        wanted, done = list(map(step, expected)), list(map(step, made))
        if mode == "f1":
            hits = _shared(wanted, done)
            parts = {
                "precision": hits / len(done) if done else 0.0,
                "recall": hits / len(wanted) if done else 0.0,
            }
            return Verdict(f1(parts["precision"], parts["recall"]), None, parts)
        if mode == "exact_match":
            return yes_or_no(wanted == done)
        return yes_or_no(
            _in(wanted, done) if mode == "in_order_match" else not Counter(wanted) - Counter(done)
        )

    return verdict


def _refuse_other_parameters(expected: Calls) -> None:
    """Refuse what the original's one set of parameters per tool cannot hold."""
    known: dict[str, str] = {}
    for call in expected:
        name, text = call.name.strip(), json.dumps(call.arguments, sort_keys=True, default=str)
        if known.setdefault(name, text) != text:
            message = (
                f"{name} is expected with different arguments; the original takes one set "
                "of them for each tool"
            )
            raise NotExpressible(message)


def _azure_text(value: Any) -> str:
    """Return a parameter as it is compared: only the top level becomes text."""
    return (
        json.dumps(value, sort_keys=True, default=str)
        if isinstance(value, dict | list)
        else str(value)
    )


# deepeval: tool correctness, with its bookkeeping of used calls by value


def deepeval(mode: str, what: str) -> Rule:  # noqa: C901
    """Return deepeval's rule of a mode, of names or of names with ``arguments``."""
    arguments = what == "arguments"

    def credit(expected: Expected, made: Made) -> float:
        if expected.name != made.name:
            return 0.0
        return _deepeval_share(expected.arguments, made.arguments) if arguments else 1.0

    def best_unused(expected: Calls, made: Done) -> float:
        """Return the credit of expected calls that each take the best call left.

        One taken bars all that equal it.
        """
        values = [(call.name, hashable(call.arguments)) for call in made]
        used: set[Any] = set()
        total = 0.0
        for wanted in expected:
            best, taken = 0.0, None
            for call, value in zip(made, values, strict=True):
                if (
                    call.name == wanted.name
                    and value not in used
                    and (share := credit(wanted, call)) > best
                ):
                    best, taken = share, value
            if taken is not None:
                total += best
                used.add(taken)
        return total

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        refuse_undecodable(expected, made)
        if mode == "exact":
            same = len(expected) == len(made)
            pairs = zip(expected, made, strict=False)
            score = float(
                same and all(_same(e, a) if arguments else e.name == a.name for e, a in pairs)
            )
        elif not expected:
            score = 0.0 if made else 1.0
        else:
            total = (
                _common(expected, made, credit)
                if mode == "ordering"
                else best_unused(expected, made)
            )
            score = total / len(expected)
        return Verdict(score, score >= 0.5)

    return verdict


def _common(
    expected: Sequence[Any], made: Sequence[Any], credit: Callable[[Any, Any], float]
) -> float:
    """Return the weight of the heaviest common subsequence."""
    above = [0.0] * (len(made) + 1)
    for wanted in expected:
        row = [0.0]
        for place, call in enumerate(made):
            share, best = credit(wanted, call), max(above[place + 1], row[place])
            row.append(max(best, above[place] + share) if share > 0 else best)
        above = row
    return above[-1]


def _deepeval_share(wanted: Mapping[str, Any], done: Mapping[str, Any]) -> float:
    """Return the share of equal keys among the keys of both, objects in turn by theirs."""
    if wanted == done:
        return 1.0
    total, keys = 0.0, len(wanted.keys() | done.keys())
    for key, value in wanted.items():
        if key not in done:
            continue
        if value == done[key]:
            total += 1 / keys
        elif isinstance(value, dict) and isinstance(done[key], dict):
            total += _deepeval_share(value, done[key]) / keys
    return total


# MLflow: tool call correctness by exact match, over texts of whole calls


def mlflow(order: str) -> Rule:
    """Return MLflow's rule of calls that are ``ordered``, or not."""

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        refuse_nothing(expected)
        if len(expected) != len(made):
            return yes_or_no(False)
        wanted, done = [call.name for call in expected], [call.name for call in made]
        if all(call.compared for call in expected):
            refuse_undecodable(expected, made)
            wanted, done = list(map(_mlflow_text, expected)), list(map(_mlflow_text, made))
        return yes_or_no(wanted == done if order == "ordered" else set(wanted) == set(done))

    return verdict


def _mlflow_text(call: Expected | Made) -> str:
    return f"{call.name}({json.dumps(call.arguments, sort_keys=True, default=str)})"


# pydantic-evals and waza look at names only


def pydantic_evals(mode: str) -> Rule:
    """Return pydantic-evals' rule of an order; calls that failed are left out."""

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        wanted, done = (
            [call.name for call in expected],
            [call.name for call in made if not call.failed],
        )
        if mode == "exact":
            return Verdict(float(wanted == done))
        if not wanted or not done:
            return Verdict(float(not wanted and not done))
        in_order = mode == "in_order"
        hits = (
            int(_common(wanted, done, lambda e, a: float(e == a)))
            if in_order
            else _shared(wanted, done)
        )
        return Verdict(_f1_of(hits, len(wanted), len(done)))

    return verdict


def waza(mode: str) -> Rule:
    """Return waza's rule of a mode, which decides the verdict.

    The score is F1 over the names, repeats kept.
    """

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        refuse_nothing(expected)
        wanted, done = [call.name for call in expected], [call.name for call in made]
        passed = {
            "exact_match": lambda: wanted == done,
            "in_order_match": lambda: _in(wanted, done),
            "any_order_match": lambda: not Counter(wanted) - Counter(done),
        }[mode]()
        return Verdict(_f1_of(_shared(wanted, done), len(wanted), len(done)), passed)

    return verdict


# ragas: tool call accuracy over positions, and F1 over sets


def ragas_accuracy(mode: str) -> Rule:
    """Return tool call accuracy, ``strict`` or ``flexible``.

    0 unless all names agree, else the mean argument share.
    """

    def verdict(expected: Calls, made: Done, _sample: Sample) -> Verdict:
        refuse_undecodable(expected, made)
        if not expected or not made:
            return Verdict(float(not expected and not made))
        wanted, done = list(expected), list(made)
        if mode == "flexible":
            wanted.sort(key=_sorting_key)
            done.sort(key=_sorting_key)
        if [call.name for call in wanted] != [call.name for call in done]:
            return Verdict(0.0)
        total = 0.0
        for call, other in zip(wanted, done, strict=True):
            total += _ragas_share(call.arguments, other.arguments)
        return Verdict(total / len(wanted))

    return verdict


def _sorting_key(call: Expected | Made) -> tuple[str, ...]:
    return call.name, *(
        text for key in sorted(call.arguments) for text in (key, str(call.arguments[key]))
    )


def _ragas_share(wanted: Mapping[str, Any], done: Mapping[str, Any]) -> float:
    """Return the share of the reference's arguments that are there as the same text.

    Others are free.
    """
    if not wanted:
        return 0.0 if done else 1.0
    return sum(key in done and str(done[key]) == str(value) for key, value in wanted.items()) / len(
        wanted
    )


def ragas_f1(expected: Calls, made: Done, _sample: Sample) -> Verdict:
    """Return F1 over sets of names with arguments, rounded to four places.

    0 when both are empty.
    """
    refuse_undecodable(expected, made)
    wanted = {(call.name, hashable(call.arguments)) for call in expected}
    done = {(call.name, hashable(call.arguments)) for call in made}
    return Verdict(round(_f1_of(len(wanted & done), len(wanted), len(done)), 4))


# tau2-bench's actions and ToolSandbox's traces: one call that was made may serve several expected
# ones


def tau2(expected: Calls, made: Done, sample: Sample) -> Verdict:
    """Return whether every gold action is matched by some call, names and compared arguments."""
    refuse_undecodable(expected, made)
    gold = sample.expected.calls or ()
    return yes_or_no(all(any(_same_action(action, call) for call in made) for action in gold))


def _same_action(action: ExpectedCall, call: Made) -> bool:
    """Return whether a call is a gold action.

    By the keys of the call itself, unless the action names its own.
    """
    if action.name != call.name:
        return False
    if action.arguments is None:
        return True
    wanted, keys, rules = arguments_of(action.arguments), set(call.arguments), action.rules
    if rules is not None:  # also empty: those that are not to be compared have a rule
        keys = {key for key in (*wanted, *rules) if key not in rules or not rules[key].ignore}
    left, right = (
        {key: side[key] for key in side if key in keys} for side in (wanted, call.arguments)
    )
    return left == right


def toolsandbox(expected: Calls, made: Done, sample: Sample) -> Verdict:
    """Return whether one of the alternatives is some call of its name that has its arguments."""
    refuse_undecodable(expected, made)
    gold = sample.expected.calls or ()
    return yes_or_no(any(_traces(wanted, call) for wanted in gold for call in made))


def _traces(wanted: ExpectedCall, call: Made) -> bool:
    if wanted.name != call.name:
        return False
    rules = wanted.rules or {}
    for key, value in arguments_of(wanted.arguments).items():
        rule = rules.get(key)
        if rule is not None and rule.ignore:
            continue
        tolerance = None if rule is None else rule.tolerance
        if key not in call.arguments or not _close(value, call.arguments[key], tolerance):
            return False
    return True


def _close(wanted: Any, value: Any, tolerance: float | None) -> bool:
    if (
        tolerance is None
        or not isinstance(wanted, int | float)
        or not isinstance(value, int | float)
    ):
        return bool(wanted == value)
    return abs(value - wanted) <= tolerance
