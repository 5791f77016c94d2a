"""What is joined with results.

Files of BFCL, the tools of questions, and possible answers as expectations.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from gradestack import JSON, Expectation, ExpectedCall, Input, Rule, ToolSpec, read_records, reading
from gradestack.jsonio import (
    Element,
    as_list,
    as_map,
    as_text,
    compact,
    first_records,
    open_regular,
)
from gradestack_plugins.readers.chat import schema_of

TYPES = {
    word: word for word in ("string", "integer", "number", "boolean", "array", "object", "null")
}
TYPES |= {"dict": "object", "float": "number", "tuple": "array"}
"""BFCL's word -> that of JSON Schema.

A word that is not here (``any``) says nothing about the value.
"""
_DEEPEST = 64


def tools_of(functions: Any, *, texts: bool) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a question; None where it names none."""
    if not isinstance(functions, list):
        return None
    specs = []
    for function in functions:
        about = as_map(function)
        name, parameters = about.get("name"), about.get("parameters")
        if isinstance(name, str):
            schema = schema_of(parameters)
            if isinstance(parameters, Mapping):
                schema = json_schema(parameters)
                if texts:
                    schema["properties"] = {
                        k: _as_text(v) for k, v in as_map(schema.get("properties")).items()
                    }
            specs.append(
                ToolSpec(
                    name=name, description=as_text(about.get("description")), parameters=schema
                )
            )
    return tuple(specs)


def _as_text(schema: Any) -> dict[str, Any]:
    about = {key: each for key, each in as_map(schema).items() if key in {"description", "default"}}
    return {"type": "string", **about}


def json_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema in BFCL's words in those of JSON Schema."""
    found = dict(as_map(schema))
    word = found.pop("type", None)
    if isinstance(word, str) and word in TYPES:
        found = {"type": TYPES[word], **found}
    if depth < _DEEPEST:
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), dict):
                found[key] = json_schema(found[key], depth + 1)
        if isinstance(properties := found.get("properties"), dict):
            found["properties"] = {
                name: json_schema(each, depth + 1) for name, each in properties.items()
            }
    return found


def parameter_names(tools: Sequence[ToolSpec] | None) -> dict[str, tuple[str, ...]]:
    """Return the names of each tool's parameters, in order."""
    return {
        tool.name: tuple(as_map(as_map(tool.parameters).get("properties"))) for tool in tools or ()
    }


def spellings(tools: Sequence[ToolSpec] | None) -> dict[str, str]:
    """Return the names interfaces may have given tools -> the tools' own, where that is plain."""
    own = {tool.name for tool in tools or ()}
    spelled: dict[str, set[str]] = {}
    for name in own:
        spelled.setdefault(name.replace(".", "_"), set()).add(name)
    return {
        spelling: names.pop()
        for spelling, names in spelled.items()
        if len(names) == 1 and spelling not in own
    }


_LONGEST = 200_000
"""No text longer than this is taken for calls."""
_FENCES = ("```json", "```python", "```")


class WrittenCall(NamedTuple):
    """One call as it is written."""

    name: str
    arguments: dict[str, Any] | None
    """None where one of them is no literal, or stands without a name that could be found."""
    text: str


def parse_calls(
    text: str, parameters: Mapping[str, Sequence[str]] | None = None
) -> list[WrittenCall] | None:
    """Return the calls of a text, one or a list of them; None where it is something else."""
    inner = _stripped(text)
    if not inner or len(inner) > _LONGEST or "(" not in inner:
        return None
    inner = inner if inner.startswith("[") else f"[{inner}]"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes are the writer's
            tree = ast.parse(inner, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.List):
        return None
    found = [_call(node, inner, parameters or {}) for node in tree.elts]
    return [call for call in found if call is not None] if all(found) else None


def _stripped(text: str) -> str:
    inner = text.strip()
    for fence in _FENCES:
        inner = inner.removeprefix(fence)
    return inner.removesuffix("```").strip().strip("`").strip()


