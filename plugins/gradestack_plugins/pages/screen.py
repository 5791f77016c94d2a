"""The first screen of a run: what was graded, the results, and what to know before quoting them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gradestack import Report
from gradestack.jsonio import as_count, as_list, as_map, as_number, as_text
from gradestack_plugins.pages.blocks import (
    Caveat,
    Counts,
    Figure,
    Head,
    Interval,
    Link,
    Part,
    Section,
    Text,
)
from gradestack_plugins.pages.figures import (
    Result,
    Success,
    confidence_of,
    count_text,
    ends_of,
    headline,
    success_of,
    words_of,
)
from gradestack_plugins.pages.index import RowIndex, ScoreBins, name_of
from gradestack_plugins.pages.tasks import Reliability
from gradestack_plugins.pages.text import brief, capital, counted, number, percent

_STATES = {
    "graded": "graded",
    "skipped": "not applicable",
    "failed": "not graded because of an error",
    "missing": "not recorded",
}
_MOST_FINDINGS, _MOST_MODELS, _LONGEST_WARNING = 3, 6, 110
_WIDE = 0.5
"""Width of an interval of a share from which little is known."""
_LOST_INPUT, _UNGRADED = 0.01, 0.01
"""Shares from which unread records and ungraded runs are worth a caveat."""
_NO_DIFFERENCE, _ENOUGH = 0.05, 10
"""A grader says nothing of success where its means in passed and in other runs differ by less, each
over so many runs.
"""
_JUDGED_BY = {
    "bfcl_ast": "the possible answers of the data",
    "contains": "the expected answers",
    "deepfabric": "the expected calls",
    "exact_match": "the expected answers",
    "judged": "a rubric",
    "orchestrationbench": "the benchmark's labels",
    "recorded": "the verdicts in the recording",
    "regex_match": "the expected answers",
    "stability_label": "the expected labels",
    "tau2_reward": "the rewards in the recording",
    "tau_partial": "the expected calls",
    "tau_reward": "the rewards in the recording",
    "tool_calls": "the expected calls",
    "tool_success": "what the tools answered",
    "when2call": "the expected labels",
}
"""Grader -> what it compares runs with."""


class Screen(msgspec.Struct, frozen=True):
    """The sources of a page's head."""

    report: Report
    index: RowIndex
    reliable: Reliability
    results: Sequence[Result]
    warnings: Sequence[str]
    rows_kept: bool
    left_out: Collection[str] = ()
    """Names in paths of figures that a panel shows in another way."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """The summary of the run."""
        return as_map(self.report.summary)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Its figures."""
        return as_map(self.summary.get("metrics"))

    @property
    def total(self) -> int:
        """Its number of runs."""
        return as_count(self.metrics.get("total"))

    def head(self) -> Head:
        """Return the head of the page."""
        sentence = self._sentence()
        about = about_of(self.report, self.index)
        note = self._note()
        return Head(sentence, about, [*note])

    @property
    def figures(self) -> list[Figure]:
        """The figures of the results, but for those that are left out."""
        return [
            result.figure
            for result in self.results
            if not any(f".{name}" in f".{result.path}" for name in self.left_out)
        ]

    def results_section(self) -> Section | None:
        """Return the figures with their intervals."""
        figures = self.figures
        on_axis = [figure for figure in figures if _is_on_axis(figure)]
        others = [figure for figure in figures if not _is_on_axis(figure)]
        shown = [Interval(on_axis)] if on_axis else []
        if others:
            shown.append(Interval(others, has_axis=False))
        return Section("Results", shown, id="estimates") if shown else None

    def _sentence(self) -> Text:
        success = success_of(self.summary)
        if not self.total:
            return "This evaluation has no runs."
        first = next(
            (figure.figure for figure in self.results if figure.figure.value is not None), None
        )
        if success is None and first is not None:
            share = None
            if first.unit == "share":
                share = f"{100 * float(first.value or 0):.1f}%"
            return [f"{first.label}: ", Part(share or number(first.value), "good")]
        if success is None or not (success.of or any(map(any, success.models.values()))):
            if success is None:
                by = ""
            else:
                by = f" by {brief(success.grader, 60)}"
            runs = counted(self.total, "runs")
            return [Part("No result", "bad"), f": none of {runs} graded{by}"]
        if success.many:
            return self._models_sentence(success)
        corrected = next(
            (figure for figure in headline(self.summary) if "corrects" in figure), None
        )
        if corrected is not None:
            return _corrected_sentence(success, corrected)
        return self._success_sentence(success)

    def _models_sentence(self, success: Success) -> Text:
        words = words_of(self.summary)
        word = capital(words["passed"])
        shares = []
        for name, (passed, failed) in success.models.items():
            share = percent(passed, passed + failed)
            shares.append(f"{brief(name, 60) or '(no name)'} {share}")
        shown = shares[:_MOST_MODELS]
        others = success.others + len(shares) - len(shown)
        sentence: list[str | Part | Link] = [f"{word}: "]
        for share in shown[:-1]:
            sentence += [Part(f"{share},", "good"), " "]
        more = f", {others} more models" if others else ""
        return [*sentence, Part(shown[-1], "good"), more]

    def _success_sentence(self, success: Success) -> Text:
        words = words_of(self.summary)
        word = capital(words["passed"])
        text = count_text(success, self.total)
        share = Part(text, "good")
        parts = self.reliable.parts
        if not parts or success.passed in (0, success.of):
            return [f"{word}: ", share]
        every = f"{number(parts[0][1])} of {counted(self.reliable.tasks, 'tasks')}"
        return [f"{word}: ", share, "; ", Part(every, "bad"), " in every trial"]

    def _note(self) -> Iterator[str | Part | Link]:
        """Yield the number of graded runs, their judge, and links to problems."""
        yield f"{capital(made_of(self.summary, self.reliable))}; {self._graded()}. "
        yield from self._judged_by()
        yield from self._little_known()
        yield from self._of_tasks()
        bad_records = as_map(self.summary.get("bad_records"))
        bad = as_count(bad_records.get("count"))
        if bad:
            yield Link(f"{counted(bad, 'records')} could not be read", href="#problems")
            yield ". "
        if self.warnings:
            warning_count = len(self.warnings)
            yield Link(counted(warning_count, "warnings"), href="#problems")
            yield f": {brief(self.warnings[0], _LONGEST_WARNING).rstrip('.')}. "
        yield confidence_of(self.summary, has_trials=self.reliable.trials != 1)
        if not self.rows_kept:
            yield " No rows were kept: figures without runs."

    def _little_known(self) -> Iterator[str | Part]:
        """Say that little is known where the interval of the first figure is very wide."""
        figure = next(iter(self.figures), None)
        if figure is None or figure.unit != "share" or figure.interval is None:
            return
        ends = figure.interval
        if ends[1] - ends[0] > _WIDE:
            yield Part("Little is known", "strong")
            label = figure.label
            within = f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f}%"
            yield f" of so few tasks: “{label}” may be {within}. "

    def _of_tasks(self) -> Iterator[str]:
        """Count the tasks that pass in every, some and no trials; nothing for several models."""
        parts = self.reliable.parts
        if not parts or self.reliable.models > 1:
            return
        (_, every, _), (_, some, _), (_, none, _) = parts
        tasks = counted(self.reliable.tasks, "tasks")
        yield f"Of {tasks} {number(every)} pass in every trial, {number(some)} in some, "
        yield f"{number(none)} in none. "

    def _graded(self) -> str:
        success = success_of(self.summary)
        key = success.grader if success is not None else main_key(self.summary, self.report.header)
        states = as_map(as_map(self.metrics.get("states")).get(key or ""))
        counts = {name: as_count(states.get(name)) for name in _STATES}
        if counts["graded"] == self.total:
            return "all graded" if self.total > 1 else "graded"
        parts = [f"{number(count)} {_STATES[name]}" for name, count in counts.items() if count]
        return ", ".join(parts) or "none graded"

    def _judged_by(self) -> Iterator[str | Part]:
        grader = as_map(self.summary.get("outcome")).get("grader")
        outcome = as_text(grader)
        outcome = outcome or main_key(self.summary, self.report.header) or ""
        header = as_map(self.report.header)
        components = map(as_map, as_list(header.get("components")))
        names = [
            as_text(component.get("name"))
            for component in components
            if component.get("kind") == "grader" and component.get("key") == outcome
        ]
        if not names:
            return
        if names[0] in _JUDGED_BY:
            yield f"Judged by {_JUDGED_BY[names[0]]}. "
            return
        yield from ("Judged by grader ", Part(brief(outcome, 60), "code"), ". ")


