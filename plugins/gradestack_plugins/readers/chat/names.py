"""What the columns and keys of people's own data are called.

The table ``own_data@1``, and what is recognised by it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from gradestack import Inputs
from gradestack.jsonio import (
    JsonProblem,
    as_list,
    compact,
    loads,
    path_exists,
    path_steps,
    path_value,
)
from gradestack_plugins.readers.chat import OBJECT, dialect, text_of
from gradestack_plugins.readers.chat.forms import calls_in, glaive, nested
from gradestack_plugins.readers.chat.parts import row_kind
from gradestack_plugins.readers.chat.unread import names_a_call

OWN_DATA: Final = "own_data@1"  # name and version of the table
FIRST: Final = 1000  # records of an input that are looked at
_NAMED: Final = 20  # inputs that a command names one by one
_LARGEST: Final = 8 * 1024 * 1024  # characters of all records together that are looked at
_SESSIONS: Final = (
    *("conversation_id", "thread_id", "session_id", "trace_id"),
    *("$.config.configurable.thread_id", "$.checkpoint.thread_id", "$.context.trace_id"),
)
"""Ids that may be those of a conversation, whose records ask different questions."""
_TABLE: Final = """
messages: messages conversation conversations history transcript trajectory items new_items chat
  dialog contents events user_input outputs steps
  $.outputs.messages $.inputs.messages $.values.messages $.state.messages $.outputs.history
  $.inputs.history
input: input prompt question query user_input user_message user_query utterance
text: text response completion prediction output model_output actual_output final_output
  final_answer answer
calls: calls tool_calls actual_tool_calls predicted_calls tools_called actual_tool predicted_tool
expected.calls: expected.calls expected_calls expected_tool_calls expected_tools gold_calls
  reference_calls reference_tool_calls
  ground_truth_tool_calls reference_outputs reference_trajectory $.reference_outputs.tool_calls $.ground_truth.tool_calls
  $.expected.tool_calls $.expectations.expected_tool_calls
  expected reference ground_truth gold target expected_tool gold_tool
expected.text: expected.text expected expected_answer expected_output reference reference_answer
  reference_output
  ground_truth ground_truth_answer ground_truth_output gold gold_answer gold_output target label
  answer $.expectations.expected_response
id: id task_id case_id test_id question_id example_id conversation_id thread_id session_id custom_id
  trace_id uuid case
  $.metadata.task_id $.config.configurable.thread_id $.checkpoint.thread_id $.context.trace_id
model: model model_name provided_model_name $.provider.id $.attributes.llm.model_name
tools: tools tool_definitions available_tools
usage: usage usage_details $.attributes.llm.token_count $.info.model_stats
usage.cost_usd: usage.cost_usd $.costDetails.total $.cost_details.total
recorded: success passed pass resolved is_resolved solved is_correct correct reward
"""
_NAMES: Final[Mapping[str, Sequence[str]]] = {
    field: names.split()
    for field, _, names in (
        line.partition(":") for line in _TABLE.replace("\n  ", " ").strip().split("\n")
    )
}
"""Field -> names, the first that is there wins. A name that begins with ``$`` is a path."""
_STEPS: Final = (
    ("input", "output"),
    ("inputs", "outputs"),
    ("$.attributes.llm.input_messages", "$.attributes.llm.output_messages"),
    ("input", "new_items"),
    ("query", "response"),
)
"""Where a history and what followed it stand, each beside the other."""
_NO_TOOL: Final = frozenset({"", "none", "no_tool", "-"})
_CALL_NAMES: Final = ("name", "tool", "tool_name", "function")
_ARGUMENTS: Final = (
    "arguments",
    "args",
    "input",
    "tool_input",
    "input_parameters",
    "parameters",
    "kwargs",
)
_DETAILS: Final = frozenset(
    {
        *(
            "id",
            "type",
            "names",
            "rules",
            "optional",
            "turn",
            "group",
            "requestor",
            "result",
            "error",
            "error_type",
            "exit_code",
        ),
        *("step", "author", "server", "kind", "status", "started", "seconds"),
    }
)
"""Keys of calls that are taken as they are."""
_UNDERSTOOD: Final = _DETAILS | {
    "name",
    "arguments",
    "function",
    "output",
    "index",
    "strict",
    "parsed_arguments",
    "partial_args",
    "partialArgs",
    "will_continue",
    "willContinue",
}
"""Keys of calls that are read, or say nothing of what was called."""
JSON_TEXT: Final = re.compile(r"""\s*(?:\{\s*["}]|\[\s*[\[{"\]\d-])""")
"""How text begins that is a JSON list or object, and not prose in brackets."""


def plain_name(name: str) -> str:
    """Return a name as it is compared: in lower case, without ``_``, ``-``, ``.`` and space."""
    return re.sub(r"[_\-. ]", "", name).lower()


@cache
def _plain_usual_name(name: str) -> str:
    """Return the plain form of one of our own names, which are asked for in every file."""
    return plain_name(name.removeprefix("$."))


_PLAIN_SESSIONS: Final = tuple(map(plain_name, _SESSIONS))


def decoded(value: Any) -> Any:
    """Return what the text of a JSON list or object holds; anything else as it is."""
    if isinstance(value, str) and JSON_TEXT.match(value):
        try:
            return loads(value)
        except JsonProblem:
            return value
    return value


_FENCED: Final = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
"""A block of code in a text."""
_LONGEST_NAME: Final = 256
"""Characters of a tool's name in plain text."""


