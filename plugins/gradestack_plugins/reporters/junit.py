"""The reporter ``junit``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import attrs
from typing_extensions import override

from gradestack import Declarations, Report, Reporter, terminal_line
from gradestack.jsonio import as_list, as_map, as_number, as_text, is_number
from gradestack_plugins.pages.environment import check_limits
from gradestack_plugins.pages.text import brief
from gradestack_plugins.reporters.github import gate_verdict, reason_texts

PAGE = "junit.xml"
_GATES = "gates"
_LONGEST = 2000  # characters of the reasons of one case


@attrs.frozen
class _Case:
    """One grader's grade of one sample."""

    result: str
    """``passed``, ``failure``, ``error`` or ``skipped``."""
    name: str
    model: str
    short: str
    reasons: str


@attrs.frozen(kw_only=True)
class JunitReporter(Reporter):
    """Writes ``junit.xml``, which GitLab, Jenkins and others read.

    A suite of tests per grader, and one of the gates.

    A test case is one run of one task. It fails, with the reasons, when it does not pass by the
    grader's verdict. Without a verdict it passes at a score of 1 or more, or of 0 and less where
    lower ones are better; where neither are, it passes. A failed or missing grade is an error, a
    skipped one is skipped. Properties of a suite are the grader's figures. Of more than
    ``max_cases`` only those that did not pass are listed, and how many did.
    """

    max_cases: int = 20_000
    """Cases up to which the ones that passed are listed, too."""

    def __attrs_post_init__(self) -> None:
        check_limits(self)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        keys = as_map(report.metrics.get("by_metric"))
        counts: dict[str, Counter[str]] = {str(key): Counter() for key in keys}
        for key, case in _cases(report):
            counts.setdefault(key, Counter())[case.result] += 1
        gates = [_gate_case(as_map(gate)) for gate in as_list(report.summary.get("gates"))]
        of_gates = Counter(gate.result for gate in gates)
        total = sum(counts.values(), of_gates)
        is_whole = total.total() - of_gates.total() <= self.max_cases
        path = out / PAGE
        with path.open("w", encoding="utf-8", newline="\n") as file:
            name = xml_text(brief(report.name, 200))
            file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
            file.write(f'<testsuites name="{name}" {_attributes(total, "failures", "errors")}>\n')
            for key, of_grader in counts.items():
                cases = (case for grader, case in _cases(report) if grader == key)
                listed = (case for case in cases if is_whole or case.result != "passed")
                figures = _figures(report, key)
                if not is_whole:
                    figures["passed cases left out"] = of_grader["passed"]
                properties = _properties(figures)
                suite = _suite(key, of_grader, listed, properties)
                file.writelines(suite)
            if gates:
                pieces = _suite(_GATES, of_gates, gates, ())
                file.writelines(pieces)
            file.write("</testsuites>\n")
        return (path,)


def _cases(report: Report) -> Iterator[tuple[str, _Case]]:
    """Yield a test case for each grade, with the key of its grader."""
    grader = as_map(report.summary.get("outcome")).get("grader")
    outcome = as_text(grader)
    declared = Declarations(report.header)
    for row in report.rows() if report.has_rows else ():
        sample = as_map(row.get("sample"))
        run = row.get("run")
        model = as_text(row.get("model_name"))
        name = str(sample.get("id"))
        if run is not None:
            name = f"{name} run {run}"
        grades = row.get("grades")
        for key, grade in as_map(grades).items():
            verdict = None
            if key == outcome:
                verdict = row.get("passed")
            score = declared.score(str(key))
            better = "higher" if score is None else score.better
            case = _case_of(name, model, as_map(grade), verdict, better)
            yield str(key), case