def _is_on_axis(figure: Figure) -> bool:
    return figure.unit == "share" and figure.value is not None


def _corrected_sentence(success: Success, corrected: Mapping[str, Any]) -> Text:
    """Return the share of successes as labels correct it, and the share itself."""
    label = brief(as_text(corrected.get("label")), 80)
    corrects = corrected.get("corrects")
    whose = brief(as_text(corrects), 80)
    share = success.passed / success.of
    raw = f"{whose} {share:.0%} ({number(success.passed)} of {number(success.of)})"
    value = as_number(corrected.get("value"))
    ends = ends_of(corrected.get("interval"))
    if value is None:
        reason = corrected.get("reason")
        why = brief(as_text(reason), 160)
        return [f"{label}: ", Part("not known", "bad"), f" ({why}); {raw}"]
    if ends is None:
        within = ""
    else:
        within = f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f})"
    return [f"{label} ", Part(f"{value:.0%}", "good"), f"{within}; {raw}"]


def about_of(report: Report, index: RowIndex) -> list[Part]:
    """Return model, name, files and, where it was recorded, the day."""
    header = as_map(report.header)
    summary = as_map(report.summary)
    models = list(dict.fromkeys(entry.model for entry in index.entries if entry.model))
    parts = [_name_models(models, side_of(summary))]
    paths = sorted(map(as_text, index.files))
    files = [_file_name(path) for path in paths]
    files = files or [
        _file_name(as_text(as_map(entry).get("path"))) for entry in as_list(header.get("inputs"))
    ]
    name = brief(report.name, 200)
    if name and not any(file == name or file.startswith(f"{name}.") for file in files):
        parts.append(Part(f"suite {name}"))
    config = summary.get("config")
    stack = brief(as_text(as_map(config).get("stack")), 60)
    if stack not in ("", "auto", name):
        parts.append(Part(f"stack {stack}"))
    if files:
        file = f"file {brief(files[0], 120)}"
        parts.append(Part(file if len(files) == 1 else f"{len(files)} files"))
    if as_list(summary.get("programs")):
        parts.append(Part("with the original program"))
    counts = index.facets.counts()
    days = counts.get("day", {})
    if days:
        parts.append(Part(" to ".join(dict.fromkeys((min(days), max(days))))))
    return parts


