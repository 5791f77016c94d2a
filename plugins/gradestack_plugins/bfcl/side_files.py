"""Files that are joined with results: questions with their tools, possible answers, and scores."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from gradestack import (
    JSON,
    Expectation,
    ExpectedCall,
    Input,
    Rule,
    ToolSpec,
    compile_later,
    read_records,
    reading,
)
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
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "array",
    "object": "object",
    "null": "null",
    "dict": "object",
    "float": "number",
    "tuple": "array",
}
"""BFCL's word -> that of JSON Schema. Any other word (``any``) says nothing about the value."""
_DEEPEST = 64


def tools_of(functions: Any, *, texts: bool) -> tuple[ToolSpec, ...] | None:
    """Return the tools of a question; None where it names none.

    Args:
        functions: The functions as recorded.
        texts: Whether arguments are texts, as those of Java and JavaScript.
    """
    if not isinstance(functions, list):
        return None
    specs = []
    for function in map(as_map, functions):
        name = function.get("name")
        parameters = function.get("parameters")
        if not isinstance(name, str):
            continue
        schema = schema_of(parameters)
        if isinstance(parameters, Mapping):
            schema = json_schema(parameters)
            if texts:
                properties = as_map(schema.get("properties"))
                schema["properties"] = {key: _as_text(properties[key]) for key in properties}
        about = as_text(function.get("description"))
        tool_spec = ToolSpec(name=name, description=about, parameters=schema)
        specs.append(tool_spec)
    return tuple(specs)


def _as_text(schema: Any) -> dict[str, Any]:
    about = as_map(schema)
    described = {key: about[key] for key in ("description", "default") if key in about}
    return {"type": "string", **described}


def json_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema in BFCL's words in those of JSON Schema."""
    converted = dict(as_map(schema))
    kind = converted.pop("type", None)
    if isinstance(kind, str) and kind in TYPES:
        converted = {"type": TYPES[kind], **converted}
    if depth == _DEEPEST:
        return converted
    for key in ("items", "additionalProperties"):
        if isinstance(converted.get(key), dict):
            converted[key] = json_schema(converted[key], depth + 1)
    properties = converted.get("properties")
    if isinstance(properties, dict):
        converted["properties"] = {
            name: json_schema(inner, depth + 1) for name, inner in properties.items()
        }
    return converted


def parameter_names(tools: Sequence[ToolSpec] | None) -> dict[str, tuple[str, ...]]:
    """Return the names of each tool's parameters, in order."""
    schemas = {tool.name: as_map(tool.parameters) for tool in tools or ()}
    return {name: tuple(as_map(schema.get("properties"))) for name, schema in schemas.items()}


def spellings(tools: Sequence[ToolSpec] | None) -> dict[str, str]:
    """Map names that interfaces give to tools (``_`` for ``.``) to the names of the tools."""
    tool_names = {tool.name for tool in tools or ()}
    spelled: dict[str, set[str]] = {}
    for name in tool_names:
        spelled.setdefault(name.replace(".", "_"), set()).add(name)
    unused = {spelling: names for spelling, names in spelled.items() if spelling not in tool_names}
    return {spelling: names.pop() for spelling, names in unused.items() if len(names) == 1}


_LONGEST = 200_000
"""Characters of the longest text that is parsed."""
_FENCES = ("```json", "```python", "```")


