"""Grader ``bfcl_ast``: BFCL's own rules for calls, over possible answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from gradestack import (
    Fault,
    Grade,
    Grader,
    Outcome,
    Reason,
    Sample,
    Status,
    compile_later,
    failed,
    replace,
    skipped,
)
from gradestack.jsonio import as_text
from gradestack_plugins.readers.chat.unread import NOT_DECODED, calls_unknown
from gradestack_plugins.tool_calls.diff import Made
from gradestack_plugins.tool_calls.matching import TooManyCalls
from gradestack_plugins.tool_calls.presets import find, grade_as_published
from gradestack_plugins.tool_calls.published import bfcl

_OPTIMAL = replace(find("bfcl/ast"), rule=bfcl.rule(optimal=True))
_MOST_PAIRS = 65_536
_RULED = compile_later(r"(live_)?(simple|multiple|parallel)(?!_java)")
_FORM = (
    "the ground truth is not of the form BFCL's checker reads: a list of {name: {parameter: "
    "[values]}}"
)
_JAVA = "arguments are source of Java or JavaScript, which is not read"
_UNDECODED = "ast_decoder:decoder_failed"
_UNUSABLE = Fault(category="data", code="ground_truth_unusable", message=_FORM)


class BfclAst(Grader):
    """Score 1 where the calls are right by the rules of BFCL's AST checker, else 0 with its error
    type; in {0, 1}.

    A call is right when its name is that of the tool and every required argument is there. Every
    argument is known to the tool and to the possible answers, of the declared type (or of the
    answers' own). It is one of the allowed values, where texts are compared without blanks,
    punctuation and case. Every argument left out has ``""`` among its possible answers. There must
    be as many calls as are expected. ``simple``: one tool; ``multiple``: one expected call; else
    ``parallel``, where every expected call has to have a call of its own that fits it. BFCL's
    program gives each the first one left that fits, so that a broad answer can take the call a
    narrow one needs. That rule is the preset ``bfcl/ast`` of ``tool_calls``.

    Where no call is expected (irrelevance) any call that can be decoded is wrong; in a category of
    relevance any is right. An answer with a call in no known form is one that was not decoded. A
    reason has the error type as its code; so has ``metadata.error_type``.
    Where the program raises, as on ground truth of no valid form, the grade is failed. A run that
    ended in an error scores 0 (``run_error``), as the leaderboard divides by all its entries.
    Skipped: ``no_reference``, ``calls_not_recorded``, and ``not_expressible`` for a sample without
    tools, for categories of Java and JavaScript, and for calls by turn, which must be executed.
    """

    version = "3"
    needs = frozenset({"calls", "expected"})
    compares = frozenset({"calls"})
    graded_statuses = frozenset({Status.OK, Status.FAILED})
    metrics = ("mean", "call_figures")
    verdict_labels = ("correct", "not correct")

    @property
    @override
    def tool_schemas(self) -> bool:
        return True

    @override
    def grade(self, sample: Sample) -> Grade:
        category = as_text(sample.facets.get("category"))
        if category.startswith("multi_turn"):  # wholly out, also where no call is expected
            return skipped("not_expressible", bfcl.EXECUTED)
        if sample.status is Status.FAILED:
            return _grade_of_failed_run(sample)
        if sample.calls is None:
            return _grade_of_undecoded(sample, category)
        if sample.expected.calls is None:
            return _grade_without_reference(sample, category)
        if not sample.expected.calls:
            return _grade_by_calling(sample, False, "irrelevance_error:decoder_success")
        if "java" in category:
            return skipped("not_expressible", _JAVA)
        return _grade_by_rules(sample)


def _is_of_relevance(category: str) -> bool:
    return category.removeprefix("live_") == "relevance"


def _grade_without_reference(sample: Sample, category: str) -> Grade:
    """Grade a sample without expected calls: by whether it calls, as unusable, or skip it."""
    if _is_of_relevance(category):
        return _grade_by_calling(sample, True, "relevance_error:decoder_failed")
    match = _RULED.match(category)
    if not match or _UNUSABLE.code not in sample.remarks:
        return skipped("no_reference", "no expected calls")
    # the program looks at the ground truth once calls are decoded
    made = [Made(index, call) for index, call in enumerate(sample.calls or ())]
    problem = bfcl.decoding_problem(made)
    if problem is None:
        return failed(_UNUSABLE)
    return _wrong(problem)


def _grade_of_failed_run(sample: Sample) -> Grade:
    """Return the grade of a run that ended in an error: 0 where the rules would grade a run.

    Entries that no rule grades stay out, so that a category is in the rate with all its entries or
    with none.
    """
    category = as_text(sample.facets.get("category"))
    expected = sample.expected.calls
    if expected is None and not _is_of_relevance(category):
        return skipped("no_reference", "no expected calls")
    if "java" in category:
        return skipped("not_expressible", _JAVA)
    calls = expected or ()
    if any(call.turn is not None for call in calls):
        return skipped("not_expressible", bfcl.EXECUTED)
    message = "the run ended in an error"
    if sample.error is not None:
        message = sample.error.message
    reason = Reason(code="run_error", message=message)
    counts = _counts(sample, 0)
    return Grade(score=0.0, passed=False, reasons=(reason,), rationale=message, counts=counts)


def _counts(sample: Sample, made: int) -> dict[str, int]:
    expected = len(sample.expected.calls or ())
    return {"expected": expected, "made": made}


def _grade_of_undecoded(sample: Sample, category: str) -> Grade:
    """Grade a run whose calls could not be read.

    A text that holds a call in no known form could not be decoded: wrong where a call is expected,
    right where none is. Any other run is skipped.
    """
    expected = sample.expected.calls
    relevance = _is_of_relevance(category)
    is_ruled = relevance or (expected is not None and "java" not in category)
    calls = expected or ()
    has_turns = any(call.turn is not None for call in calls)
    if NOT_DECODED not in sample.remarks or not is_ruled or has_turns:
        return calls_unknown(sample)
    counts = _counts(sample, 0)
    if expected == ():
        return Grade(score=1.0, passed=True, counts=counts)
    problem = "relevance_error:decoder_failed" if expected is None else _UNDECODED
    return _wrong(problem, counts)


def _grade_by_calling(sample: Sample, is_right: bool, problem: str) -> Grade:
    """Return the grade of a run that should call a tool, or none.

    Calls that cannot be decoded do not count.
    """
    made = sample.calls or ()
    is_decoded = [call.arguments is not None or call.raw_arguments is None for call in made]
    has_called = bool(made) and all(is_decoded)
    counts = _counts(sample, len(made))
    if has_called is not is_right:
        return _wrong(problem, counts)
    return Grade(score=1.0, passed=True, counts=counts)


def _grade_by_rules(sample: Sample) -> Grade:
    """Grade a sample's calls by BFCL's rules, with the best assignment of calls."""
    try:
        grade = grade_as_published(_OPTIMAL, sample, sample.calls or (), _MOST_PAIRS)
    except TooManyCalls as error:
        return failed(Fault(category="grading", code="too_many_calls", message=str(error)))
    except RecursionError:
        message = "arguments are nested too deeply to be compared"
        return failed(Fault(category="data", code="nested_too_deeply", message=message))
    problem: Any = grade.metadata.get("error_type")
    if grade.outcome is Outcome.GRADED and problem is not None:
        return _wrong(problem, grade.counts)
    return replace(grade, metadata={})


def _wrong(problem: str, counts: Mapping[str, int] | None = None) -> Grade:
    """Build the grade of a sample that breaks a rule; ``problem`` is BFCL's name of the error."""
    reason = Reason(code=problem, message="by BFCL's rules for calls")
    return Grade(
        score=0.0,
        passed=False,
        counts=counts or {},
        reasons=(reason,),
        metadata={"error_type": problem},
    )
