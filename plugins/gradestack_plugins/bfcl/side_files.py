"""Files of BFCL: their forms, where those of one category stand, and what they say by id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from gradestack import DataError, Expectation, Input, ToolSpec, read_records
from gradestack.jsonio import Element, as_list, as_map, compact, first_records
from gradestack_plugins.bfcl.answers import Unusable, expectation, parameter_names, tools_of

Form = Literal["question", "answer", "result", "score"]

NAME = re.compile(r"BFCL_v\d+_(?P<category>\w+?)(?:_result|_score)?\.json")
"""A file's name; categories are words joined by underscores."""
_ID = re.compile(r"(?:[a-z]+_)+\d+(?:[-:_][\w:.-]*)?", re.IGNORECASE)
_SCORE = frozenset({"accuracy", "correct_count", "total_count"})
_COUNTS = frozenset({"input_token_count", "output_token_count", "latency", "inference_log"})
_RUNS = frozenset({"input", "messages", "question", "predicted", "expected"})
"""Keys of other formats that may keep a ground truth, too."""
_SNIFFED = 5
_MOST_ENTRIES = 5_000
"""Files and folders looked at before a directory is taken not to be of this format."""


def form_of(record: Any) -> Form | None:
    """Return which of the four forms a record has; None of another format."""
    if not isinstance(record, dict):
        return None
    if record.keys() >= _SCORE and "id" not in record:
        return "score"
    identifier = record.get("id")
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
        return None
    if "valid" in record and ("model_name" in record or "test_category" in record):
        return "score"
    turns = record.get("question")
    if turns and isinstance(turns, list) and all(isinstance(turn, list) for turn in turns):
        return "question"
    if isinstance(record.get("ground_truth"), list) and not record.keys() & _RUNS:
        return "answer"
    if isinstance(record.get("result"), str | list) and (record.keys() & _COUNTS or record.keys() <= {"id", "result"}):
        return "result"
    return "result" if isinstance(record.get("result"), str) and "traceback" in record else None


def form_at(head: bytes) -> Form | None:
    """Return the form of a file by its first records; the first that has one says it."""
    for element, _ in first_records(head, _SNIFFED):
        if (found := form_of(element.value)) is not None:
            return found
    return None


def confidence(path: Path, head: bytes) -> float:
    """Return how sure it is that a path is of this format: a file of one of the forms, or a directory of them."""
    if path.is_dir():
        below = islice((path / "result").rglob("*.json"), _MOST_ENTRIES)  # result/MODEL/…/BFCL_…_result.json
        return 0.95 if any(map(_is_named, below)) or any(map(_is_named, _entries(path))) else 0.0
    named = _is_named(path)
    if form_at(head) is not None:
        return 0.95 if named else 0.8
    return 0.7 if named and b'"id"' in head else 0.0


def _is_named(path: Path) -> bool:
    return NAME.fullmatch(path.name) is not None


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


_HEAD = 64 * 1024
_DATA = ("", "data", "bfcl_eval/data")
"""Where questions stand below the directory that holds ``result``."""
_SHOWN = 60
"""Characters shown of a record that cannot be joined."""
_DOCS = "multi_turn_func_doc"
"""Folder beside the questions of several turns that holds the tools of each class."""
_BY_RULES = re.compile(r"(live_)?(simple|multiple|parallel)_")
"""Ids of questions whose calls BFCL compares with allowed values; its checker stops at any other ground truth."""
_CLASSES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
    "WebSearchAPI": "web_search",
}
_BASES = (
    ("memory_kv_", "memory_"),
    ("memory_vector_", "memory_"),
    ("memory_rec_sum_", "memory_"),
    ("web_search_base_", "web_search_"),
    ("web_search_no_snippet_", "web_search_"),
)
"""Categories that are several runs of one set of questions."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says."""

    turns: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    tools: tuple[ToolSpec, ...] | None = None


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """What one score file says: which entries failed, and of how many."""

    failures: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    total: int | None = None
    entries: int = 0
    """How many results there are."""

    @property
    def complete(self) -> bool:
        """Whether it is of all the results, so that those it does not list passed."""
        return self.total == self.entries


class SideFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is joined with results, by id."""

    questions: Mapping[str, Question] = msgspec.field(default_factory=dict)
    answers: Mapping[str, Expectation | None] = msgspec.field(default_factory=dict)
    """None where the ground truth is of no known form."""
    scores: Mapping[str, Scores] = msgspec.field(default_factory=dict)
    """Path of a result file -> what its score file says."""
    unusable: Sequence[str] = ()
    """For each file with records that are none of its form: how many, and where and what the first is."""


def category_of(path: Path) -> str | None:
    """Return the category a file is named by."""
    named = NAME.fullmatch(path.name)
    return named["category"] if named else None


def base_id(identifier: str) -> str:
    """Return the id a question has of which a category makes several runs."""
    for prefix, base in _BASES:
        if identifier.startswith(prefix):
            return base + identifier.removeprefix(prefix)
    return identifier


def find(table: Mapping[str, Any], identifier: str) -> Any:
    """Return what a table says of an id, or of the question it is a run of."""
    found = table.get(identifier)
    return table.get(base_id(identifier)) if found is None else found


def model_of(path: Path) -> str | None:
    """Return the name of the folder below ``result`` or ``score`` that a file stands in."""
    parts = path.parts[:-1]
    for place in range(len(parts) - 2, -1, -1):
        if parts[place] in {"result", "score"}:
            return parts[place + 1]
    return None


def form_of_file(path: Path) -> Form | None:
    """Return the form of a file's first records; where they are broken, the one its name says."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    named = head.strip() and category_of(path) is not None and path.name.endswith("_result.json")
    return form_at(head) or ("result" if named else None)