def _call(node: ast.expr, text: str, parameters: Mapping[str, Sequence[str]]) -> WrittenCall | None:
    if not isinstance(node, ast.Call) or (name := _dotted(node.func)) is None:
        return None
    return WrittenCall(
        name, _arguments(node, parameters.get(name, ())), ast.get_source_segment(text, node) or name
    )


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)) is not None:
        return f"{before}.{node.attr}"
    return None


def _arguments(node: ast.Call, names: Sequence[str]) -> dict[str, Any] | None:
    if len(node.args) > len(names):
        return None
    given = [
        *zip(names, node.args, strict=False),
        *((each.arg, each.value) for each in node.keywords),
    ]
    found: dict[str, Any] = {}
    for key, value in given:
        if key is None or key in found:
            return None
        try:
            found[key] = _plain(ast.literal_eval(value))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
    return found


def _plain(value: Any) -> Any:
    """Return a literal as JSON has it: tuples are lists.

    ValueError for sets, bytes, complex numbers and odd keys.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    raise ValueError


_MOST_VALUES = 64
"""Values that an object's or a list's parts may make up; beyond, they are described by a schema."""
_LEFT_OUT = ""
"""What stands among the values of an argument that may be absent."""


class Unusable(ValueError):
    """A ground truth that is none of the known forms."""


def expectation(
    ground_truth: Any, parameters: Mapping[str, Sequence[str]] | None = None
) -> Expectation:
    """Return what a ground truth expects."""
    if _are_exact(ground_truth):
        exact = [ExpectedCall(name=tool, arguments=given) for tool, given in ground_truth.items()]
        return Expectation(calls=tuple(exact))
    if not isinstance(ground_truth, list):
        raise Unusable
    if ground_truth and all(isinstance(each, str) for each in ground_truth):
        return Expectation(text=tuple(ground_truth))
    if ground_truth and all(isinstance(each, list) for each in ground_truth):
        turns = enumerate(ground_truth)
        return Expectation(
            calls=tuple(call for turn, texts in turns for call in _written(texts, turn, parameters))
        )
    return Expectation(calls=tuple(_allowed(each) for each in ground_truth))


def _are_exact(truth: Any) -> bool:
    """Return whether a ground truth is an object of calls with their very arguments: ACEBench's."""
    are_calls = isinstance(truth, dict) and all(isinstance(each, dict) for each in truth.values())
    return are_calls and bool(truth)


def _written(
    texts: list[Any], turn: int, parameters: Mapping[str, Sequence[str]] | None
) -> list[ExpectedCall]:
    found = []
    for text in texts:
        calls = parse_calls(text, parameters) if isinstance(text, str) else None
        if not calls:
            raise Unusable
        for call in calls:
            raw = call.text if call.arguments is None else None
            found.append(
                ExpectedCall(name=call.name, arguments=call.arguments, raw_arguments=raw, turn=turn)
            )
    return found


def _allowed(entry: Any) -> ExpectedCall:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise Unusable
    ((name, values),) = entry.items()
    if not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
        raise Unusable
    arguments: dict[str, JSON] = {}
    rules: dict[str, Rule] = {}
    for key, allowed in values.items():
        rule = _rule(allowed)
        if rule.compare == "exact" and rule.any_of and rule.any_of[0] != _LEFT_OUT:
            arguments[key] = rule.any_of[0]
        if len(rule.any_of) != 1 or rule.optional or rule.compare != "exact":
            rules[key] = rule
    return ExpectedCall(name=name, arguments=arguments, rules=rules or None)