def calls_in_text(text: str) -> list[dict[str, Any]] | None:
    """Return the calls that a text is as JSON, or holds in fenced blocks or tags.

    None of a text that holds no calls in these forms.
    """
    if JSON_TEXT.match(text):
        return _call_entries(decoded(text))
    blocks = [decoded(block) for block in _FENCED.findall(text)]
    entries = [_call_entries(block) for block in blocks if not isinstance(block, str)]
    if found := [entry for listed in entries for entry in listed or ()]:
        return found
    tagged = calls_in(text)[1] if "<tool_call>" in text else []
    return _call_entries(tagged) if tagged else None


def _call_entries(value: Any) -> list[dict[str, Any]] | None:
    """Return a list of calls, one call, or what stands under ``tool_calls``; None of all else."""
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    entries = value if isinstance(value, list) else [value]
    are_calls = all(isinstance(each, dict) and call_of(each)[0] is not each for each in entries)
    return entries if are_calls else None


def is_tool_name(text: str) -> bool:
    """Return whether a plain text may be the name of a tool: prose is none."""
    return len(text) <= _LONGEST_NAME and not any(map(str.isspace, text))


def with_names(value: Any) -> Any:
    """Return calls ``{TOOL: ARGUMENTS}``, one or a list, as names beside arguments; all else as it
    is.
    """
    found = decoded(value)
    entries = found if isinstance(found, list) else [found]
    if not entries or not all(map(_is_keyed, entries)):
        return value
    return [
        {"name": tool, "arguments": decoded(arguments)}
        for entry in entries
        for tool, arguments in entry.items()
    ]


def _is_keyed(entry: Any) -> bool:
    """Return whether an entry has arguments under the name of each tool it calls."""
    if not isinstance(entry, dict) or not entry or call_of(entry)[0] is not entry:
        return False
    are_tools = all(is_tool_name(tool) and not names_a_call(tool) for tool in entry)
    return are_tools and all(isinstance(decoded(given), dict) for given in entry.values())


def unread_entry(value: Any) -> str | None:
    """Return what holds a call that is not decoded in an entry of calls; None where it is."""
    if isinstance(value, str):
        return None if is_tool_name(value.strip()) or _is_none(value) else "text"
    return "entry" if isinstance(value, OBJECT) and call_of(value)[0] is value else None


def _is_none(name: Any) -> bool:
    """Return whether a name says that no tool was called."""
    return isinstance(name, str) and name.strip().lower() in _NO_TOOL


def calls_of(value: Any) -> Any:
    """Return calls in the jsonl form, from a list, one call, a name, or the JSON text of any.

    What is none as it is.

    An empty cell, null, and ``none``, ``no_tool`` or ``-`` in place of a tool are no call. A call
    without arguments has ``arguments`` null: where it is expected, they are not compared.
    """
    value = decoded(value)
    if isinstance(value, str) and (entries := calls_in_text(value)) is not None:
        value = entries
    if value is None or value == {}:
        return []
    if not isinstance(value, list) and isinstance(value, (str, *OBJECT)):
        value = [value]
    if not isinstance(value, list):
        return value
    found = [call_of(each)[0] for each in value]
    names = [each.get("name") if isinstance(each, dict) else None for each in found]
    return [each for each, name in zip(found, names, strict=True) if not _is_none(name)]


