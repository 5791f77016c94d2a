"""Reader ``bfcl``: files of the Berkeley Function Calling Leaderboard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
import msgspec
from typing_extensions import override

from gradestack import (
    BadRecord,
    DataError,
    Input,
    Inputs,
    RecordFile,
    RecordReader,
    Sample,
    Shard,
    Source,
    first_of,
)
from gradestack.jsonio import compact
from gradestack_plugins.bfcl.records import question_sample, sample_of
from gradestack_plugins.bfcl.side_files import (
    Form,
    SideFiles,
    base_id,
    category_of,
    confidence,
    counterpart,
    find,
    form_of_file,
    id_today,
    ids_of,
    model_of,
    question_files,
    read_side_files,
    with_id,
)
from gradestack_plugins.readers.chat.samples import PROVIDES

_NAMED = 3
"""Ids that a message shows."""


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """The files of samples, and the files that are joined with them.

    Attributes:
        files: Input -> its files, below it; "" is the input itself.
        form: The form of these files: results, or questions or possible answers without results.
    """

    files: dict[str, tuple[str, ...]]
    side: SideFiles
    form: Form


class _File(msgspec.Struct, frozen=True):
    """A file of one of the forms."""

    input_file: str
    name: str
    path: Path
    form: Form


@attrs.frozen(kw_only=True)
class Bfcl(RecordReader):
    """Reads BFCL: results, joined by id with their questions, possible answers and scores.

    One sample per result: ``id`` is the entry's, ``model`` the folder below ``result``, the facet
    ``category`` that of the file. Calls are objects of name and arguments, or a text of calls,
    which is parsed as literals only. ``expected.calls`` come of the possible answer: an argument of
    several values, or one that may be absent, has a rule; ground truth by turn keeps its turn.
    ``recorded.valid`` is true where a score file of all entries does not list it as a failure.
    Other files are found beside the results, or given with them; of questions or possible answers
    alone, samples have a reference and no run.

    Attributes:
        data: Directory of questions, with ``possible_answer`` in it; unset, the usual places beside
            ``result``.
        model: Model name given to all samples, in place of the folder's.
    """

    example_file = "result/MODEL/BFCL_v4_multiple_result.json"
    version: ClassVar[str] = "2"
    provides = PROVIDES - {"cluster", "run", "agent_usage", "ended", "trace"} | {"native"}
    stack: ClassVar[str | None] = "bfcl"
    duplicates: ClassVar[Literal["keep", "last", "error"]] = "last"
    takes_directories: ClassVar[bool] = True

    data: Path | None = None
    model: str | None = None

    @classmethod
    @override
    def sniff(cls, path: Path, head: bytes) -> float:
        return confidence(path, head)

    @override
    def index(self, inputs: Inputs) -> Index:
        """Find the files of each form and read those that are joined."""
        files_of_forms = [file for input_file in inputs.data for file in _files_in(input_file)]
        scores = [file.path for file in files_of_forms if file.form == "score"]
        if all(file.form == "score" for file in files_of_forms):
            for file in list(files_of_forms):
                path = counterpart(file.path, "result")
                if path is not None:
                    files_of_forms.append(
                        _File(file.input_file, str(path.absolute()), path, "result")
                    )
        form = _wanted_form(files_of_forms, inputs)
        files: dict[str, tuple[str, ...]] = {input_file.name: () for input_file in inputs.data}
        side: set[Path] = set()
        scored: dict[str, Path] = {}
        for file in files_of_forms:
            if file.form in {"question", "answer"}:
                side.add(file.path)
            if file.form != form:
                continue
            files[file.input_file] = (*files[file.input_file], file.name)
            side.update(question_files(file.path, self.data))
            score = None
            if form == "result":
                score = _score_of(file.path, scores)
            if score is not None:
                scored[str(file.path)] = score
        side_files = read_side_files(sorted(side), scored)
        return Index(files=files, side=side_files, form=form)

    def remarks(self, inputs: Inputs) -> Iterator[str]:
        """Yield the results without a question, questions without a result, and other scores."""
        index = self.index(inputs)
        if index.form != "result":
            first = inputs.data[0].shown
            what = "questions" if index.form == "question" else "possible answers"
            raise DataError(
                f"{first}: {what} without results: nothing was run that could be graded; name the "
                "result file too, "
                "or the directory that holds result/MODEL/…/BFCL_v4_CATEGORY_result.json"
            )
        paths = {input_file.name: input_file for input_file in inputs.data}
        answered: set[str] = set()
        for input_file, name in _listed(index.files):
            path = paths[input_file].path / name
            ids = ids_of(path)
            answered.update(ids, map(base_id, ids))
            file = paths[input_file].below(name).shown
            yield from _unmatched(file, ids, index.side, str(path))
        yield from index.side.unusable
        unanswered = [name for name in index.side.questions if name not in answered]
        if unanswered:
            names = first_of(unanswered, _NAMED)
            yield f"{len(unanswered)} question(s) without a result: {names}"

    def files(self, inputs: Inputs, index: Index) -> Iterator[RecordFile]:
        """Yield the files samples are made of."""
        for input_file in inputs.data:
            for name in index.files[input_file.name]:
                file = input_file.below(name)
                yield RecordFile(input=input_file, file=file, extra=name)

    @override
    def read(self, shard: Shard, index: Index) -> Iterator[Sample | BadRecord]:
        file = shard.input.below(shard.extra)
        category = category_of(file.path)
        model = self.model or model_of(file.path)

        def samples_of(record: Any, source: Source) -> Iterable[Sample | BadRecord]:
            """Yield the sample of a result, or of a question that has no result."""
            if not isinstance(record, dict):
                # what makes a bad record
                raise ValueError(f"expected an object, found {compact(record)[:60]}")
            group = category or str(record.get("id", "")).rpartition("_")[0]
            if index.form == "result":
                key = str(file.path)
                record = with_id(record, group)
                yield sample_of(record, source, index.side, model=model, category=group, scored=key)
                return
            identifier = record.get("id")
            if not isinstance(identifier, str) or not identifier:
                raise ValueError("id is missing or no text")
            yield question_sample(identifier, source, index.side, group)

        return self.samples(shard, samples_of, file)


def _files_in(input_file: Input) -> Iterator[_File]:
    """Yield the files of an input that have one of the four forms, sorted."""
    names = [""]
    if input_file.path.is_dir():
        paths = [path for path in input_file.path.rglob("*.json") if category_of(path) is not None]
        names = sorted(path.relative_to(input_file.path).as_posix() for path in paths)
    has_file = False
    for name in names:
        path = input_file.path / name
        form = form_of_file(path)
        if form is not None:
            has_file = True
            yield _File(input_file.name, name, path, form)
    if not has_file:
        what = "no file of BFCL: questions, possible answers, results or scores are expected"
        raise DataError(f"{input_file.path}: {what}")


def _wanted_form(files: list[_File], inputs: Inputs) -> Form:
    """Return the form of the files that samples are made of."""
    forms = {file.form for file in files}
    for form in _WANTED:
        if form in forms:
            return form
    remedy = "name its result file too, or the directory that holds result/"
    raise DataError(f"{inputs.data[0].path}: a score file lists failures only; {remedy}")


_WANTED: tuple[Form, ...] = ("result", "question", "answer")


def _listed(files: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    return ((input_file, name) for input_file, names in files.items() for name in names)


def _score_of(result: Path, scores: list[Path]) -> Path | None:
    """Return the score file of a result file.

    The one beside it, else the only given one of the same model and category.
    """
    score = counterpart(result, "score")
    if score is not None:
        return score
    mark = category_of(result), model_of(result)
    same = [path for path in scores if (category_of(path), model_of(path)) == mark]
    if len(same) == 1:
        return same[0]
    return None


def _unmatched(file: str, ids: list[str], side: SideFiles, scored: str) -> Iterator[str]:
    """Yield sentences about results without a question, and about scores of other results."""
    if side.questions:
        without_question = [
            identifier for identifier in ids if find(side.questions, identifier) is None
        ]
        if without_question:
            count = len(without_question)
            names = first_of(without_question, _NAMED)
            yield f"{file}: {count} result(s) without a question: {names}"
    scores = side.scores.get(scored)
    if scores is None:
        return
    keys = scores.failures.keys()
    id_todays = set(map(id_today, ids))
    strange = sorted(keys - id_todays)
    if strange:
        number = len(strange)
        first = first_of(strange, _NAMED)
        yield f"{file}: {number} failure(s) of its score file are of no result: {first}"
    if not scores.complete:
        total = "an unknown number" if scores.total is None else scores.total
        which = f"its score file is of {total}; only failures are taken from it"
        yield f"{file}: {len(ids)} result(s), but {which}"


_VERDICTS = {"valid": {"kind": "bfcl_valid"}}
_RULES = {"ast": {"kind": "bfcl_ast"}}
_CALLS = {"calls": {"kind": "tool_calls"}}
_FREE = {name: {"kind": name} for name in ("tool_schema", "tool_success", "repeats", "usage")}
"""What needs no reference."""
_FIGURES = {
    "Accuracy": "valid.mean",
    "Valid by BFCL's rules": "ast.mean",
    "F1 over calls": "calls.call_figures.f1",
    "F1 over arguments": "calls.call_figures.argument_f1",
    "Schema-valid calls": "tool_schema.call_validity.valid_share",
    "Successful calls": "tool_success.tool_outcomes.success_rate",
    "Runs that loop": "repeats.loops.loop_rate",
}
"""Of all graders; those in use have at most five."""
_BY_CATEGORY = {
    "Accuracy by category": "categories.accuracy",
    "Mean of the categories": "categories.unweighted",
    "Accuracy by group": "categories.groups",
}


def bfcl(inputs: Inputs | None = None) -> dict[str, Any]:
    """Return the stack: recorded verdicts, and BFCL's rules and F1 for files without a score."""
    index = _index_of(inputs)
    categories = _categories_of(inputs, index)
    graders = _graders(index, categories)
    outcome = next(iter(graders))
    figures = {label: path for label, path in _FIGURES.items() if path.partition(".")[0] in graders}
    stack: dict[str, Any] = {"graders": graders, "outcome": outcome}
    category_count = len(set(categories))
    if category_count > 1 and outcome in {*_VERDICTS, *_RULES}:
        stack["metrics"] = {"categories": {"kind": "bfcl_categories", "of": outcome}}
        by_category = _BY_CATEGORY.items()
        figures |= {label: f"{outcome}.{path}" for label, path in by_category}
    return {**stack, "headline": {"figures": figures}}