def _name_models(models: Sequence[str], side: str) -> Part:
    """Return the model's name, how many there are, or that none is recorded."""
    if not models:
        return Part("model not recorded")
    if len(models) == 1:
        name = f"model {name_of(models[0])}"
    else:
        name = f"{len(models)} {side}s"
    return Part(name, "strong")


def _file_name(path: str) -> str:
    """Return the name of a file; a page says the same wherever the file lay."""
    return path.replace("\\", "/").rpartition("/")[2]


def main_key(summary: Mapping[str, Any], header: Mapping[str, Any]) -> str | None:
    """Return the key of the main grader: the gate's, else the suite's first."""
    by_metric = as_map(as_map(summary.get("metrics")).get("by_metric"))
    config = summary.get("config")
    gate = as_map(as_map(config).get("gate"))
    gates = [*map(as_map, as_list(summary.get("gates"))[:1]), gate]
    components = map(as_map, as_list(header.get("components")))
    graders = [entry for entry in components if entry.get("kind") == "grader"]
    keys = [as_text(entry.get("metric_key")) for entry in gates]
    keys += [as_text(entry.get("key")) for entry in graders]
    return next((key for key in (*keys, *sorted(by_metric)) if key and key in by_metric), None)


def side_of(summary: Mapping[str, Any]) -> str:
    """Return the noun for a side: ``run`` or, within one evaluation, ``model``."""
    side = summary.get("side")
    return as_text(side) or "model"


