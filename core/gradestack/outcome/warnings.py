"""The warnings of a summary: about records, models, files, grades and components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradestack.errors import first_of
from gradestack.gates.texts import is_many, share_text
from gradestack.grading.merging import Merged
from gradestack.grading.notices import TO_COMPARE
from gradestack.grading.subset import left_out_text, not_found
from gradestack.jsonio.values import as_list
from gradestack.metrics.counts import Count
from gradestack.model import Outcome
from gradestack.outcome.reasons import FirstUngraded, count_states, dataset_advice, example_of
from gradestack.output import counted
from gradestack.patterns import compile_later
from gradestack.rundir.header import MADE
from gradestack.suites.spec import Suite
from gradestack.table import Table

_MOST_KINDS = 8
"""Kinds of remarks, and groups of models, that are named."""
_MOST_NAMES = 3
_LONGEST_NAME = 80
_PREFIXED = compile_later(r"\w+:\S")
"""How a kind of remark begins that names something by its type: ``column:latency``."""


def list_warnings(
    suite: Suite, merged: Merged, models: Iterable[str], table: Table
) -> Iterator[str]:
    """Yield the warnings of the suite, and those about records, models and files."""
    yield from suite.warnings
    if merged.left_out or suite.subset:
        yield left_out_text(suite.taken, merged.samples, merged.left_out)
        ids = table.keys["id"].values
        yield from not_found(suite.taken, merged.facets, ids)
    yield from _duplicate_warnings(merged)
    yield from _remark_warnings(merged)
    yield from _dataset_warnings(suite, merged)
    yield from _model_warnings(models)
    yield from _file_warnings(suite, table)


def _duplicate_warnings(merged: Merged) -> Iterator[str]:
    """Yield the warnings of repeated records: those that were replaced and those that were kept."""
    repeats = "record(s) repeat an (id, model, run)"
    if merged.superseded:
        first = f", the first at {merged.superseded_first}"
        yield f"{merged.superseded} {repeats}{first}; the last is kept"
    copies = merged.duplicates - merged.superseded
    if copies:
        listed = merged.duplicates_listed[merged.superseded :]
        first = ""
        if listed:
            first = f", the first at {listed[0]}"
        yield f"{copies} {repeats}{first}; all are kept"


def _remark_warnings(merged: Merged) -> Iterator[str]:
    """Yield warnings about odd data, and about parts of the data that are not used."""
    if len(merged.ids) > 1:
        number = merged.ids["number"]
        text = merged.ids["text"]
        ids = f"ids are numbers (first at {number}) and text (first at {text})"
        yield f'{ids}: 1 and "1" are one task'
    remarks = dict(sorted(merged.remarks.items()))
    if MADE in remarks:
        number, _ = remarks.pop(MADE)
        problem = "no task ids found: records were numbered, repeated runs are not grouped (--id)"
        yield f"{counted(number, 'task')}: {problem}"
    texts: dict[str, list[str]] = {"in the data": [], "not used": []}
    for kind, (times, where) in [*remarks.items()][:_MOST_KINDS]:
        section, words = _remark_text(kind)
        number_of_times = counted(times, "time")
        texts[section].append(f"{words} ({number_of_times}, first at {where})")
    number_left = len(remarks) - _MOST_KINDS
    if number_left > 0:
        texts["not used"].append(f"{number_left} more kinds in header.json")
    for section, listed in texts.items():
        if listed:
            yield f"{section}: {', '.join(listed)}"


def _remark_text(kind: str) -> tuple[str, str]:
    """Return the section of the warnings that a kind of remark is listed in, and its words.

    Not used are ``column:latency``, ``part:image_url`` and expectations that no grader reads; a
    name (``call_without_result``) and a sentence are about the data.
    """
    if kind.isidentifier():
        return "in the data", kind.replace("_", " ")
    if _PREFIXED.match(kind):
        return "not used", kind.replace(":", " ", 1)
    is_sentence = ": " in kind and TO_COMPARE not in kind
    return "in the data" if is_sentence else "not used", kind


def _dataset_warnings(suite: Suite, merged: Merged) -> Iterator[str]:
    """Yield a warning about tasks and rows of a dataset that have no counterpart."""
    tasks, rows = merged.unmatched
    problems = {
        "task(s) have no row in it": tasks,
        "row(s) of it have no run": rows,
        "id(s) have several rows, the last of which counts": merged.contradicted,
    }
    texts = []
    for problem, ids in problems.items():
        if ids:
            texts.append(f"{len(ids)} {problem}: {first_of(ids, _MOST_NAMES)}")
    if texts:
        dataset = suite.inputs.dataset
        shown = "the dataset" if dataset is None else dataset.shown
        yield f"{shown}: {'; '.join(texts)}"


def _model_warnings(models: Iterable[str]) -> Iterator[str]:
    """Yield warnings about models with almost the same name, which are probably one model."""
    by_name: dict[str, list[str]] = {}
    for model in models:
        by_name.setdefault(model.strip().casefold(), []).append(model)
    groups = [names for names in by_name.values() if len(names) > 1]
    for names in groups[:_MOST_KINDS]:
        quoted = [repr(name[:_LONGEST_NAME]) for name in names[:_MOST_NAMES]]
        if len(names) > _MOST_NAMES:
            names_left = len(names) - _MOST_NAMES
            quoted.append(f"{names_left} more")
        earlier_names = ", ".join(quoted[:-1])
        last_name = quoted[-1]
        difference = _difference_of_names(names)
        differ = f"differ only in {difference}: they are graded as different models"
        yield f"models {earlier_names} and {last_name} {differ}"
    if len(groups) > _MOST_KINDS:
        more = counted(len(groups) - _MOST_KINDS, "other group")
        yield f"{more} of models differ only in white space or case"


def _difference_of_names(names: Iterable[str]) -> str:
    if len({name.strip() for name in names}) == 1:
        return "white space"
    has_same_spaces = len({name.casefold() for name in names}) == 1
    return "case" if has_same_spaces else "white space and case"


def _file_warnings(suite: Suite, table: Table) -> Iterator[str]:
    """Yield that files which look like trials of one agent are read as models, by their names."""
    names = [file.name for file in suite.inputs.data]
    advice = suite.reader.component.one_model
    if len(names) < 2 or not advice:
        return
    ids = table.keys["id"]
    models = table.keys["model"]
    tasks_of_files = set()
    for name in names:
        rows = table.of_input(name)
        tasks = frozenset(ids.codes[row] for row in rows)
        is_one_run_each = len(tasks) == len(rows)
        is_model = all(models.values[models.codes[row]] == name for row in rows)
        if not tasks or not is_one_run_each or not is_model:
            return
        tasks_of_files.add(tasks)
    if len(tasks_of_files) == 1:
        number = counted(len(tasks), "task")
        files = f"{len(names)} files with one run each of the same {number}"
        model = f"are {len(names)} models, by the files' names"
        yield f"{files} {model}; if they are trials of one agent: {advice}"


def grade_warnings(
    suite: Suite,
    counts: Mapping[str, Count],
    doubted: str,
    merged: Merged,
    first: FirstUngraded,
) -> Iterator[str]:
    """Yield warnings about graders that graded few runs or none.

    Args:
        suite: What is evaluated.
        counts: Grader key -> its counts.
        doubted: The outcome grader where runs that it skips are worth a warning, else "".
        merged: The graded samples.
        first: The first run in each state.
    """
    count = counts.get(doubted)
    skipped = 0 if count is None else count.states[Outcome.SKIPPED]
    if count is not None and count.graded and skipped:
        state = str(Outcome.SKIPPED)
        run = first.get((doubted, state))
        example = "" if run is None else f", the first: {run.reason}"
        advice = dataset_advice(suite, doubted)
        runs = f"{skipped:,} of {merged.samples:,} runs {'is' if skipped == 1 else 'are'}"
        yield f"{runs} not counted in {doubted!r}{example}{advice}"
    graders_by_loss: dict[tuple[int, int], list[str]] = {}
    for key, count in counts.items():
        required = count.graded + count.lost
        if merged.samples and not count.graded:
            example = example_of(first, key) or "which rows would say"
            states = count_states(count)
            yield f"grader {key!r} graded no run ({states}); {example}"
        elif is_many(count.lost, required):
            graders = graders_by_loss.setdefault((count.lost, required), [])
            graders.append(repr(key))
    has_unreadable = any(count.unreadable for count in counts.values())
    unreadable = merged.bad - merged.bad_parts
    bad = ""
    if has_unreadable:
        bad = f", {unreadable:,} of them unreadable"
    total = merged.samples + unreadable * has_unreadable
    for (failed, required), keys in graders_by_loss.items():
        others = ""
        if total > required:
            others = f" (not applicable: {total - required:,} more)"
        share = share_text(failed, required)
        yield f"{share} could not be graded by {', '.join(keys)}{bad}{others}"


def component_warnings(
    suite: Suite, broken: Mapping[str, str], aggregates: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield warnings about broken components, and the warnings of aggregators."""
    origins = {metric.name: f" ({metric.stage.origin})" for metric in suite.metrics}
    for name, text in sorted(broken.items()):
        origin = origins.get(name, "")
        yield f"{name}{origin} is broken and left out: {text}"
    for key, metrics in aggregates.items():
        texts: list[Any] = []
        for figures in metrics.values():
            texts += as_list(figures.get("warnings"))
        texts = [text for text in texts if isinstance(text, str)]
        yield from (f"grader {key!r}: {text}" for text in dict.fromkeys(texts))