class WrittenCall(msgspec.Struct, frozen=True):
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
    if len(inner) > _LONGEST or "(" not in inner:
        return None
    if inner.startswith("["):
        listed = inner
    else:
        listed = f"[{inner}]"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes are the writer's
            tree = ast.parse(listed, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(tree, ast.List):
        return None
    calls = []
    for node in tree.elts:
        name = None
        if isinstance(node, ast.Call):
            name = _dotted(node.func)
        if name is None or not isinstance(node, ast.Call):
            return None
        names = (parameters or {}).get(name, ())
        arguments = _arguments(node, names)
        source = ast.get_source_segment(listed, node) or name
        calls.append(WrittenCall(name, arguments, source))
    return calls


def _stripped(text: str) -> str:
    inner = text.strip()
    for fence in _FENCES:
        inner = inner.removeprefix(fence)
    return inner.removesuffix("```").strip().strip("`").strip()


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    before = None
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
    if before and isinstance(node, ast.Attribute):
        return f"{before}.{node.attr}"
    return None


def _arguments(node: ast.Call, names: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of a call; None where one is no literal, or has no name."""
    arg_count = len(node.args)
    if arg_count > len(names):
        return None
    by_place = zip(names, node.args, strict=False)
    by_name = [(keyword.arg, keyword.value) for keyword in node.keywords]
    arguments: dict[str, Any] = {}
    for name, value in [*by_place, *by_name]:
        if name is None or name in arguments:
            return None
        try:
            arguments[name] = _plain(ast.literal_eval(value))
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            return None
    return arguments


def _plain(value: Any) -> Any:
    """Return a literal as JSON has it: tuples are lists.

    ValueError for sets, bytes, complex numbers and odd keys.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    raise ValueError


_LEFT_OUT = ""
"""The value by which an argument may be absent."""


class Unusable(ValueError):
    """A ground truth that has no known form."""


class _SeveralValues(ValueError):
    """A part of an argument has several values, or may be absent."""


def expectation(
    ground_truth: Any, parameters: Mapping[str, Sequence[str]] | None = None
) -> Expectation:
    """Return the expectation of a ground truth."""
    if _are_exact(ground_truth):
        exact = [
            ExpectedCall(name=tool, arguments=present) for tool, present in ground_truth.items()
        ]
        return Expectation(calls=tuple(exact))
    if not isinstance(ground_truth, list):
        raise Unusable
    if ground_truth and all(isinstance(entry, str) for entry in ground_truth):
        return Expectation(text=tuple(ground_truth))
    calls: list[ExpectedCall] = []
    if ground_truth and all(isinstance(entry, list) for entry in ground_truth):
        for turn, texts in enumerate(ground_truth):
            calls += _written_calls(texts, turn, parameters)
    else:
        calls += map(_allowed_call, ground_truth)
    return Expectation(calls=tuple(calls))


def _are_exact(truth: Any) -> bool:
    """Return whether a ground truth is an object of calls with their very arguments: ACEBench's."""
    values = as_map(truth).values()
    return bool(values) and all(isinstance(value, dict) for value in values)


def _written_calls(
    texts: list[Any], turn: int, parameters: Mapping[str, Sequence[str]] | None
) -> Iterator[ExpectedCall]:
    """Yield the expected calls that texts of Python code hold; refuse one that has none."""
    for text in texts:
        calls = None
        if isinstance(text, str):
            calls = parse_calls(text, parameters)
        if not calls:
            raise Unusable
        for call in calls:
            raw = call.text if call.arguments is None else None
            yield ExpectedCall(
                name=call.name, arguments=call.arguments, raw_arguments=raw, turn=turn
            )


def _allowed_call(entry: Any) -> ExpectedCall:
    """Return the call of an object ``{TOOL: {ARGUMENT: [VALUE, …]}}``."""
    if not isinstance(entry, dict) or len(entry) != 1:
        raise Unusable
    ((name, values),) = entry.items()
    if not isinstance(values, dict):
        raise Unusable
    if not all(isinstance(allowed, list) for allowed in values.values()):
        raise Unusable
    arguments: dict[str, JSON] = {}
    rules: dict[str, Rule] = {}
    for key, allowed in values.items():
        rule = _rule(allowed)
        is_exact = rule.compare == "exact"
        if is_exact and rule.any_of and rule.any_of[0] != _LEFT_OUT:
            arguments[key] = rule.any_of[0]
        if not is_exact or rule.optional or len(rule.any_of) != 1:
            rules[key] = rule
    return ExpectedCall(name=name, arguments=arguments, rules=rules or None)


def _rule(allowed: list[Any]) -> Rule:
    """Return the rule of an argument; ``""`` among its values says that it may be absent."""
    optional = any(map(_is_left_out, allowed))
    present = [value for value in allowed if not _is_left_out(value)]
    try:
        single = [_single_value(value) for value in present]
    except _SeveralValues:
        schemas = tuple(map(_schema, present))
        return Rule(any_of=schemas, optional=optional, compare="schema")
    values: list[JSON] = []
    for value in single:
        if not any(type(value) is type(other) and value == other for other in values):
            values.append(value)
    any_of = tuple(values or [_LEFT_OUT])
    return Rule(any_of=any_of, optional=optional)


def _single_value(allowed: Any) -> JSON:
    """Return the one value of an entry, whose objects list the values of each key.

    Raises:
        _SeveralValues: A key has several values, or may be absent.
    """
    if isinstance(allowed, dict):
        value = {}
        for key, choices in allowed.items():
            listed = choices if isinstance(choices, list) else [choices]
            if len(listed) != 1 or (listed is choices and _is_left_out(listed[0])):
                raise _SeveralValues
            value[key] = _single_value(listed[0])
        return value
    if _holds_objects(allowed):
        items = []
        for item in allowed:  # a comprehension is a call more before Python 3.12: half the levels
            items.append(_single_value(item))
        return items
    return allowed


def _holds_objects(allowed: Any) -> bool:
    return isinstance(allowed, list) and any(isinstance(item, dict) for item in allowed)


def _is_left_out(value: Any) -> bool:
    return isinstance(value, str) and not value


def _schema(allowed: Any) -> dict[str, Any]:
    """Return the JSON Schema of an entry's values."""
    if isinstance(allowed, dict):
        properties = {}
        required = []
        for key, choices in allowed.items():
            listed = choices if isinstance(choices, list) else [choices]
            schemas = []
            for value in listed:  # see above
                if not _is_left_out(value):
                    schemas.append(_schema(value))
            any_of = schemas or [{"const": _LEFT_OUT}]
            properties[key] = {"anyOf": any_of}
            if not any(map(_is_left_out, listed)):
                required.append(key)
        schema = {"type": "object", "properties": properties, "required": required}
        return {**schema, "additionalProperties": False}
    if _holds_objects(allowed):
        items = []
        for item in allowed:
            items.append(_schema(item))
        number = len(items)
        return {"type": "array", "prefixItems": items, "minItems": number, "maxItems": number}
    return {"const": allowed}


Form = Literal["question", "answer", "result", "score"]

NAME = compile_later(
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
"""Category of a file of 2024 -> its name since."""
_BARE_SCORE = compile_later(r"(\w+)_score\.json")
"""Name of a score file of 2024, below ``score``."""
TODAY = {"simple": "simple_python", "java": "simple_java", "javascript": "simple_javascript"}
"""Category before the fourth version -> its name since."""
_OLD_ID = compile_later(rf"({'|'.join([*_OLD_NAMES, *TODAY])})_(\d+)")
_ID = compile_later(r"(?:[a-z]+_)+\d+(?:[-:_][\w:.-]*)?", re.IGNORECASE)
_SCORE = frozenset({"accuracy", "correct_count", "total_count"})
_COUNTS = frozenset({"input_token_count", "output_token_count", "latency", "inference_log"})
_RUNS = frozenset({"input", "messages", "question", "predicted", "expected"})
"""Keys of other formats that may keep a ground truth, too."""
_SNIFFED = 5
_MOST_ENTRIES = 5_000
"""Files and folders looked at before a directory is taken not to be of this format."""


def form_of(record: Any) -> Form | None:
    """Return the form of a record; None of another format."""
    if not isinstance(record, dict):
        return None
    keys = record.keys()
    if keys >= _SCORE and "id" not in record:
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
    result = record.get("result")
    if isinstance(result, str | list) and (
        record.keys() & _COUNTS or record.keys() <= {"id", "result"}
    ):
        return "result"
    return "result" if isinstance(record.get("result"), str) and "traceback" in record else None


def form_at(head: bytes) -> Form | None:
    """Return the form of a file: that of the first record with a known form, None without one."""
    for element, _ in first_records(head, _SNIFFED):
        if (form := form_of(element.value)) is not None:
            return form
    return None


def confidence(path: Path, head: bytes) -> float:
    """Return the certainty that a path is a file of one of the forms, or a folder of them."""
    if path.is_dir():
        result_folder = path / "result"
        below = islice(result_folder.rglob("*.json"), _MOST_ENTRIES)
        entries = _entries(path)
        if any(map(_is_named, [*below, *entries])):
            return 0.95
        return 0.0
    is_named = _is_named(path)
    if form_at(head) is not None:
        return 0.95 if is_named else 0.8
    return 0.7 if is_named and b'"id"' in head else 0.0


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
_BY_RULES = compile_later(r"(live_)?(simple|multiple|parallel)_")
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
    """The turns and the tools of a question."""

    turns: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    tools: tuple[ToolSpec, ...] | None = None


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The failures in a score file, and how many entries it is of."""

    failures: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    """Under the ids that entries have today."""
    total: int | None = None
    entries: int = 0
    """Number of results."""

    @property
    def complete(self) -> bool:
        """Whether the scores cover all results, so that those not among the failures passed."""
        return self.total == self.entries


class SideFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that are joined with results, by id."""

    questions: Mapping[str, Question] = msgspec.field(default_factory=dict)
    answers: Mapping[str, Expectation | None] = msgspec.field(default_factory=dict)
    """None where the ground truth is of no known form."""
    scores: Mapping[str, Scores] = msgspec.field(default_factory=dict)
    """Path of a result file -> its scores."""
    unusable: Sequence[str] = ()
    """Sentences about the files that have records of another form."""


def category_of(path: Path) -> str | None:
    """Return the category in a file's name."""
    named = NAME.fullmatch(path.name)
    if named is not None:
        category = named["category"]
        return _OLD_NAMES.get(category, category) if named["old"] else category
    bare = None
    if "score" in path.parts:
        bare = _BARE_SCORE.fullmatch(path.name)
    if bare is None:
        return None
    return _OLD_NAMES.get(bare[1], bare[1])


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
        entry_id = record["question"]
        functions = record.get("function")
        messages = (
            [{"role": "user", "content": entry_id}] if isinstance(entry_id, str) else entry_id
        )
        listed = functions if isinstance(functions, list) else [functions]
        return {"id": name, "question": [messages], "function": listed}
    if record and all(isinstance(values, dict) for values in record.values()):
        truth = [{tool: values} for tool, values in record.items()]
        return {"id": name, "ground_truth": truth}
    return {**record, "id": name}


def base_id(identifier: str) -> str:
    """Return the id of the question that an entry is a run of."""
    for prefix, base in _BASES.items():
        if identifier.startswith(prefix):
            return base + identifier.removeprefix(prefix)
    return identifier


def id_today(identifier: str) -> str:
    """Return the id of an entry in the fourth version."""
    old = _OLD_ID.fullmatch(identifier)
    if old is None:
        return identifier
    category = _OLD_NAMES.get(old[1], old[1])
    return f"{TODAY.get(category, category)}_{old[2]}"


def find(table: Mapping[str, Any], identifier: str) -> Any:
    """Return the entry of a table under an id, that of its question, or its id today."""
    names = (identifier, base_id(identifier), id_today(identifier))
    entries = (table.get(name) for name in names)
    return next((entry for entry in entries if entry is not None), None)


def model_of(path: Path) -> str | None:
    """Return the name of the folder below ``result`` or ``score`` that a file stands in."""
    _, below = _root(path)
    if len(below) > 1:
        return below[0]
    return None


def form_of_file(path: Path) -> Form | None:
    """Return the form of a file's first records; where they are broken, the one its name says."""
    with reading(path), open_regular(path) as file:
        head = file.read(_HEAD)
    named = head.strip() and category_of(path) is not None and path.name.endswith("_result.json")
    form = form_at(head)
    return form or ("result" if named else None)


def _root(path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return the folder that holds ``result`` or ``score``, and the parts below that one.

    Else the file's own folder and its name.
    """
    parts = path.parts
    for index in range(len(parts) - 3, -1, -1):
        if parts[index] in {"result", "score"}:
            parts_path = Path(*parts[:index])
            return parts_path, parts[index + 1 :]
    return path.parent, (path.name,)


def counterpart(path: Path, side: str) -> Path | None:
    """Return the score file of a result file, or the other way round; None if it does not exist."""
    root, below = _root(path)
    name = re.sub(r"_(result|score)\.json", f"_{side}.json", below[-1])
    folders = [path.parent]
    if len(below) > 1:
        folders.insert(0, root.joinpath(side, *below[:-1]))
    for folder in folders:
        bare_name = _bare_name(name)
        for other in (folder / name, folder / bare_name):
            if other != path and other.is_file():
                return other
    return None


def _bare_name(name: str) -> str:
    """Return the name of a score file of 2024: its category without the prefix."""
    named = NAME.fullmatch(name)
    if named is None or not named["old"] or not name.endswith("_score.json"):
        return name
    return f"{named['category']}_score.json"


def question_files(path: Path, data: Path | None) -> list[Path]:
    """Return the files of questions and possible answers of a result file's category.

    Args:
        path: The result file.
        data: The folder of questions; None for the usual places beside ``result``.
    """
    category = category_of(path)
    if category is None:
        return []
    root, _ = _root(path)
    if data is None:
        folders = [root / name for name in _DATA]
    else:
        folders = [data]
    old_names = _OLD_NAMES.items()
    old = [before for before, since in old_names if since == category]
    base = base_id(f"{category}_").rstrip("_")
    names = dict.fromkeys((category, base, TODAY.get(category, category), *old))
    paths: dict[Path, None] = {}
    places = [searched for folder in folders for searched in (folder, folder / "possible_answer")]
    for searched in places:
        for name in names:
            for form in ("BFCL_v*_", "gorilla_openfunctions_v*_test_"):
                paths |= dict.fromkeys(sorted(searched.glob(f"{form}{name}.json")))
    paths.pop(path, None)
    return list(paths)


def read_side_files(files: Iterable[Path], results: Mapping[str, Path]) -> SideFiles:
    """Return questions and possible answers, and the scores of result files."""
    questions: dict[str, Question] = {}
    truths: dict[str, Any] = {}
    unusable: list[str] = []
    for path in files:
        classes = _Classes(path.parent / _DOCS)
        strangers: list[Element] = []
        named = NAME.fullmatch(path.name)
        old = None
        if named is not None and named["old"]:
            old = category_of(path)
        for element in _elements(path):
            record = with_id(element.value, old, element.ordinal)
            form = form_of(record)
            if form == "question":
                questions[record["id"]] = question_of(record, classes)
            elif form == "answer":
                truths[record["id"]] = record["ground_truth"]
            else:
                strangers.append(element)
                name = as_map(record).get("id")
                if isinstance(name, str) and "ground_truth" in record:
                    truths.setdefault(name, record["ground_truth"])
        unusable += _notes_on(strangers, path, "neither question nor possible answer")
    answers = {}
    for name, truth in truths.items():
        question = find(questions, name)
        answers[name] = _expected(name, truth, question)
    scores = {}
    for result, path in results.items():
        entries = len(ids_of(Path(result)))
        scores[result] = _scores(path, entries, unusable)
    return SideFiles(questions=questions, answers=answers, scores=scores, unusable=unusable)


def _notes_on(strangers: Sequence[Element], path: Path, what: str) -> list[str]:
    """Return a sentence about the records of a side file that nothing can be joined with."""
    if not strangers:
        return []
    first = strangers[0]
    line = first.line or first.ordinal + 1
    content = first.problem or compact(first.value)[:_SHOWN]
    parts = path.parts[-2:]
    shown = "/".join(parts)
    count = len(strangers)
    return [f"{shown}: {count} record(s) are {what}, the first on line {line}: {content}"]


class _Classes:
    """The tools of the classes that questions of several turns name, each file read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = dict[Path, list[dict[str, Any]]]()

    def functions(self, names: Any, excluded: Any) -> list[dict[str, Any]] | None:
        """Return the functions of classes without those excluded.

        None where one of the classes is not described.
        """
        functions: list[dict[str, Any]] = []
        for name in as_list(names):
            file = self._folder / f"{_CLASSES.get(as_text(name), '')}.json"
            if file not in self._known:
                if not file.is_file():
                    return None
                records = _records(file)
                self._known[file] = list(records)
            functions += self._known[file]
        left_out = as_list(excluded)
        return [function for function in functions if function.get("name") not in left_out] or None


def question_of(record: Mapping[str, Any], classes: _Classes) -> Question:
    """Return a question; its tools stand in it, or with the classes it names."""
    turns = []
    for turn in as_list(record["question"]):
        messages = tuple([message for message in turn if isinstance(message, dict)])
        turns.append(messages)
    functions = record.get("function")
    if functions is None:
        excluded = record.get("excluded_function")
        involved_classes = record.get("involved_classes")
        functions = classes.functions(involved_classes, excluded)
    tools = tools_of(functions, texts="java" in str(record["id"]))
    return Question(turns=tuple(turns), tools=tools)


def _expected(name: str, truth: Any, question: Question | None) -> Expectation | None:
    """Return the expectation of a question; None where its ground truth is of no known form."""
    first = None
    if isinstance(truth, list) and truth:
        first = truth[0]
    match = _BY_RULES.match(name)
    if match and not isinstance(first, dict):
        return None
    tools = question.tools if question else None
    try:
        return expectation(truth, parameter_names(tools))
    except (Unusable, RecursionError):
        return None


def _scores(path: Path, entries: int, unusable: list[str]) -> Scores:
    """Return the scores of a result file; add a sentence about records of another form."""
    failures: dict[str, Mapping[str, Any]] = {}
    total = None
    strangers: list[Element] = []
    for element in _elements(path):
        record = as_map(element.value)
        identifier = record.get("id")
        if isinstance(identifier, int):  # of 2024: from one on
            prompt = record.get("prompt")
            entry_id = as_map(prompt).get("id")
            identifier = entry_id or f"{category_of(path)}_{identifier - 1}"
        if "total_count" in record and "id" not in record:
            count = record["total_count"]
            total = count if type(count) is int else None
        elif not isinstance(identifier, str):
            strangers.append(element)
        elif record.get("valid") is False:
            causes = {key: record[key] for key in ("error", "error_type") if key in record}
            failures[id_today(identifier)] = causes
    unusable += _notes_on(strangers, path, "no scores")
    return Scores(failures=failures, total=None if strangers else total, entries=entries)


def _elements(path: Path) -> Iterator[Element]:
    file = Input(path=path, name=path.stem, shown=str(path))
    return read_records(file)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    elements = _elements(path)
    values = (element.value for element in elements)
    return (value for value in values if isinstance(value, dict))


def ids_of(path: Path) -> list[str]:
    """Return the ids of a result file, one for each record that has one."""
    category = category_of(path)
    records = _records(path)
    ids = (with_id(record, category).get("id") for record in records)
    return [identifier for identifier in ids if isinstance(identifier, str)]