def _rule(allowed: list[Any]) -> Rule:
    """Return the rule of an argument; ``""`` among its values says that it may be absent."""
    optional = any(_is_left_out(each) for each in allowed)
    given = [each for each in allowed if not _is_left_out(each)]
    parts = [_values(each) for each in given]
    if any(part is None or len(part) > 1 for part in parts) or any(map(_leaves_choice, given)):
        return Rule(
            any_of=tuple(_schema(each) for each in given), optional=optional, compare="schema"
        )
    values: list[JSON] = []
    for value in (each for part in parts if part is not None for each in part):
        if not any(type(value) is type(other) and value == other for other in values):
            values.append(value)
    return Rule(any_of=tuple(values) if values else (_LEFT_OUT,), optional=optional)


def _leaves_choice(allowed: Any) -> bool:
    """Return whether a key of an object may be absent.

    The ``""`` that says so is a value of it, too.
    """
    if isinstance(allowed, dict):
        return any(
            _is_left_out(one) for each in allowed.values() if isinstance(each, list) for one in each
        )
    return isinstance(allowed, list) and any(map(_leaves_choice, allowed))


def _is_left_out(value: Any) -> bool:
    return isinstance(value, str) and not value


def _values(allowed: Any) -> list[JSON] | None:
    """Return the values one entry stands for; None where they are too many."""
    if isinstance(allowed, dict):
        keys = [_choices(each) for each in allowed.values()]
        return _products(
            keys,
            lambda chosen: {k: v for k, v in zip(allowed, chosen, strict=True) if v is not _ABSENT},
        )
    if isinstance(allowed, list) and any(isinstance(each, dict) for each in allowed):
        return _products([_values(each) for each in allowed], list)
    return [allowed]


_ABSENT = object()


def _choices(allowed: Any) -> list[Any] | None:
    """Return what a key of an object may be.

    Its values, and nothing at all where it may be absent.
    """
    if not isinstance(allowed, list):
        return [allowed]
    found: list[Any] = []
    for each in allowed:
        values = [_ABSENT] if _is_left_out(each) else _values(each)
        if values is None:
            return None
        found += values
    return found


def _products(parts: list[list[Any] | None], made: Any) -> list[JSON] | None:
    number = 1
    for part in parts:
        number *= len(part) if part is not None else _MOST_VALUES + 1
    if number > _MOST_VALUES or any(part is None for part in parts):
        return None
    return [made(chosen) for chosen in product(*(part for part in parts if part is not None))]


def _schema(allowed: Any) -> dict[str, Any]:
    if isinstance(allowed, dict):
        lists = {key: each if isinstance(each, list) else [each] for key, each in allowed.items()}
        properties = {}
        for key, values in lists.items():
            schemas = []
            for (
                each
            ) in values:  # a comprehension is a call more before Python 3.12: half the levels
                if not _is_left_out(each):
                    schemas.append(_schema(each))
            properties[key] = {"anyOf": schemas or [{"const": _LEFT_OUT}]}
        required = [key for key, values in lists.items() if not any(map(_is_left_out, values))]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
    if isinstance(allowed, list) and any(isinstance(each, dict) for each in allowed):
        number, items = len(allowed), []
        for each in allowed:
            items.append(_schema(each))
        return {"type": "array", "prefixItems": items, "minItems": number, "maxItems": number}
    return {"const": allowed}


Form = Literal["question", "answer", "result", "score"]