def made_of(summary: Mapping[str, Any], reliable: Reliability) -> str:
    """Return the size of an evaluation: ``50 tasks, 4 trials each: 200 runs``."""
    total = as_count(as_map(summary.get("metrics")).get("total"))
    trials = reliable.trials or 1
    models = reliable.models
    is_even = reliable.tasks * trials == total and not reliable.tasks % models
    if trials == 1 or not is_even:
        return counted(total, "runs")
    sides = ""
    if models > 1:
        sides = f", {models} {side_of(summary)}s"
    tasks = counted(reliable.tasks // models, "tasks")
    return f"{tasks}{sides}, {trials} trials each: {counted(total, 'runs')}"


# What to know before quoting the figures


def caveats_of(
    summary: Mapping[str, Any],
    index: RowIndex,
    success: Success | None,
    main: str,
    without: str = "",
) -> list[Caveat]:
    """Return warnings to read before the figures are quoted, the gravest first.

    Args:
        summary: Of the run.
        index: Its samples.
        success: Its successes, None without an outcome.
        main: Key of the grader whose states count.
        without: Outcomes that are no broken or missing sample, as the page numbers them.
    """
    unread_records = _unread_records(summary)
    ungraded_runs = _ungraded_runs(summary, index, main, without)
    caveats = [*unread_records, *ungraded_runs]
    if success is not None and not success.many:
        caveats += _unrelated_scores(summary, index, success)
    return caveats[:_MOST_FINDINGS]


def _unread_records(summary: Mapping[str, Any]) -> Iterator[Caveat]:
    bad_records = summary.get("bad_records")
    count = as_map(bad_records).get("count")
    bad = as_count(count)
    every = bad + as_count(as_map(summary.get("metrics")).get("total"))
    if every and bad / every > _LOST_INPUT:
        head = f"{number(bad)} of {counted(every, 'records')} could not be read"
        rest = f" ({percent(bad, every)}) and are in no figure. "
        yield Caveat([Part(head, "strong"), rest, Link("Show them", href="#problems")])


def _ungraded_runs(
    summary: Mapping[str, Any], index: RowIndex, main: str, without: str
) -> Iterator[Caveat]:
    states = as_map(as_map(as_map(summary.get("metrics")).get("states")).get(main))
    counts = {name: as_count(states.get(name)) for name in ("failed", "missing")}
    ungraded = sum(counts.values())
    graded = states.get("graded")
    every = as_count(graded) + ungraded
    if not every or ungraded / every <= _UNGRADED:
        return
    kinds = " and ".join(f"{number(n)} {_STATES[name]}" for name, n in counts.items() if n)
    head = f"{number(ungraded)} of {counted(every, 'runs')} have no grade"
    rest = f": {kinds}. Averages leave them out. "
    grader = Part(brief(main, 60), "code")
    text: list[str | Part | Link] = [Part(head, "strong"), " by grader ", grader, rest]
    listed = sum(entry.state in ("failed", "missing") for entry in index.entries)
    if listed == ungraded and without:
        text.append(Link("Show them", without=without))
    yield Caveat(text)


def _unrelated_scores(
    summary: Mapping[str, Any], index: RowIndex, success: Success
) -> Iterator[Caveat]:
    """Yield graders whose scores are about the same whatever the outcome."""
    words, labels = words_of(summary), {}
    for entry in headline(summary):
        label = entry.get("label")
        labels[as_text(entry.get("figure"))] = brief(as_text(label), 60)
    keys = {key for key, _ in index.by_outcome}
    for key in sorted(keys - {success.grader}):
        passed, others = (index.by_outcome.get((key, is_passed)) for is_passed in (True, False))
        if passed is None or others is None or min(passed.count, others.count) < _ENOUGH:
            continue
        means = [bins.mean or 0.0 for bins in (passed, others)]
        if means[0] - means[1] >= _NO_DIFFERENCE:
            continue
        name = labels.get(f"{key}.mean") or brief(key, 60)
        shares = f"{100 * means[0]:.0f}% and {100 * means[1]:.0f}%"
        head = f"{name} says nothing here:"
        rest = f" {words['passed']} and {words['lost']} runs get the same ({shares})."
        yield Caveat([Part(head, "strong"), rest], _quiet_runs(index, words))


def _quiet_runs(index: RowIndex, words: Mapping[str, str]) -> Text:
    """Explain it by runs that expect no call; "" where they do not."""
    entries = [index.entries[position] for position in index.without_calls]
    called = [entry for entry in entries if entry.score == 0]
    passed = sum(entry.passed is True for entry in called)
    if not passed:
        return ""
    tasks = counted(len({(entry.model, entry.id) for entry in entries}), "tasks")
    sentence = (
        f"In {tasks} ({counted(len(entries), 'runs')}) nothing should be called. "
        f"{counted(len(called), 'runs')} did call something and get 0%, "
        f"yet the outcome of {number(passed)} of them is “{words['passed']}”. "
    )
    return [sentence, Link("Show them", search="expected:none passed:yes score<=0")]


def scores_section(key: str, scores: ScoreBins | None) -> Section | None:
    """Return the distribution of a grader's scores; None where all are 0 or 1."""
    if scores is None or not scores.fractional:
        return None
    return Section(f"Scores by grader {brief(key, 80)}", [Counts(scores.labelled())], id="scores")