def _root(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the directory that holds ``result`` or ``score``, and the parts from there on; else the file's own."""
    for place in range(len(path.parts) - 3, -1, -1):
        if path.parts[place] in {"result", "score"}:
            return Path(*path.parts[:place]) if place else Path(), path.parts[place + 1 :]
    return path.parent, (path.name,)


def counterpart(path: Path, side: str) -> Path | None:
    """Return the score file of a result file, or the other way round; None where there is none."""
    root, below = _root(path)
    name = below[-1].replace("_result.json", f"_{side}.json").replace("_score.json", f"_{side}.json")
    candidates = (
        [path.parent / name] if len(below) == 1 else [root.joinpath(side, *below[:-1], name), path.parent / name]
    )
    return next((each for each in candidates if each != path and each.is_file()), None)


def beside(path: Path, data: Path | None) -> list[Path]:
    """Return the files of questions and possible answers of a result file's category, wherever they usually stand."""
    category = category_of(path)
    if category is None:
        return []
    base = base_id(f"{category}_").rstrip("_")
    root, _ = _root(path)
    folders = [data] if data is not None else [root / each for each in _DATA]
    found: list[Path] = []
    for folder in folders:
        for place in (folder, folder / "possible_answer"):
            for name in dict.fromkeys((category, base)):
                found += sorted(place.glob(f"BFCL_v*_{name}.json"))
    return [each for each in dict.fromkeys(found) if each != path]


def read_side_files(files: Iterable[Path], results: Mapping[str, Path]) -> SideFiles:
    """Return what questions and possible answers say, and the scores of result files."""
    questions: dict[str, Question] = {}
    truths: dict[str, Any] = {}
    unusable: list[str] = []
    for path in files:
        classes = _Classes(path.parent / _DOCS)
        others = _Others(path, "neither question nor possible answer")
        for each in _elements(path):
            record, form = each.value, form_of(each.value)
            if form == "question":
                questions[record["id"]] = question_of(record, classes)
            elif form == "answer":
                truths[record["id"]] = record["ground_truth"]
            else:
                others.add(each)
                if isinstance(name := as_map(record).get("id"), str) and "ground_truth" in record:
                    truths.setdefault(name, record["ground_truth"])
        unusable += others.told()
    answers = {name: _expected(name, truth, find(questions, name)) for name, truth in truths.items()}
    scores = {result: _scores(path, len(ids_of(Path(result))), unusable) for result, path in results.items()}
    return SideFiles(questions=questions, answers=answers, scores=scores, unusable=unusable)


class _Others:
    """Records of a side file that nothing can be joined with."""

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what
        self.count = 0
        self._first = ""

    def add(self, found: Element) -> None:
        """Count one."""
        if not self.count:
            line = found.line or found.ordinal + 1
            self._first = f"line {line}: {found.problem or compact(found.value)[:_SHOWN]}"
        self.count += 1

    def told(self) -> list[str]:
        """Return what there is to say of them, in one text at most."""
        shown = "/".join(self._path.parts[-2:])
        text = f"{shown}: {self.count} record(s) are {self._what}, the first on {self._first}"
        return [text] if self.count else []


class _Classes:
    """The tools of the classes that questions of several turns name, each file read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, list[dict[str, Any]]] = {}

    def functions(self, names: Any, excluded: Any) -> list[dict[str, Any]] | None:
        """Return the functions of classes without those excluded; None where one of the classes is not described."""
        found: list[dict[str, Any]] = []
        for name in as_list(names):
            file = self._folder / f"{_CLASSES.get(name, '') if isinstance(name, str) else ''}.json"
            if not file.is_file():
                return None
            if file.name not in self._known:
                self._known[file.name] = list(_records(file))
            found += self._known[file.name]
        return [each for each in found if each.get("name") not in as_list(excluded)] or None


def question_of(record: Mapping[str, Any], classes: _Classes) -> Question:
    """Return what a question says; its tools stand in it, or with the classes it names."""
    turns = tuple(tuple(each for each in turn if isinstance(each, dict)) for turn in as_list(record["question"]))
    functions = record.get("function")
    if functions is None:
        functions = classes.functions(record.get("involved_classes"), record.get("excluded_function"))
    return Question(turns=turns, tools=tools_of(functions, texts="java" in str(record["id"])))


def _expected(name: str, truth: Any, question: Question | None) -> Expectation | None:
    if _BY_RULES.match(name) and not (truth and isinstance(truth, list) and isinstance(truth[0], dict)):
        return None
    try:
        return expectation(truth, parameter_names(question.tools if question else None))
    except (Unusable, RecursionError):
        return None


def _scores(path: Path, entries: int, unusable: list[str]) -> Scores:
    failures: dict[str, Mapping[str, Any]] = {}
    total = None
    others = _Others(path, "no scores")
    for each in _elements(path):
        record = as_map(each.value)
        if "total_count" in record and "id" not in record:
            count = record["total_count"]
            total = count if type(count) is int else None
        elif isinstance(record.get("id"), str) and record.get("valid") is False:
            failures[record["id"]] = {key: record[key] for key in ("error", "error_type") if key in record}
        elif not isinstance(record.get("id"), str):
            others.add(each)
    unusable += others.told()
    return Scores(failures=failures, total=None if others.count else total, entries=entries)


def _elements(path: Path) -> Iterator[Element]:
    return read_records(Input(path=path, name=path.stem, shown=str(path)))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; what is none cannot be joined with anything."""
    return (each.value for each in _elements(path) if isinstance(each.value, dict))


def ids_of(path: Path) -> list[str]:
    """Return the ids of a result file, one for each record that has one."""
    return [identifier for each in _records(path) if isinstance(identifier := as_map(each).get("id"), str)]