NAME = re.compile(
    r"(?:BFCL_v\d+_|(?P<old>gorilla_openfunctions_v\d+_test_))"
    r"(?P<category>\w+?)(?:_result|_score)?\.json"
)
"""A file's name; categories are words joined by underscores."""
_OLD_NAMES = {
    "multiple_function": "multiple",
    "parallel_function": "parallel",
    "parallel_multiple_function": "parallel_multiple",
    "relevance": "irrelevance",
}
"""Category of a file of 2024 -> what it is called since."""
_BARE_SCORE = re.compile(r"(\w+)_score\.json")
"""Name of a score file of 2024, below ``score``."""
TODAY = {"simple": "simple_python", "java": "simple_java", "javascript": "simple_javascript"}
"""Category before the fourth version -> what it is called since."""
_OLD_ID = re.compile(rf"({'|'.join([*_OLD_NAMES, *TODAY])})_(\d+)")
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
    if identifier is None and isinstance(record.get("idx"), int):
        return "result" if isinstance(record.get("result"), str | list) else None
    if not isinstance(identifier, str) or not _ID.fullmatch(identifier):
        return None
    if "valid" in record and ("model_name" in record or "test_category" in record):
        return "score"
    turns = record.get("question")
    if turns and isinstance(turns, list) and all(isinstance(turn, list) for turn in turns):
        return "question"
    truth = record.get("ground_truth")
    if (isinstance(truth, list) or _are_exact(truth)) and not record.keys() & _RUNS:
        return "answer"
    if isinstance(record.get("result"), str | list) and (
        record.keys() & _COUNTS or record.keys() <= {"id", "result"}
    ):
        return "result"
    return "result" if isinstance(record.get("result"), str) and "traceback" in record else None


def form_at(head: bytes) -> Form | None:
    """Return the form of a file by its first records; the first that has one says it."""
    for element, _ in first_records(head, _SNIFFED):
        if (found := form_of(element.value)) is not None:
            return found
    return None


def confidence(path: Path, head: bytes) -> float:
    """Return how sure it is that a path is of this format.

    A file of one of the forms, or a directory of them.
    """
    if path.is_dir():
        below = islice(
            (path / "result").rglob("*.json"), _MOST_ENTRIES
        )  # result/MODEL/…/BFCL_…_result.json
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
"""Ids of questions whose calls BFCL compares with allowed values.

Its checker stops at any other ground truth.
"""
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
_BASES = {
    **dict.fromkeys(("memory_kv_", "memory_vector_", "memory_rec_sum_"), "memory_"),
    **dict.fromkeys(("web_search_base_", "web_search_no_snippet_"), "web_search_"),
}
"""Categories that are several runs of one set of questions."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says."""

    turns: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    tools: tuple[ToolSpec, ...] | None = None


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """What one score file says: which entries failed, and of how many."""

    failures: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """Under the ids that entries have today."""
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
    """For each file with records that are none of its form.

    How many, and where and what the first is.
    """


def category_of(path: Path) -> str | None:
    """Return the category a file is named by."""
    named = NAME.fullmatch(path.name)
    if named is not None:
        category = named["category"]
        return _OLD_NAMES.get(category, category) if named["old"] else category
    bare = _BARE_SCORE.fullmatch(path.name) if "score" in path.parts else None
    return None if bare is None else _OLD_NAMES.get(bare[1], bare[1])


def with_id(record: Any, category: str | None, ordinal: int | None = None) -> Any:
    """Return a record of 2024, which has no id, in the form records have since.

    Its id is the category with its ``idx``, else with its place in the file, where that is given.
    """
    if not isinstance(record, dict) or "id" in record or category is None:
        return record
    number = record.get("idx", ordinal)
    if not isinstance(number, int):
        return record
    name = f"{category}_{number}"
    if "question" in record:
        asked, functions = record["question"], record.get("function")
        messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        listed = functions if isinstance(functions, list) else [functions]
        return {"id": name, "question": [messages], "function": listed}
    if record and all(isinstance(values, dict) for values in record.values()):
        truth = [{tool: values} for tool, values in record.items()]
        return {"id": name, "ground_truth": truth}
    return {**record, "id": name}


def base_id(identifier: str) -> str:
    """Return the id a question has of which a category makes several runs."""
    for prefix, base in _BASES.items():
        if identifier.startswith(prefix):
            return base + identifier.removeprefix(prefix)
    return identifier


def id_today(identifier: str) -> str:
    """Return what an entry of an older version is called in the fourth."""
    old = _OLD_ID.fullmatch(identifier)
    if old is None:
        return identifier
    category = _OLD_NAMES.get(old[1], old[1])
    return f"{TODAY.get(category, category)}_{old[2]}"


