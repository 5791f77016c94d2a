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
from gradestack_plugins.pages.index import all_reasons
from gradestack_plugins.pages.text import brief
from gradestack_plugins.reporters.github import gate_verdict

PAGE = "junit.xml"
_GATES = "gates"
_LONGEST = 2000  # characters of the reasons of one case


@attrs.frozen
class _Case:
    """What one grader says of one sample."""

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

    A test case is one run of one task. It fails when it does not pass by the grader's verdict (its
    own, else a score of 1 or more, or of 0 and less where lower ones are better; where neither are,
    it passes), with the reasons; a failed or missing grade is an error, a skipped one is skipped.
    Properties of a suite are the grader's figures. Of more than ``max_cases`` only those that did
    not pass are listed, and how many did.
    """

    max_cases: int = 20_000
    """Cases up to which the ones that passed are listed, too."""

    def __attrs_post_init__(self) -> None:
        check_limits(self)

    @override
    def write(self, report: Report, out: Path) -> Iterable[Path]:
        counts: dict[str, Counter[str]] = {
            str(key): Counter() for key in as_map(report.metrics.get("by_metric"))
        }
        for key, case in _cases(report):
            counts.setdefault(key, Counter())[case.result] += 1
        every = sum(each.total() for each in counts.values()) <= self.max_cases
        gates = [_gate(as_map(gate)) for gate in as_list(report.summary.get("gates"))]
        of_gates = Counter(gate.result for gate in gates)
        total, path = sum(counts.values(), of_gates), out / PAGE
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
            name = xml_text(brief(report.name, 200))
            file.write(f'<testsuites name="{name}" {_attributes(total, "failures", "errors")}>\n')
            for key, found in counts.items():
                listed = (
                    case
                    for of, case in _cases(report)
                    if of == key and (every or case.result != "passed")
                )
                file.writelines(
                    _suite(key, found, listed, _properties(report, key, found, every=every))
                )
            if gates:
                file.writelines(_suite(_GATES, of_gates, gates, ()))
            file.write("</testsuites>\n")
        return (path,)


def _cases(report: Report) -> Iterator[tuple[str, _Case]]:
    decides, declared = (
        as_text(as_map(report.summary.get("outcome")).get("grader")),
        Declarations(report.header),
    )
    for row in report.rows() if report.has_rows else ():
        sample, run, model = (
            as_map(row.get("sample")),
            row.get("run"),
            as_text(row.get("model_name")),
        )
        name = str(sample.get("id"))
        for key, grade in as_map(row.get("grades")).items():
            verdict, means = row.get("passed") if key == decides else None, declared.score(str(key))
            case = name if run is None else f"{name} run {run}"
            yield (
                str(key),
                _judged(
                    case, model, as_map(grade), verdict, "higher" if means is None else means.better
                ),
            )


def _judged(name: str, model: str, grade: Mapping[str, Any], verdict: object, better: str) -> _Case:
    state, rationale = as_text(grade.get("state")), as_text(grade.get("rationale"))
    fault = as_map(grade.get("fault"))
    told = [
        f"{as_text(each.get('code'))}: {as_text(each.get('message'))}"
        for each in all_reasons(grade)
    ]
    short = (
        as_text(fault.get("message"))
        or as_text(fault.get("code"))
        or rationale
        or next(iter(told), state)
    )
    if state != "graded":
        result = "skipped" if state == "skipped" else "error"
    else:
        own = grade.get("passed") if verdict is None else verdict
        score = as_number(grade.get("score"))
        if own is None and score is not None:
            own = better == "neither" or (score <= 0 if better == "lower" else score >= 1)
        passed = own is True
        result, short = (
            "passed" if passed else "failure",
            f"score {score}: {short}" if short else f"score {score}",
        )
    return _Case(
        result,
        name,
        model,
        brief(short, 300),
        "\n".join(brief(each, 300) for each in told)[:_LONGEST],
    )


def _gate(gate: Mapping[str, Any]) -> _Case:
    result, text = (
        "passed" if gate.get("passed") is True else "failure",
        brief(as_text(gate.get("text")), 300),
    )
    return _Case(result, text, "", gate_verdict(gate), "")


def _suite(
    key: str, counts: Counter[str], cases: Iterable[_Case], properties: Iterable[str]
) -> Iterator[str]:
    yield f'<testsuite name="{xml_text(key)}" {_attributes(counts, *_NUMBERS)}>\n'
    yield from properties
    yield from (_case(key, case) for case in cases)
    yield "</testsuite>\n"


_NUMBERS = {
    "failures": "failure",
    "errors": "error",
    "skipped": "skipped",
}  # attribute -> result of a case


def _attributes(counts: Counter[str], *names: str) -> str:
    shown = " ".join(f'{name}="{counts[_NUMBERS[name]]}"' for name in names)
    return f'tests="{counts.total()}" {shown} time="0"'


def _properties(report: Report, key: str, counts: Counter[str], *, every: bool) -> Iterator[str]:
    figures: dict[str, Any] = {**as_map(as_map(report.metrics.get("by_metric")).get(key))}
    for name, metrics in as_map(report.aggregates.get(key)).items():
        figures |= {f"{name}.{figure}": value for figure, value in as_map(metrics).items()}
        intervals = {f"{name}.{figure}": as_map(value) for figure, value in as_map(metrics).items()}
        for figure, interval in intervals.items():
            if figure.endswith("_interval") and as_number(interval.get("low")) is not None:
                figures[figure] = f"{interval['low']} to {interval.get('high')}"
    if not every:
        figures["passed cases left out"] = counts["passed"]
    yield "<properties>\n"
    for name, value in figures.items():
        if is_number(value) or (isinstance(value, str) and name.endswith("_interval")):
            yield f'<property name="{xml_text(name)}" value="{xml_text(value)}"/>\n'
    yield "</properties>\n"


def _case(key: str, case: _Case) -> str:
    group = f"{key}.{case.model}" if case.model else key
    head = (
        f'<testcase classname="{xml_text(brief(group, 200))}" '
        f'name="{xml_text(brief(case.name, 800))}" time="0"'
    )
    if case.result == "passed":
        return f"{head}/>\n"
    kind = f' type="{case.result}"' if case.result != "skipped" else ""
    body = (
        f"<{case.result} "
        f'message="{xml_text(case.short)}"{kind}>{xml_text(case.reasons)}</{case.result}>'
    )
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