def _case_of(
    name: str, model: str, grade: Mapping[str, Any], verdict: object, better: str
) -> _Case:
    """Build the test case of a grade: result, a short message, and the reasons."""
    state = as_text(grade.get("state"))
    rationale = as_text(grade.get("rationale"))
    fault = as_map(grade.get("fault"))
    reasons = reason_texts(grade)
    message = fault.get("message")
    why = as_text(message) or as_text(fault.get("code")) or rationale
    short = why or next(iter(reasons), state)
    if state == "graded":
        score = as_number(grade.get("score"))
        if verdict is None:
            passed = grade.get("passed")
        else:
            passed = verdict
        if passed is None and score is not None:
            passed = _is_passing(score, better)
        result = "passed" if passed is True else "failure"
        if short:
            short = f"score {score}: {short}"
        else:
            short = f"score {score}"
    else:
        result = "skipped" if state == "skipped" else "error"
    listed = "\n".join(brief(reason, 300) for reason in reasons)
    return _Case(result, name, model, brief(short, 300), listed[:_LONGEST])


def _is_passing(score: float, better: str) -> bool:
    """Return whether a score passes where its grader has no verdict of its own."""
    if better == "neither":
        return True
    if better == "lower":
        return score <= 0
    return score >= 1


def _gate_case(gate: Mapping[str, Any]) -> _Case:
    passed = gate.get("passed")
    result = "passed" if passed is True else "failure"
    text = brief(as_text(gate.get("text")), 300)
    return _Case(result, text, "", gate_verdict(gate), "")


def _suite(
    key: str, counts: Counter[str], cases: Iterable[_Case], properties: Iterable[str]
) -> Iterator[str]:
    yield f'<testsuite name="{xml_text(key)}" {_attributes(counts, *_NUMBERS)}>\n'
    yield from properties
    yield from (_case(key, case) for case in cases)
    yield "</testsuite>\n"


_NUMBERS = {"failures": "failure", "errors": "error", "skipped": "skipped"}
"""Attribute -> result of a case."""


def _attributes(counts: Counter[str], *names: str) -> str:
    shown = " ".join(f'{name}="{counts[_NUMBERS[name]]}"' for name in names)
    return f'tests="{counts.total()}" {shown} time="0"'


def _figures(report: Report, key: str) -> dict[str, Any]:
    """Return the averages of a grader, and the figures of its aggregators with their intervals."""
    by_metric = as_map(report.metrics.get("by_metric"))
    figures: dict[str, Any] = {**as_map(by_metric.get(key))}
    for name, metrics in as_map(report.aggregates.get(key)).items():
        for figure, value in as_map(metrics).items():
            path = f"{name}.{figure}"
            interval = as_map(value)
            has_ends = figure.endswith("_interval") and as_number(interval.get("low")) is not None
            figures[path] = f"{interval['low']} to {interval.get('high')}" if has_ends else value
    return figures


def _properties(figures: Mapping[str, Any]) -> Iterator[str]:
    yield "<properties>\n"
    for name, value in figures.items():
        if is_number(value) or (isinstance(value, str) and name.endswith("_interval")):
            yield f'<property name="{xml_text(name)}" value="{xml_text(value)}"/>\n'
    yield "</properties>\n"


def _case(key: str, case: _Case) -> str:
    """Write a test case as a JUnit ``testcase`` element."""
    if case.model:
        group = f"{key}.{case.model}"
    else:
        group = key
    head = (
        f'<testcase classname="{xml_text(brief(group, 200))}" '
        f'name="{xml_text(brief(case.name, 800))}" time="0"'
    )
    if case.result == "passed":
        return f"{head}/>\n"
    kind = ""
    if case.result != "skipped":
        kind = f' type="{case.result}"'
    message = xml_text(case.short)
    reasons = xml_text(case.reasons)
    body = f'<{case.result} message="{message}"{kind}>{reasons}</{case.result}>'
    return f"{head}>{body}</testcase>\n"


def xml_text(text: object) -> str:
    r"""Return a text for the inside of an XML element or of an attribute in double quotes.

    Each line is made safe as for a terminal, so that what XML cannot hold (control characters, lone
    surrogates) stands escaped as in a Python string; markup is escaped. Line ends stay.

    >>> print(xml_text('a < "b"'))
    a &lt; &quot;b&quot;
    """
    lines = str(text).replace("\r\n", "\n").split("\n")
    return escape("\n".join(map(terminal_line, lines)), {'"': "&quot;"})