def find(table: Mapping[str, Any], identifier: str) -> Any:
    """Return what a table says of an id, of the question it is a run of, or of its id today."""
    names = (identifier, base_id(identifier), id_today(identifier))
    return next((table[name] for name in names if table.get(name) is not None), None)


def model_of(path: Path) -> str | None:
    """Return the name of the folder below ``result`` or ``score`` that a file stands in."""
    parts = path.parts[:-1]
    for place in range(len(parts) - 2, -1, -1):
        if parts[place] in {"result", "score"}:
            return parts[place + 1]
    return None


def form_of_file(path: Path) -> Form | None:
    """Return the form of a file's first records; where they are broken, the one its name says."""
    with reading(path), open_regular(path) as file:
        head = file.read(_HEAD)
    named = head.strip() and category_of(path) is not None and path.name.endswith("_result.json")
    return form_at(head) or ("result" if named else None)


def _root(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the directory that holds ``result`` or ``score``, and the parts from there on.

    Else the file's own.
    """
    for place in range(len(path.parts) - 3, -1, -1):
        if path.parts[place] in {"result", "score"}:
            return Path(*path.parts[:place]) if place else Path(), path.parts[place + 1 :]
    return path.parent, (path.name,)


def counterpart(path: Path, side: str) -> Path | None:
    """Return the score file of a result file, or the other way round; None where there is none."""
    root, below = _root(path)
    name = (
        below[-1].replace("_result.json", f"_{side}.json").replace("_score.json", f"_{side}.json")
    )
    folders = [path.parent] if len(below) == 1 else [root.joinpath(side, *below[:-1]), path.parent]
    places = [folder / each for folder in folders for each in (name, _bare_name(name))]
    return next((each for each in places if each != path and each.is_file()), None)


def _bare_name(name: str) -> str:
    """Return what a score file of 2024 is called: its category without what stands before it."""
    named = NAME.fullmatch(name)
    is_old_score = named is not None and named["old"] and name.endswith("_score.json")
    return f"{named['category']}_score.json" if named is not None and is_old_score else name


def beside(path: Path, data: Path | None) -> list[Path]:
    """Return the files of questions and possible answers of a result file's category, wherever they
    usually stand.
    """
    category = category_of(path)
    if category is None:
        return []
    base = base_id(f"{category}_").rstrip("_")
    root, _ = _root(path)
    folders = [data] if data is not None else [root / each for each in _DATA]
    places = [place for folder in folders for place in (folder, folder / "possible_answer")]
    old = [before for before, since in _OLD_NAMES.items() if since == category]
    names = dict.fromkeys((category, base, TODAY.get(category, category), *old))
    found = [
        each
        for place in places
        for name in names
        for form in ("BFCL_v*_", "gorilla_openfunctions_v*_test_")
        for each in sorted(place.glob(f"{form}{name}.json"))
    ]
    return [each for each in dict.fromkeys(found) if each != path]


def read_side_files(files: Iterable[Path], results: Mapping[str, Path]) -> SideFiles:
    """Return what questions and possible answers say, and the scores of result files."""
    questions: dict[str, Question] = {}
    truths: dict[str, Any] = {}
    unusable: list[str] = []
    for path in files:
        classes = _Classes(path.parent / _DOCS)
        others = _Others()
        named = NAME.fullmatch(path.name)
        old = category_of(path) if named is not None and named["old"] else None
        for each in _elements(path):
            record = with_id(each.value, old, each.ordinal)
            form = form_of(record)
            if form == "question":
                questions[record["id"]] = question_of(record, classes)
            elif form == "answer":
                truths[record["id"]] = record["ground_truth"]
            else:
                others.add(each)
                if isinstance(name := as_map(record).get("id"), str) and "ground_truth" in record:
                    truths.setdefault(name, record["ground_truth"])
        unusable += others.told(path, "neither question nor possible answer")
    answers = {
        name: _expected(name, truth, find(questions, name)) for name, truth in truths.items()
    }
    scores = {
        result: _scores(path, len(ids_of(Path(result))), unusable)
        for result, path in results.items()
    }
    return SideFiles(questions=questions, answers=answers, scores=scores, unusable=unusable)


class _Others:
    """Records of a side file that nothing can be joined with."""

    def __init__(self) -> None:
        self.count, self._first = 0, ""

    def add(self, found: Element) -> None:
        line = found.line or found.ordinal + 1
        self._first = (
            self._first or f"line {line}: {found.problem or compact(found.value)[:_SHOWN]}"
        )
        self.count += 1

    def told(self, path: Path, what: str) -> list[str]:
        shown = "/".join(path.parts[-2:])
        text = f"{shown}: {self.count} record(s) are {what}, the first on {self._first}"
        return [text] if self.count else []


class _Classes:
    """The tools of the classes that questions of several turns name, each file read once."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known = folder, dict[Path, list[dict[str, Any]]]()

    def functions(self, names: Any, excluded: Any) -> list[dict[str, Any]] | None:
        """Return the functions of classes without those excluded.

        None where one of the classes is not described.
        """
        found: list[dict[str, Any]] = []
        for name in as_list(names):
            file = self._folder / f"{_CLASSES.get(as_text(name), '')}.json"
            if file not in self._known:
                if not file.is_file():
                    return None
                self._known[file] = list(_records(file))
            found += self._known[file]
        return [each for each in found if each.get("name") not in as_list(excluded)] or None


def question_of(record: Mapping[str, Any], classes: _Classes) -> Question:
    """Return what a question says; its tools stand in it, or with the classes it names."""
    turns = tuple(
        tuple(each for each in turn if isinstance(each, dict))
        for turn in as_list(record["question"])
    )
    functions = record.get("function")
    if functions is None:
        functions = classes.functions(
            record.get("involved_classes"), record.get("excluded_function")
        )
    return Question(turns=turns, tools=tools_of(functions, texts="java" in str(record["id"])))


def _expected(name: str, truth: Any, question: Question | None) -> Expectation | None:
    if _BY_RULES.match(name) and not (
        truth and isinstance(truth, list) and isinstance(truth[0], dict)
    ):
        return None
    try:
        return expectation(truth, parameter_names(question.tools if question else None))
    except (Unusable, RecursionError):
        return None


def _scores(path: Path, entries: int, unusable: list[str]) -> Scores:
    failures: dict[str, Mapping[str, Any]] = {}
    total = None
    others = _Others()
    for each in _elements(path):
        record = as_map(each.value)
        if isinstance(place := record.get("id"), int):  # of 2024: from one on
            asked = as_map(record.get("prompt")).get("id")
            record = {**record, "id": asked or f"{category_of(path)}_{place - 1}"}
        if "total_count" in record and "id" not in record:
            count = record["total_count"]
            total = count if type(count) is int else None
        elif isinstance(record.get("id"), str) and record.get("valid") is False:
            failures[id_today(record["id"])] = {
                key: record[key] for key in ("error", "error_type") if key in record
            }
        elif not isinstance(record.get("id"), str):
            others.add(each)
    unusable += others.told(path, "no scores")
    return Scores(failures=failures, total=None if others.count else total, entries=entries)


def _elements(path: Path) -> Iterator[Element]:
    return read_records(Input(path=path, name=path.stem, shown=str(path)))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    return (each.value for each in _elements(path) if isinstance(each.value, dict))


def ids_of(path: Path) -> list[str]:
    """Return the ids of a result file, one for each record that has one."""
    category = category_of(path)
    records = (with_id(each, category) for each in _records(path))
    return [identifier for each in records if isinstance(identifier := each.get("id"), str)]