def _index_of(inputs: Inputs | None) -> Index | None:
    if inputs is None:
        return None
    try:
        return Bfcl().index(inputs)
    except DataError:  # the reader will say so
        return None


def _categories_of(inputs: Inputs | None, index: Index | None) -> list[str]:
    """Return the category of each file of samples."""
    if inputs is None or index is None:
        return []
    paths = {input_file.name: input_file.path for input_file in inputs.data}
    return [
        category_of(paths[input_file] / name) or "" for input_file, name in _listed(index.files)
    ]


def _graders(index: Index | None, categories: list[str]) -> dict[str, dict[str, str]]:
    """Choose the graders by what stands beside the results: scores, questions, answers."""
    if index is None:
        return {**_VERDICTS, **_RULES, **_CALLS}
    scored = len(index.side.scores)
    if index.form == "result" and not scored and not index.side.answers and not _called(categories):
        return dict(_FREE)
    if scored == len(categories):
        return dict(_VERDICTS)
    questions = index.side.questions
    is_ruled = questions and not all(map(_turns, categories))
    rules = _RULES if _called(categories) or is_ruled else {}
    return {**(_VERDICTS if scored else {}), **rules, **_CALLS}


def _called(categories: list[str]) -> bool:
    """Return whether a category asks only whether a call is made (relevance, irrelevance)."""
    return any("relevance" in category for category in categories)


def _turns(category: str) -> bool:
    """Return whether a category is of several turns, or of questions answered in words."""
    return category.startswith(("multi_turn", "memory", "web_search"))