def unread_of(value: Any) -> list[str]:
    """Return what holds a call that is not decoded in what is mapped to calls, entry by entry."""
    value = decoded(value)
    if isinstance(value, str) and calls_in_text(value) is not None:
        return []
    entries = value if isinstance(value, list) else [value]
    filled = [entry for entry in entries if entry is not None and entry != {}]
    return [kind for entry in filled if (kind := unread_entry(entry)) is not None]


def usual_call(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call with its name and arguments under these keys, whatever they are called.

    The rest as it is.
    """
    function = entry.get("function")
    if function is not None and isinstance(function, OBJECT):
        usual = usual_call(function)
        return entry if usual is function else {**entry, "function": usual}
    if "name" in entry and "arguments" in entry:
        return entry
    called = _usual_names(tuple(entry))
    return {called.get(key, key): value for key, value in entry.items()} if called else entry


@lru_cache(maxsize=1024)
def _usual_names(keys: tuple[Any, ...]) -> Mapping[str, str]:
    """Return which keys of a call are its name and arguments by another word.

    Calls repeat the same few.
    """
    plain = {plain_name(str(key)): key for key in reversed(keys)}
    names = (("name", _CALL_NAMES), ("arguments", _ARGUMENTS))
    found = {
        next((plain[each] for each in map(plain_name, of) if each in plain), name): name
        for name, of in names
    }
    return {key: name for key, name in found.items() if key != name}


def call_of(entry: Any) -> tuple[Any, list[str]]:
    """Return one call in the jsonl form, and its keys that are not understood.

    What names no tool as it is.
    """
    if isinstance(entry, str):
        return {"name": entry.strip(), "arguments": None}, []
    if not isinstance(entry, OBJECT):
        return entry, []
    call = usual_call(entry)
    inner = (
        call["function"] if "function" in call and isinstance(call["function"], OBJECT) else call
    )
    if not isinstance(inner.get("name"), str) and "names" not in call:
        return entry, []
    found = {key: each for key, each in call.items() if key in _DETAILS}
    if "output" in call:
        found.setdefault("result", call["output"])
    if inner.get("name") is not None:
        found["name"] = inner["name"]
    found["arguments"] = inner.get("arguments")
    return found, [
        str(key) for key in (call if inner is call else (*call, *inner)) if key not in _UNDERSTOOD
    ]


def usual_record(record: Any) -> Any:
    """Return a span whose keys are paths as objects, a list as the messages it is.

    Anything else as it is.
    """
    if isinstance(record, list):
        return {"messages": record}
    if not isinstance(record, dict):
        return record
    held = record.get("attributes") if "span_kind" in record and "context" in record else None
    paths = isinstance(held, dict) and any("." in str(key) for key in held)
    try:
        return nested(record) if paths or "context.trace_id" in record else record
    except RecursionError:
        return record


def talk_of(value: Any) -> Any:
    """Return the messages that a value, JSON or glaive's text of them holds.

    Anything else as it is.
    """
    if (spoken := glaive(value)) is not None:
        return spoken
    found = decoded(value)
    if isinstance(found, dict):
        found = found["messages"] if isinstance(found.get("messages"), list) else [found]
    return found


def _is_talk(value: Any) -> bool:
    return dialect.of_entries(talk_of(value)) is not None


def _is_answer(value: Any) -> bool:
    return isinstance(value, str) or _is_talk(value)


def _are_due(value: Any) -> bool:
    """Return whether a value says which calls are expected: as calls, or in messages."""
    return _are_calls(value) or (_is_talk(value) and not isinstance(value, str))


def _are_made(value: Any) -> bool:
    return _are_calls(with_names(value))


def _are_calls(value: Any) -> bool:
    found = calls_of(value)
    return (
        not unread_of(value)
        and isinstance(found, list)
        and all(isinstance(each, dict) and {"name", "names"} & each.keys() for each in found)
    )


def _is_scalar(value: Any) -> bool:
    found = decoded(value)
    held = found if isinstance(found, list) else [found]
    return isinstance(value, str | int | float) and not any(
        isinstance(each, dict | list) for each in held
    )


def _is_verdict(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (
        isinstance(value, str) and value.strip().lower() in VERDICTS
    )


VERDICTS: Final = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "success", "1"), True),
    **dict.fromkeys(("false", "no", "fail", "failed", "failure", "0"), False),
}
"""What is written for a verdict."""
_FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "messages": _is_talk,
    "input": _is_scalar,
    "text": _is_scalar,
    "calls": _are_made,
    "expected.calls": _are_due,
    "expected.text": _is_scalar,
    "id": lambda value: isinstance(value, str | int | float) and not isinstance(value, bool),
    "model": lambda value: isinstance(value, str),
    "usage": lambda value: isinstance(decoded(value), dict),
    "tools": lambda value: isinstance(decoded(value), list),
    "usage.cost_usd": _is_scalar,
}


class Guess(NamedTuple):
    """What was recognised."""

    columns: Mapping[str, str] = {}  # field -> column or path
    doubts: Sequence[str] = ()  # what could be otherwise, with the option that changes it
    names: Sequence[str] = ()  # all columns there are
    rows: Sequence[Mapping[str, Any]] = ()  # what was looked at

    @property
    def shows_a_run(self) -> bool:
        """Whether anything says what an agent did."""
        did = {"messages", "turns", "text", "label", "calls", "predicted", "plan", "state"}
        return bool(did & self.columns.keys()) or self.holds_verdicts

    @property
    def holds_verdicts(self) -> bool:
        """Whether there are verdicts on what has an id or a question."""
        named = bool(self.columns.keys() & {"id", "input"})
        return named and any(field.startswith("recorded") for field in self.columns)

    @property
    def is_dataset(self) -> bool:
        """Whether there are expectations by id, and maybe nothing else."""
        expects = any(field.startswith("expected.") for field in self.columns)
        return "id" in self.columns and expects

    @property
    def holds_answers(self) -> bool:
        """Whether there are messages, calls or answers."""
        return bool(self.columns.keys() & {"messages", "calls", "text"})


class _Columns:
    """The columns of some records, and what they hold."""

    def __init__(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.records = records
        self.names = list(dict.fromkeys(str(key) for each in records for key in each))
        self.by_name = {plain_name(name): name for name in reversed(self.names)}

    def values(self, place: str) -> Iterator[Any]:
        """Yield what stands at a place, record by record; None where nothing does."""
        for record in self.records:
            found = (
                path_value(record, path_steps(place))
                if place.startswith("$")
                else record.get(place)
            )
            yield None if found == "" or found is None else found

    def places(self, field: str) -> Iterator[str]:
        """Yield where a field may stand, in the order of the table."""
        for name in _NAMES[field]:
            place = self.place(name)
            if place is not None and self.fits(
                place, _FITS[field], empty=field in {"calls", "expected.calls"}
            ):
                yield place

    def place(self, name: str) -> str | None:
        """Return where what is called so stands: a column, or else a path below one."""
        below = name.startswith("$") and path_steps(name)[0] in self.names
        return self.by_name.get(_plain_usual_name(name), name if below else None)

    def fits(self, place: str, fits: Callable[[Any], bool], *, empty: bool = False) -> bool:
        """Return whether most of what stands at a place is of a form.

        If there is nothing, whether that will do.
        """
        held = [value for value in self.values(place) if value is not None]
        return 2 * sum(map(fits, held)) > len(held) if held else empty and place in self.names


def beginning(records: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the first records, of large ones fewer."""
    size = 0
    for each in map(usual_record, islice(records, FIRST)):
        if isinstance(each, OBJECT):
            yield each
            size += sum(len(value) for value in each.values() if isinstance(value, str))
        if size > _LARGEST:
            return


def guess(  # noqa: C901
    records: Iterable[Mapping[str, Any]],
    own: Callable[[str], Any] = lambda _: None,
    *,
    fitting: bool = False,
) -> Guess:
    """Return what the columns of records are, by their names and by what stands in the first of
    them.

    ``own`` knows the fields of a sample by name: columns called as these are taken first. With
    ``fitting`` a column is taken for messages, calls or answers only where it holds them.
    """
    first = list(beginning(records))
    columns = _Columns([each for each in first if row_kind(each) == "model"] or first)
    found = {name: name for name in columns.names if own(name) is not None and name not in _TABLED}
    taken: set[str] = set()

    def take(field: str, places: Iterable[str], called: str = "") -> None:
        left = [place for place in places if place not in taken]
        if left and field not in found:
            found[called or field] = left[0]
            taken.add(left[0])
            if len(left) > 1 and field != "id":
                rest.append((called or field, left[0], left[1:]))

    rest: list[tuple[str, str, list[str]]] = []
    for before, after in ((columns.place(one), columns.place(other)) for one, other in _STEPS):
        if before and after and _are_steps(columns, before, after):
            found |= {"prior_messages": before, "messages": after}
            taken |= {before, after}
            break
    take("messages", columns.places("messages"))
    take("text", columns.places("text"))
    take(
        "expected.calls",
        (each for each in columns.places("expected.calls") if _says_calls(columns, each)),
    )
    take("expected.calls", _places_of_keyed_calls(columns))
    if "messages" not in found:
        take("calls", columns.places("calls"))
    elif "calls" in columns.names:
        found["calls"] = "calls"
    held = "expected" in columns.names and columns.fits(
        "expected", lambda value: isinstance(value, dict)
    )
    of_label = not held and not {"messages", "text", "calls", "predicted"}.isdisjoint(
        found
    )  # else `expected` says it
    take(
        "expected.text",
        (each for each in columns.places("expected.text") if each != "label" or of_label),
    )
    if "label" in columns.names and "label" not in taken:
        found["label"] = "label"
        if "text" not in found and "expected.text" in found:
            found["expected.label"] = found.pop("expected.text")
    below = found.get("expected.calls") == "$.expected.tool_calls"
    if (
        "expected" in columns.names and "expected" not in found.values() and not below
    ):  # in the jsonl form
        found["expected"] = "expected"
    if found.get("messages", "").startswith("$.state."):
        found.pop("state", None)
    for field in ("input", "model", "tools", "usage", "usage.cost_usd"):
        take(field, columns.places(field))
    verdict = next(_verdict_columns(columns), None)
    if verdict is not None:
        name, place = verdict
        take(f"recorded.{name}", [place])
    _identify(columns, found)
    if not fitting and not Guess(found).shows_a_run:  # reading it will say what is wrong with it
        found |= {name: name for name in ("messages", "calls", "text") if name in columns.names}
    used = {path_steps(place)[0] for place in found.values()} | set(found.values())
    doubts = [
        f"{field} is read from {first}, not from {place}; to change that: --map {field}={place}"
        for field, first, more in rest
        for place in more
        if place not in used and _differ(columns, first, place)
    ]
    return Guess(found, doubts, columns.names, columns.records)


def _are_steps(columns: _Columns, before: str, after: str) -> bool:
    """Return whether two columns hold a history and what followed it: messages in one of them."""
    pairs = [*zip(columns.values(before), columns.values(after), strict=True)]
    both = [pair for pair in pairs if None not in pair]
    steps = [pair for pair in both if all(map(_is_answer, pair)) and any(map(_is_talk, pair))]
    return 2 * len(steps) > len(both)


_TABLED: Final = frozenset({*_NAMES, "label", "expected"} - {"recorded"})


def _verdict_columns(columns: _Columns) -> Iterator[tuple[str, str]]:
    """Yield the usual names of verdicts, each with the column that is called so and holds them."""
    for name in _NAMES["recorded"]:
        place = columns.place(name)
        if place is not None and columns.fits(place, _is_verdict):
            yield name, place


def _says_calls(columns: _Columns, place: str) -> bool:
    """Return whether a column that may hold an expected text holds calls."""
    may_be_text = plain_name(place) in set(map(plain_name, _NAMES["expected.text"]))
    return not may_be_text or columns.fits(
        place, lambda each: not isinstance(decoded(each), str) and _are_calls(each)
    )


def _places_of_keyed_calls(columns: _Columns) -> Iterator[str]:
    """Yield the columns that expect calls as ``{TOOL: ARGUMENTS}``.

    Of those that may hold anything else only one whose tools are called in the same data.
    """
    made = [columns.place(name) for name in _NAMES["calls"]]
    called = {
        call["name"]
        for place in made
        if place is not None
        for value in columns.values(place)
        for call in _named_calls(value)
    }
    for name in _NAMES["expected.calls"]:
        place = columns.place(name)
        if place is None or not columns.fits(place, _is_reference):
            continue
        due = {call["name"] for value in columns.values(place) for call in _named_calls(value)}
        if place not in _ANY_REFERENCE or due & called:
            yield place


_ANY_REFERENCE: Final = frozenset({"expected", "reference", "ground_truth", "gold", "target"})
"""Columns that may hold any reference."""


def _is_reference(value: Any) -> bool:
    return with_names(value) is not value


def _named_calls(value: Any) -> list[dict[str, Any]]:
    """Return the calls in a value that have names."""
    found = calls_of(with_names(value)) if value is not None else []
    return [
        each
        for each in as_list(found)
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    ]


def _differ(columns: _Columns, one: str, other: str) -> bool:
    pairs = zip(columns.values(one), columns.values(other), strict=True)
    return any(left != right for left, right in pairs if left is not None and right is not None)


def _identify(columns: _Columns, found: dict[str, str]) -> None:
    """Find the id; that of conversations whose records ask different questions is the cluster."""
    exported = any(map(row_kind, columns.records))
    for place in columns.places("id"):
        if exported and not is_session(place):
            continue
        is_cluster = is_session(place) and _ask_differently(columns, found, place)
        found.setdefault("cluster" if is_cluster else "id", place)


def is_session(place: str) -> bool:
    """Return whether a column or path is that of a conversation's, thread's or trace's id."""
    return plain_name(place) in _PLAIN_SESSIONS


def names_session(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the id of a conversation, a thread or a trace."""
    columns = {plain_name(str(name)) for name in record}
    return any(
        path_exists(record, path_steps(place)) if place.startswith("$") else plain in columns
        for place, plain in zip(_SESSIONS, _PLAIN_SESSIONS, strict=True)
    )


def has_several_records(records: Iterable[Mapping[str, Any]], place: str) -> bool:
    """Return whether an id that stands at a place is that of several of some records."""
    ids = Counter[str]()
    for record in records:
        value = path_value(record, path_steps(place))
        if value is not None and value != "":
            ids[str(value)] += 1
    return any(number > 1 for number in ids.values())


def _ask_differently(columns: _Columns, found: Mapping[str, str], place: str) -> bool:
    """Return whether records of one id ask different questions."""
    asked: dict[str, set[str]] = {}
    for record, identifier in zip(columns.records, columns.values(place), strict=True):
        if identifier is not None:
            asked.setdefault(str(identifier), set()).add(_question(record, found))
    return any(len(questions - {""}) > 1 for questions in asked.values())


def _question(record: Mapping[str, Any], found: Mapping[str, str]) -> str:
    """Return what a record asks: its question, or the first message of the user."""
    if "input" in found:
        return compact(path_value(record, path_steps(found["input"])))
    place = found.get("prior_messages", found.get("messages"))
    talk = None if place is None else talk_of(path_value(record, path_steps(place)))
    for entry in talk if isinstance(talk, list) else ():
        if isinstance(entry, OBJECT) and entry.get("role") == "user":
            return text_of(entry.get("content")) or compact(entry.get("content"))
    return ""


def _paths_to_name(inputs: Inputs) -> list[str]:
    """Return what names the inputs in a command: of very many, the folder above them all."""
    paths = [str(each.path) for each in inputs.data]
    if len(paths) <= _NAMED:
        return paths
    folders = [each.path.parent for each in inputs.data]
    if any(folder.is_absolute() for folder in folders):
        folders = [folder.absolute() for folder in folders]
    return [os.path.commonpath(folders) or "."]


def notes_on(
    inputs: Inputs, columns: Mapping[str, str], options: Sequence[str] | None
) -> list[str]:
    """Return what was recognised by the names of columns, and the command that says the same where
    there is one.
    """
    said = ", ".join(f"{field} = {place}" for field, place in columns.items())
    given = _paths_to_name(inputs)
    if inputs.dataset is not None:
        given += ["--dataset", str(inputs.dataset.path)]
    mapping = [text for field, place in columns.items() for text in ("--map", f"{field}={place}")]
    command = shlex.join(["gradestack", "grade", *given, *(options or ()), *mapping])
    found = [f"Recognised ({OWN_DATA}): {said}", f"The same as: {command}"]
    return found[: 0 if not columns else 1 if options is None else 2]
